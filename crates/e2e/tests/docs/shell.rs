//! A terminal like that of a page's reader. The default ports may be taken on this machine, so free ports replace all
//! of them: in commands, in the defaults of programs, and back again in their output.
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use e2e::{REDIS_CLI, node_binary};

use crate::page::{Step, fits};

/// Time limit until the output matches the page: nodes start, buckets move.
const BECOMES_SO_WITHIN: Duration = Duration::from_secs(90);
/// Commands that can be repeated without changing anything.
const HARMLESS: [&str; 5] =
    ["opencluster status", "opencluster settings", "redis-cli", "curl", "grep"];
/// Commands that run until they are stopped; their output is read while others run.
const STAYS: [&str; 1] = ["cargo run --release"];
const MARK: &str = "@end-of-command:";
/// The first ports of each kind, and how many consecutive ports of each a page may use.
const FAMILIES: [u16; 3] = [6379, 7379, 16_379];
const FAMILY: u16 = 4;
/// The lowest base port, and the number of bases to choose from.
const FIRST_BASE: u16 = 11_000;
const BASES: u32 = 2_500;

pub(crate) struct Shell {
    bash: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    dir: PathBuf,
    /// The port that replaces 6379.
    base: u16,
}

impl Shell {
    pub(crate) fn new() -> Shell {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("opencluster-docs-{}-{count}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let programs = dir.join("programs");
        fs::create_dir_all(&programs).expect("the temporary directory can be written");
        let base = free_base();
        write_programs(&programs, base);
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc"]).current_dir(&dir);
        command.env("PATH", format!("{}:{path}", programs.display()));
        // redis-cli prints as on a terminal.
        command.env("FAKETTY", "1").env("OPENCLUSTER_PORT", base.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut bash = command.spawn().expect("there is a bash");
        let input = bash.stdin.take().expect("piped");
        let output = BufReader::new(bash.stdout.take().expect("piped"));
        let mut shell = Shell { bash, input, output, dir, base };
        // Number background jobs, as in a reader's terminal.
        shell.run("set -m");
        shell
    }

    /// Runs a step until its output is as expected; repeats it only if it is harmless.
    pub(crate) fn follow(&mut self, step: &Step) -> Result<(), String> {
        if STAYS.contains(&step.command.as_str()) {
            return self.start(step);
        }
        let is_harmless = HARMLESS.iter().any(|harmless| step.command.starts_with(harmless));
        let begun = Instant::now();
        loop {
            let (printed, code) = self.run(&step.command);
            let lines: Vec<&str> = printed.trim_end().lines().collect();
            if code == 0 && (step.expected.is_empty() || fits(&step.expected, &lines)) {
                return Ok(());
            }
            if !is_harmless || begun.elapsed() > BECOMES_SO_WITHIN {
                return Err(format!("exit code {code}, and printed:\n{printed}"));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Starts a command that keeps running, and compares its output while it runs.
    fn start(&mut self, step: &Step) -> Result<(), String> {
        let (_, code) = self.run(&format!("{} > first.log 2>&1 &", step.command));
        // It must not count as one of the reader's jobs: on the page it runs in another terminal.
        self.run("disown %%");
        let begun = Instant::now();
        loop {
            let log = fs::read_to_string(self.dir.join("first.log")).unwrap_or_default();
            let printed = self.as_in_the_page(&log);
            if code == 0 && fits(&step.expected, &printed.trim_end().lines().collect::<Vec<_>>()) {
                return Ok(());
            }
            if begun.elapsed() > BECOMES_SO_WITHIN {
                return Err(format!("it printed:\n{printed}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a command; returns its output, including errors, and its exit code.
    fn run(&mut self, command: &str) -> (String, i32) {
        let command = self.as_here(command);
        let script = format!("{{\n{command}\n}} 2>&1\necho {MARK}$?\n");
        self.input.write_all(script.as_bytes()).expect("the shell listens");
        self.input.flush().expect("the shell listens");
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).expect("the shell speaks UTF-8");
            assert!(count > 0, "the shell has ended");
            if let Some((before, code)) = line.split_once(MARK) {
                printed.push_str(before);
                let code = code.trim().parse().expect("an exit code");
                return (self.as_in_the_page(&printed), code);
            }
            printed.push_str(&line);
        }
    }

    /// Returns what the programs in the background have printed, for the report of a failure.
    pub(crate) fn logs(&self) -> String {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let logs =
            files.map(|file| file.path()).filter(|path| path.extension() == Some("log".as_ref()));
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            format!("--- {}\n{}", path.display(), self.as_in_the_page(&text))
        };
        logs.map(read).collect()
    }

    fn ports(&self) -> impl Iterator<Item = (String, String)> {
        let base = self.base;
        FAMILIES.into_iter().flat_map(move |first| {
            (0..FAMILY).map(move |place| {
                let here = base + (first - FAMILIES[0]) + place;
                ((first + place).to_string(), here.to_string())
            })
        })
    }

    fn as_here(&self, text: &str) -> String {
        self.ports().fold(text.to_owned(), |text, (page, here)| text.replace(&page, &here))
    }

    fn as_in_the_page(&self, text: &str) -> String {
        self.ports().fold(text.to_owned(), |text, (page, here)| text.replace(&here, &page))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Nodes that the page has left running are killed by their own ids.
        for file in fs::read_dir(self.dir.join("programs/started")).into_iter().flatten().flatten()
        {
            let pid = file.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        let _ = self.bash.kill();
        let _ = self.bash.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Writes `opencluster`, `cargo run --release` and `redis-cli` with other default ports. Each node
/// records its process id, so that it can be killed.
fn write_programs(dir: &Path, base: u16) {
    fs::create_dir_all(dir.join("started")).expect("a directory of our own");
    let (binary, dir_name) = (node_binary().display(), dir.display());
    let opencluster = format!(
        "case \"$1\" in\n\
         status|top|leave|split|settings|takeover)\n\
           case \"$*\" in *--node*) exec {binary} \"$@\";; esac\n\
           name=$1; shift; exec {binary} $name --node 127.0.0.1:{base} \"$@\";;\n\
         ''|-*|serve) touch {dir_name}/started/$$; exec {binary} \"$@\";;\n\
         esac\n\
         exec {binary} \"$@\""
    );
    let cargo = "[ \"$*\" = 'run --release' ] || { echo \"cargo $*\"; exit 1; }\nexec opencluster";
    let program = REDIS_CLI.command().get_program().display().to_string();
    let redis_cli = format!(
        "case \" $* \" in *' -p '*) exec {program} \"$@\";; esac\n\
         exec {program} -p {base} \"$@\""
    );
    for (name, script) in
        [("opencluster", opencluster), ("cargo", cargo.to_owned()), ("redis-cli", redis_cli)]
    {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file of our own");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }
}

/// Returns a port to replace 6379, such that the other ports of a page's nodes are free beside it.
/// All are below the range that the system assigns to clients, where thousands may be taken.
fn free_base() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    for _ in 0..BASES {
        let number = (std::process::id() + TRIED.fetch_add(1, Ordering::Relaxed)) % BASES;
        let base = FIRST_BASE + u16::try_from(number).expect("there are few") * FAMILY;
        let mut all = FAMILIES
            .into_iter()
            .flat_map(|first| (0..FAMILY).map(move |place| base + first - FAMILIES[0] + place));
        if all.all(is_free) {
            return base;
        }
    }
    panic!("no free run of ports");
}
