//! Tests of CLUSTER, and of commands sent to the wrong node, as scripts: with a single node, and with three.
mod replicas; // Nodes with replica ports.

use cluster::balance::{LoadLevels, Vitals};
use cluster::control::OperatorRequest;
use cluster::map::{
    Change, ChangeOutcome, ClusterSettings, DropReason, LeaveWay, LogIndex, Map, Member, NodeId,
    Setting,
};
use cluster::status::Status;
use placement::{Hashmask, Mask};

use super::{MAP_CHANNEL, format_node_id};
use crate::testing::{TestNode, check_on, member};
use crate::{LinkDirection, LinkFacts};

/// Returns a map of A, B and C with 16 buckets. A is primary of slots 0 to 4095 with B as its backup, B of 4096 to
/// 8191 with C, C of 8192 to 12287 without a backup; the last 4096 slots are lost.
fn three() -> Map {
    let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
    apply(&mut map, &[2, 3, 4].map(|number| Change::Join(member(number))));
    for bucket in Hashmask::all(Mask::M000F) {
        match bucket.slots().start / 4096 {
            0 => add(&mut map, bucket, 2),
            1 => {
                hand_over(&mut map, bucket, 2);
                add(&mut map, bucket, 3);
            }
            2 => hand_over(&mut map, bucket, 3),
            _ => hand_over(&mut map, bucket, 4),
        }
    }
    apply(&mut map, &[Change::Dead([NodeId(4)].into())]);
    map
}

fn apply(map: &mut Map, changes: &[Change]) {
    for change in changes {
        let index = LogIndex(map.epoch().0 + 1);
        assert_eq!(map.apply(index, change), ChangeOutcome::Applied, "{change:?}");
    }
}

fn add(map: &mut Map, bucket: Hashmask, to: u64) {
    let expected = map.bucket(bucket).unwrap().epoch;
    apply(map, &[Change::AddBackup { bucket, node: NodeId(to), expected }]);
}

/// Moves a bucket from A, which keeps no copy.
fn hand_over(map: &mut Map, bucket: Hashmask, to: u64) {
    add(map, bucket, to);
    let expected = map.bucket(bucket).unwrap().epoch;
    apply(map, &[Change::Promote { bucket, node: NodeId(to), expected }]);
    let expected = map.bucket(bucket).unwrap().epoch;
    let because = DropReason::OutOfSync;
    apply(map, &[Change::DropBackup { bucket, node: NodeId(1), expected, because }]);
}

fn node(number: u8) -> TestNode {
    let mut node = TestNode::default();
    node.see(&three(), number);
    node
}

// The slots of the keys below: 1234567 has 1750, f 3168 and {b} 3300 (A); c 7365 and abc 7638 (B);
// foo 12182 (C); a 15495 (nobody).

#[test]
fn a_node_alone_has_every_slot() {
    let id = format_node_id(NodeId(1));
    let mut node = TestNode::default();
    check_on(
        &mut node,
        &r#"
        > CLUSTER MYID
        "<id>"
        > CLUSTER NODES
        "<id> 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-16383\n"
        > CLUSTER SLOTS
        1) 1) (integer) 0
           2) (integer) 16383
           3) 1) "10.0.0.1"
              2) (integer) 6379
              3) "<id>"
              4) (empty array)
        > CLUSTER SHARDS
        1) 1) "slots"
           2) 1) (integer) 0
              2) (integer) 16383
           3) "nodes"
           4) 1)  1) "id"
                  2) "<id>"
                  3) "port"
                  4) (integer) 6379
                  5) "ip"
                  6) "10.0.0.1"
                  7) "endpoint"
                  8) "10.0.0.1"
                  9) "role"
                 10) "master"
                 11) "replication-offset"
                 12) (integer) 0
                 13) "health"
                 14) "online"
        > CLUSTER NOSUCH
        (error) ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.
        > MSET abc 1 foo 2
        OK
        > DBSIZE
        (integer) 2
        "#
        .replace("<id>", &id),
    );
    assert!(node.run("CLUSTER INFO").contains("cluster_state:ok"));
}

#[test]
fn an_id_has_the_form_of_redis_and_begins_with_our_own() {
    assert_eq!(format_node_id(NodeId(0xABCD)).len(), 40);
    assert!(format_node_id(NodeId(0xABCD)).starts_with("000000000000abcd"));
    assert_ne!(format_node_id(NodeId(1))[16..], format_node_id(NodeId(2))[16..]);
}

