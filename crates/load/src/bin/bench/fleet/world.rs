//! The processes of the fleet's bench: Redis servers, our proxy and twemproxy in front of them,
//! each pinned to its core. Each ends when its value is dropped.
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use load::Tally;
use load::client::Client;
use load::process::{self, Core};

use crate::measure::{LOAD_CORE, SERVER_CORE};
use crate::servers::{Kind, Tools, find_program, free_address, scratch_dir};

const START_WAIT_MAX: Duration = Duration::from_secs(10);
const SERVERS: usize = 4;

/// A running process that speaks RESP.
pub(super) struct Process {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    child: Child,
}

impl Process {
    /// Starts the process, and waits until it answers.
    pub(super) fn start(
        name: &'static str,
        address: SocketAddr,
        command: &mut Command,
        cores: &[Core],
    ) -> io::Result<Process> {
        command.current_dir(scratch_dir()?).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = process::spawn_pinned(command, cores)
            .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        let mut process = Process { name, address, child };
        process.wait_until_it_answers()?;
        Ok(process)
    }

    pub(super) fn redis(tools: &Tools, cores: &[Core]) -> io::Result<Process> {
        let address = free_address()?;
        let mut command = Command::new(tools.binary(Kind::Redis)?);
        let port = address.port().to_string();
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        Process::start("Redis", address, &mut command, cores)
    }

    pub(super) fn proxy(tools: &Tools, servers: &[Process], map: &str) -> io::Result<Process> {
        let address = free_address()?;
        let mut command = Command::new(tools.binary(Kind::Ours)?);
        command.args(["fleet", "proxy", "--servers", &list(servers), "--map", map]);
        command.args(["--port", &address.port().to_string()]);
        command.args(["--http-port", "0", "--threads", "1"]);
        Process::start("the proxy", address, &mut command, &[SERVER_CORE])
    }

    fn twemproxy(servers: &[Process]) -> io::Result<Process> {
        let (address, statistics) = (free_address()?, free_address()?);
        let mut config = format!(
            "fleet:\n  listen: {address}\n  hash: murmur\n  distribution: ketama\n  redis: true\n  servers:\n"
        );
        for server in servers {
            config.push_str(&format!("   - {}:1\n", server.address));
        }
        let file = scratch_dir()?.join("twemproxy.yml");
        fs::write(&file, config)?;
        let mut command = Command::new(find_program("nutcracker", "nutcracker")?);
        command.arg("-c").arg(&file);
        // It rounds its statistics' interval down to what it measures; a long one costs nothing.
        command.args(["-s", &statistics.port().to_string(), "-i", "30000"]);
        Process::start("twemproxy", address, &mut command, &[SERVER_CORE])
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn call(&self, words: &[&str]) -> io::Result<Vec<u8>> {
        Client::connect(self.address)?.call(words)
    }

    /// Fails if there were errors or misses: they void a run, being cheaper than the requested work.
    pub(super) fn sound(&self, tally: &Tally) -> io::Result<()> {
        if tally.errors == 0 && tally.misses == 0 {
            return Ok(());
        }
        let (name, error) = (self.name, tally.first_error.as_deref().unwrap_or("no error"));
        Err(io::Error::other(format!(
            "{name} answered with {} misses and {} errors ({error}): nothing to compare",
            tally.misses, tally.errors
        )))
    }

    fn wait_until_it_answers(&mut self) -> io::Result<()> {
        let started = Instant::now();
        while started.elapsed() < START_WAIT_MAX {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!(
                    "{} ended right after its start: {status}",
                    self.name
                )));
            }
            // Older versions of twemproxy do not support PING, but every server supports GET.
            if self.call(&["GET", "nothing"]).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(io::Error::other(format!("{} does not answer", self.name)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended by itself; then there is nothing to stop.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the servers' addresses in the form that `--servers` takes.
pub(super) fn list(servers: &[Process]) -> String {
    servers.iter().map(|server| server.address.to_string()).collect::<Vec<_>>().join(",")
}

/// All processes to compare. The proxies end before the servers behind them.
pub(super) struct World {
    ours: Process,
    twemproxy: Process,
    direct: Process,
    _servers: Vec<Process>,
}

impl World {
    pub(super) fn start(tools: &Tools) -> io::Result<World> {
        let start = |_| Process::redis(tools, &[LOAD_CORE]);
        let servers: Vec<Process> = (0..SERVERS).map(start).collect::<io::Result<_>>()?;
        Ok(World {
            ours: Process::proxy(tools, &servers, "4.4.4.4")?,
            twemproxy: Process::twemproxy(&servers)?,
            direct: Process::redis(tools, &[SERVER_CORE])?,
            _servers: servers,
        })
    }

    /// Returns our proxy, twemproxy, and a server without a proxy.
    pub(super) fn measured(&self) -> [&Process; 3] {
        [&self.ours, &self.twemproxy, &self.direct]
    }
}
