//! Tests of the set commands as scripts, with the replies that valkey-server gives.

use std::collections::BTreeSet;

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

const WRONG_TYPE: &str =
    "(error) WRONGTYPE Operation against a key holding the wrong kind of value\n";

#[test]
fn members_are_added_found_and_removed() {
    check(
        r#"
        > SADD s b a b
        (integer) 2
        > SADD s a c 007
        (integer) 2
        > SADD s a
        (integer) 0
        > SMEMBERS s
        1) "b"
        2) "a"
        3) "c"
        4) "007"
        > SMEMBERS missing
        (empty array)
        > SCARD s
        (integer) 4
        > SCARD missing
        (integer) 0
        > SISMEMBER s a
        (integer) 1
        > SISMEMBER s 7
        (integer) 0
        > SISMEMBER missing a
        (integer) 0
        > SMISMEMBER s a x 007
        1) (integer) 1
        2) (integer) 0
        3) (integer) 1
        > SMISMEMBER missing a b
        1) (integer) 0
        2) (integer) 0
        > SREM s a a x
        (integer) 1
        > SREM s x
        (integer) 0
        > SREM missing a
        (integer) 0
        > SREM s b c 007 b
        (integer) 3
        > EXISTS s
        (integer) 0
        > SADD s
        (error) ERR wrong number of arguments for 'sadd' command
        > SREM s
        (error) ERR wrong number of arguments for 'srem' command
        "#,
    );
}

#[test]
fn numbers_come_in_their_order() {
    check(
        r#"
        > SADD s 30 -1 200000 4
        (integer) 4
        > SMEMBERS s
        1) "-1"
        2) "4"
        3) "30"
        4) "200000"
        > OBJECT ENCODING s
        "intset"
        > SADD s text
        (integer) 1
        > OBJECT ENCODING s
        "listpack"
        > SREM s text
        (integer) 1
        > OBJECT ENCODING s
        "listpack"
        > SADD t +1 01 1
        (integer) 3
        > OBJECT ENCODING t
        "listpack"
        "#,
    );
}

#[test]
fn a_member_moves_from_one_set_to_another() {
    check(
        r#"
        > SADD a 1 2 3
        (integer) 3
        > SADD b 3 x
        (integer) 2
        > SMOVE a b 1
        (integer) 1
        > SMOVE a b 9
        (integer) 0
        > SMOVE a b 3
        (integer) 1
        > SMEMBERS a
        1) "2"
        > SMEMBERS b
        1) "3"
        2) "x"
        3) "1"
        > SMOVE a a 2
        (integer) 1
        > SMOVE a a 7
        (integer) 0
        > SMOVE a new 2
        (integer) 1
        > EXISTS a
        (integer) 0
        > SMEMBERS new
        1) "2"
        > SMOVE missing b 1
        (integer) 0
        > SET string v
        OK
        > SMOVE missing string 1
        (integer) 0
        > SMOVE b string 1
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > SMOVE b string nothing
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > SMOVE string b 1
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > SCARD b
        (integer) 3
        "#,
    );
}

#[test]
fn sets_are_combined() {
    check(
        r#"
        > SADD a 1 2 3 4
        (integer) 4
        > SADD b 2 4 6
        (integer) 3
        > SADD c 4 x
        (integer) 2
        > SINTER a b
        1) "2"
        2) "4"
        > SINTER a b c
        1) "4"
        > SINTER a a
        1) "1"
        2) "2"
        3) "3"
        4) "4"
        > SINTER a missing b
        (empty array)
        > SUNION a b c missing
        1) "1"
        2) "2"
        3) "3"
        4) "4"
        5) "6"
        6) "x"
        > SUNION missing
        (empty array)
        > SDIFF a b
        1) "1"
        2) "3"
        > SDIFF a b c missing
        1) "1"
        2) "3"
        > SDIFF missing a
        (empty array)
        > SDIFF a a
        (empty array)
        > SDIFF a
        1) "1"
        2) "2"
        3) "3"
        4) "4"
        "#,
    );
}

