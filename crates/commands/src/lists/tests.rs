//! Tests of the list commands as scripts, with the replies that redis-server gives.

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

#[test]
fn elements_are_pushed_and_popped_at_both_ends() {
    check(
        r#"
        > RPUSH l a b c
        (integer) 3
        > LPUSH l 1 2
        (integer) 5
        > LRANGE l 0 -1
        1) "2"
        2) "1"
        3) "a"
        4) "b"
        5) "c"
        > LPOP l
        "2"
        > RPOP l
        "c"
        > LPOP l 2
        1) "1"
        2) "a"
        > RPOP l 0
        (empty array)
        > RPUSH l c d
        (integer) 3
        > RPOP l 2
        1) "d"
        2) "c"
        > LPOP l 10
        1) "b"
        > EXISTS l
        (integer) 0
        > LPOP l
        (nil)
        > LPOP l 5
        (nil)
        > LPUSHX l a
        (integer) 0
        > RPUSHX l a
        (integer) 0
        > RPUSH l x
        (integer) 1
        > LPUSHX l a b
        (integer) 3
        > RPUSHX l 7
        (integer) 4
        > LRANGE l 0 -1
        1) "b"
        2) "a"
        3) "x"
        4) "7"
        > LPOP l -1
        (error) ERR value is out of range, must be positive
        > LPOP l x
        (error) ERR value is out of range, must be positive
        > LPOP l 1 2
        (error) ERR wrong number of arguments for 'lpop' command
        > LPUSH l
        (error) ERR wrong number of arguments for 'lpush' command
        "#,
    );
}

#[test]
fn elements_are_read_by_index() {
    check(
        r#"
        > RPUSH l a 2 c
        (integer) 3
        > LLEN l
        (integer) 3
        > LLEN missing
        (integer) 0
        > LINDEX l 0
        "a"
        > LINDEX l -1
        "c"
        > LINDEX l 3
        (nil)
        > LINDEX l -4
        (nil)
        > LINDEX l -9223372036854775808
        (nil)
        > LINDEX l x
        (error) ERR value is not an integer or out of range
        > LINDEX missing x
        (nil)
        > LRANGE l 1 1
        1) "2"
        > LRANGE l -2 100
        1) "2"
        2) "c"
        > LRANGE l -100 0
        1) "a"
        > LRANGE l 2 1
        (empty array)
        > LRANGE l 3 5
        (empty array)
        > LRANGE l 0 -4
        (empty array)
        > LRANGE l -9223372036854775808 9223372036854775807
        1) "a"
        2) "2"
        3) "c"
        > LRANGE missing 0 -1
        (empty array)
        > LRANGE missing x -1
        (error) ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn elements_are_found() {
    check(
        r#"
        > RPUSH l a b c 1 2 3 c c
        (integer) 8
        > LPOS l c
        (integer) 2
        > LPOS l c RANK 2
        (integer) 6
        > LPOS l c RANK -1
        (integer) 7
        > LPOS l c COUNT 2
        1) (integer) 2
        2) (integer) 6
        > LPOS l c RANK -1 COUNT 2
        1) (integer) 7
        2) (integer) 6
        > LPOS l c COUNT 0
        1) (integer) 2
        2) (integer) 6
        3) (integer) 7
        > LPOS l c COUNT 0 MAXLEN 7
        1) (integer) 2
        2) (integer) 6
        > LPOS l c COUNT 0 MAXLEN 1 RANK -1
        1) (integer) 7
        > LPOS l x
        (nil)
        > LPOS l x COUNT 1
        (empty array)
        > LPOS missing x
        (nil)
        > LPOS missing x COUNT 0
        (empty array)
        > LPOS l c RANK 0
        (error) ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
        > LPOS l c RANK -9223372036854775808
        (error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > LPOS l c COUNT -1
        (error) ERR COUNT can't be negative
        > LPOS l c MAXLEN x
        (error) ERR MAXLEN can't be negative
        > LPOS l c RANK
        (error) ERR syntax error
        > LPOS l c NOPE 1
        (error) ERR syntax error
        "#,
    );
}

