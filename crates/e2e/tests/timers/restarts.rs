//! Timers through a stop of the whole cluster, and through being declared dead.

use std::path::PathBuf;
use std::time::Duration;

use e2e::{Cluster, Server};
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
        let dir = self.0.to_str().expect("plain letters");
        Server::node_with(&[&["--data-dir", dir], more].concat())
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