#[test]
fn a_node_that_listens_everywhere_tells_a_client_the_address_it_has_used() {
    let mut founder = member(1);
    founder.at.host = String::new();
    let mut node = TestNode::default();
    node.see(&Map::found(founder, Mask::M00FF, ClusterSettings::default()), 1);
    for used in ["192.168.0.9", "127.0.0.1"] {
        node.host.facts.identity.host = used.to_owned();
        assert!(node.run("CLUSTER SLOTS").contains(used));
        assert!(node.run("CLUSTER NODES").contains(&format!(" {used}:6379@16379 ")));
    }
}

#[test]
fn slots_name_primaries_only() {
    let holder = |number: u8| {
        let id = format_node_id(NodeId(u64::from(number)));
        format!("10.0.0.{number} 6379 {id}")
    };
    let (a, b, c) = (holder(1), holder(2), holder(3));
    let wanted = [format!("0 4095 {a}"), format!("4096 8191 {b}"), format!("8192 12287 {c}")];
    for number in 1..=3 {
        assert_eq!(words(&node(number).args(1, &[b"CLUSTER", b"SLOTS"])[0]), wanted);
    }
}

/// Returns each entry of an array as one line of its words, at any depth.
fn words(value: &resp::Value) -> Vec<String> {
    fn collect(value: &resp::Value, line: &mut Vec<String>) {
        if let resp::Value::Array(items) = value {
            return items.iter().for_each(|item| collect(item, line));
        }
        let number = if let resp::Value::Integer(number) = value { Some(*number) } else { None };
        let text = value.text().map(|text| String::from_utf8_lossy(text).into_owned());
        line.extend(text.or(number.map(|number| number.to_string())));
    }
    let resp::Value::Array(entries) = value else { panic!("not an array: {value}") };
    let line = |entry: &resp::Value| {
        let mut line = Vec::new();
        collect(entry, &mut line);
        line.join(" ")
    };
    entries.iter().map(line).collect()
}

#[test]
fn every_node_is_shown_as_a_master_and_lost_slots_as_nobodys() {
    let mut node = node(2);
    let epoch = three().epoch();
    let (a, b, c) =
        (format_node_id(NodeId(1)), format_node_id(NodeId(2)), format_node_id(NodeId(3)));
    let wanted = format!(
        "{a} 10.0.0.1:6379@16379 master - 0 0 {epoch} connected 0-4095\n\
         {b} 10.0.0.2:6379@16379 myself,master - 0 0 {epoch} connected 4096-8191\n\
         {c} 10.0.0.3:6379@16379 master - 0 0 {epoch} connected 8192-12287\n"
    );
    assert_eq!(node.args(1, &[b"CLUSTER", b"NODES"])[0].text(), Some(wanted.as_bytes()));
    let info = node.run("CLUSTER INFO");
    for line in [
        "cluster_state:fail",
        "cluster_slots_ok:12288",
        "cluster_slots_fail:4096",
        "cluster_known_nodes:3",
        "cluster_size:3",
    ] {
        assert!(info.contains(line), "{line}: {info}");
    }
    let shards = words(&node.args(1, &[b"CLUSTER", b"SHARDS"])[0]);
    assert_eq!(shards.len(), 3);
    assert!(shards[1].starts_with(&format!("slots 4096 8191 nodes id {b} port 6379 ip 10.0.0.2")));
}

#[test]
fn a_command_for_another_nodes_slot_is_sent_there() {
    check_on(
        &mut node(1),
        r"
        > SET 1234567 x
        OK
        > GET abc
        (error) MOVED 7638 10.0.0.2:6379
        > SET foo 1
        (error) MOVED 12182 10.0.0.3:6379
        > GET a
        (error) CLUSTERDOWN Hash slot not served
        > MGET abc foo
        (error) CROSSSLOT Keys in request don't hash to the same slot
        > MGET 1234567 {b}
        (error) CROSSSLOT Keys in request don't hash to the same slot
        > MGET {abc}1 {abc}2
        (error) MOVED 7638 10.0.0.2:6379
        > SSUBSCRIBE abc
        (error) MOVED 7638 10.0.0.2:6379
        > SPUBLISH abc hi
        (error) MOVED 7638 10.0.0.2:6379
        > ASKING
        OK
        > GET abc
        (error) MOVED 7638 10.0.0.2:6379
        ",
    );
}

