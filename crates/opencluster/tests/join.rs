//! Joining a cluster and leaving it, as a person does it: real processes, their output and their exit codes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(40);

/// A directory for one test, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("opencluster-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory can be made");
        Directory(path)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn file(&self, name: &str, content: &str) -> String {
        fs::write(self.at(name), content).expect("a file can be written");
        let only_mine = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.at(name), only_mine).expect("it belongs to us");
        self.at(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn opencluster(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opencluster"));
    command.args(["--port", "0"]).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the one line that a node prints when it cannot start.
fn refusal(args: &[&str]) -> String {
    let output = opencluster(args).output().expect("it runs");
    let words = String::from_utf8(output.stderr).expect("it speaks UTF-8");
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
    words.trim_end().to_owned()
}

/// A running node, killed at the end of the test.
struct Node {
    child: Child,
    port: u16,
    _words: BufReader<std::process::ChildStdout>,
}

impl Node {
    fn start(args: &[&str]) -> Node {
        Node::started(opencluster(args))
    }

    /// Returns once the node serves.
    fn started(mut command: Command) -> Node {
        let mut child = command.spawn().expect("it runs");
        let mut words = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.trim_start().starts_with("clients") {
            line.clear();
            let count = words.read_line(&mut line).expect("UTF-8");
            if count == 0 {
                let mut errors = String::new();
                child.stderr.take().expect("piped").read_to_string(&mut errors).expect("UTF-8");
                panic!("{command:?} did not start: {errors}");
            }
        }
        let port = line.trim_end().rsplit(':').next().expect("HOST:PORT").parse();
        Node { child, port: port.expect("a port"), _words: words }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the answer to an inline command: its bulk string, or its first line.
    fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).expect("it listens");
        stream.set_read_timeout(Some(WAIT)).expect("a timeout can be set");
        write!(stream, "{command}\r\n").expect("it reads");
        let mut reply = String::new();
        let mut lines = BufReader::new(stream);
        lines.read_line(&mut reply).expect("it answers");
        if let Some(length) = reply.strip_prefix('$').and_then(|text| text.trim().parse().ok()) {
            let mut bulk = vec![0; length];
            lines.read_exact(&mut bulk).expect("the rest follows");
            return String::from_utf8(bulk).expect("text");
        }
        reply.trim_end().to_owned()
    }

    fn members(&self) -> usize {
        self.ask("CLUSTER NODES").lines().count()
    }

    /// Returns whether every node holds a part.
    fn is_balanced(&self, members: usize) -> bool {
        let nodes = self.ask("CLUSTER NODES");
        let parts: Vec<usize> = nodes.lines().map(|line| line.split(' ').skip(8).count()).collect();
        parts.len() == members && parts.iter().all(|ranges| *ranges > 0)
    }

    fn terminate(&self) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", "TERM", &pid]).status();
        assert!(status.expect("kill runs").success());
    }

    fn exit_code(&mut self) -> Option<i32> {
        let until = Instant::now() + WAIT;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
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

fn eventually(what: &str, is_true: impl Fn() -> bool) {
    let until = Instant::now() + WAIT;
    while !is_true() {
        assert!(Instant::now() < until, "not within {WAIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn whoever_cannot_join_says_why_in_one_line_and_the_cluster_goes_on() {
    let directory = Directory::new("refusals");
    let secret = directory.file("secret", "a secret of one cluster, long enough\n");
    let other = directory.file("other", "the secret of another cluster, as long\n");
    let founder = Node::start(&["--secret-file", &secret, "--name", "first", "--buckets", "16"]);
    let before = founder.ask("CLUSTER NODES");
    let at = founder.address();
    let refused = |args: &[&str], reason: &str| {
        let args = [&["--join", &at, "--http-port", "off"], args].concat();
        assert_eq!(refusal(&args), format!("opencluster: cannot join at {at}: {reason}"));
    };
    let wrong_secret = "wrong cluster secret; set --secret-file to the cluster's secret";
    refused(&["--secret-file", &other], wrong_secret);
    refused(&[], wrong_secret);
    let right: &[&str] = &["--secret-file", &secret];
    refused(
        &[right, &["--name", "first"]].concat(),
        &format!("the name first is in use by a live node at {at}; choose another --name"),
    );
    // A node that has founded a cluster of its own does not belong to this one.
    let stranger = directory.at("stranger");
    let mut alone = Node::start(&["--data-dir", &stranger]);
    alone.terminate();
    assert_eq!(alone.exit_code(), Some(0));
    refused(&[right, &["--data-dir", &stranger]].concat(), "it belongs to another cluster");
    let locked = directory.file("password", "open sesame, open sesame, open\n");
    let closed = Node::start(&["--requirepass-file", &locked, "--secret-file", &secret]);
    let wanted = refusal(&["--join", &closed.address(), "--secret-file", &secret]);
    assert!(
        wanted.ends_with(
            "missing or wrong client password; set requirepass-file to the cluster's password"
        ),
        "{wanted}"
    );
    let both = ["--requirepass-file", &locked, "--secret-file", &secret];
    Node::start(&[&both[..], &["--join", &closed.address()]].concat());
    let off = refusal(&["--join", &at, "--peer-port", "off"]);
    assert_eq!(off, "opencluster: a node without a peer port (peer-port = off) cannot join");
    assert_eq!(founder.ask("CLUSTER NODES"), before);
}

#[test]
fn an_address_where_nobody_is_or_somebody_else_is_named() {
    let nobody = refusal(&["--join", "127.0.0.1:1"]);
    let expected = "opencluster: cannot join at 127.0.0.1:1: no answer (";
    assert!(nobody.starts_with(expected), "{nobody}");
    let other = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = other.local_addr().expect("bound").port();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().expect("somebody joins");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it reads");
    });
    let line = refusal(&["--join", &format!("127.0.0.1:{port}")]);
    answering.join().expect("it was asked");
    assert!(line.contains("the server at this address is not a cluster node"), "{line}");
}

#[test]
fn one_that_was_a_member_until_lately_tries_again_until_somebody_answers() {
    let [port] = e2e::free_ports();
    let port = port.to_string();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("it is later than 1970").as_secs().to_string();
    let mut back = opencluster(&["--join", &format!("127.0.0.1:{port}"), "--http-port", "off"]);
    let mut back = back.env("_OPENCLUSTER_WAS_MEMBER", now).spawn().expect("it runs");
    let mut words = BufReader::new(back.stderr.take().expect("piped"));
    let mut line = String::new();
    words.read_line(&mut line).expect("UTF-8");
    assert!(line.contains("no answer (") && line.contains("retrying"), "{line}");
    let mut founder = Command::new(env!("CARGO_BIN_EXE_opencluster"));
    founder.args(["--port", &port, "--http-port", "off"]);
    founder.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let founder = Node::started(founder);
    let until = Instant::now() + WAIT;
    while founder.members() < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let members = founder.members();
    let _ = back.kill();
    let _ = back.wait();
    assert_eq!(members, 2, "it came in");
}

#[test]
fn a_cluster_that_was_stopped_as_a_whole_has_its_keys_when_it_starts_again() {
    let directory = Directory::new("whole");
    let (one, two) = (directory.at("one"), directory.at("two"));
    let mut first = Node::start(&["--data-dir", &one]);
    for number in 0..100 {
        assert_eq!(first.ask(&format!("SET key:{number} {number}")), "+OK");
    }
    let mut second = Node::start(&["--data-dir", &two, "--join", &first.address()]);
    eventually("both hold a part", || first.is_balanced(2));
    // Stop one after the other: the second node is the last.
    first.terminate();
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(second.members(), 1);
    assert_eq!(second.ask("DBSIZE"), ":100");
    second.terminate();
    assert_eq!(second.exit_code(), Some(0));
    let second = Node::start(&["--data-dir", &two]);
    assert_eq!(second.ask("DBSIZE"), ":100");
    // The ports have changed, so the node needs the address of its cluster.
    let first = Node::start(&["--data-dir", &one, "--join", &second.address()]);
    eventually("both hold a part again", || first.is_balanced(2));
    let sum = |nodes: [&Node; 2]| -> u32 {
        let size = |node: &Node| {
            let reply = node.ask("DBSIZE");
            reply[1..].parse::<u32>().unwrap_or_else(|_| panic!("no number: {reply}"))
        };
        nodes.into_iter().map(size).sum()
    };
    // While buckets move, a bucket may be counted on neither node or on both.
    eventually("all keys are counted", || sum([&first, &second]) == 100);
}
