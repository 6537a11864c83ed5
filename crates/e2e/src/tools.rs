//! External programs that the tests drive: redis-cli, redis-benchmark, Python with redis-py,
//! coredis and valkey-glide, Node with ioredis and node-redis, Chromium. A missing one fails its test with instructions for installing it.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// An external program, and its location.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    program: &'static str,
    /// Subdirectory of the folder where `cargo xtask test` installs; empty for programs on the PATH.
    inside_tools: &'static str,
}

pub const REDIS_CLI: Tool = Tool { program: "redis-cli", inside_tools: "" };
pub const REDIS_BENCHMARK: Tool = Tool { program: "redis-benchmark", inside_tools: "" };
pub(crate) const REDIS_SERVER: Tool = Tool { program: "redis-server", inside_tools: "" };
pub const PYTHON: Tool = Tool { program: "python", inside_tools: "python/bin" };
/// Node, set up so that it finds ioredis, node-redis and playwright-core.
pub const NODE: Tool = Tool { program: "node", inside_tools: "" };
pub const CHROMIUM: Tool = Tool { program: "chromium", inside_tools: "" };

/// Timeout: longer than any program of ours should take, so that a hanging one fails its test.
const PATIENCE: Duration = Duration::from_secs(60);

impl Tool {
    /// Returns a command for the program, without arguments yet.
    ///
    /// # Panics
    /// Panics if it is not installed: a test that cannot run has not passed.
    pub fn command(self) -> Command {
        let path = self.path().unwrap_or_else(|| {
            let program = self.program;
            panic!("{program} is not installed: `cargo xtask test` installs it (as root, with apt)")
        });
        let mut command = Command::new(path);
        command.env("NODE_PATH", tools_dir().join("node/node_modules"));
        command
    }

    /// Runs the program to its end with `input`, and returns its output.
    ///
    /// # Panics
    /// Panics if it fails or does not end.
    pub fn output(self, args: &[&str], input: &[u8]) -> String {
        let mut command = self.command();
        command.args(args);
        let output = finish(command, input);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {args:?}: {text}\n{errors}", self.program);
        text
    }

    fn path(self) -> Option<PathBuf> {
        let dirs: Vec<PathBuf> = if self.inside_tools.is_empty() {
            let path: OsString = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).collect()
        } else {
            vec![tools_dir().join(self.inside_tools)]
        };
        dirs.iter().map(|dir| dir.join(self.program)).find(|path| path.is_file())
    }
}

/// Returns the folder where `cargo xtask test` installs programs for the tests.
fn tools_dir() -> PathBuf {
    let beside_us = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    std::env::var_os("OPENCLUSTER_TOOLS").map_or_else(beside_us, PathBuf::from)
}

/// Runs a command with this input, and kills it if it takes too long.
fn finish(mut command: Command, input: &[u8]) -> Output {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("it was found on the PATH");
    let mut stdin = child.stdin.take().expect("its input is piped");
    let input = input.to_vec();
    // On its own thread: the program may print before it has read all its input.
    let feeder = std::thread::spawn(move || {
        // A program that ends early has closed its input; its output tells why.
        let _ = std::io::Write::write_all(&mut stdin, &input);
    });
    let pid = child.id();
    let waiter = std::thread::spawn(move || child.wait_with_output());
    let begun = Instant::now();
    while !waiter.is_finished() {
        if begun.elapsed() > PATIENCE {
            let _ = Command::new("kill").arg(pid.to_string()).status();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    feeder.join().expect("writing does not panic");
    waiter.join().expect("waiting does not panic").expect("its output can be read")
}
