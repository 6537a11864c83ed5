//! Planned leaves: safe by default, quick if the operator wants that, and never dangerous.
use std::thread;
use std::time::{Duration, Instant};

use e2e::{Cluster, Server, opencluster, wait_until};
use redis::cluster::cluster_pipe;
use resp::Value;

use crate::load::{Load, client};

const BUCKETS: u64 = 256;
const KEYS: usize = 12_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Three nodes with 12 MB of data, and fills at this rate. With 64 KiB a second a safe leave takes minutes.
fn cluster_of(count: usize, fill_rate: &str) -> Cluster {
    let cluster = Cluster::of(count, &[]);
    let mut connection = client(&cluster.urls()).get_connection().expect("a node answers");
    let value = "x".repeat(1_000);
    for part in (0..KEYS).collect::<Vec<_>>().chunks(1_000) {
        let mut pipe = cluster_pipe();
        for number in part {
            pipe.set(format!("key:{number}"), &value).ignore();
        }
        pipe.query::<()>(&mut connection).expect("all are written");
    }
    set(&cluster.nodes[0], "fill-rate", fill_rate);
    cluster
}

fn set(node: &Server, name: &str, value: &str) {
    let answer = node.client().run(&format!("CLUSTER SETTINGS {name} {value}"));
    assert_eq!(answer, Value::Simple(b"OK".to_vec()));
    let is_set = || node.client().status()["settings"][name] == value;
    wait_until("the setting is known", PATIENCE, is_set);
}

fn copies(cluster: &Cluster) -> u64 {
    cluster.shares().iter().map(|share| share.primaries + share.backups).sum()
}

/// Returns the number of copies that are left at the moment at which a node is no longer a member.
fn copies_when_left(cluster: &Cluster, members: usize) -> u64 {
    let begun = Instant::now();
    while cluster.shares().len() > members {
        assert!(begun.elapsed() < PATIENCE, "it never leaves: {:?}", cluster.shares());
    }
    copies(cluster)
}

fn all_keys_are_there(cluster: &Cluster) {
    let mut connection = client(&cluster.urls()).get_connection().expect("a node answers");
    for number in 0..KEYS {
        let length = redis::cmd("STRLEN").arg(format!("key:{number}")).query(&mut connection);
        assert_eq!(length, Ok(1_000), "key:{number}");
    }
}

#[test]
fn a_node_goes_only_when_others_have_copies_of_all_it_held() {
    let mut cluster = cluster_of(3, "2mib");
    let leaver = cluster.nodes.remove(2);
    leaver.ask_to_end();
    assert_eq!(copies_when_left(&cluster, 2), 2 * BUCKETS, "no bucket lacks its backup");
    leaver.terminate();
    // So the death of either of the two that are left costs nothing, even at once.
    cluster.kill(1);
    let mut survivor = cluster.nodes[0].client();
    let takes_over = || {
        survivor.run("GET key:1"); // Of two nodes the survivor takes over when a client asks it.
        cluster.nodes[0].client().status()["generation"] == 2
    };
    wait_until("the survivor takes over", PATIENCE, takes_over);
    all_keys_are_there(&cluster);
}

#[test]
fn a_quick_leave_does_not_wait_for_copies() {
    let mut cluster = cluster_of(3, "64kib");
    let leaver = cluster.nodes.remove(2);
    let address = format!("127.0.0.1:{}", leaver.port());
    let begun = Instant::now();
    let said = opencluster(&["leave", "--quick", "--node", &address]);
    assert!(said.status.success(), "{said:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it waited for the timeout of a safe leave");
    let left = copies(&cluster);
    assert!(left < 2 * BUCKETS, "{left} copies: it waited for copies");
    let log = cluster.nodes[0].log();
    assert!(log.contains("its backups are filled elsewhere now"), "{log}");
    set(&cluster.nodes[0], "fill-rate", "unlimited");
    cluster.wait_until_even();
    all_keys_are_there(&cluster);
}

#[test]
fn after_leave_timeout_a_node_leaves_the_quick_way() {
    let mut cluster = cluster_of(3, "64kib");
    let timeout = cluster.nodes[0].client().run("CLUSTER SETTINGS leave-timeout");
    assert_eq!(timeout, Value::Bulk(b"30s".to_vec()), "the default");
    set(&cluster.nodes[0], "leave-timeout", "3s");
    let leaver = cluster.nodes.remove(2);
    let is_known = || leaver.client().status()["settings"]["leave-timeout"] == "3s";
    wait_until("the leaver knows its timeout", PATIENCE, is_known);
    leaver.ask_to_end();
    let begun = Instant::now();
    let left = copies_when_left(&cluster, 2);
    assert!(begun.elapsed() >= Duration::from_millis(2_900), "it did not try the safe way");
    assert!(left < 2 * BUCKETS, "{left} copies: a safe leave takes minutes");
    leaver.terminate();
    set(&cluster.nodes[0], "fill-rate", "unlimited");
    cluster.wait_until_even();
    all_keys_are_there(&cluster);
}

#[test]
fn a_node_that_is_killed_while_another_leaves_costs_nothing() {
    let mut cluster = cluster_of(4, "2mib");
    let load = Load::start(&cluster.urls());
    load.go_on_for(1_000);
    let mut leaver = cluster.nodes.remove(3);
    leaver.ask_to_end();
    thread::sleep(Duration::from_millis(500));
    assert!(cluster.shares().len() == 4, "copies are being made");
    cluster.kill(2);
    load.go_on_for(1_000);
    leaver.wait_until_it_ends();
    load.go_on_for(1_000);
    load.end_with_nothing_acknowledged_lost(&cluster.urls());
    set(&cluster.nodes[0], "fill-rate", "unlimited");
    cluster.wait_until_even();
    all_keys_are_there(&cluster);
}
