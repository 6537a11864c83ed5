//! Tests of expiry in a slot whose last write came from a node with a clock ahead of this one's.

use crate::testing::{TestNode, check_on};

/// Returns a node that took over slot `{a}` from a node whose clock was ahead by `millis`.
fn behind_by(millis: u64) -> TestNode {
    let mut node = TestNode::default();
    node.advance(millis);
    check_on(&mut node, "> SET {a}old v\nOK\n> SET {a}old-lock v PX 1000\nOK");
    node.env.now.0 -= millis;
    node
}

/// Runs the script and checks that a backup holds the same content afterwards.
fn check_behind_by(millis: u64, script: &str) {
    let mut node = behind_by(millis);
    check_on(&mut node, script);
    assert_eq!(node.slots.digest(), node.replayed().digest(), "a backup would hold something else");
}

#[test]
fn a_lock_has_one_holder() {
    check_behind_by(
        30_000,
        r#"
        > SET {a}lock a NX PX 5000
        OK
        > SET {a}lock b NX PX 5000
        (nil)
        > GET {a}lock
        "a"
        > PTTL {a}lock
        (integer) 5000
        +4999ms
        > SET {a}lock b NX PX 5000
        (nil)
        "#,
    );
}

#[test]
fn every_relative_time_to_live_lasts_its_time() {
    check_behind_by(
        30_000,
        r#"
        > SET {a}set v EX 5
        OK
        > SETEX {a}setex 5 v
        OK
        > PSETEX {a}psetex 5000 v
        OK
        > SET {a}getex v
        OK
        > GETEX {a}getex PX 5000
        "v"
        > SET {a}expire v
        OK
        > EXPIRE {a}expire 5
        (integer) 1
        > SET {a}pexpire v
        OK
        > PEXPIRE {a}pexpire 5000
        (integer) 1
        > MULTI
        OK
        > SET {a}exec v PX 5000
        QUEUED
        > PTTL {a}exec
        QUEUED
        > EXEC
        1) OK
        2) (integer) 5000
        +4999ms
        > EXISTS {a}set {a}setex {a}psetex {a}getex {a}expire {a}pexpire {a}exec
        (integer) 7
        > TTL {a}set
        (integer) 5
        "#,
    );
}

#[test]
fn a_restored_key_lasts_its_time() {
    let mut node = behind_by(30_000);
    let dumped = crate::rdb::dump(
        store::StoredValue::String(store::StringValue::Bytes(b"v")),
        store::UnixMillis(1),
    );
    let replies = node.args(1, &[b"RESTORE", b"{a}restored", b"5000", &dumped]);
    assert_eq!(replies[0].to_string(), "OK");
    check_on(&mut node, "> PTTL {a}restored\n(integer) 5000\n> GET {a}restored\n\"v\"");
}

#[test]
fn the_time_of_a_slot_stands_until_the_clock_has_caught_up() {
    check_behind_by(
        30_000,
        r"
        > SET {a}lock a NX PX 5000
        OK
        +30s
        > PTTL {a}lock
        (integer) 5000
        +4999ms
        > PTTL {a}lock
        (integer) 1
        +1ms
        > EXISTS {a}lock
        (integer) 0
        ",
    );
}

#[test]
fn a_year_ahead_counts_as_a_minute() {
    const YEAR: u64 = 365 * 24 * 60 * 60 * 1_000;
    check_behind_by(
        YEAR,
        r"
        > SET {a}lock a NX PX 5000
        OK
        > SET {a}lock b NX PX 5000
        (nil)
        +4999ms
        > PTTL {a}lock
        (integer) 1
        +1ms
        > SET {a}lock b NX PX 5000
        OK
        ",
    );
}

#[test]
fn an_absolute_deadline_is_judged_by_the_time_of_the_slot() {
    // The test node starts at 1,700,000,000 s; the slot's time is 30 s later.
    check_behind_by(
        30_000,
        r"
        > SET {a}k v PXAT 1700000030001
        OK
        > PEXPIRETIME {a}k
        (integer) 1700000030001
        > PTTL {a}k
        (integer) 1
        > PEXPIREAT {a}k 1700000030000
        (integer) 1
        > EXISTS {a}k
        (integer) 0
        > SET {a}k v
        OK
        > PEXPIRE {a}k 5000
        (integer) 1
        > PEXPIREAT {a}k 1700000020000 GT
        (integer) 0
        > PEXPIREAT {a}k 1700000036000 GT
        (integer) 1
        > PTTL {a}k
        (integer) 6000
        ",
    );
}

#[test]
fn a_key_that_changes_its_slot_keeps_the_time_it_has_left() {
    check_behind_by(
        30_000,
        r"
        > SET {b}lock a PX 5000
        OK
        > COPY {b}lock {a}copy
        (integer) 1
        > PTTL {a}copy
        (integer) 5000
        > RENAME {b}lock {a}lock
        OK
        > PTTL {a}lock
        (integer) 5000
        > RENAME {a}lock {b}lock
        OK
        > PTTL {b}lock
        (integer) 5000
        > PEXPIRETIME {b}lock
        (integer) 1700000005000
        ",
    );
}

#[test]
fn walks_show_what_reads_show() {
    let mut node = behind_by(30_000);
    node.advance(1);
    check_on(
        &mut node,
        r#"
        > SET {a}short v PXAT 1700000030500
        OK
        > KEYS {a}short
        1) "{a}short"
        > GET {a}short
        "v"
        "#,
    );
    node.env.now.0 += 1_000;
    check_on(
        &mut node,
        r#"
        > PTTL {a}short
        (integer) 500
        > SCAN 0 MATCH {a}none COUNT 1000
        1) "0"
        2) (empty array)
        "#,
    );
    // A write by a clock further ahead expires it for all commands at once.
    node.advance(60_000);
    check_on(&mut node, "> SET {a}old v2\nOK");
    node.env.now.0 -= 60_000;
    check_on(
        &mut node,
        r"
        > KEYS {a}short
        (empty array)
        > GET {a}short
        (nil)
        ",
    );
}

#[test]
fn fields_last_their_time() {
    check_behind_by(
        30_000,
        r#"
        > HSETEX {a}h PX 5000 FIELDS 2 f 1 g 2
        (integer) 1
        > HPEXPIRE {a}h 4000 FIELDS 1 g
        1) (integer) 1
        > HPTTL {a}h FIELDS 2 f g
        1) (integer) 5000
        2) (integer) 4000
        +4999ms
        > HMGET {a}h f g
        1) "1"
        2) "2"
        > HPTTL {a}h FIELDS 1 g
        1) (integer) 4000
        "#,
    );
}
