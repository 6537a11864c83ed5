//! CLUSTER on a node alone, as dialogues.

use crate::testing::{TestNode, check_on};

fn node() -> TestNode {
    let mut node = TestNode::default();
    node.host.facts.identity.id = "0123456789012345678901234567890123456789".to_owned();
    node.host.facts.identity.host = "127.0.0.1".to_owned();
    node.host.facts.identity.port = 6379;
    node.host.facts.identity.peer_port = 16379;
    node
}

#[test]
fn every_slot_is_here() {
    check_on(
        &mut node(),
        r#"
        > CLUSTER MYID
        "0123456789012345678901234567890123456789"
        > CLUSTER NODES
        "0123456789012345678901234567890123456789 127.0.0.1:6379@16379 myself,master - 0 0 0 connected 0-16383\n"
        > CLUSTER SLOTS
        1) 1) (integer) 0
           2) (integer) 16383
           3) 1) "127.0.0.1"
              2) (integer) 6379
              3) "0123456789012345678901234567890123456789"
              4) (empty array)
        > CLUSTER SHARDS
        1) 1) "slots"
           2) 1) (integer) 0
              2) (integer) 16383
           3) "nodes"
           4) 1)  1) "id"
                  2) "0123456789012345678901234567890123456789"
                  3) "port"
                  4) (integer) 6379
                  5) "ip"
                  6) "127.0.0.1"
                  7) "endpoint"
                  8) "127.0.0.1"
                  9) "role"
                 10) "master"
                 11) "replication-offset"
                 12) (integer) 0
                 13) "health"
                 14) "online"
        > CLUSTER NOSUCH
        (error) ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.
        "#,
    );
    assert!(node().run("CLUSTER INFO").contains("cluster_state:ok"));
}

#[test]
fn keys_are_counted_and_listed_by_slot() {
    check_on(
        &mut node(),
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