#[test]
fn elements_are_replaced_inserted_and_removed() {
    check(
        r#"
        > RPUSH l a b a c a
        (integer) 5
        > LSET l 1 B
        OK
        > LSET l -1 A
        OK
        > LSET l 5 x
        (error) ERR index out of range
        > LSET l -6 x
        (error) ERR index out of range
        > LSET l x x
        (error) ERR value is not an integer or out of range
        > LSET missing 0 x
        (error) ERR no such key
        > LINSERT l BEFORE c 7
        (integer) 6
        > LINSERT l after A end
        (integer) 7
        > LINSERT l AFTER nothing x
        (integer) -1
        > LINSERT missing BEFORE a x
        (integer) 0
        > LINSERT l NEAR a x
        (error) ERR syntax error
        > LRANGE l 0 -1
        1) "a"
        2) "B"
        3) "a"
        4) "7"
        5) "c"
        6) "A"
        7) "end"
        > LREM l 1 a
        (integer) 1
        > RPUSH l a a
        (integer) 8
        > LREM l -1 a
        (integer) 1
        > LREM l 0 a
        (integer) 2
        > LREM l 0 a
        (integer) 0
        > LRANGE l 0 -1
        1) "B"
        2) "7"
        3) "c"
        4) "A"
        5) "end"
        > LTRIM l 1 -2
        OK
        > LRANGE l 0 -1
        1) "7"
        2) "c"
        3) "A"
        > LTRIM l 0 -1
        OK
        > LLEN l
        (integer) 3
        > LTRIM l 5 10
        OK
        > EXISTS l
        (integer) 0
        "#,
    );
}

#[test]
fn missing_lists_and_wrong_counts_change_nothing() {
    check(
        r#"
        > LREM missing 0 a
        (integer) 0
        > LREM l x a
        (error) ERR value is not an integer or out of range
        > LREM l -9223372036854775808 a
        (error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > LTRIM missing 0 1
        OK
        > LTRIM missing 0 x
        (error) ERR value is not an integer or out of range
        > RPUSH l a a
        (integer) 2
        > LREM l -5 a
        (integer) 2
        > EXISTS l
        (integer) 0
        "#,
    );
}

#[test]
fn elements_are_moved() {
    check(
        r#"
        > RPUSH {l}1 a b c
        (integer) 3
        > LMOVE {l}1 {l}2 LEFT RIGHT
        "a"
        > LMOVE {l}1 {l}2 right left
        "c"
        > RPOPLPUSH {l}1 {l}2
        "b"
        > EXISTS {l}1
        (integer) 0
        > LRANGE {l}2 0 -1
        1) "b"
        2) "c"
        3) "a"
        > RPOPLPUSH {l}2 {l}2
        "a"
        > LMOVE {l}2 {l}2 LEFT LEFT
        "a"
        > LMOVE {l}2 {l}2 RIGHT RIGHT
        "c"
        > LMOVE {l}2 {l}2 LEFT RIGHT
        "a"
        > LRANGE {l}2 0 -1
        1) "b"
        2) "c"
        3) "a"
        > LMOVE {l}1 {l}2 LEFT LEFT
        (nil)
        > RPUSH {l}1 only
        (integer) 1
        > RPOPLPUSH {l}1 {l}1
        "only"
        > LRANGE {l}1 0 -1
        1) "only"
        > LMOVE {l}1 {l}2 UP LEFT
        (error) ERR syntax error
        > SET {l}s text
        OK
        > LMOVE {l}1 {l}s LEFT LEFT
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > LMOVE {l}s {l}1 LEFT LEFT
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > LMOVE {l}none {l}s LEFT LEFT
        (nil)
        > LLEN {l}1
        (integer) 1
        "#,
    );
}

