//! Nodes with a replica port: their backups as replicas, and connections to that port.

use cluster::map::{Endpoints, Map, Setting};

use super::*;
use crate::cluster::format_replica_id;
use crate::{ClientPort, Session};

/// Returns the map with a replica port for each member.
fn with_replica_ports(mut map: Map) -> Map {
    let members: Vec<Member> = map.members().to_vec();
    for member in members {
        let at = Endpoints { replica: 8379, ..member.at.clone() };
        apply(&mut map, &[Change::Join(Member { at, ..member })]);
    }
    map
}

fn master(number: u8) -> String {
    format!("10.0.0.{number} 6379 {}", format_node_id(NodeId(u64::from(number))))
}

fn replica_id(number: u64, primary: u64) -> String {
    format_replica_id(NodeId(number), NodeId(primary))
}

fn replica(number: u64, primary: u64) -> String {
    format!("10.0.0.{number} 8379 {}", replica_id(number, primary))
}

fn slots_of(map: &Map) -> Vec<String> {
    let mut node = TestNode::default();
    node.see(map, 1);
    words(&node.args(1, &[b"CLUSTER", b"SLOTS"])[0])
}

fn nodes_of(node: &mut TestNode, connection: u64) -> String {
    let reply = node.args(connection, &[b"CLUSTER", b"NODES"]).remove(0);
    String::from_utf8(reply.text().expect("a text").to_vec()).expect("ASCII")
}

/// Returns node `number` of this map; its connection 2 is on the replica port.
fn on_replica_port(map: &Map, number: u8) -> TestNode {
    let mut node = TestNode::default();
    node.see(map, number);
    *node.session(2) = Session::on(ClientPort::Replica, 2);
    node
}

#[test]
fn backups_are_replicas_in_all_three_replies() {
    let map = with_replica_ports(three());
    let epoch = map.epoch();
    let wanted = [
        format!("0 4095 {} {}", master(1), replica(2, 1)),
        format!("4096 8191 {} {}", master(2), replica(3, 2)),
        format!("8192 12287 {}", master(3)),
    ];
    assert_eq!(slots_of(&map), wanted);

    let mut node = on_replica_port(&map, 3);
    let [a, b, c] = [1, 2, 3].map(|number| format_node_id(NodeId(number)));
    let wanted = |[of_node, of_replica]: [&str; 2]| {
        let (b_of_a, c_of_b) = (replica_id(2, 1), replica_id(3, 2));
        format!(
            "{a} 10.0.0.1:6379@16379 master - 0 0 {epoch} connected 0-4095\n\
             {b_of_a} 10.0.0.2:8379@16379 slave {a} 0 0 {epoch} connected\n\
             {b} 10.0.0.2:6379@16379 master - 0 0 {epoch} connected 4096-8191\n\
             {c_of_b} 10.0.0.3:8379@16379 {of_replica}slave {b} 0 0 {epoch} connected\n\
             {c} 10.0.0.3:6379@16379 {of_node}master - 0 0 {epoch} connected 8192-12287\n"
        )
    };
    assert_eq!(nodes_of(&mut node, 1), wanted(["myself,", ""]));
    assert_eq!(nodes_of(&mut node, 2), wanted(["", "myself,"]));
    assert_eq!(node.on(1, "CLUSTER MYID"), format!("\"{c}\""));
    assert_eq!(node.on(2, "CLUSTER MYID"), format!("\"{}\"", replica_id(3, 2)));

    let shards = words(&node.args(1, &[b"CLUSTER", b"SHARDS"])[0]);
    assert_eq!(shards.len(), 3);
    assert!(shards[0].starts_with(&format!("slots 0 4095 nodes id {a} port 6379")));
    assert!(shards[0].contains(&format!("id {} port 8379 ip 10.0.0.2", replica_id(2, 1))));
    assert!(shards[0].contains("role replica"));
    assert!(shards[2].ends_with("role master replication-offset 0 health online"));
}

#[test]
fn a_replica_id_is_its_own_for_every_primary() {
    let ids = [replica_id(1, 2), replica_id(2, 1), replica_id(1, 3), format_node_id(NodeId(1))];
    assert!(ids.iter().all(|id| id.len() == 40));
    let different: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
}

