//! Tests of the hash commands as scripts, with the replies that redis-server gives.

mod expire; // Deadlines of fields.

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

#[test]
fn fields_are_set_and_got() {
    check(
        r#"
        > HSET h a 1 b two
        (integer) 2
        > HSET h a 5 c 007 c 8
        (integer) 1
        > HGET h a
        "5"
        > HGET h c
        "8"
        > HGET h missing
        (nil)
        > HGET missing a
        (nil)
        > HMGET h a missing b
        1) "5"
        2) (nil)
        3) "two"
        > HMGET missing a b
        1) (nil)
        2) (nil)
        > HLEN h
        (integer) 3
        > HLEN missing
        (integer) 0
        > HSTRLEN h b
        (integer) 3
        > HSTRLEN h a
        (integer) 1
        > HSTRLEN h missing
        (integer) 0
        > HEXISTS h a
        (integer) 1
        > HEXISTS h missing
        (integer) 0
        > HEXISTS missing a
        (integer) 0
        > HGETALL h
        1) "a"
        2) "5"
        3) "b"
        4) "two"
        5) "c"
        6) "8"
        > HKEYS h
        1) "a"
        2) "b"
        3) "c"
        > HVALS h
        1) "5"
        2) "two"
        3) "8"
        > HMSET h d 4
        OK
        > HSETNX h d 5
        (integer) 0
        > HSETNX h e 5
        (integer) 1
        > HGET h d
        "4"
        > HSET h a
        (error) ERR wrong number of arguments for 'hset' command
        > HSET h a 1 b
        (error) ERR wrong number of arguments for 'hset' command
        > HMSET h a 1 b
        (error) ERR wrong number of arguments for 'hmset' command
        "#,
    );
}

#[test]
fn a_hash_goes_with_its_last_field() {
    check(
        r#"
        > HSET h a 1 b 2 c 3
        (integer) 3
        > HDEL h a a missing
        (integer) 1
        > HDEL h missing
        (integer) 0
        > HDEL missing a
        (integer) 0
        > HDEL h b c
        (integer) 2
        > EXISTS h
        (integer) 0
        > TYPE h
        none
        "#,
    );
}

#[test]
fn numbers_in_fields_are_added_to() {
    check(
        r#"
        > HINCRBY h n 5
        (integer) 5
        > HINCRBY h n -7
        (integer) -2
        > HGET h n
        "-2"
        > HSET h max 9223372036854775807 text abc spaced " 1"
        (integer) 3
        > HINCRBY h max 1
        (error) ERR increment or decrement would overflow
        > HINCRBY h text 1
        (error) ERR hash value is not an integer
        > HINCRBY h spaced 1
        (error) ERR hash value is not an integer
        > HINCRBY h n x
        (error) ERR value is not an integer or out of range
        > HINCRBYFLOAT h f 10.5
        "10.5"
        > HINCRBYFLOAT h f 0.1
        "10.6"
        > HINCRBYFLOAT h f -10.6
        "0"
        > HINCRBYFLOAT h n 1.5e2
        "148"
        > HINCRBYFLOAT h text 1
        (error) ERR hash value is not a float
        > HINCRBYFLOAT h f x
        (error) ERR value is not a valid float
        > HINCRBYFLOAT h f inf
        (error) ERR value is NaN or Infinity
        > HGET h f
        "0"
        "#,
    );
}

