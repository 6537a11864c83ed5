//! A private server for one test: our node, or Redis for comparison. It listens on a free port of
//! 127.0.0.1 and ends when its `Server` is dropped.
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use load::process::CpuClock;

use crate::client::Client;
use crate::ports::free_ports;
use crate::tools::REDIS_SERVER;

/// Time limit until a started server answers.
const START_WITHIN: Duration = Duration::from_secs(20);
/// Time limit for a terminating server to hand over everything and end.
const END_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Server {
    name: &'static str,
    child: Child,
    port: u16,
    http_port: u16,
    peer_port: u16,
    /// Its working directory, which also holds its log.
    dir: PathBuf,
    /// The arguments it was started with.
    arguments: Vec<String>,
}

impl Server {
    /// Starts our node, built from this workspace, with all defaults but its ports.
    pub fn node() -> Server {
        Server::node_with(&[])
    }

    pub fn node_with(flags: &[&str]) -> Server {
        let [port, http_port, peer_port] = free_ports();
        let ports = [("--port", port), ("--peer-port", peer_port), ("--http-port", http_port)];
        let ports = ports.into_iter().flat_map(|(flag, port)| [flag.to_owned(), port.to_string()]);
        let bind = ["--bind", "127.0.0.1"].map(str::to_owned).into_iter();
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        Server::node_again(bind.chain(ports).chain(flags).collect(), [port, http_port, peer_port])
    }

    fn node_again(arguments: Vec<String>, ports: [u16; 3]) -> Server {
        let mut command = Command::new(node_binary());
        command.args(&arguments);
        let mut server = Server::start("opencluster", command, ports);
        server.arguments = arguments;
        server
    }