#[test]
fn an_intersection_is_counted_up_to_a_limit() {
    check(
        r#"
        > SADD a 1 2 3 4
        (integer) 4
        > SADD b 2 3 4 5
        (integer) 4
        > SINTERCARD 2 a b
        (integer) 3
        > SINTERCARD 2 a b LIMIT 2
        (integer) 2
        > SINTERCARD 2 a b LIMIT 0
        (integer) 3
        > SINTERCARD 2 a b limit 1 LIMIT 9
        (integer) 3
        > SINTERCARD 1 a
        (integer) 4
        > SINTERCARD 1 a LIMIT 3
        (integer) 3
        > SINTERCARD 3 a b missing
        (integer) 0
        > SINTERCARD 0 a
        (error) ERR numkeys should be greater than 0
        > SINTERCARD x a
        (error) ERR numkeys should be greater than 0
        > SINTERCARD -1 a
        (error) ERR numkeys should be greater than 0
        > SINTERCARD 3 a b
        (error) ERR Number of keys can't be greater than number of args
        > SINTERCARD 1 a b
        (error) ERR syntax error
        > SINTERCARD 1 a LIMIT
        (error) ERR syntax error
        > SINTERCARD 1 a LIMIT -1
        (error) ERR LIMIT can't be negative
        > SINTERCARD 1 a LIMIT x
        (error) ERR LIMIT can't be negative
        > SET s v
        OK
        > SINTERCARD 2 missing s
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > COMMAND GETKEYS SINTERCARD 2 a b LIMIT 2
        1) "a"
        2) "b"
        "#,
    );
}

#[test]
fn combinations_are_stored_and_empty_ones_remove_the_key() {
    check(
        r#"
        > SADD a 1 2 3 4
        (integer) 4
        > SADD b 2 4 6
        (integer) 3
        > SET t text EX 100
        OK
        > SINTERSTORE t a b
        (integer) 2
        > SMEMBERS t
        1) "2"
        2) "4"
        > TTL t
        (integer) -1
        > OBJECT ENCODING t
        "intset"
        > SUNIONSTORE t t a b
        (integer) 5
        > SDIFFSTORE t t a
        (integer) 1
        > SMEMBERS t
        1) "6"
        > SINTERSTORE t a missing
        (integer) 0
        > EXISTS t
        (integer) 0
        > SUNIONSTORE missing none nothing
        (integer) 0
        > SDIFFSTORE a a a
        (integer) 0
        > EXISTS a
        (integer) 0
        "#,
    );
}

/// Both ways to compute a difference, and both orders of sizes, against ordered sets.
#[test]
fn combinations_of_large_sets_are_those_of_ordered_sets() {
    let mut node = TestNode::default();
    let all = [(0..2_000, 3), (500..1_500, 7), (0..40, 1), (0..3_000, 2), (1_000..1_003, 1)];
    let models: Vec<BTreeSet<String>> = all
        .into_iter()
        .map(|(range, step)| range.step_by(step).map(|number| format!("m{number}")).collect())
        .collect();
    for (index, model) in models.iter().enumerate() {
        let members: Vec<&str> = model.iter().map(String::as_str).collect();
        let added = node.run(&format!("SADD {index} {}", members.join(" ")));
        assert_eq!(added, format!("(integer) {}", model.len()));
    }
    for keys in [[0, 1, 2], [3, 0, 1], [2, 3, 0], [4, 0, 3], [0, 4, 2], [3, 3, 4]] {
        let names = keys.map(|key| key.to_string()).join(" ");
        let [first, second, third] = keys.map(|key| &models[key]);
        let both = |member: &&String| second.contains(*member) && third.contains(*member);
        let neither = |member: &&String| !second.contains(*member) && !third.contains(*member);
        let expected = [
            ("SINTER", first.iter().filter(both).cloned().collect::<BTreeSet<_>>()),
            ("SDIFF", first.iter().filter(neither).cloned().collect()),
            ("SUNION", [first, second, third].into_iter().flatten().cloned().collect()),
        ];
        for (command, expected) in expected {
            let reply = elements(&node.run(&format!("{command} {names}")));
            assert_eq!(reply.len(), expected.len(), "{command} {names}");
            assert_eq!(reply.into_iter().collect::<BTreeSet<_>>(), expected, "{command} {names}");
            let stored = node.run(&format!("{command}STORE result {names}"));
            assert_eq!(stored, format!("(integer) {}", expected.len()));
        }
    }
}

