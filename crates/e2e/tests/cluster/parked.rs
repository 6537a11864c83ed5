//! Parked commands cost the node no CPU while they wait.

use std::thread;
use std::time::Duration;

use e2e::{Client, Cluster, Effort, Server, raise_fd_limit};
use resp::Value;

const OK: &[u8] = b"OK";
/// The time over which the node's CPU time is measured.
const WATCHED: Duration = Duration::from_secs(3);
/// A node that retries ten thousand requests every millisecond uses a whole processor.
const CPU_MAX: Duration = Duration::from_millis(600);

/// Returns a key that this node serves.
fn key_of(node: &Server) -> String {
    let mut client = node.client();
    let keys = (0..1_000).map(|number| format!("key:{number}"));
    let is_served = |key: &String| client.run(&format!("GET {key}")) == Value::Null;
    keys.into_iter().find(is_served).expect("every node serves some slots")
}

fn write_without_reading(node: &Server, key: &str) -> Client {
    let mut client = Client::try_connect(node.port()).expect("`ulimit -Hn` is large enough");
    client.send(&["SET", key, "value"]).expect("the node reads");
    client
}

/// Returns the CPU time that the node uses while it gets no requests.
fn cpu_at_rest(node: &Server) -> Duration {
    let before = node.cpu_time();
    thread::sleep(WATCHED);
    node.cpu_time() - before
}

#[test]
fn ten_thousand_waiting_clients_cost_no_cpu_and_no_lease() {
    raise_fd_limit();
    let cluster = Cluster::of(3, &["--buckets", "16", "--maxclients", "20000"]);
    let node = &cluster.nodes[0];
    let mut admin = node.client();
    let shares = cluster.shares();
    let key = key_of(node);
    assert_eq!(admin.run("CLIENT PAUSE 600000 WRITE"), Value::Simple(OK.to_vec()));
    let count = Effort::of_this_run().of_normally(10_000).min(10_000);
    let mut writers: Vec<Client> = (0..count).map(|_| write_without_reading(node, &key)).collect();
    assert_eq!(admin.run("PING"), Value::Simple(b"PONG".to_vec()));
    let used = cpu_at_rest(node);
    println!("{count} waiting clients: {used:?} of CPU in {WATCHED:?}");
    assert!(used < CPU_MAX, "{used:?} of CPU in {WATCHED:?}");
    assert_eq!(admin.run(&format!("GET {key}")), Value::Null, "nothing has run");
    assert_eq!(admin.run("CLIENT UNPAUSE"), Value::Simple(OK.to_vec()));
    for writer in &mut writers {
        assert_eq!(writer.receive().expect("an answer").value, Value::Simple(OK.to_vec()));
    }
    assert_eq!(cluster.shares(), shares, "a node was counted as dead meanwhile");
}