#[test]
fn elements_are_popped_from_the_first_list_that_exists() {
    check(
        r#"
        > RPUSH {l}2 a b c
        (integer) 3
        > LMPOP 2 {l}1 {l}2 LEFT
        1) "{l}2"
        2) 1) "a"
        > LMPOP 2 {l}1 {l}2 RIGHT COUNT 10
        1) "{l}2"
        2) 1) "c"
           2) "b"
        > LMPOP 2 {l}1 {l}2 RIGHT COUNT 10
        (nil)
        > LMPOP 0 {l}1 LEFT
        (error) ERR numkeys should be greater than 0
        > LMPOP x {l}1 LEFT
        (error) ERR numkeys should be greater than 0
        > LMPOP 2 {l}1 LEFT
        (error) ERR syntax error
        > LMPOP 9223372036854775807 {l}1 LEFT
        (error) ERR syntax error
        > LMPOP 1 {l}1 UP
        (error) ERR syntax error
        > LMPOP 1 {l}1 LEFT COUNT 0
        (error) ERR count should be greater than 0
        > LMPOP 1 {l}1 LEFT COUNT 1 COUNT 1
        (error) ERR syntax error
        > LMPOP 1 {l}1 LEFT COUNT
        (error) ERR syntax error
        > LMPOP 1 {l}1 LEFT MORE 1
        (error) ERR syntax error
        > SET {l}1 text
        OK
        > LMPOP 2 {l}1 {l}2 LEFT
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn other_types_are_refused() {
    let refused = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut node = TestNode::default();
    node.run("SET s text");
    node.run("HSET h f v");
    node.run("RPUSH l a");
    for key in ["s", "h"] {
        for line in [
            "LPUSH K a",
            "RPUSHX K a",
            "LPOP K",
            "RPOP K 0",
            "LLEN K",
            "LRANGE K 0 -1",
            "LINDEX K 0",
            "LSET K 0 a",
            "LINSERT K BEFORE a b",
            "LREM K 0 a",
            "LTRIM K 0 1",
            "LPOS K a",
            "LMPOP 1 K LEFT",
            "RPOPLPUSH K K",
        ] {
            let line = line.replace('K', key);
            assert_eq!(node.run(&line), refused, "{line}");
        }
    }
    for line in ["GET l", "APPEND l x", "HGET l f", "HSET l f v", "INCR l", "GETRANGE l 0 1"] {
        assert_eq!(node.run(line), refused, "{line}");
    }
    assert_eq!(node.run("SET l text"), "OK");
}

#[test]
fn a_list_is_a_value_like_any_other() {
    check(
        r#"
        > RPUSH l a 1
        (integer) 2
        > TYPE l
        list
        > OBJECT ENCODING l
        "listpack"
        > EXPIRE l 100
        (integer) 1
        > RPUSH l b
        (integer) 3
        > TTL l
        (integer) 100
        > COPY l {l}copy
        (integer) 1
        > RPUSH l c
        (integer) 4
        > LRANGE {l}copy 0 -1
        1) "a"
        2) "1"
        3) "b"
        > TTL {l}copy
        (integer) 100
        > RENAME l {l}other
        OK
        > LLEN {l}other
        (integer) 4
        > SCAN 0 TYPE list COUNT 100
        1) "0"
        2) 1) "{l}other"
           2) "{l}copy"
        > MULTI
        OK
        > RPUSH m a b
        QUEUED
        > LPOP m 5
        QUEUED
        > LMPOP 1 m LEFT
        QUEUED
        > LPOP m 1 1
        QUEUED
        > EXEC
        1) (integer) 2
        2) 1) "a"
           2) "b"
        3) (nil)
        4) (error) ERR wrong number of arguments for 'lpop' command
        "#,
    );
}

