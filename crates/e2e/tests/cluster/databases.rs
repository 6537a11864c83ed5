//! Numbered databases in a cluster: a key keeps its database while buckets move and nodes fail, on every copy.
use std::collections::BTreeSet;
use std::time::Duration;

use e2e::{Client, Cluster, PYTHON, Server, free_ports};
use resp::Value;

/// Workers of a task queue and sessions through redis-py, in one database each.
const QUEUE_STORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/databases.py");
const DATABASES: [usize; 3] = [0, 3, 15];
const KEYS: usize = 400;
const OK: &[u8] = b"OK";
/// The size of a database at a node that does not serve at the moment.
const NO_ANSWER: i64 = -1_000_000;

fn ok() -> Value {
    Value::Simple(OK.to_vec())
}

/// Returns a client of each node with this database selected.
fn clients(cluster: &Cluster, database: usize) -> Vec<Client> {
    let client = |node: &Server| {
        let mut client = node.client();
        assert_eq!(client.run(&format!("SELECT {database}")), ok());
        client
    };
    cluster.nodes.iter().map(client).collect()
}

/// Runs a command at the node that serves its key.
fn anywhere(clients: &mut [Client], line: &str) -> Value {
    let answers = clients.iter_mut().map(|client| client.run(line));
    let is_redirected =
        |answer: &Value| matches!(answer, Value::Error(text) if text.starts_with(b"MOVED"));
    answers.into_iter().find(|answer| !is_redirected(answer)).expect("a node serves the key")
}

/// Returns the sum of DBSIZE over all nodes.
fn size(clients: &mut [Client]) -> i64 {
    let size = |client: &mut Client| {
        if let Value::Integer(size) = client.run("DBSIZE") { size } else { NO_ANSWER }
    };
    clients.iter_mut().map(size).sum()
}

fn fill(cluster: &Cluster) {
    for database in DATABASES {
        let mut clients = clients(cluster, database);
        for number in 0..KEYS {
            let set = format!("SET key:{number} {database}/{number}");
            assert_eq!(anywhere(&mut clients, &set), ok());
        }
        // The same slot, and a container that is copied in parts.
        for number in 0..3_000 {
            let push = format!("RPUSH {{tag}}list {database}-{number}-{}", "x".repeat(30));
            assert!(matches!(anywhere(&mut clients, &push), Value::Integer(_)));
        }
        assert_eq!(anywhere(&mut clients, "SET brief x EX 100000"), ok());
    }
}

fn check(cluster: &Cluster) {
    for database in DATABASES {
        let mut clients = clients(cluster, database);
        for number in 0..KEYS {
            let answer = anywhere(&mut clients, &format!("GET key:{number}"));
            let expected = Value::Bulk(format!("{database}/{number}").into_bytes());
            assert_eq!(answer, expected, "database {database}");
        }
        let last = anywhere(&mut clients, "LINDEX {tag}list -1");
        let expected = format!("{database}-2999-");
        assert!(last.text().is_some_and(|text| text.starts_with(expected.as_bytes())), "{last}");
        assert!(matches!(anywhere(&mut clients, "TTL brief"), Value::Integer(1..)));
        assert_eq!(size(&mut clients), KEYS as i64 + 2, "database {database}");
    }
    assert_eq!(size(&mut clients(cluster, 1)), 0);
}

fn text(client: &mut Client, line: &str) -> String {
    let answer = client.run(line);
    String::from_utf8_lossy(answer.text().unwrap_or_default()).into_owned()
}

/// Returns the replica ports of all nodes.
fn replica_ports(cluster: &Cluster) -> BTreeSet<u16> {
    let nodes = cluster.nodes[0].client().run("CLUSTER NODES").to_string();
    let slaves = nodes.split("\\n").filter(|line| line.contains("slave"));
    let port = |line: &str| {
        let address = line.split(' ').nth(1)?;
        address.split('@').next()?.rsplit(':').next()?.parse().ok()
    };
    slaves.filter_map(port).collect()
}

/// Returns the fingerprint of the content at a port: what a node serves, or its backup copies.
fn digest(port: u16) -> Option<String> {
    let mut client = Client::try_connect(port).ok()?;
    let Value::Simple(digest) = client.run("DEBUG DIGEST") else { panic!("a digest is simple") };
    Some(String::from_utf8_lossy(&digest).into_owned())
}

