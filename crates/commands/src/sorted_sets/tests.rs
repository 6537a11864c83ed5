//! Tests of the commands on sorted sets. The scripts in the files below have the replies that redis-server gives.
mod scores; //  Setting, reading, removing.
mod ranges; //  Ranges.
mod several; // Commands on several sorted sets.

use resp::Value;
use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

#[test]
fn ranks_come_with_scores() {
    check(
        r#"
        > ZADD z 1 a 2.5 b 3 c
        (integer) 3
        > ZRANK z b WITHSCORE
        1) (integer) 1
        2) "2.5"
        > ZREVRANK z a withscore
        1) (integer) 2
        2) "1"
        > ZRANK z missing WITHSCORE
        (nil)
        > ZRANK missing a WITHSCORE
        (nil)
        > ZRANK z a WITHSCORES
        (error) ERR syntax error
        > ZRANK z a WITHSCORE x
        (error) ERR wrong number of arguments for 'zrank' command
        > ZSCAN z 0 NOSCORES
        1) "0"
        2) 1) "a"
           2) "b"
           3) "c"
        > ZSCAN z 0 NOVALUES
        (error) ERR NOVALUES option can only be used in HSCAN
        > HSET h f v
        (integer) 1
        > HSCAN h 0 NOSCORES
        (error) ERR NOSCORES option can only be used in ZSCAN
        "#,
    );
}

#[test]
fn a_sorted_set_is_a_value_like_others() {
    let (short, long) = ("m".repeat(64), "m".repeat(65));
    check(&format!(
        r#"
        > ZADD z 1 a 2 {short}
        (integer) 2
        > TYPE z
        zset
        > OBJECT ENCODING z
        "listpack"
        > EXPIRE z 100
        (integer) 1
        > ZADD z 3 b
        (integer) 1
        > TTL z
        (integer) 100
        > COPY z copy
        (integer) 1
        > ZADD z 3 {long}
        (integer) 1
        > OBJECT ENCODING z
        "skiplist"
        > ZREM z {long}
        (integer) 1
        > OBJECT ENCODING z
        "skiplist"
        > RENAME z large
        OK
        > ZRANGE large 0 0
        1) "a"
        > ZRANGE copy 0 -1
        1) "a"
        2) "{short}"
        3) "b"
        > SCAN 0 TYPE zset COUNT 100000
        1) "0"
        2) 1) "copy"
           2) "large"
        > PEXPIRE large 10
        (integer) 1
        +10ms
        > ZSCORE large a
        (nil)
        > ZADD n -0 a 0 b
        (integer) 2
        > ZSCORE n a
        "0"
        "#
    ));
}

#[test]
fn a_set_of_more_than_128_members_is_large() {
    let mut node = TestNode::default();
    for number in 0..128 {
        node.run(&format!("ZADD z {number} m{number}"));
    }
    check_on(
        &mut node,
        r#"
        > OBJECT ENCODING z
        "listpack"
        > ZADD z -0 more
        (integer) 1
        > OBJECT ENCODING z
        "skiplist"
        > ZSCORE z more
        "-0"
        > ZRANK z m100
        (integer) 101
        > ZREVRANK z m100
        (integer) 27
        > ZCOUNT z (10 20
        (integer) 10
        > ZRANGE z 100 101 WITHSCORES
        1) "m99"
        2) "99"
        3) "m100"
        4) "100"
        > ZREVRANGE z 0 1
        1) "m127"
        2) "m126"
        > ZREMRANGEBYRANK z 2 -3
        (integer) 125
        > ZRANGE z 0 -1
        1) "m0"
        2) "more"
        3) "m126"
        4) "m127"
        > OBJECT ENCODING z
        "skiplist"
        > ZUNIONSTORE u 1 z
        (integer) 4
        > OBJECT ENCODING u
        "listpack"
        > ZPOPMAX z 4
        1) "m127"
        2) "127"
        3) "m126"
        4) "126"
        5) "more"
        6) "-0"
        7) "m0"
        8) "0"
        > EXISTS z
        (integer) 0
        "#,
    );
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn events_of_sorted_sets_have_a_class_of_their_own() {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::ALL.union(NotifyClasses::NEW).union(NotifyClasses::KEYEVENT);
    let lines = [
        ("ZADD z 1 a 2 b 3 c 4 d 5 e 6 f", "new zadd"),
        ("ZADD z 1 a", ""),
        ("ZADD z XX 1 none", ""),
        ("ZADD z INCR 1 a", "zincr"),
        ("ZINCRBY z 1 a", "zincr"),
        ("ZINCRBY z 0 a", ""),
        ("ZREM z missing", ""),
        ("ZREM z a", "zrem"),
        ("ZPOPMIN z", "zpopmin"),
        ("ZPOPMAX z", "zpopmax"),
        ("ZPOPMAX z 0", ""),
        ("ZREMRANGEBYRANK z 0 0", "zremrangebyrank"),
        ("ZREMRANGEBYRANK z 9 9", ""),
        ("ZREMRANGEBYSCORE z 4 4", "zremrangebyscore"),
        ("ZRANGESTORE y z 0 -1", "new zrangestore"),
        ("ZUNIONSTORE y 1 z", "zunionstore"),
        ("ZINTERSTORE y 1 z", "zinterstore"),
        ("ZDIFFSTORE y 1 z", "zdiffstore"),
        ("ZDIFFSTORE y 2 z z", "del"),
        ("ZDIFFSTORE y 2 z z", ""),
        ("ZRANGESTORE z z 9 9", "del"),
        ("ZADD z 0 a", "new zadd"),
        ("ZREMRANGEBYLEX z - +", "zremrangebylex del"),
        ("ZADD z 0 a", "new zadd"),
        ("ZMPOP 1 z MIN", "zpopmin del"),
    ];
    for (line, expected) in lines {
        let reply = node.run(line);
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
        let events = node.events();
        let names: Vec<&str> = events.iter().map(|event| event.name).collect();
        assert_eq!(names.join(" "), expected, "{line}");
        let is_ours = |event: &crate::Event| event.name.starts_with('z');
        assert!(events.iter().all(|it| is_ours(it) == (it.class == NotifyClasses::ZSET)), "{line}");
    }
}