#[test]
fn a_full_node_still_says_where_to_go() {
    let mut node = node(1);
    node.env.out_of_memory = true;
    check_on(
        &mut node,
        r"
        > SET abc 1
        (error) MOVED 7638 10.0.0.2:6379
        > SET 1234567 1
        (error) OOM command not allowed when used memory > 'maxmemory'.
        ",
    );
}

#[test]
fn a_transaction_stays_on_one_slot_of_this_node() {
    check_on(
        &mut node(1),
        r"
        > MULTI
        OK
        > SET abc 1
        (error) MOVED 7638 10.0.0.2:6379
        > EXEC
        (error) EXECABORT Transaction discarded because of previous errors.
        > MULTI
        OK
        > SET 1234567 1
        QUEUED
        > SET {b} 1
        QUEUED
        > EXEC
        (error) CROSSSLOT Keys in request don't hash to the same slot
        > EXEC
        (error) ERR EXEC without MULTI
        > MULTI
        OK
        > SET {b}1 1
        QUEUED
        > INCR {b}1
        QUEUED
        > EXEC
        1) OK
        2) (integer) 2
        ",
    );
}

#[test]
fn a_transaction_queued_before_a_handover_is_sent_after_its_keys() {
    let mut node = node(1);
    check_on(
        &mut node,
        r"
        > MULTI
        OK
        > SET 1234567 1
        QUEUED
        ",
    );
    let mut map = three();
    promote(&mut map, b"1234567", 2);
    node.see(&map, 1);
    check_on(
        &mut node,
        r"
        > EXEC
        (error) MOVED 1750 10.0.0.2:6379
        > EXEC
        (error) ERR EXEC without MULTI
        ",
    );
}

fn promote(map: &mut Map, key: &[u8], to: u64) {
    let bucket = map.bucket_of(placement::Slot::of(key)).clone();
    let (bucket, expected) = (bucket.hashmask, bucket.epoch);
    apply(map, &[Change::Promote { bucket, node: NodeId(to), expected }]);
}

#[test]
fn what_was_watched_under_another_reign_counts_as_changed() {
    let mut node = node(1);
    check_on(
        &mut node,
        r"
        > WATCH 1234567 {b}
        (error) CROSSSLOT Keys in request don't hash to the same slot
        > WATCH 1234567
        OK
        > WATCH f
        OK
        > MULTI
        OK
        > SET {b} 1
        QUEUED
        > EXEC
        1) OK
        > WATCH 1234567
        OK
        > MULTI
        OK
        > SET {b} 2
        QUEUED
        ",
    );
    let mut map = three();
    promote(&mut map, b"1234567", 2);
    promote(&mut map, b"1234567", 1);
    node.see(&map, 1);
    check_on(
        &mut node,
        r#"
        > EXEC
        (nil)
        > GET {b}
        "1"
        "#,
    );
}

#[test]
fn a_backup_is_read_by_who_asks_for_it() {
    let mut node = node(1);
    node.run("SET 1234567 x");
    node.run("SET f x PX 10");
    node.see(&three(), 2);
    check_on(
        &mut node,
        r#"
        > GET 1234567
        (error) MOVED 1750 10.0.0.1:6379
        > READONLY
        OK
        > GET 1234567
        "x"
        > GET f
        "x"
        +11ms
        > GET f
        (nil)
        > CLUSTER COUNTKEYSINSLOT 3168
        (integer) 1
        > SET 1234567 y
        (error) MOVED 1750 10.0.0.1:6379
        > SSUBSCRIBE 1234567
        (error) MOVED 1750 10.0.0.1:6379
        > GET foo
        (error) MOVED 12182 10.0.0.3:6379
        > MULTI
        OK
        > GET 1234567
        QUEUED
        > STRLEN 1234567
        QUEUED
        > EXEC
        1) "x"
        2) (integer) 1
        > READWRITE
        OK
        > GET 1234567
        (error) MOVED 1750 10.0.0.1:6379
        > READONLY
        OK
        > RESET
        RESET
        > GET 1234567
        (error) MOVED 1750 10.0.0.1:6379
        "#,
    );
}

