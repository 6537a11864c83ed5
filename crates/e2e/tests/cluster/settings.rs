//! Settings of the whole cluster: one value on all nodes, whichever node was asked, and for nodes that come later.
use std::time::Duration;

use e2e::{Client, Cluster, Server};
use resp::Value;

fn setting(node: &Server, name: &str) -> String {
    let Value::Array(pair) = node.client().run(&format!("CONFIG GET {name}")) else {
        panic!("CONFIG GET {name} has no pair")
    };
    match pair.last() {
        Some(Value::Bulk(text)) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{name}: {other:?}"),
    }
}

fn ok(client: &mut Client, line: &str) {
    assert_eq!(client.run(line), Value::Simple(b"OK".to_vec()), "{line}");
}

#[test]
fn config_set_on_any_node_is_so_on_all_when_it_answers() {
    let cluster = Cluster::of(3, &["--buckets", "16"]);
    let mut clients: Vec<Client> = cluster.nodes.iter().map(Server::client).collect();
    for round in 0..30 {
        let policy = ["allkeys-lru", "volatile-ttl", "noeviction"][round % 3];
        let samples = (5 + round).to_string();
        let line = format!("CONFIG SET maxmemory-policy {policy} maxmemory-samples {samples}");
        ok(&mut clients[round % 3], &line);
        for node in &cluster.nodes {
            assert_eq!(setting(node, "maxmemory-policy"), policy, "round {round}");
            assert_eq!(setting(node, "maxmemory-samples"), samples, "round {round}");
        }
    }
}

#[test]
fn a_setting_of_one_node_stays_with_it_and_a_refused_change_changes_nothing() {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    let mut client = cluster.nodes[0].client();
    ok(&mut client, "CONFIG SET timeout 77 maxmemory-policy allkeys-lfu");
    assert_eq!(setting(&cluster.nodes[0], "timeout"), "77");
    assert_eq!(setting(&cluster.nodes[1], "timeout"), "0");
    let refused = client.run("CONFIG SET maxmemory-policy volatile-lru timeout never");
    assert!(matches!(refused, Value::Error(_)), "{refused:?}");
    for node in &cluster.nodes {
        assert_eq!(setting(node, "maxmemory-policy"), "allkeys-lfu");
    }
}

#[test]
fn in_a_transaction_the_change_is_agreed_on_as_well() {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    let mut client = cluster.nodes[1].client();
    ok(&mut client, "MULTI");
    client.run("CONFIG SET lfu-decay-time 9");
    assert_eq!(client.run("EXEC"), Value::Array(vec![Value::Simple(b"OK".to_vec())]));
    e2e::wait_until("both nodes have it", Duration::from_secs(20), || {
        cluster.nodes.iter().all(|node| setting(node, "lfu-decay-time") == "9")
    });
}

#[test]
fn a_node_that_joins_takes_the_clusters_values_and_names_the_flags_that_do_not_apply() {
    let mut cluster = Cluster::of(1, &["--notify-keyspace-events", "KEA", "--buckets", "16"]);
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let flags =
        ["--join", &join, "--notify-keyspace-events", "Kg", "--backups", "2", "--ack", "primary"];
    cluster.nodes.push(Server::node_with(&[&flags[..], &["--buckets", "4096"]].concat()));
    let joined = &cluster.nodes[1];
    assert_eq!(
        setting(joined, "notify-keyspace-events"),
        setting(&cluster.nodes[0], "notify-keyspace-events")
    );
    let log = joined.log();
    for line in [
        "notify-keyspace-events = gK was given to this node, but the cluster has",
        "backups = 2 was given to this node, but the cluster has backups = 1",
        "ack = primary was given to this node, but the cluster has ack = backup",
        "buckets = 4096 was given to this node, but the cluster has buckets = 16",
    ] {
        assert!(log.contains(line), "{line}\n{log}");
    }
    cluster.wait_until_even();
}

#[test]
fn the_flags_of_the_first_start_do_not_keep_a_node_out_after_a_split() {
    let mut cluster = Cluster::with_directories(2, &["--buckets", "16", "--backups", "1"]);
    let mut client = cluster.nodes[0].client();
    ok(&mut client, "CONFIG SET maxmemory-policy allkeys-random");
    ok(&mut client, "CLUSTER SPLIT");
    cluster.nodes[1].ask_to_end();
    let away = cluster.part_with(1);
    cluster.nodes.push(away.start_again());
    cluster.wait_until_even();
    assert_eq!(setting(&cluster.nodes[1], "maxmemory-policy"), "allkeys-random");
}

#[test]
fn the_flags_of_a_lone_node_that_restarts_are_the_clusters() {
    let mut cluster = Cluster::with_directories(1, &["--buckets", "16"]);
    ok(&mut cluster.nodes[0].client(), "CONFIG SET maxmemory-policy allkeys-lru lfu-decay-time 3");
    ok(&mut cluster.nodes[0].client(), "SET k v");
    // The policy is the default, and given all the same. The decay time is not given.
    let flags = ["--maxmemory-policy", "noeviction", "--maxmemory-samples", "9", "--backups", "2"];
    let node = cluster.nodes.remove(0);
    node.ask_to_end();
    cluster.nodes.push(node.start_again_with(&flags));
    let node = &cluster.nodes[0];
    assert_eq!(node.client().run("GET k"), Value::Bulk(b"v".to_vec()));
    assert_eq!(setting(node, "maxmemory-policy"), "noeviction");
    assert_eq!(setting(node, "maxmemory-samples"), "9");
    assert_eq!(setting(node, "lfu-decay-time"), "3", "as it was");
    let log = node.log();
    let line = "maxmemory-policy = noeviction was given to this node, the only member; it replaces";
    assert!(log.contains(line), "{log}");
    e2e::wait_until("the number of backups is the cluster's", Duration::from_secs(20), || {
        node.client().run("CLUSTER SETTINGS backups") == Value::Bulk(b"2".to_vec())
    });
    // They are in the log: a node that joins has them, and a restart of two nodes changes nothing any more.
    cluster.join();
    cluster.wait_until_even();
    for node in &cluster.nodes {
        assert_eq!(setting(node, "maxmemory-policy"), "noeviction");
        assert_eq!(setting(node, "maxmemory-samples"), "9");
    }
    ok(&mut cluster.nodes[1].client(), "CONFIG SET maxmemory-policy volatile-ttl");
    cluster.nodes[0].ask_to_end();
    let away = cluster.nodes.remove(0);
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    cluster.nodes.insert(0, away.start_again_with(&["--join", &join]));
    cluster.wait_until_even();
    assert_eq!(setting(&cluster.nodes[0], "maxmemory-policy"), "volatile-ttl");
    let log = cluster.nodes[0].log();
    assert!(
        log.contains("but the cluster has maxmemory-policy = volatile-ttl, which applies"),
        "{log}"
    );
}