/// Returns `three` with C as a backup of A's first bucket too, and two backups asked for: A's slots have different
/// backups.
fn uneven() -> Map {
    let mut map = with_one_copy_more();
    apply(&mut map, &[Change::Set(Setting::Backups(2))]);
    map
}

/// Returns `three` with C as a second backup of A's first bucket, where one is asked for: the bucket is on the move.
fn with_one_copy_more() -> Map {
    let mut map = three();
    let first = map.bucket_of(placement::Slot::new(0).unwrap()).hashmask;
    add(&mut map, first, 3);
    with_replica_ports(map)
}

#[test]
fn a_bucket_on_the_move_shows_no_more_replicas_than_the_others() {
    let wanted = [
        format!("0 4095 {} {}", master(1), replica(2, 1)),
        format!("4096 8191 {} {}", master(2), replica(3, 2)),
        format!("8192 12287 {}", master(3)),
    ];
    assert_eq!(slots_of(&with_one_copy_more()), wanted);
}

#[test]
fn a_primary_with_different_backups_begins_with_those_that_hold_all_its_slots() {
    let end = uneven().bucket_of(placement::Slot::new(0).unwrap()).hashmask.slots().end - 1;
    let a = master(1);
    let wanted = [
        format!("0 0 {a} {}", replica(2, 1)),
        format!("1 {end} {a} {} {}", replica(2, 1), replica(3, 1)),
        format!("{} 4095 {a} {}", end + 1, replica(2, 1)),
        format!("4096 8191 {} {}", master(2), replica(3, 2)),
        format!("8192 12287 {}", master(3)),
    ];
    assert_eq!(slots_of(&uneven()), wanted);
    let nodes = nodes_of(&mut on_replica_port(&uneven(), 1), 1);
    for primary in [1, 2] {
        let line = format!("{} 10.0.0.3:8379@16379 slave", replica_id(3, primary));
        assert!(nodes.contains(&line), "C backs up slots of both: {nodes}");
    }
}

#[test]
fn slots_with_the_same_holders_are_one_range_whatever_the_order_of_backups() {
    let settings = ClusterSettings { backups: 2, ..ClusterSettings::default() };
    let mut map = Map::found(member(1), Mask::M00FF, settings);
    apply(&mut map, &[2, 3].map(|number| Change::Join(member(number))));
    for bucket in Hashmask::all(Mask::M00FF) {
        let order = if bucket.value() % 3 == 0 { [2, 3] } else { [3, 2] };
        order.into_iter().for_each(|backup| add(&mut map, bucket, backup));
    }
    let wanted = format!("0 16383 {} {} {}", master(1), replica(2, 1), replica(3, 1));
    assert_eq!(slots_of(&with_replica_ports(map)), [wanted]);
}

#[test]
fn a_node_that_is_about_to_leave_is_no_replica() {
    let mut map = with_replica_ports(three());
    let leaving = Member { weight: 0, ..map.member(NodeId(2)).unwrap().clone() };
    apply(&mut map, &[Change::Join(leaving)]);
    let told = slots_of(&map);
    assert_eq!(told[0], format!("0 4095 {}", master(1)), "it was a replica there");
    assert!(told[1].contains(&master(2)), "it is still the primary there");
    assert!(told[1].contains(&replica(3, 2)), "the others are named");
    let nodes = nodes_of(&mut on_replica_port(&map, 1), 1);
    assert!(!nodes.contains("10.0.0.2:8379"), "{nodes}");
}