    /// Starts our node under limits that a shell sets: `ulimit -n 200`.
    pub fn node_under(limits: &str, flags: &[&str]) -> Server {
        let [port, http_port, peer_port] = free_ports();
        let ports = [("--port", port), ("--peer-port", peer_port), ("--http-port", http_port)];
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]).arg(node_binary());
        for (flag, port) in ports {
            command.arg(flag).arg(port.to_string());
        }
        command.args(flags);
        Server::start("opencluster", command, [port, http_port, peer_port])
    }

    /// Starts our node without a port for other nodes in its flags, so that a file can set it.
    pub fn node_from_file(flags: &[&str]) -> Server {
        let [port, http_port, peer_port] = free_ports();
        let mut command = Command::new(node_binary());
        command.args(["--port", &port.to_string(), "--http-port", &http_port.to_string()]);
        command.args(flags);
        Server::start("opencluster", command, [port, http_port, peer_port])
    }

    /// Waits until the process has ended, and starts it again with the same arguments.
    pub fn start_again(self) -> Server {
        self.start_again_with(&[])
    }

    /// Like `start_again`, with these arguments added.
    pub fn start_again_with(mut self, flags: &[&str]) -> Server {
        self.wait_until_it_ends();
        let mut arguments = core::mem::take(&mut self.arguments);
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        Server::node_again(arguments, [self.port, self.http_port, self.peer_port])
    }

    pub fn redis() -> Server {
        Server::redis_with(&[])
    }

    /// Starts Redis with nothing on disk, one database as in our node, and DEBUG allowed.
    pub fn redis_with(flags: &[&str]) -> Server {
        let [port, unused, unused_too] = free_ports();
        let mut command = REDIS_SERVER.command();
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
        command
            .args(["--databases", "16", "--enable-debug-command", "yes"])
            .args(["--loglevel", "warning"])
            .args(flags);
        Server::start("redis-server", command, [port, unused, unused_too])
    }

    fn start(name: &'static str, mut command: Command, ports: [u16; 3]) -> Server {
        let [port, http_port, peer_port] = ports;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let dir = std::env::temp_dir().join(format!("opencluster-e2e-{id}-{count}"));
        std::fs::create_dir_all(&dir).expect("the temporary directory can be written");
        let log = File::create(dir.join("log")).expect("a file in our own directory");
        let errors = log.try_clone().expect("a file can be held twice");
        command.current_dir(&dir).stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        let arguments = Vec::new();
        let mut server = Server { name, child, port, http_port, peer_port, dir, arguments };
        server.wait_until_it_answers();
        server
    }

    fn wait_until_it_answers(&mut self) {
        let begun = Instant::now();
        loop {
            if let Ok(mut client) = Client::try_connect(self.port)
                && client.send(&["PING"]).is_ok()
                && client.receive().is_ok()
            {
                return;
            }
            let ended = self.child.try_wait().expect("a child can be asked for its status");
            if let Some(status) = ended {
                panic!("{} ended with {status}:\n{}", self.name, self.log());
            }
            assert!(
                begun.elapsed() < START_WITHIN,
                "{} never answered:\n{}",
                self.name,
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Opens a new connection.
    pub fn client(&self) -> Client {
        Client::try_connect(self.port).expect("a running server takes connections")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn http_port(&self) -> u16 {
        self.http_port
    }

    pub fn peer_port(&self) -> u16 {
        self.peer_port
    }

    /// Freezes the process, until [`Server::go_on`]. When this returns, none of its threads runs.
    pub fn stop(&self) {
        self.signal(rustix::process::Signal::STOP);
        let begun = Instant::now();
        while !self.is_stopped() {
            assert!(begun.elapsed() < END_WITHIN, "{} does not stop", self.name);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns whether all threads of the process are stopped by a signal.
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(self.proc("task")).expect("it is running");
        let is_stopped = |thread: std::io::Result<std::fs::DirEntry>| {
            // A thread that has just ended has no state: it is looked for again.
            let stat =
                thread.and_then(|thread| std::fs::read_to_string(thread.path().join("stat")));
            let state =
                stat.ok().and_then(|stat| stat.rsplit(')').next()?.trim_start().chars().next());
            state == Some('T')
        };
        threads.into_iter().all(is_stopped)
    }

    pub fn go_on(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it is running");
    }

    /// Kills the process; it can be started again.
    pub fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// Asks the process to end, as an operator would; it can be started again.
    pub fn ask_to_end(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Asks the process to end, and waits until it has.
    pub fn terminate(mut self) {
        self.ask_to_end();
        self.wait_until_it_ends();
    }

    /// Waits until the process has ended by itself.
    pub fn wait_until_it_ends(&mut self) {
        let begun = Instant::now();
        while self.child.try_wait().expect("a child can be asked for its status").is_none() {
            let waited = begun.elapsed();
            assert!(waited < END_WITHIN, "{} did not end:\n{}", self.name, self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.dir.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the resident memory, as the kernel counts it.
    pub fn rss_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(self.proc("status")).expect("it is running");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).expect("VmRSS is in kB");
        kib.trim().parse::<u64>().expect("VmRSS is a number") * 1024
    }

    /// Returns the processor time used so far, in user space and in the kernel.
    pub fn cpu_time(&self) -> Duration {
        let clock = CpuClock::of(self.child.id()).expect("it is running");
        clock.spent().expect("it is running")
    }

    /// Returns the number of open file descriptors.
    pub fn fds(&self) -> usize {
        std::fs::read_dir(self.proc("fd")).expect("it is running").count()
    }

    fn proc(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(file)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(30).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            eprintln!("--- end of the log of {}:\n{}", self.name, tail.join("\n"));
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Allows this process as many connections as the machine permits.
pub fn raise_fd_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })
        .expect("the soft limit may be raised to the hard one");
}

/// Runs our binary with these arguments to its end.
pub fn opencluster(args: &[&str]) -> Output {
    let mut command = Command::new(node_binary());
    command.args(args).stdin(Stdio::null()).output().expect("our own binary can be started")
}

/// Returns the path of the node beside this program or test, built with the same profile if necessary.
pub fn node_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let own = std::env::current_exe().expect("a running program has a path");
        let dir = own.parent().expect("a program lies somewhere");
        // Programs are in target/PROFILE, tests in its deps.
        let profile = if dir.ends_with("deps") { dir.parent().unwrap_or(dir) } else { dir };
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--package", "opencluster"]);
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(status.is_ok_and(|status| status.success()), "the node could not be built");
        profile.join("opencluster")
    })
}