#[test]
fn other_types_are_refused_even_where_the_result_is_empty() {
    let mut script = String::from("> SET s text\nOK\n> HSET h f v\n(integer) 1\n");
    script.push_str("> SADD set a\n(integer) 1\n");
    let refused = [
        "SADD s a",
        "SREM h a",
        "SCARD s",
        "SISMEMBER h a",
        "SMISMEMBER s a b",
        "SMEMBERS h",
        "SPOP s",
        "SPOP h 2",
        "SPOP s 0",
        "SRANDMEMBER s",
        "SRANDMEMBER h 0",
        "SSCAN s 0",
        "SINTER missing s",
        "SINTER set h",
        "SUNION set s",
        "SDIFF missing h",
        "SDIFF set set s",
        "SINTERSTORE t missing s",
        "SUNIONSTORE t set s",
        "SDIFFSTORE t missing s",
        "GET set",
        "APPEND set x",
        "INCR set",
        "HSET set f v",
        "HGETALL set",
        "HSCAN set 0",
        "GETBIT set 1",
        "BITOP AND t set",
    ];
    for command in refused {
        script.push_str(&format!("> {command}\n{WRONG_TYPE}"));
    }
    script.push_str("> EXISTS t\n(integer) 0\n> SMEMBERS set\n1) \"a\"\n> MGET set\n1) (nil)\n");
    check(&script);
}

#[test]
fn a_set_has_a_key_like_any_other() {
    let long = "x".repeat(65);
    check(&format!(
        r#"
        > SADD s a 1
        (integer) 2
        > TYPE s
        set
        > OBJECT ENCODING s
        "listpack"
        > EXPIRE s 100
        (integer) 1
        > SADD s b
        (integer) 1
        > TTL s
        (integer) 100
        > COPY s copy
        (integer) 1
        > SREM s b
        (integer) 1
        > SMEMBERS copy
        1) "a"
        2) "1"
        3) "b"
        > TTL copy
        (integer) 100
        > SADD s {long}
        (integer) 1
        > OBJECT ENCODING s
        "hashtable"
        > RENAME s large
        OK
        > OBJECT ENCODING large
        "hashtable"
        > SREM large {long}
        (integer) 1
        > OBJECT ENCODING large
        "hashtable"
        > SCARD large
        (integer) 2
        > PEXPIRE large 10
        (integer) 1
        +10ms
        > SMEMBERS large
        (empty array)
        > SADD large new
        (integer) 1
        > TTL large
        (integer) -1
        > DEL large copy
        (integer) 2
        > SCAN 0 TYPE set
        1) "0"
        2) (empty array)
        "#
    ));
}