#[test]
fn keys_keep_their_databases_through_moves_and_a_failover() {
    let flags = ["--buckets", "16", "--replica-port", "0", "--enable-debug-command", "yes"];
    let mut cluster = Cluster::of(2, &flags);
    fill(&cluster);
    cluster.join();
    cluster.wait_until_even();
    check(&cluster);
    cluster.kill(2);
    cluster.wait_until_even();
    check(&cluster);
    // Two nodes: what one serves, the other backs up.
    e2e::wait_until("both copies are equal", Duration::from_secs(30), || {
        let ports = cluster.nodes.iter().map(Server::port);
        let served: BTreeSet<_> = ports.filter_map(digest).collect();
        let backed_up: BTreeSet<_> =
            replica_ports(&cluster).into_iter().filter_map(digest).collect();
        served == backed_up && served.len() == 2
    });
    let refused = cluster.nodes[0].client().run("SWAPDB 0 3");
    let expected = b"ERR SWAPDB is not allowed in cluster mode".to_vec();
    assert_eq!(refused, Value::Error(expected));
    for client in &mut clients(&cluster, 3) {
        assert_eq!(client.run("FLUSHDB"), ok());
    }
    assert_eq!(size(&mut clients(&cluster, 3)), 0);
    assert_eq!(size(&mut clients(&cluster, 15)), KEYS as i64 + 2, "the others are not touched");
}

#[test]
fn a_key_changes_its_database_on_every_copy_at_once() {
    let mut cluster = Cluster::of(3, &["--buckets", "16"]);
    let mut zero = clients(&cluster, 0);
    for number in 0..100 {
        assert_eq!(anywhere(&mut zero, &format!("SET key:{number} x")), ok());
        let moved = anywhere(&mut zero, &format!("MOVE key:{number} 7"));
        assert_eq!(moved, Value::Integer(1));
    }
    drop(zero);
    cluster.kill(1);
    cluster.wait_until_even();
    e2e::wait_until("the survivors serve all", Duration::from_secs(30), || {
        size(&mut clients(&cluster, 7)) == 100
    });
    assert_eq!(size(&mut clients(&cluster, 0)), 0);
}

#[test]
fn a_cluster_keeps_its_databases_over_a_restart_of_all_nodes() {
    let mut cluster = Cluster::with_directories(1, &[]);
    let mut client = cluster.nodes[0].client();
    for line in ["SET a zero", "SELECT 3", "SET a three", "SET b three"] {
        assert_eq!(client.run(line), ok());
    }
    let node = cluster.nodes.remove(0);
    node.ask_to_end();
    cluster.nodes.push(node.start_again());
    let mut client = cluster.nodes[0].client();
    assert_eq!(client.run("GET a"), Value::Bulk(b"zero".to_vec()));
    assert_eq!(client.run("DBSIZE"), Value::Integer(1));
    assert_eq!(client.run("SELECT 3"), ok());
    assert_eq!(client.run("GET a"), Value::Bulk(b"three".to_vec()));
    let keyspace = text(&mut client, "INFO keyspace");
    assert!(keyspace.contains("db0:keys=1,") && keyspace.contains("db3:keys=2,"), "{keyspace}");
}

#[test]
fn a_node_swaps_databases_until_another_has_copies() {
    let mut cluster = Cluster::of(1, &["--buckets", "16"]);
    let mut client = cluster.nodes[0].client();
    for number in 0..1_000 {
        assert_eq!(client.run(&format!("SET key:{number} zero")), ok());
    }
    let mut other = cluster.nodes[0].client();
    assert_eq!(other.run("SELECT 5"), ok());
    assert_eq!(other.run("SET key:1 five"), ok());
    assert_eq!(client.run("SWAPDB 0 5"), ok());
    assert_eq!(client.run("GET key:1"), Value::Bulk(b"five".to_vec()));
    assert_eq!(other.run("DBSIZE"), Value::Integer(1_000));
    cluster.join();
    cluster.join();
    cluster.wait_until_even();
    let refused = Value::Error(b"ERR SWAPDB is not allowed in cluster mode".to_vec());
    assert_eq!(client.run("SWAPDB 0 5"), refused);
    // The backups have the databases as they are since.
    cluster.kill(0);
    cluster.wait_until_even();
    e2e::wait_until("the survivors serve all", Duration::from_secs(30), || {
        size(&mut clients(&cluster, 5)) == 1_000 && size(&mut clients(&cluster, 0)) == 1
    });
}

#[test]
fn a_task_queue_and_sessions_share_one_node_and_an_any_port() {
    let node = Server::node();
    let said = PYTHON.output(&[QUEUE_STORY, &node.port().to_string()], b"");
    assert_eq!(said, "databases: all told\n");
    let mut cluster = Cluster::of(2, &["--buckets", "16"]);
    let [port] = free_ports();
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let any_port = ["--any-port", &port.to_string(), "--join", &join];
    cluster.nodes.push(Server::node_with(&any_port));
    cluster.wait_until_even();
    let said = PYTHON.output(&[QUEUE_STORY, &port.to_string(), "cluster"], b"");
    assert_eq!(said, "databases: all told\n");
}
