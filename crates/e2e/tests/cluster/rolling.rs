//! Nodes that leave for a while and come back with the data they held.
use std::collections::BTreeMap;

use e2e::{Cluster, Server, opencluster};
use redis::cluster::{ClusterConnection, cluster_pipe};

use crate::load::{Load, client};

/// Number of keys that nobody changes while a node is away.
const STILL: usize = 20_000;

/// The amount of data that fills from a node have sent.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    items: u64,
    whole_slots: u64,
    newer_slots: u64,
}

fn sent_by(nodes: &[Server]) -> Sent {
    nodes.iter().fold(Sent::default(), |sum, node| {
        let status = node.client().status();
        let number = |name: &str| status["fills"][name].as_u64().expect("a number");
        Sent {
            items: sum.items + number("items"),
            whole_slots: sum.whole_slots + number("whole_slots"),
            newer_slots: sum.newer_slots + number("newer_slots"),
        }
    })
}

fn put_still_keys(connection: &mut ClusterConnection) {
    for part in (0..STILL).collect::<Vec<_>>().chunks(1_000) {
        let mut pipe = cluster_pipe();
        for number in part {
            pipe.set(format!("still:{number}"), number).ignore();
        }
        pipe.query::<()>(connection).expect("all are written");
    }
}

fn leave_for(node: &Server, long: &str) {
    let address = format!("127.0.0.1:{}", node.port());
    let said = opencluster(&["leave", "--for", long, "--node", &address]);
    assert!(said.status.success(), "{said:?}");
}

#[test]
fn a_rolling_restart_loses_nothing_and_copies_only_what_has_changed() {
    let mut cluster = Cluster::with_directories(3, &[]);
    let mut connection = client(&cluster.urls()).get_connection().expect("a node answers");
    put_still_keys(&mut connection);
    let load = Load::start(&cluster.urls());
    load.go_on_for(500);
    for _ in 0..3 {
        leave_for(&cluster.nodes[0], "5m");
        let away = cluster.part_with(0);
        let before = sent_by(&cluster.nodes);
        load.go_on_for(500);
        cluster.nodes.push(away.start_again());
        cluster.wait_until_even();
        let after = sent_by(&cluster.nodes[..2]);
        let newer = after.newer_slots - before.newer_slots;
        let whole = after.whole_slots - before.whole_slots;
        let items = after.items - before.items;
        println!("back by {newer} slots' difference and {whole} whole slots, {items} items");
        // Two thirds of all slots come back, with two thirds of all keys; slots that never held a
        // key count as whole. The load has rewritten 2,000 keys meanwhile.
        assert!(newer > 6_000, "{newer} slots by the difference, {whole} whole");
        assert!(items < STILL as u64 / 4, "{items} items for {newer} slots, {whole} whole");
        load.go_on_for(500);
    }
    load.end_with_nothing_lost(&cluster.urls());
    let mut connection = client(&cluster.urls()).get_connection().expect("a node answers");
    let mut missing = BTreeMap::new();
    for number in 0..STILL {
        let found = redis::cmd("GET").arg(format!("still:{number}")).query(&mut connection);
        if found != Ok(Some(number)) {
            missing.insert(number, found);
        }
    }
    assert!(missing.is_empty(), "{} missing: {:?}", missing.len(), missing.iter().next());
}

#[test]
fn a_node_without_a_data_directory_leaves_for_good_or_not_at_all() {
    let cluster = Cluster::of(2, &[]);
    let address = format!("127.0.0.1:{}", cluster.nodes[1].port());
    let said = opencluster(&["leave", "--for", "5m", "--node", &address]);
    assert!(!said.status.success());
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(text.contains("has no data directory to keep its copies in"), "{text}");
    assert_eq!(cluster.shares().len(), 2);
}