#[test]
fn events_of_sets_have_a_class_of_their_own() {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::ALL.union(NotifyClasses::NEW).union(NotifyClasses::KEYEVENT);
    let lines = [
        "SADD s a b c",
        "SADD s a",
        "SREM s x",
        "SREM s a",
        "SMOVE s t b",
        "SADD t c",
        "SMOVE s t c",
        "SPOP t",
        "SPOP t 0",
        "SPOP t 9",
        "SADD s 1 2",
        "SUNIONSTORE u s",
        "SINTERSTORE u s s",
        "SDIFFSTORE u s missing",
        "SDIFFSTORE u s s",
        "SDIFFSTORE u s s",
        "SREM s 1 2",
    ];
    lines.iter().for_each(|line| {
        let reply = node.run(line);
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
    });
    let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let events = node.events();
    let events: Vec<_> =
        events.iter().map(|event| (event.name, name(&event.key), event.class)).collect();
    let set = |event, key: &str| (event, key.to_owned(), NotifyClasses::SET);
    let new = |key: &str| ("new", key.to_owned(), NotifyClasses::NEW);
    let del = |key: &str| ("del", key.to_owned(), NotifyClasses::GENERIC);
    let expected = [
        new("s"),
        set("sadd", "s"),
        set("srem", "s"),
        set("srem", "s"),
        new("t"),
        set("sadd", "t"),
        set("sadd", "t"),
        set("srem", "s"),
        del("s"),
        set("spop", "t"),
        set("spop", "t"),
        del("t"),
        new("s"),
        set("sadd", "s"),
        new("u"),
        set("sunionstore", "u"),
        set("sinterstore", "u"),
        set("sdiffstore", "u"),
        del("u"),
        set("srem", "s"),
        del("s"),
    ];
    assert_eq!(events, expected);
}

/// Returns the lines of a reply that are elements.
fn elements(reply: &str) -> Vec<String> {
    let element = |line: &str| line.split('"').nth(1).map(str::to_owned);
    reply.lines().filter_map(element).collect()
}

#[test]
fn random_members_are_members_of_the_set() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r"
        > SRANDMEMBER missing
        (nil)
        > SRANDMEMBER missing 3
        (empty array)
        > SADD s a b c d
        (integer) 4
        > SRANDMEMBER s 0
        (empty array)
        > SRANDMEMBER s x
        (error) ERR value is not an integer or out of range
        > SRANDMEMBER s 1 2
        (error) ERR syntax error
        > SRANDMEMBER s -9223372036854775808
        (error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        ",
    );
    let known: BTreeSet<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    let one = elements(&node.run("SRANDMEMBER s"));
    assert!(one.len() == 1 && known.contains(&one[0]), "{one:?}");
    for (count, len) in [(2, 2), (4, 4), (100, 4)] {
        let drawn = elements(&node.run(&format!("SRANDMEMBER s {count}")));
        let different: BTreeSet<String> = drawn.iter().cloned().collect();
        assert_eq!((drawn.len(), different.len()), (len, len));
        assert!(different.is_subset(&known));
    }
    let repeated = elements(&node.run("SRANDMEMBER s -60"));
    assert_eq!(repeated.len(), 60);
    assert_eq!(repeated.into_iter().collect::<BTreeSet<_>>(), known);
    assert_eq!(node.run("SCARD s"), "(integer) 4");
}

#[test]
fn popped_members_are_removed_and_returned_once() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r"
        > SPOP missing
        (nil)
        > SPOP missing 2
        (empty array)
        > SADD s a
        (integer) 1
        > SPOP s -1
        (error) ERR value is out of range, must be positive
        > SPOP s x
        (error) ERR value is out of range, must be positive
        > SPOP s 1 2
        (error) ERR syntax error
        > SPOP s 0
        (empty array)
        > SCARD s
        (integer) 1
        ",
    );
    assert_eq!(elements(&node.run("SPOP s")), ["a"]);
    assert_eq!(node.run("EXISTS s"), "(integer) 0");
    // Few of many, about half, nearly all, all: each in a small set, a set of numbers, a large set.
    for (len, prefix) in [(100, "m"), (100, ""), (1_000, "m"), (1_000, "")] {
        for count in [1, 3, len / 4, len / 2, len - 5, len - 1, len, len + 5] {
            let all: BTreeSet<String> =
                (0..len).map(|number| format!("{prefix}{number}")).collect();
            let members: Vec<&str> = all.iter().map(String::as_str).collect();
            node.run(&format!("SADD s {}", members.join(" ")));
            node.run("EXPIRE s 100");
            let popped = elements(&node.run(&format!("SPOP s {count}")));
            let left = elements(&node.run("SMEMBERS s"));
            assert_eq!((popped.len(), left.len()), (count.min(len), len - count.min(len)));
            let ttl = if left.is_empty() { "(integer) -2" } else { "(integer) 100" };
            assert_eq!(node.run("TTL s"), ttl);
            let both: BTreeSet<String> = popped.into_iter().chain(left).collect();
            assert_eq!(both, all);
            node.run("DEL s");
        }
    }
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn a_dumped_set_is_restored() {
    let long = "x".repeat(100);
    for members in
        ["3 1 2", "a b 7", &format!("a {long}"), "9223372036854775807 -9223372036854775808"]
    {
        let mut node = TestNode::default();
        node.run(&format!("SADD s {members}"));
        let payload = node.run("DUMP s");
        assert_eq!(node.run(&format!("RESTORE t 0 {payload}")), "OK");
        assert_eq!(node.run("SDIFF t s"), "(empty array)");
        assert_eq!(node.run("SCARD t"), node.run("SCARD s"));
        assert_eq!(node.run("OBJECT ENCODING t"), node.run("OBJECT ENCODING s"));
        assert_eq!(node.run("DEBUG DIGEST-VALUE s"), node.run("DEBUG DIGEST-VALUE t"));
    }
}

