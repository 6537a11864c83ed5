//! The binary as a person uses it: its output and its exit codes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn opencluster(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opencluster"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = opencluster(args).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it speaks UTF-8");
    (status.code().expect("no signal ended it"), text(stdout), text(stderr))
}

/// A node on free ports, stopped at the end of the test.
struct Node {
    child: Child,
    client_port: u16,
    http_port: u16,
    words: BufReader<std::process::ChildStdout>,
}

impl Node {
    fn start() -> Node {
        let mut child = opencluster(&["--port", "0"]).spawn().expect("it runs");
        let mut words = BufReader::new(child.stdout.take().expect("piped"));
        let mut ports = [0; 2];
        for (label, port) in ["clients", "console"].into_iter().zip(&mut ports) {
            *port = read_port(&mut words, label);
        }
        Node { child, client_port: ports[0], http_port: ports[1], words }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Returns the exit code and the rest of the output.
    fn end(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.child.try_wait().expect("our child").is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut rest = String::new();
        if let Some(status) = self.child.try_wait().expect("our child") {
            self.words.read_to_string(&mut rest).expect("UTF-8");
            return (status.code(), rest);
        }
        panic!("it did not stop");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the port at the end of the line that begins with `label`.
fn read_port(words: &mut impl BufRead, label: &str) -> u16 {
    let mut line = String::new();
    while !line.trim_start().starts_with(label) {
        line.clear();
        assert_ne!(words.read_line(&mut line).expect("UTF-8"), 0, "no line with {label}");
    }
    let port = line.trim().trim_end_matches('/').rsplit(':').next().expect("a port");
    port.parse().expect("a number")
}

#[test]
fn bad_input_gets_one_line_and_exit_code_2() {
    let cases: [(&[&str], &str); 4] = [
        (
            &["--maxmemory-policy", "lru"],
            "opencluster: --maxmemory-policy 'lru': must be one of volatile-lru, volatile-lfu, \
             volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction\n",
        ),
        (
            &["serve", "--prot", "7000"],
            "opencluster: unexpected argument '--prot' found; did you mean '--port'?\n",
        ),
        (
            &["--config", "/nowhere/at/all.toml"],
            "opencluster: cannot read /nowhere/at/all.toml: No such file or directory (os error 2)\n",
        ),
        (
            &["--bind", "0.0.0.0"],
            "opencluster: bind = '0.0.0.0': it is reachable from the network, but there is no \
             password for clients (requirepass-file) and no secret for nodes (secret-file); set \
             what is missing, or start anyway with --insecure\n",
        ),
    ];
    for (args, expected) in cases {
        let (code, stdout, stderr) = output(args);
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (2, "", expected), "{args:?}");
    }
}

#[test]
fn a_taken_port_says_who_answers_there_and_how_to_choose_another() {
    let node = Node::start();
    let port = node.client_port.to_string();
    let (code, _, stderr) = output(&["--port", &port, "--http-port", "off", "--peer-port", "off"]);
    let begins = format!("opencluster: 127.0.0.1:{port} is taken: ");
    assert!(stderr.starts_with(&begins), "{stderr}");
    assert!(stderr.contains("an OpenCluster node") || stderr.contains("speaks RESP"), "{stderr}");
    assert!(stderr.contains("answers there; choose another port with --port "), "{stderr}");
    assert_eq!((code, stderr.lines().count()), (1, 1));

    let http_port = node.http_port.to_string();
    let (code, _, stderr) = output(&["--port", "0", "--http-port", &http_port]);
    let begins =
        format!("opencluster: 127.0.0.1:{http_port} is taken: a web server answers there;");
    assert!(stderr.starts_with(&begins), "{stderr}");
    assert!(stderr.ends_with("or go without with --http-port off\n"), "{stderr}");
    assert_eq!((code, stderr.lines().count()), (1, 1));
}

#[test]
fn a_signal_ends_a_node_with_one_line_and_exit_code_0() {
    for signal in ["TERM", "INT"] {
        let node = Node::start();
        node.signal(signal);
        let (code, rest) = node.end();
        assert_eq!(code, Some(0), "{signal}");
        assert_eq!(rest.lines().last(), Some("opencluster: stopped"), "{signal}");
    }
}

#[test]
fn without_a_terminal_there_are_no_colours() {
    let mut node = Node::start();
    node.signal("TERM");
    let mut rest = String::new();
    node.words.read_to_string(&mut rest).expect("UTF-8");
    assert!(rest.contains("Data is in memory only") && !rest.contains('\u{1b}'), "{rest}");
}

#[test]
fn the_version_is_one_line() {
    let (code, stdout, _) = output(&["--version"]);
    assert!(stdout.starts_with(concat!("opencluster ", env!("CARGO_PKG_VERSION"))), "{stdout}");
    assert_eq!((code, stdout.lines().count()), (0, 1));
}
