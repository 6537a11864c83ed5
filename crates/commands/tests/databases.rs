//! Numbered databases as clients see them: the same names in each, and nothing of the others.

use commands::testing::{TestNode, check, check_on};
use settings::NotifyClasses;

#[test]
fn a_connection_sees_the_keys_of_its_database_only() {
    check(
        r#"
        > MSET a zero b zero
        OK
        > SELECT 3
        OK
        > GET a
        (nil)
        > EXISTS a b
        (integer) 0
        > SET a three
        OK
        > RPUSH list 1 2
        (integer) 2
        > DBSIZE
        (integer) 2
        > TYPE list
        list
        2> DBSIZE
        (integer) 2
        2> GET a
        "zero"
        2> TYPE list
        none
        2> DEL a
        (integer) 1
        > GET a
        "three"
        > KEYS ?
        1) "a"
        > SCAN 0 COUNT 100 MATCH l*
        1) "0"
        2) 1) "list"
        > RENAME a c
        OK
        2> EXISTS c
        (integer) 0
        > SELECT 16
        (error) ERR DB index is out of range
        > GET c
        "three"
        > RESET
        RESET
        > KEYS *
        1) "b"
        > CLUSTER COUNTKEYSINSLOT 3300
        (integer) 1
        > CLUSTER GETKEYSINSLOT 3300 10
        1) "b"
        > SELECT 3
        OK
        > CLUSTER COUNTKEYSINSLOT 3300
        (integer) 0
        > CLUSTER GETKEYSINSLOT 3300 10
        (empty array)
        "#,
    );
}

#[test]
fn a_key_moves_with_its_expiry_unless_its_name_is_taken() {
    check(
        r#"
        > HSET h field value
        (integer) 1
        > PEXPIRE h 1000
        (integer) 1
        > MOVE h 1
        (integer) 1
        > EXISTS h
        (integer) 0
        > MOVE h 1
        (integer) 0
        > SET h here
        OK
        > MOVE h 1
        (integer) 0
        > MOVE h 0
        (error) ERR source and destination objects are the same
        > MOVE h 16
        (error) ERR DB index is out of range
        > MOVE h -1
        (error) ERR DB index is out of range
        > MOVE h x
        (error) ERR value is not an integer or out of range
        > SELECT 1
        OK
        > HGETALL h
        1) "field"
        2) "value"
        > PTTL h
        (integer) 1000
        > COPY h other DB 2
        (integer) 1
        > COPY h h
        (error) ERR source and destination objects are the same
        +1s
        > SELECT 0
        OK
        > MOVE h 1
        (integer) 1
        > SELECT 2
        OK
        > EXISTS other
        (integer) 0
        "#,
    );
}

#[test]
fn flushdb_empties_one_database_and_flushall_every_one() {
    let mut node = TestNode::default();
    for database in [0, 1, 2] {
        node.run(&format!("SELECT {database}"));
        for number in 0..500 {
            node.run(&format!("SET {{tag}}{number} x"));
            node.run(&format!("SET {number} x EX {}", 100 + number));
        }
    }
    check_on(
        &mut node,
        "> FLUSHDB\nOK\n> DBSIZE\n(integer) 0\n> SELECT 1\nOK\n> DBSIZE\n(integer) 1000\n> SELECT 0\nOK\n> FLUSHDB\nOK\n\
         > DBSIZE\n(integer) 0\n> RANDOMKEY\n(nil)\n> KEYS *\n(empty array)\n> SCAN 0\n1) \"0\"\n2) (empty array)\n\
         > SELECT 1\nOK\n> DBSIZE\n(integer) 1000\n",
    );
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let page = node.run(&format!("SCAN {cursor} COUNT 7"));
        seen.extend(page.split('"').skip(3).step_by(2).map(str::to_owned));
        cursor = page.split('"').nth(1).expect("a cursor").to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 1_000, "a scan meets every key of its database");
    assert_ne!(node.run("RANDOMKEY"), "(nil)");
    assert_eq!(node.slots.digest(), node.replayed().digest());
    check_on(&mut node, "> FLUSHALL\nOK\n> DBSIZE\n(integer) 0\n2> DBSIZE\n(integer) 0");
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn a_transaction_selects_and_a_watch_is_of_one_database() {
    check(
        r#"
        > SELECT 5
        OK
        > WATCH k
        OK
        > SELECT 0
        OK
        2> SET k elsewhere
        OK
        > MULTI
        OK
        > SET k mine
        QUEUED
        > SELECT 5
        QUEUED
        > GET k
        QUEUED
        > SET k five
        QUEUED
        > EXEC
        1) OK
        2) OK
        3) (nil)
        4) OK
        > GET k
        "five"
        > WATCH k
        OK
        2> SELECT 5
        OK
        2> APPEND k s
        (integer) 5
        > MULTI
        OK
        > SET k mine
        QUEUED
        > EXEC
        (nil)
        2> GET k
        "fives"
        "#,
    );
}

