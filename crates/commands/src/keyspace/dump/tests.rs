//! Tests of DUMP and RESTORE: round trips, errors, events.

use resp::Value;
use settings::NotifyClasses;

use crate::testing::{TestNode, check_on};

fn dumped(node: &mut TestNode, key: &str) -> Vec<u8> {
    let mut replies = node.args(1, &[b"DUMP", key.as_bytes()]);
    replies.pop().and_then(|reply| reply.text().map(<[u8]>::to_vec)).expect("the key is there")
}

fn restore(node: &mut TestNode, args: &[&[u8]]) -> String {
    let all = [&[b"RESTORE".as_slice()], args].concat();
    node.args(1, &all).iter().map(Value::to_string).collect()
}

#[test]
fn what_was_dumped_can_be_restored() {
    let mut node = TestNode::default();
    for value in ["7", "text", "-123456789012", &"long ".repeat(10_000)] {
        node.args(1, &[b"SET", b"a", value.as_bytes()]);
        let payload = dumped(&mut node, "a");
        assert_eq!(restore(&mut node, &[b"b", b"0", &payload, b"REPLACE"]), "OK");
        assert_eq!(node.args(1, &[b"GET", b"b"]), node.args(1, &[b"GET", b"a"]));
    }
    assert_eq!(node.run("DUMP missing"), "(nil)");
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn the_time_to_live_is_relative_unless_told() {
    let mut node = TestNode::default();
    node.run("SET a x");
    let payload = dumped(&mut node, "a");
    assert_eq!(restore(&mut node, &[b"b", b"5000", &payload]), "OK");
    assert_eq!(node.run("PTTL b"), "(integer) 5000");
    assert_eq!(restore(&mut node, &[b"c", b"1700000009000", &payload, b"absttl"]), "OK");
    assert_eq!(node.run("PTTL c"), "(integer) 9000");
    // A deadline in the past: no key is created, and an existing one is removed.
    assert_eq!(restore(&mut node, &[b"d", b"5", &payload, b"ABSTTL"]), "OK");
    assert_eq!(restore(&mut node, &[b"c", b"5", &payload, b"ABSTTL", b"REPLACE"]), "OK");
    assert_eq!(node.run("EXISTS c d"), "(integer) 0");
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn faults_are_told_in_the_order_of_redis() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r"
        > SET a x
        OK
        > RESTORE a x x
        (error) BUSYKEY Target key name already exists.
        > RESTORE a x x REPLACE
        (error) ERR value is not an integer or out of range
        > RESTORE b -1 x
        (error) ERR Invalid TTL value, must be >= 0
        > RESTORE b 0 x
        (error) ERR DUMP payload version or checksum are wrong
        > RESTORE b 0 x IDLETIME 1 FREQ 2
        (error) ERR syntax error
        > RESTORE b 0 x IDLETIME -1
        (error) ERR Invalid IDLETIME value, must be >= 0
        > RESTORE b 0 x FREQ 256
        (error) ERR Invalid FREQ value, must be >= 0 and <= 255
        > RESTORE b 0 x FREQ
        (error) ERR syntax error
        > RESTORE a 0 x AGAIN
        (error) ERR syntax error
        ",
    );
    // A list with a valid checksum.
    let list = b"\x01\x01\x01x\x0a\x00\x0d\x64\xa5\x41\x22\xe6\x18\x5b";
    let told = restore(&mut node, &[b"b", b"0", list]);
    assert!(told.starts_with("(error) ERR"), "{told}");
}

#[test]
fn a_restored_key_was_used_as_it_is_told() {
    let mut node = TestNode::default();
    node.run("SET a x");
    let payload = dumped(&mut node, "a");
    assert_eq!(restore(&mut node, &[b"b", b"0", &payload, b"IDLETIME", b"1000"]), "OK");
    assert_eq!(node.run("OBJECT IDLETIME b"), "(integer) 1000");
    assert_eq!(restore(&mut node, &[b"c", b"0", &payload, b"FREQ", b"7"]), "OK");
    assert_eq!(node.run("OBJECT IDLETIME c"), "(integer) 0");
}

#[test]
fn events_tell_restored_or_deleted() {
    let mut node = TestNode::default();
    node.run("SET a x");
    let payload = dumped(&mut node, "a");
    node.env.notify = NotifyClasses::ALL.union(NotifyClasses::KEYEVENT);
    restore(&mut node, &[b"b", b"0", &payload]);
    restore(&mut node, &[b"b", b"5", &payload, b"ABSTTL", b"REPLACE"]);
    let told: Vec<&str> = node.events().iter().map(|event| event.name).collect();
    assert_eq!(told, ["restore", "del"]);
}