/// The digests are those of redis-server 7.0.15.
#[test]
fn the_digest_of_a_set_is_that_of_redis() {
    check(
        r"
        > SADD numbers 3 1 2
        (integer) 3
        > SADD mixed a b c 1 2
        (integer) 5
        > DEBUG DIGEST-VALUE numbers mixed
        1) 2a462a3f51a1db89738ebbeef0c47ce1bbc85246
        2) b61daf08bbb208f9a6c7d9382868f1513fd7e269
        ",
    );
}

#[test]
fn a_set_is_scanned_in_pages() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r#"
        > SADD s a b ab 12
        (integer) 4
        > SSCAN s 0
        1) "0"
        2) 1) "a"
           2) "b"
           3) "ab"
           4) "12"
        > SSCAN s 0 MATCH a* COUNT 1
        1) "0"
        2) 1) "a"
           2) "ab"
        > SSCAN missing 0
        1) "0"
        2) (empty array)
        > SSCAN s x
        (error) ERR invalid cursor
        > SSCAN s 0 COUNT 0
        (error) ERR syntax error
        > SSCAN s 0 COUNT
        (error) ERR syntax error
        > SSCAN s 0 NOVALUES
        (error) ERR NOVALUES option can only be used in HSCAN
        "#,
    );
    let all: Vec<String> = (0..2_000).map(|number| format!("m{number}")).collect();
    node.run(&format!("SADD large {}", all.join(" ")));
    let (mut cursor, mut seen, mut pages) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = node.run(&format!("SSCAN large {cursor} COUNT 50"));
        let mut page = elements(&reply).into_iter();
        cursor = page.next().expect("the cursor");
        seen.extend(page);
        pages += 1;
        if cursor == "0" {
            break;
        }
    }
    assert!(pages >= 30, "only {pages} pages");
    assert_eq!(seen.len(), 2_000);
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), all.into_iter().collect());
}

#[test]
fn the_count_of_an_intersection_ends_at_its_limit() {
    let mut node = TestNode::default();
    let members = |numbers: core::ops::Range<u32>| {
        numbers.map(|number| format!(" m{number}")).collect::<String>()
    };
    node.run(&format!("SADD a{}", members(0..3_000)));
    node.run(&format!("SADD b{}", members(1_000..5_000)));
    node.run(&format!("SADD c{}", members(900..4_000)));
    let mut card = |line: &str| node.run(&format!("SINTERCARD {line}"));
    for (limit, count) in [(0, 2_000), (1, 1), (255, 255), (256, 256), (257, 257), (1_999, 1_999)] {
        assert_eq!(card(&format!("3 a b c LIMIT {limit}")), format!("(integer) {count}"));
    }
    assert_eq!(card("3 a b c LIMIT 5000"), "(integer) 2000");
    assert_eq!(card("2 a nosuch LIMIT 5"), "(integer) 0");
}