#[test]
fn only_a_nodes_own_slots_are_counted_listed_and_flushed() {
    let mut node = TestNode::default();
    for key in ["abc", "c", "foo", "1234567", "{b}", "f"] {
        node.run(&format!("SET {key} x"));
    }
    node.see(&three(), 2);
    check_on(
        &mut node,
        r#"
        > DBSIZE
        (integer) 2
        > KEYS *
        1) "c"
        2) "abc"
        > SCAN 0
        1) "0"
        2) 1) "c"
           2) "abc"
        > FLUSHALL
        OK
        > DBSIZE
        (integer) 0
        > RANDOMKEY
        (nil)
        "#,
    );
    node.see(&three(), 1);
    check_on(
        &mut node,
        r"
        > DBSIZE
        (integer) 3
        > MULTI
        OK
        > FLUSHALL
        QUEUED
        > DBSIZE
        QUEUED
        > EXEC
        1) OK
        2) (integer) 0
        ",
    );
    node.see(&three(), 3);
    assert_eq!(node.run("KEYS *"), r#"1) "foo""#);
}

#[test]
fn keys_are_counted_and_listed_by_slot() {
    check_on(
        &mut TestNode::default(),
        r#"
        > CLUSTER KEYSLOT abc
        (integer) 7638
        > CLUSTER KEYSLOT x{abc}y
        (integer) 7638
        > SET abc 1
        OK
        > CLUSTER COUNTKEYSINSLOT 7638
        (integer) 1
        > CLUSTER GETKEYSINSLOT 7638 10
        1) "abc"
        > CLUSTER GETKEYSINSLOT 7638 0
        (empty array)
        > CLUSTER COUNTKEYSINSLOT 16384
        (error) ERR Invalid slot
        > CLUSTER COUNTKEYSINSLOT x
        (error) ERR value is not an integer or out of range
        > CLUSTER GETKEYSINSLOT 0 -1
        (error) ERR Invalid slot or number of keys
        > CLUSTER GETKEYSINSLOT 77777 1
        (error) ERR Invalid slot or number of keys
        "#,
    );
}

#[test]
fn what_is_done_by_hand_elsewhere_says_what_to_do_instead() {
    let mut node = TestNode::default();
    let told = node.run("CLUSTER MEET 127.0.0.1 7000");
    assert!(told.starts_with("(error) ERR CLUSTER MEET is not done by hand: start the new node"));
    for command in
        ["ADDSLOTS 1", "FAILOVER", "FORGET x", "REPLICATE x", "RESET", "SETSLOT 1 STABLE"]
    {
        let told = node.run(&format!("CLUSTER {command}"));
        assert!(told.contains("is not done by hand: "), "{command}: {told}");
    }
}

#[test]
fn an_operator_asks_and_is_told_that_it_begins_or_why_not() {
    let mut node = node(1);
    check_on(
        &mut node,
        r#"
        > CLUSTER LEAVE
        OK
        > CLUSTER LEAVE FOR 5m
        OK
        > CLUSTER LEAVE QUICK
        OK
        > CLUSTER LEAVE FOR 5m quick
        OK
        > CLUSTER LEAVE QUICK FOR 5m
        (error) ERR wrong number of arguments for 'cluster|leave' command
        > CLUSTER LEAVE FOR ever
        (error) ERR a time is written like 90s, 5m or 2h, not "ever"
        > CLUSTER LEAVE now
        (error) ERR wrong number of arguments for 'cluster|leave' command
        > CLUSTER SPLIT
        OK
        > CLUSTER SPLIT 000F/0003
        OK
        > CLUSTER SPLIT 00FF/0003
        (error) ERR there is no bucket 00FF/0003; see CLUSTER HASHMASKS ALL
        > CLUSTER SPLIT three
        (error) ERR a hashmask is written like 00FF/0014, not "three"
        > CLUSTER SETTINGS backups 2
        OK
        > CLUSTER SETTINGS backups
        "1"
        > CLUSTER SETTINGS backups 4
        (error) ERR backups must be a number from 0 to 3, not "4"
        > CLUSTER SETTINGS MaxMemory-Policy allkeys-LRU
        OK
        > CLUSTER SETTINGS maxmemory-policy
        "allkeys-lru"
        > CONFIG GET maxmemory-policy
        1) "maxmemory-policy"
        2) "allkeys-lru"
        > CLUSTER SETTINGS maxmemory-samples 0
        (error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - argument must be between 1 and 2147483647 inclusive
        > CLUSTER SETTINGS lease 2s now
        (error) ERR wrong number of arguments for 'cluster|settings' command
        "#,
    );
    let bucket = "000F/0003".parse().unwrap();
    let set = OperatorRequest::Set(Setting::Backups(2));
    let absence = std::time::Duration::from_secs(300);
    let away = |way| OperatorRequest::LeaveFor { absence, way };
    assert_eq!(
        node.host.asked,
        [
            OperatorRequest::Leave(LeaveWay::Safe),
            away(LeaveWay::Safe),
            OperatorRequest::Leave(LeaveWay::Quick),
            away(LeaveWay::Quick),
            OperatorRequest::Split(None),
            OperatorRequest::Split(Some(bucket)),
            set
        ]
    );
    node.host.objection = Some("nobody else is there".to_owned());
    assert_eq!(node.run("CLUSTER LEAVE"), "(error) ERR nobody else is there");
}

