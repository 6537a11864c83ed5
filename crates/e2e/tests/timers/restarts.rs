//! Timers through a stop and a crash of the whole cluster, through a failed start, and through being declared dead.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use e2e::{Cluster, Server, free_ports, node_binary};
use serde_json::{Value, json};

use crate::api::{http, timer};
use crate::sink::Sink;
use crate::wait_until;
use e2e::http::ask;

/// A node's data directory, removed when the value is dropped.
pub(crate) struct DataDir(PathBuf);

impl DataDir {
    pub(crate) fn new(name: &str) -> DataDir {
        let name = format!("opencluster-e2e-timers-{}-{name}", std::process::id());
        DataDir(std::env::temp_dir().join(name))
    }

    fn start(&self, join: Option<&Server>) -> Server {
        match join.map(|node| format!("127.0.0.1:{}", node.port())) {
            Some(at) => self.start_with(&["--join", &at]),
            None => self.start_with(&[]),
        }
    }

    pub(crate) fn start_with(&self, more: &[&str]) -> Server {
        Server::node_with(&[&["--data-dir", self.path()], more].concat())
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("plain letters")
    }

    /// Returns whether the timers that a running node has saved include this text.
    fn has_saved(&self, text: &str) -> bool {
        let saved = std::fs::read(self.0.join("timers.running")).unwrap_or_default();
        saved.windows(text.len()).any(|part| part == text.as_bytes())
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn stats(node: &Server) -> Value {
    ask(node.http_port(), "GET", "/timers/stats", "").json()
}

#[test]
fn timers_survive_a_stop_of_the_whole_cluster() {
    let dirs = ["a", "b", "c"].map(DataDir::new);
    let sink = Sink::start();
    // 1) Three nodes with timers, some of which come due while no node runs.
    let first = dirs[0].start(None);
    let others = [&dirs[1], &dirs[2]].map(|dir| dir.start(Some(&first)));
    for number in 0..60 {
        let interval = if number % 3 == 0 { 20.0 } else { 600.0 };
        let reply = ask(first.http_port(), "POST", "/timers", &timer(interval, &http(&sink.uri())));
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    // 2) All leave, one after the other.
    others.into_iter().for_each(Server::terminate);
    first.terminate();
    let popped_before = sink.pops().len();
    std::thread::sleep(Duration::from_secs(21));
    assert_eq!(sink.pops().len(), popped_before, "nobody runs");
    // 3) They start again: the timers that were due pop once, and the others still exist.
    let first = dirs[0].start(None);
    wait_until("what was due has popped", || sink.pops().len() >= 20);
    let second = dirs[1].start(Some(&first));
    wait_until("both keep what is left", || {
        let stats = stats(&second);
        (&stats["timers"], &stats["copies"]) == (&json!(40), &json!(80))
    });
    assert_eq!(sink.counts().values().max(), Some(&1), "none came twice");
    assert_eq!(sink.pops().len(), 20);
}

/// Creates a timer of ten minutes with this body of its callback.
fn create(node: &Server, sink: &Sink, opaque: &str) {
    let callback = json!({ "http": { "uri": sink.uri(), "opaque": opaque } });
    let reply = ask(node.http_port(), "POST", "/timers", &timer(600.0, &callback));
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[test]
fn a_start_that_fails_keeps_the_timers() {
    let (dir, sink) = (DataDir::new("taken"), Sink::start());
    let node = dir.start(None);
    create(&node, &sink, "kept");
    node.terminate();
    let holder = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let taken = holder.local_addr().expect("it is bound").port();
    let [port, peer] = free_ports();
    let mut command = Command::new(node_binary());
    command.args(["--bind", "127.0.0.1", "--data-dir", dir.path()]);
    for (flag, port) in [("--port", port), ("--peer-port", peer), ("--http-port", taken)] {
        command.args([flag, &port.to_string()]);
    }
    let failed = command.output().expect("it runs");
    assert!(!failed.status.success(), "the HTTP port is taken");
    let node = dir.start(None);
    assert_eq!(stats(&node)["timers"], 1);
    // The file was read by a node that then crashed, before it could save anything.
    node.kill();
    drop(node);
    assert_eq!(stats(&dir.start(None))["timers"], 1);
}

#[test]
fn timers_survive_a_crash_of_all_nodes_with_data_directories() {
    let dirs = ["crash-a", "crash-b", "crash-c"].map(DataDir::new);
    let sink = Sink::start();
    let first = dirs[0].start(None);
    let second = dirs[1].start(Some(&first));
    let third = dirs[2].start(Some(&first));
    for number in 0..30 {
        create(&second, &sink, &format!("timer {number}."));
    }
    let saved =
        |number| dirs.iter().filter(|dir| dir.has_saved(&format!("timer {number}."))).count();
    wait_until("each timer is saved twice", || (0..30).all(|number| saved(number) == 2));
    let nodes = [first, second, third];
    nodes.iter().for_each(Server::kill);
    // Each waits for the others before it serves.
    let nodes = std::thread::scope(|scope| {
        let starting = nodes.map(|node| scope.spawn(|| node.start_again()));
        starting.map(|node| node.join().expect("it starts"))
    });
    wait_until("all timers are at their two nodes again", || {
        let stats = stats(&nodes[0]);
        (&stats["timers"], &stats["copies"]) == (&json!(30), &json!(60))
    });
    assert_eq!(sink.pops().len(), 0);
}

#[test]
fn a_node_that_was_counted_as_dead_brings_its_timers_back() {
    let cluster = Cluster::of(3, &[]);
    let sink = Sink::start();
    let port = cluster.nodes[0].http_port();
    // Each timer is on a single node, a third of them on the one that will be stopped.
    let mut body: Value =
        serde_json::from_str(&timer(25.0, &http(&sink.uri()))).expect("our own JSON");
    body["reliability"] = json!({ "replication-factor": 1 });
    for _ in 0..60 {
        assert_eq!(ask(port, "POST", "/timers", &body.to_string()).status, 200);
    }
    cluster.nodes[2].stop();
    wait_until("it is counted as dead", || {
        let status = cluster.nodes[0].client().status();
        status["members"].as_array().is_some_and(|members| members.len() == 2)
    });
    assert!(stats(&cluster.nodes[0])["timers"].as_u64() < Some(60), "it has some of them");
    cluster.nodes[2].go_on();
    wait_until("it is back, and all are there", || {
        cluster.shares().len() == 3 && stats(&cluster.nodes[1])["timers"] == 60
    });
    wait_until("all pop", || sink.counts().len() == 60);
}