#[test]
fn the_replica_port_reads_copies_and_sends_writes_to_the_primary() {
    let mut node = on_replica_port(&with_replica_ports(three()), 2);
    let writes = [
        ("SET 1234567 1", "(error) MOVED 1750 10.0.0.1:6379"),
        ("SET abc 1", "(error) MOVED 7638 10.0.0.2:6379"),
        ("SET foo 1", "(error) MOVED 12182 10.0.0.3:6379"),
        ("SET a 1", "(error) CLUSTERDOWN Hash slot not served"),
        ("FLUSHALL", "(error) READONLY You can't write against a read only replica."),
    ];
    let reads = [
        ("GET 1234567", "(nil)"),
        ("GET abc", "(nil)"),
        ("GET foo", "(error) MOVED 12182 10.0.0.3:6379"),
        ("XREAD STREAMS 1234567 0", "(nil)"),
        // Nothing would wake it here.
        ("XREAD BLOCK 0 STREAMS 1234567 0", "(error) MOVED 1750 10.0.0.1:6379"),
    ];
    for (line, reply) in writes.into_iter().chain(reads) {
        assert_eq!(node.on(2, line).trim_end(), reply, "{line}");
    }
    node.on(2, "READWRITE");
    assert_eq!(node.on(2, "GET 1234567").trim_end(), "(error) MOVED 1750 10.0.0.1:6379");
    assert_eq!(node.on(2, "SET abc 1").trim_end(), "(error) MOVED 7638 10.0.0.2:6379");
    node.on(2, "RESET");
    assert_eq!(node.on(2, "GET 1234567").trim_end(), "(nil)");
    assert_eq!(node.on(2, "SET abc 1").trim_end(), "(error) MOVED 7638 10.0.0.2:6379");
    assert_eq!(node.on(1, "SET abc 1").trim_end(), "OK", "the ordinary port serves writes");
}

#[test]
fn a_transaction_on_the_replica_port_only_reads() {
    let mut node = on_replica_port(&with_replica_ports(three()), 2);
    for (line, reply) in [
        ("MULTI", "OK"),
        ("GET 1234567", "QUEUED"),
        ("EXEC", "1) (nil)"),
        ("MULTI", "OK"),
        ("SET 1234567 1", "(error) MOVED 1750 10.0.0.1:6379"),
        ("EXEC", "(error) EXECABORT Transaction discarded because of previous errors."),
    ] {
        assert_eq!(node.on(2, line).trim_end(), reply, "{line}");
    }
}

/// Fills the tables of A's slot 1750 (key 1234567) and B's slot 7638 (key abc), whoever holds them.
fn fill(node: &mut TestNode) {
    let own = node.env.cluster.clone();
    for (number, key) in [(1, "1234567"), (2, "abc")] {
        node.see(own.map(), number);
        assert_eq!(node.on(1, &format!("SET {key} 1")).trim_end(), "OK");
    }
    node.see(own.map(), u8::try_from(own.me().0).unwrap());
}

#[test]
fn commands_on_all_keys_cover_the_copies_of_their_port() {
    let mut node = on_replica_port(&with_replica_ports(three()), 2);
    fill(&mut node);
    for (connection, key) in [(1, "abc"), (2, "1234567")] {
        assert_eq!(node.on(connection, "DBSIZE").trim_end(), "(integer) 1");
        assert_eq!(node.on(connection, "KEYS *").trim_end(), format!("1) \"{key}\""));
        assert_eq!(node.on(connection, "RANDOMKEY").trim_end(), format!("\"{key}\""));
        let scanned = node.on(connection, "SCAN 0");
        assert!(scanned.contains(key) && scanned.matches('"').count() == 4, "{scanned}");
    }
}

#[test]
fn a_scan_that_would_miss_keys_of_a_primary_is_refused() {
    let mut node = on_replica_port(&uneven(), 3);
    fill(&mut node);
    let refusal = node.on(2, "SCAN 0");
    assert!(refusal.starts_with("(error) ERR SCAN would miss keys here"), "{refusal}");
    assert!(node.on(1, "SCAN 0").starts_with("1) \"0\""), "the ordinary port scans its own");
    assert_eq!(node.on(2, "DBSIZE").trim_end(), "(integer) 1", "C backs up all of B");
}

#[test]
fn the_replica_port_says_that_it_is_a_replica() {
    let mut node = on_replica_port(&with_replica_ports(three()), 3);
    let role = node.on(2, "ROLE");
    assert!(role.contains("slave") && role.contains("10.0.0.2"), "{role}");
    assert!(node.on(1, "ROLE").contains("master"));
    let info = node.on(2, "INFO replication");
    assert!(info.contains("role:slave") && info.contains("master_host:10.0.0.2"), "{info}");
    assert!(node.on(2, "HELLO").contains("replica"));
    assert!(node.on(1, "HELLO").contains("master"));
}