#[test]
fn an_unknown_setting_of_the_cluster_is_refused_with_the_names_of_all() {
    let mut node = node(1);
    assert!(node.run("CLUSTER SETTINGS").contains("\"split-larger-than\""));
    for command in ["CLUSTER SETTINGS replicas", "CLUSTER SETTINGS maxmemory 1gb"] {
        let unknown = node.run(command);
        assert!(unknown.contains("unknown cluster setting \""), "{unknown}");
        assert!(
            unknown.contains("min-copies, notify-keyspace-events, "),
            "all are named: {unknown}"
        );
    }
}

#[test]
fn buckets_are_listed_with_their_holders() {
    let buckets = words(&node(1).args(1, &[b"CLUSTER", b"HASHMASKS"])[0]);
    assert_eq!(buckets.len(), 16);
    let map = three();
    let epoch = |bucket: &str| map.bucket(bucket.parse().unwrap()).unwrap().epoch;
    assert_eq!(buckets[0], format!("000F/0000 0 1023 {} A B", epoch("000F/0000")));
    assert_eq!(buckets[15], format!("000F/000F 15360 16383 {}", epoch("000F/000F")));
    let mut backup = node(2);
    backup.host.pending.insert(NodeId(1));
    let buckets = words(&backup.args(1, &[b"CLUSTER", b"HASHMASKS"])[0]);
    assert_eq!(buckets[0], format!("000F/0000 0 1023 {} A B pending", epoch("000F/0000")));
    assert!(!buckets[15].contains("pending"), "nobody holds it");
}

#[test]
fn buckets_that_make_up_a_larger_hashmask_are_one_line() {
    let mut map = Map::found(member(1), Mask::M00FF, ClusterSettings::default());
    apply(&mut map, &[Change::Join(member(2))]);
    let listed = |map: &Map, command: &[&[u8]]| {
        let mut node = TestNode::default();
        node.see(map, 1);
        words(&node.args(1, command)[0])
    };
    let (joined, all): ([&[u8]; 2], [&[u8]; 3]) =
        ([b"CLUSTER", b"HASHMASKS"], [b"CLUSTER", b"HASHMASKS", b"all"]);
    let lines = listed(&map, &joined);
    assert_eq!((lines.len(), lines[1].as_str()), (16, "000F/0001 8192 9215 1 A"));
    assert_eq!(listed(&map, &all).len(), 256);
    // One of the sixteen parts of 000F/0001 gets a backup: they are listed apart.
    add(&mut map, "00FF/0021".parse().unwrap(), 2);
    let lines = listed(&map, &joined);
    assert_eq!(lines.len(), 15 + 16);
    assert!(lines.contains(&"00FF/0021 8448 8511 2 A B".to_owned()), "{lines:?}");
    // All have got one, at different epochs: those lines would not be the same.
    for bucket in Hashmask::all(Mask::M00FF).filter(|bucket| bucket.value() != 0x21) {
        add(&mut map, bucket, 2);
    }
    assert_eq!(listed(&map, &joined).len(), 16);
    let bucket: Hashmask = "00FF/0021".parse().unwrap();
    let expected = map.bucket(bucket).unwrap().epoch;
    map.apply(LogIndex(999), &Change::Promote { bucket, node: NodeId(1), expected });
    assert_eq!(listed(&map, &joined).len(), 15 + 16);
    assert_eq!(TestNode::default().run("CLUSTER HASHMASKS some"), "(error) ERR syntax error");
}

