//! Common client libraries as the load of a growth: redis-py and ioredis, at a fixed rate, each in a process of
//! its own. Also counts how often they read the whole map.
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use super::paced::{Load, Samples};

const REDIS_PY: &str = include_str!("paced_redis_py.py");
const IOREDIS: &str = include_str!("paced_ioredis.js");
/// Requests a second: a Python process cannot make many more beside the servers.
pub(super) const PER_SECOND: u64 = 500;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Library {
    RedisPy,
    Ioredis,
}

pub(super) struct ForeignLoad {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// The output of a script: microseconds since 1970.
#[derive(Deserialize)]
struct Told {
    samples: Vec<(u64, u64)>,
    refreshes: Vec<u64>,
}

impl Library {
    pub(super) fn name(self) -> &'static str {
        match self {
            Library::RedisPy => "redis-py",
            Library::Ioredis => "ioredis",
        }
    }

    fn command(self) -> Command {
        let tools = tools_dir();
        match self {
            Library::RedisPy => {
                let mut command = Command::new(tools.join("python/bin/python"));
                command.args(["-c", REDIS_PY]);
                command
            }
            Library::Ioredis => {
                let mut command = Command::new("node");
                command.env("NODE_PATH", tools.join("node/node_modules"));
                command.args(["-e", IOREDIS, "--"]);
                command
            }
        }
    }
}

/// Returns the folder in which `cargo xtask test` installs the libraries.
fn tools_dir() -> PathBuf {
    let beside_us = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    std::env::var_os("OPENCLUSTER_TOOLS").map_or_else(beside_us, PathBuf::from)
}

impl ForeignLoad {
    pub(super) fn start(library: Library, seed: SocketAddr, keys: u64) -> io::Result<ForeignLoad> {
        let mut command = library.command();
        command.args([seed.port().to_string(), keys.to_string(), PER_SECOND.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line.trim() != "ready" {
            child.kill()?;
            return Err(io::Error::other(format!("{} did not start: {line}", library.name())));
        }
        Ok(ForeignLoad { child, output })
    }

    pub(super) fn end(mut self) -> io::Result<Load> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        self.child.wait()?;
        let told: Told = serde_json::from_str(&text).map_err(io::Error::other)?;
        let now = (Instant::now(), SystemTime::now());
        let at = |micros: u64| {
            let ago = now.1.duration_since(UNIX_EPOCH + Duration::from_micros(micros));
            now.0.checked_sub(ago.unwrap_or_default()).unwrap_or(now.0)
        };
        let samples: Samples = told
            .samples
            .into_iter()
            .map(|(due, took)| (at(due), Duration::from_micros(took)))
            .collect();
        Ok(Load { samples, refreshes: told.refreshes.into_iter().map(at).collect() })
    }
}