#[test]
fn other_types_are_refused_on_both_sides() {
    let mut script = String::from("> SET s text\nOK\n> HSET h f v\n(integer) 1\n");
    let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value\n";
    let on_strings = [
        "HSET s f v",
        "HMSET s f v",
        "HSETNX s f v",
        "HGET s f",
        "HMGET s f",
        "HGETALL s",
        "HKEYS s",
        "HVALS s",
        "HLEN s",
        "HSTRLEN s f",
        "HEXISTS s f",
        "HDEL s f",
        "HINCRBY s f 1",
        "HINCRBYFLOAT s f 1",
        "HRANDFIELD s",
        "HRANDFIELD s 2",
        "HSCAN s 0",
    ];
    let on_hashes = [
        "GET h",
        "GETDEL h",
        "GETEX h",
        "GETSET h v",
        "SET h v GET",
        "SET h v XX GET",
        "APPEND h v",
        "STRLEN h",
        "GETRANGE h 0 1",
        "SUBSTR h 0 1",
        "SETRANGE h 1 v",
        "SETRANGE h 0 \"\"",
        "INCR h",
        "DECRBY h 2",
        "INCRBYFLOAT h 1.5",
        "SETBIT h 1 1",
        "GETBIT h 1",
        "BITCOUNT h",
        "BITPOS h 1",
        "BITFIELD h SET u8 0 1",
        "BITFIELD h GET u8 0",
        "BITFIELD_RO h GET u8 0",
        "BITOP AND t h",
        "BITOP OR t s h",
        "BITOP NOT t h",
    ];
    for command in on_strings.into_iter().chain(on_hashes) {
        script.push_str(&format!("> {command}\n{wrong}"));
    }
    script.push_str("> LCS h s\n(error) ERR The specified keys must contain string values\n");
    script.push_str("> MGET h s\n1) (nil)\n2) \"text\"\n");
    script.push_str("> HGET h f\n\"v\"\n> EXISTS t\n(integer) 0\n> GET s\n\"text\"\n");
    // What replaces a key does not look at its type.
    script.push_str("> SET h v\nOK\n> SETNX h w\n(integer) 0\n> GET h\n\"v\"\n");
    check(&script);
}

#[test]
fn a_hash_has_a_key_like_any_other() {
    let long = "x".repeat(65);
    check(&format!(
        r#"
        > HSET h f 1 g 2
        (integer) 2
        > TYPE h
        hash
        > OBJECT ENCODING h
        "listpack"
        > OBJECT REFCOUNT h
        (integer) 1
        > EXPIRE h 100
        (integer) 1
        > HSET h f 2
        (integer) 0
        > TTL h
        (integer) 100
        > COPY h copy
        (integer) 1
        > HDEL h g
        (integer) 1
        > HGETALL copy
        1) "f"
        2) "2"
        3) "g"
        4) "2"
        > TTL copy
        (integer) 100
        > HSET h long {long}
        (integer) 1
        > OBJECT ENCODING h
        "hashtable"
        > RENAME h large
        OK
        > OBJECT ENCODING large
        "hashtable"
        > HLEN large
        (integer) 2
        > COPY large small REPLACE
        (integer) 1
        > HDEL large long
        (integer) 1
        > OBJECT ENCODING large
        "hashtable"
        > HGET small f
        "2"
        > SCAN 0 TYPE string
        1) "0"
        2) (empty array)
        > SET s v
        OK
        > PEXPIRE large 10
        (integer) 1
        +10ms
        > HGET large f
        (nil)
        > EXISTS large
        (integer) 0
        > DEL copy small
        (integer) 2
        > SCAN 0 TYPE hash
        1) "0"
        2) (empty array)
        "#
    ));
}

#[test]
fn events_of_hashes_have_a_class_of_their_own() {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::ALL.union(NotifyClasses::NEW).union(NotifyClasses::KEYEVENT);
    let lines = [
        "HSET h a 1 b 2",
        "HSETNX h a 1",
        "HSETNX h c 1",
        "HINCRBY h a 1",
        "HINCRBYFLOAT h a 1",
        "HDEL h missing",
        "HDEL h a",
        "HDEL h b c",
    ];
    lines.iter().for_each(|line| {
        let reply = node.run(line);
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
    });
    let events: Vec<_> = node.events().iter().map(|event| (event.name, event.class)).collect();
    let hash = |name| (name, NotifyClasses::HASH);
    let expected = [
        ("new", NotifyClasses::NEW),
        hash("hset"),
        hash("hset"),
        hash("hincrby"),
        hash("hincrbyfloat"),
        hash("hdel"),
        hash("hdel"),
        ("del", NotifyClasses::GENERIC),
    ];
    assert_eq!(events, expected);
}

/// Returns the lines of a reply that are elements.
fn elements(reply: &str) -> Vec<String> {
    let element = |line: &str| line.split('"').nth(1).map(str::to_owned);
    reply.lines().filter_map(element).collect()
}