#[test]
fn events_name_the_database_of_the_key() {
    let mut node = TestNode::default();
    let all = NotifyClasses::ALL.union(NotifyClasses::NEW).union(NotifyClasses::KEY_MISS);
    node.env.notify = all.union(NotifyClasses::KEYSPACE);
    check_on(
        &mut node,
        "> SELECT 4\nOK\n> SET k x\nOK\n> GET no\n(nil)\n> MOVE k 2\n(integer) 1\n> SELECT 2\nOK\n> COPY k k DB 7\n(integer) 1\n\
         > PEXPIRE k 5\n(integer) 1\n+5ms\n> GET k\n(nil)",
    );
    let mut heard = Vec::new();
    for event in node.events() {
        event.announce(node.env.notify, |post| {
            let channel = String::from_utf8_lossy(post.channel).into_owned();
            heard.push(format!("{channel} {}", String::from_utf8_lossy(post.payload)));
        });
    }
    let expected = [
        "__keyspace@4__:k new",
        "__keyspace@4__:k set",
        "__keyspace@4__:no keymiss",
        "__keyspace@2__:k new",
        "__keyspace@4__:k move_from",
        "__keyspace@2__:k move_to",
        "__keyspace@7__:k new",
        "__keyspace@7__:k copy_to",
        "__keyspace@2__:k expire",
        "__keyspace@2__:k expired",
        "__keyspace@2__:k keymiss",
    ];
    assert_eq!(heard, expected);
}

#[test]
fn the_clients_are_listed_with_their_databases() {
    let mut node = TestNode::default();
    node.run("SELECT 12");
    assert!(node.run("CLIENT INFO").contains(" db=12 "));
    assert!(node.on(2, "CLIENT INFO").contains(" db=0 "));
}

#[test]
fn the_setting_limits_the_numbers() {
    let mut node = TestNode::default();
    node.host.settings.databases = 10_000;
    check_on(
        &mut node,
        "> SELECT 9999\nOK\n> SET k x\nOK\n> SELECT 10000\n(error) ERR DB index is out of range",
    );
    assert_eq!(node.slots.digest(), node.replayed().digest());
    node.host.settings.databases = 1;
    check_on(
        &mut node,
        "> SELECT 0\nOK\n> SELECT 1\n(error) ERR DB index is out of range\n> DBSIZE\n(integer) 0",
    );
}

#[test]
fn a_key_that_begins_like_a_name_of_another_database_is_one_of_its_own() {
    let mut node = TestNode::default();
    let odd: &[u8] = b"\xFF\0\x03k";
    node.args(1, &[b"SET", odd, b"zero"]);
    node.run("SELECT 3");
    node.run("SET k three");
    node.args(1, &[b"WATCH", b"k"]);
    node.args(2, &[b"DEL", odd]);
    check_on(
        &mut node,
        "> MULTI\nOK\n> GET k\nQUEUED\n> EXEC\n1) \"three\"\n2> DBSIZE\n(integer) 0",
    );
    assert_eq!(node.slots.digest(), node.replayed().digest());
}