#[test]
fn events_are_those_of_redis() {
    let mut node = TestNode::default();
    let classes = NotifyClasses::LIST.union(NotifyClasses::GENERIC);
    node.env.notify = classes.union(NotifyClasses::KEYEVENT);
    let events = |node: &mut TestNode, line: &str| {
        node.run(line);
        let events = node.events();
        let told = events.iter().map(|event| format!("{} {}", event.name, text(&event.key)));
        told.collect::<Vec<_>>().join(", ")
    };
    let expected = [
        ("RPUSH {e}l a b c", "rpush {e}l"),
        ("LPUSH {e}l a", "lpush {e}l"),
        ("LPOP {e}l", "lpop {e}l"),
        ("RPOP {e}l 0", ""),
        ("RPOP {e}l 1", "rpop {e}l"),
        ("LSET {e}l 0 x", "lset {e}l"),
        ("LINSERT {e}l BEFORE x y", "linsert {e}l"),
        ("LINSERT {e}l BEFORE missing y", ""),
        ("LTRIM {e}l 0 -1", "ltrim {e}l"),
        ("LREM {e}l 0 nothing", ""),
        ("LREM {e}l 0 y", "lrem {e}l"),
        ("LMOVE {e}l {e}m LEFT RIGHT", "rpush {e}m, lpop {e}l"),
        ("LMOVE {e}l {e}m LEFT LEFT", "lpush {e}m, lpop {e}l, del {e}l"),
        ("RPOPLPUSH {e}m {e}m", "lpush {e}m, rpop {e}m"),
        ("LMPOP 1 {e}m RIGHT COUNT 9", "rpop {e}m, del {e}m"),
        ("RPUSH {e}l a a", "rpush {e}l"),
        ("LREM {e}l 0 a", "lrem {e}l, del {e}l"),
        ("RPUSH {e}l a a", "rpush {e}l"),
        ("LTRIM {e}l 5 5", "ltrim {e}l, del {e}l"),
        ("LPOP {e}l", ""),
    ];
    for (line, told) in expected {
        assert_eq!(events(&mut node, line), told, "{line}");
    }
}

#[test]
fn a_long_list_is_a_quicklist_and_everything_works_on_it() {
    let mut node = TestNode::default();
    for number in 0..5_000 {
        node.run(&format!("RPUSH l item{number}"));
    }
    let script = r#"
        > OBJECT ENCODING l
        "quicklist"
        > LLEN l
        (integer) 5000
        > LINDEX l -1
        "item4999"
        > LPOS l item4000
        (integer) 4000
        > LPOS l item4000 RANK -1 MAXLEN 1000
        (integer) 4000
        > LPOS l item4000 RANK -1 MAXLEN 999
        (nil)
        > LREM l 0 item17
        (integer) 1
        > LINSERT l BEFORE item18 item17
        (integer) 5000
        > LSET l 2500 changed
        OK
        > LRANGE l 2499 2501
        1) "item2499"
        2) "changed"
        3) "item2501"
        > LTRIM l 2000 2999
        OK
        > LPOP l 2
        1) "item2000"
        2) "item2001"
        > RPOP l 2
        1) "item2999"
        2) "item2998"
        > OBJECT ENCODING l
        "quicklist"
        > LTRIM l 0 9
        OK
        > OBJECT ENCODING l
        "listpack"
        > LLEN l
        (integer) 10
        "#;
    check_on(&mut node, script);
}

#[test]
fn lists_are_dumped_and_restored() {
    let mut node = TestNode::default();
    node.run(
        "RPUSH small a 1 -5000 70000 some-longer-text-that-could-be-compressed-aaaaaaaaaaaaaaaa",
    );
    for number in 0..3_000 {
        node.run(&format!("RPUSH large item{number}"));
    }
    for (key, encoding) in [("small", "listpack"), ("large", "quicklist")] {
        let payload = match &node.args(1, &[b"DUMP", key.as_bytes()])[..] {
            [value] => value.text().expect("a payload").to_vec(),
            replies => panic!("{replies:?}"),
        };
        let restored = node.args(1, &[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"]);
        assert_eq!(restored[0].to_string(), "OK");
        assert_eq!(node.run("OBJECT ENCODING copy"), format!("\"{encoding}\""));
        let digests = node.run(&format!("DEBUG DIGEST-VALUE copy {key}"));
        let digests: Vec<&str> = digests.lines().map(|line| &line[3..]).collect();
        assert_eq!(digests[0], digests[1]);
    }
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