/// Scans a large set to the end. Returns all texts.
fn scanned(node: &mut TestNode, options: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let mut args = vec![&b"ZSCAN"[..], b"z", &cursor];
        args.extend(options.split_whitespace().map(str::as_bytes));
        let Value::Array(parts) = node.args(1, &args).remove(0) else { panic!("not an array") };
        let [next, Value::Array(texts)] = &parts[..] else { panic!("not a page") };
        all.extend(texts.iter().map(|text| text.text().expect("a text").to_vec()));
        cursor = next.text().expect("a cursor").to_vec();
        if cursor == b"0" {
            return all;
        }
    }
}

#[test]
fn a_scan_of_a_large_set_returns_every_member_with_its_score() {
    let mut node = TestNode::default();
    for number in 0..1_000 {
        node.run(&format!("ZADD z {number}.5 member{number}"));
    }
    let all = scanned(&mut node, "COUNT 7");
    assert_eq!(all.len(), 2_000);
    let expected = |pair: &[Vec<u8>]| [&pair[0][6..], b".5"].concat() == pair[1];
    assert!(all.chunks(2).all(expected));
    assert_eq!(scanned(&mut node, "MATCH member99* NOSCORES").len(), 11);
    let mut members = scanned(&mut node, "COUNT 3 NOSCORES");
    members.sort();
    members.dedup();
    assert_eq!(members.len(), 1_000);
}

#[test]
fn random_members_are_different_unless_they_may_repeat() {
    let mut node = TestNode::default();
    for number in 0..500 {
        node.run(&format!("ZADD z {number} m{number}"));
    }
    let mut draw = |count: &str| {
        let Value::Array(members) =
            node.args(1, &[b"ZRANDMEMBER", b"z", count.as_bytes()]).remove(0)
        else {
            panic!("not an array")
        };
        let mut names: Vec<String> = members.iter().map(Value::to_string).collect();
        let drawn = names.len();
        names.sort();
        names.dedup();
        (drawn, names.len())
    };
    for count in [1, 20, 200, 499, 500, 600] {
        let expected = count.min(500);
        assert_eq!(draw(&count.to_string()), (expected, expected));
    }
    let (drawn, different) = draw("-1000");
    assert_eq!(drawn, 1_000);
    assert!((380..480).contains(&different), "{different} different ones");
}

#[test]
fn a_dumped_sorted_set_is_restored() {
    let mut node = TestNode::default();
    node.run("ZADD small 1 a 0.1 b -inf c 1e300 -70000 -5 text");
    for number in 0..600 {
        node.run(&format!("ZADD large {number}.25 member{number}"));
    }
    for (key, encoding) in [("small", "listpack"), ("large", "skiplist")] {
        let payload = match &node.args(1, &[b"DUMP", key.as_bytes()])[..] {
            [value] => value.text().expect("a payload").to_vec(),
            replies => panic!("{replies:?}"),
        };
        let restored = node.args(1, &[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"]);
        assert_eq!(restored[0].to_string(), "OK");
        assert_eq!(node.run("OBJECT ENCODING copy"), format!("\"{encoding}\""));
        let range = |key: &str| format!("ZRANGE {key} 0 -1 WITHSCORES");
        assert_eq!(node.run(&range("copy")), node.run(&range(key)));
        let digests = node.run(&format!("DEBUG DIGEST-VALUE copy {key}"));
        let digests: Vec<&str> = digests.lines().map(|line| &line[3..]).collect();
        assert_eq!(digests[0], digests[1]);
    }
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn keys_behind_a_count_are_found() {
    let mut node = TestNode::default();
    node.env.one_slot_only = true;
    check_on(
        &mut node,
        r#"
        > COMMAND GETKEYS ZUNIONSTORE d 2 a b WEIGHTS 1 2
        1) "d"
        2) "a"
        3) "b"
        > COMMAND GETKEYS ZUNION 1 a WITHSCORES
        1) "a"
        > COMMAND GETKEYS ZUNION 3 a b
        (error) ERR Invalid arguments specified for command
        > COMMAND GETKEYS ZMPOP 0 a MIN
        (error) ERR Invalid arguments specified for command
        > ZUNION 2 a b
        (error) CROSSSLOT Keys in request don't hash to the same slot
        > ZUNIONSTORE a 1 b
        (error) CROSSSLOT Keys in request don't hash to the same slot
        > ZUNIONSTORE {t}a 1 {t}b
        (integer) 0
        > ZUNION 2 a
        (error) ERR syntax error
        > MULTI
        OK
        > ZADD {t}a 1 m
        QUEUED
        > ZUNION 1 {t}a
        QUEUED
        > ZINTERSTORE {t}b 1 {t}a
        QUEUED
        > EXEC
        1) (integer) 1
        2) 1) "m"
        3) (integer) 1
        "#,
    );
}