#[test]
fn replies_are_written_once_for_each_epoch_and_protocol() {
    let mut node = TestNode::default();
    let mut map = Map::found(member(1), Mask::M3FFF, ClusterSettings::default());
    apply(&mut map, &[Change::Join(member(2))]);
    for bucket in Hashmask::all(Mask::M3FFF).filter(|bucket| bucket.slots().start % 2 == 0) {
        add(&mut map, bucket, 2);
    }
    node.see(&map, 1);
    let mut known = 0;
    for protocol in ["HELLO 2", "HELLO 3"] {
        node.run(protocol);
        for command in ["SLOTS", "SHARDS", "NODES", "HASHMASKS"] {
            let first = node.run(&format!("CLUSTER {command}"));
            known += 1;
            assert_eq!(node.env.cluster.topology.written(), known, "{command}");
            assert_eq!(node.run(&format!("CLUSTER {command}")), first);
            assert_eq!(node.env.cluster.topology.written(), known, "{command} again");
        }
    }
    apply(&mut map, &[Change::Join(member(3))]);
    node.see(&map, 1);
    assert_eq!(node.env.cluster.topology.written(), 0, "another epoch");
    assert!(node.run("CLUSTER NODES").contains("10.0.0.3"));
}

#[test]
fn load_levels_are_told_as_far_as_they_are_known() {
    let mut node = node(1);
    let mut status = Status::of(&three(), NodeId(1));
    let vitals = Vitals { bytes: 77, ops_per_second: 5, ..Vitals::default() };
    let load = three().load(NodeId(2));
    let levels = LoadLevels {
        epoch: three().epoch(),
        primaries: load.primaries,
        backups: load.backups,
        vitals,
        busy: true,
    };
    status.add_levels(NodeId(2), &levels);
    node.host.status = Some(status.clone());
    let levels = words(&node.args(1, &[b"CLUSTER", b"LOADLEVELS"])[0]);
    assert_eq!(levels[0], "name A primaries 4 backups 0 ideal 10 weight 1");
    assert_eq!(
        levels[1],
        "name B primaries 4 backups 4 ideal 10 weight 1 bytes 77 ops-per-second 5 busy 1 sick 0 full 0"
    );
    let told = node.args(1, &[b"CLUSTER", b"STATUS"]);
    let read: Status = serde_json::from_slice(told[0].text().unwrap()).unwrap();
    assert_eq!(read, status);
}

#[test]
fn who_wants_to_join_is_told_where_the_members_are() {
    let mut node = node(1);
    let status = Status { cluster: "00c1".to_owned(), ..Status::of(&three(), NodeId(1)) };
    node.host.status = Some(status);
    assert_eq!(
        node.run("CLUSTER PEERS"),
        "1) \"00c1\"\n2) 1) \"10.0.0.1\"\n   2) (integer) 16379\n3) 1) \"10.0.0.2\"\n   2) (integer) 16379\n4) 1) \"10.0.0.3\"\n   2) (integer) 16379"
    );
}

#[test]
fn links_are_listed_as_redis_lists_them() {
    let mut node = node(1);
    node.host.links =
        vec![LinkFacts { direction: LinkDirection::To, node: NodeId(2), unsent_bytes: 3 }];
    let wanted =
        format!("direction to node {} events rw send-buffer-used 3", format_node_id(NodeId(2)));
    assert_eq!(words(&node.args(1, &[b"CLUSTER", b"LINKS"])[0]), [wanted]);
}

#[test]
fn keys_that_two_sides_had_changed_are_named() {
    assert_eq!(node(1).run("CLUSTER CONFLICTS"), r#"1) "{\"key\":\"k\"}""#);
}

#[test]
fn changes_of_the_map_are_heard_by_who_watches() {
    let mut node = TestNode::default();
    let told = node.run("CLUSTER WATCH");
    assert_eq!(
        told,
        "(error) ERR CLUSTER WATCH needs RESP3: send HELLO 3 first, or SUBSCRIBE __cluster__:map"
    );
    node.run("HELLO 3");
    assert_eq!(node.run("CLUSTER WATCH"), "(integer) 1");
    assert_eq!(node.run("CLUSTER WATCH"), "(integer) 1");
    node.on(2, &format!("PUBLISH {MAP_CHANNEL} 2"));
    assert_eq!(node.heard(1), [format!("message {MAP_CHANNEL} 2")]);
    node.run(&format!("UNSUBSCRIBE {MAP_CHANNEL}"));
    node.on(2, &format!("PUBLISH {MAP_CHANNEL} 3"));
    assert!(node.heard(1).is_empty());
}