#[test]
fn random_fields_are_fields_of_the_hash() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r"
        > HRANDFIELD missing
        (nil)
        > HRANDFIELD missing 3
        (empty array)
        > HSET h a 1 b 2 c 3 d 4
        (integer) 4
        > HRANDFIELD h 0
        (empty array)
        > HRANDFIELD h x
        (error) ERR value is not an integer or out of range
        > HRANDFIELD h 1 VALUES
        (error) ERR syntax error
        > HRANDFIELD h 1 WITHVALUES x
        (error) ERR syntax error
        > HRANDFIELD h -9223372036854775808
        (error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > HRANDFIELD h 9223372036854775807 WITHVALUES
        (error) ERR value is out of range
        > HRANDFIELD h -9223372036854775807
        (error) ERR value is out of range
        ",
    );
    for (command, count, different) in [
        ("HRANDFIELD h 3", 3, true),
        ("HRANDFIELD h 9", 4, true),
        ("HRANDFIELD h -9", 9, false),
        ("HRANDFIELD h 2 WITHVALUES", 4, true),
        ("HRANDFIELD h -6 WITHVALUES", 12, false),
    ] {
        let mut drawn = elements(&node.run(command));
        assert_eq!(drawn.len(), count, "{command}");
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len() == count, different, "{command}");
    }
    // All subsets of two fields are drawn, and in a large hash as well.
    for number in 0..600 {
        node.run(&format!("HSET large f{number} {number}"));
    }
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let mut pair = elements(&node.run("HRANDFIELD h 2"));
        pair.sort();
        seen.insert(pair);
    }
    assert_eq!(seen.len(), 6);
    for count in [5, 100, 199, 250, 599, 600, 700] {
        let mut drawn = elements(&node.run(&format!("HRANDFIELD large {count}")));
        assert_eq!(drawn.len(), count.min(600));
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), count.min(600));
    }
}

/// Walks over a whole hash; returns the elements.
fn scanned(node: &mut TestNode, options: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = String::from("0");
    loop {
        let reply = elements(&node.run(&format!("HSCAN h {cursor} {options}")));
        all.extend_from_slice(&reply[1..]);
        cursor.clone_from(&reply[0]);
        if cursor == "0" {
            return all;
        }
    }
}

#[test]
fn a_scan_returns_every_field_with_its_value() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r#"
        > HSCAN missing 0
        1) "0"
        2) (empty array)
        > HSCAN missing 0 COUNT 0
        1) "0"
        2) (empty array)
        > HSCAN missing x
        (error) ERR invalid cursor
        > HSET h a 1 b 2
        (integer) 2
        > HSCAN h 0
        1) "0"
        2) 1) "a"
           2) "1"
           3) "b"
           4) "2"
        > HSCAN h 0 NOVALUES MATCH b
        1) "0"
        2) 1) "b"
        > HSCAN h 0 COUNT 0
        (error) ERR syntax error
        > HSCAN h 0 COUNT x
        (error) ERR value is not an integer or out of range
        > HSCAN h 0 COUNT
        (error) ERR syntax error
        > HSCAN h 0 TYPE string
        (error) ERR syntax error
        "#,
    );
    for number in 0..1_000 {
        node.run(&format!("HSET h field{number} value{number}"));
    }
    assert_eq!(scanned(&mut node, "").len(), 2 * 1_002);
    assert_eq!(scanned(&mut node, "COUNT 7 NOVALUES").len(), 1_002);
    assert_eq!(scanned(&mut node, "MATCH field99* COUNT 100").len(), 2 * 11);
    let mut fields = scanned(&mut node, "COUNT 3 NOVALUES");
    fields.sort();
    fields.dedup();
    assert_eq!(fields.len(), 1_002);
}

#[test]
fn a_dumped_hash_is_restored() {
    let mut node = TestNode::default();
    node.run("HSET small a 1 b text c -70000");
    for number in 0..600 {
        node.run(&format!("HSET large field{number} {number}"));
    }
    for (key, encoding) in [("small", "listpack"), ("large", "hashtable")] {
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
