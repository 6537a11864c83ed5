//! Scripts that take members out, and combine several sorted sets.

use crate::testing::{TestNode, check};

#[test]
fn members_are_popped() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c 4 d 5 e
        (integer) 5
        > ZPOPMIN z
        1) "a"
        2) "1"
        > ZPOPMAX z
        1) "e"
        2) "5"
        > ZPOPMIN z 0
        (empty array)
        > ZPOPMIN missing
        (empty array)
        > ZPOPMAX missing 2
        (empty array)
        > ZPOPMIN z 2
        1) "b"
        2) "2"
        3) "c"
        4) "3"
        > ZPOPMAX z 10
        1) "d"
        2) "4"
        > EXISTS z
        (integer) 0
        > ZPOPMIN z 1 2
        (error) ERR syntax error
        > ZPOPMIN z -1
        (error) ERR value is out of range, must be positive
        > ZPOPMIN z x
        (error) ERR value is out of range, must be positive
        "#,
    );
}

#[test]
fn the_first_set_with_members_is_popped() {
    check(
        r#"
        > ZADD {t}a 1 a 2 b 3 c
        (integer) 3
        > ZADD {t}b 1 x
        (integer) 1
        > ZMPOP 2 {t}none {t}a MIN
        1) "{t}a"
        2) 1) 1) "a"
              2) "1"
        > ZMPOP 2 {t}a {t}b MAX COUNT 5
        1) "{t}a"
        2) 1) 1) "c"
              2) "3"
           2) 1) "b"
              2) "2"
        > ZMPOP 1 {t}a MAX
        (nil)
        > ZMPOP 2 {t}a {t}b max count 1
        1) "{t}b"
        2) 1) 1) "x"
              2) "1"
        > ZMPOP 1 {t}b MIN
        (nil)
        > ZMPOP 0 {t}a MIN
        (error) ERR numkeys should be greater than 0
        > ZMPOP x {t}a MIN
        (error) ERR numkeys should be greater than 0
        > ZMPOP 2 {t}a MIN
        (error) ERR syntax error
        > ZMPOP 3 {t}a MIN
        (error) ERR syntax error
        > ZMPOP 1 {t}a MIDDLE
        (error) ERR syntax error
        > ZMPOP 1 {t}a MIN COUNT 0
        (error) ERR count should be greater than 0
        > ZMPOP 1 {t}a MIN COUNT
        (error) ERR syntax error
        > ZMPOP 1 {t}a MIN COUNT 1 COUNT 2
        (error) ERR syntax error
        > ZMPOP 1 {t}a MIN LIMIT 1
        (error) ERR syntax error
        > SET {t}s 1
        OK
        > ZMPOP 2 {t}none {t}s MIN
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZPOPMIN {t}s
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn sorted_sets_are_combined() {
    check(
        r#"
        > ZADD {t}a 1 x 2 y 3 z
        (integer) 3
        > ZADD {t}b 10 y 20 z 30 w
        (integer) 3
        > ZUNION 2 {t}a {t}b
        1) "x"
        2) "y"
        3) "z"
        4) "w"
        > ZUNION 2 {t}a {t}b WITHSCORES
        1) "x"
        2) "1"
        3) "y"
        4) "12"
        5) "z"
        6) "23"
        7) "w"
        8) "30"
        > ZINTER 2 {t}a {t}b WITHSCORES
        1) "y"
        2) "12"
        3) "z"
        4) "23"
        > ZINTER 2 {t}a {t}none WITHSCORES
        (empty array)
        > ZDIFF 2 {t}a {t}b WITHSCORES
        1) "x"
        2) "1"
        > ZDIFF 2 {t}none {t}b
        (empty array)
        > ZDIFF 1 {t}a
        1) "x"
        2) "y"
        3) "z"
        > ZDIFF 2 {t}a {t}a
        (empty array)
        "#,
    );
}

#[test]
fn weights_and_aggregates_decide_scores() {
    check(
        r#"
        > ZADD {t}a 1 x 2 y 3 z
        (integer) 3
        > ZADD {t}b 10 y 20 z 30 w
        (integer) 3
        > ZUNION 2 {t}a {t}b WEIGHTS 2 -1 WITHSCORES
        1) "w"
        2) "-30"
        3) "z"
        4) "-14"
        5) "y"
        6) "-6"
        7) "x"
        8) "2"
        > ZUNION 2 {t}a {t}b AGGREGATE MIN WITHSCORES
        1) "x"
        2) "1"
        3) "y"
        4) "2"
        5) "z"
        6) "3"
        7) "w"
        8) "30"
        > ZINTER 2 {t}a {t}b WEIGHTS 1 0.5 AGGREGATE max WITHSCORES
        1) "y"
        2) "5"
        3) "z"
        4) "10"
        > ZINTER 3 {t}a {t}b {t}a WITHSCORES
        1) "y"
        2) "14"
        3) "z"
        4) "26"
        "#,
    );
}

#[test]
fn combinations_are_stored_and_counted() {
    check(
        r#"
        > ZADD {t}a 1 x 2 y 3 z
        (integer) 3
        > ZADD {t}b 10 y 20 z 30 w
        (integer) 3
        > ZUNIONSTORE {t}d 2 {t}a {t}b
        (integer) 4
        > ZRANGE {t}d 0 -1 WITHSCORES
        1) "x"
        2) "1"
        3) "y"
        4) "12"
        5) "z"
        6) "23"
        7) "w"
        8) "30"
        > ZINTERSTORE {t}d 2 {t}a {t}b WEIGHTS 0 1
        (integer) 2
        > ZRANGE {t}d 0 -1 WITHSCORES
        1) "y"
        2) "10"
        3) "z"
        4) "20"
        > ZDIFFSTORE {t}d 2 {t}a {t}b
        (integer) 1
        > ZRANGE {t}d 0 -1 WITHSCORES
        1) "x"
        2) "1"
        > ZDIFFSTORE {t}d 2 {t}a {t}a
        (integer) 0
        > EXISTS {t}d
        (integer) 0
        > ZINTERCARD 2 {t}a {t}b
        (integer) 2
        > ZINTERCARD 2 {t}a {t}b LIMIT 1
        (integer) 1
        > ZINTERCARD 2 {t}a {t}b LIMIT 0
        (integer) 2
        > ZINTERCARD 2 {t}a {t}none
        (integer) 0
        "#,
    );
}

#[test]
fn infinities_are_combined() {
    check(
        r#"
        > ZADD {t}i inf p -inf m 1 o
        (integer) 3
        > ZADD {t}j -inf p inf m 1 o
        (integer) 3
        > ZUNION 2 {t}i {t}j WITHSCORES
        1) "m"
        2) "0"
        3) "p"
        4) "0"
        5) "o"
        6) "2"
        > ZUNION 1 {t}i WEIGHTS 0 WITHSCORES
        1) "m"
        2) "0"
        3) "o"
        4) "0"
        5) "p"
        6) "0"
        > ZINTER 2 {t}i {t}j WEIGHTS 1 0 WITHSCORES
        1) "m"
        2) "0"
        3) "p"
        4) "0"
        5) "o"
        6) "1"
        "#,
    );
}

#[test]
fn wrong_combinations_are_refused() {
    check(
        r#"
        > ZADD {t}a 1 x
        (integer) 1
        > ZUNION 0 {t}a
        (error) ERR at least 1 input key is needed for 'zunion' command
        > ZUNION -1 {t}a
        (error) ERR at least 1 input key is needed for 'zunion' command
        > ZUNION x {t}a
        (error) ERR value is not an integer or out of range
        > ZUNION 2 {t}a
        (error) ERR syntax error
        > ZUNION 9223372036854775807 {t}a
        (error) ERR syntax error
        > ZUNIONSTORE {t}d 0 {t}a
        (error) ERR at least 1 input key is needed for 'zunionstore' command
        > ZUNIONSTORE {t}d 3 {t}a {t}b
        (error) ERR syntax error
        > ZINTERCARD 0 {t}a
        (error) ERR at least 1 input key is needed for 'zintercard' command
        > ZDIFF 0 {t}a
        (error) ERR at least 1 input key is needed for 'zdiff' command
        > ZUNION 1 {t}a WEIGHTS
        (error) ERR syntax error
        > ZUNION 1 {t}a WEIGHTS x
        (error) ERR weight value is not a float
        > ZUNION 1 {t}a WEIGHTS nan
        (error) ERR weight value is not a float
        > ZUNION 1 {t}a AGGREGATE
        (error) ERR syntax error
        > ZUNION 1 {t}a AGGREGATE avg
        (error) ERR syntax error
        > ZUNION 1 {t}a LIMIT 1
        (error) ERR syntax error
        > ZUNIONSTORE {t}d 1 {t}a WITHSCORES
        (error) ERR syntax error
        > ZDIFF 1 {t}a WEIGHTS 1
        (error) ERR syntax error
        > ZDIFF 1 {t}a AGGREGATE SUM
        (error) ERR syntax error
        > ZINTERCARD 1 {t}a WITHSCORES
        (error) ERR syntax error
        > ZINTERCARD 1 {t}a LIMIT -1
        (error) ERR LIMIT can't be negative
        > ZINTERCARD 1 {t}a LIMIT x
        (error) ERR LIMIT can't be negative
        > ZINTERCARD 1 {t}a LIMIT
        (error) ERR syntax error
        > SET {t}s 1
        OK
        > ZUNION 2 {t}a {t}s
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZUNION 2 {t}a {t}s NOSUCH
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZINTERSTORE {t}d 2 {t}none {t}s
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > HSET {t}h f 1
        (integer) 1
        > ZDIFF 2 {t}none {t}h
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > EXISTS {t}d
        (integer) 0
        "#,
    );
}

#[test]
fn the_count_of_an_intersection_ends_at_its_limit() {
    let mut node = TestNode::default();
    let pairs = |numbers: core::ops::Range<u32>| {
        numbers.map(|number| format!(" {number} m{number}")).collect::<String>()
    };
    node.run(&format!("ZADD a{}", pairs(0..3_000)));
    node.run(&format!("ZADD b{}", pairs(1_000..5_000)));
    let members: String = (900..3_500).map(|number| format!(" m{number}")).collect();
    node.run(&format!("SADD plain{members}"));
    let mut card = |line: &str| node.run(&format!("ZINTERCARD {line}"));
    for (limit, count) in [(0, 2_000), (1, 1), (255, 255), (256, 256), (257, 257), (1_999, 1_999)] {
        for keys in ["2 a b", "2 b a", "3 a plain b", "2 plain a"] {
            let count = if keys == "2 plain a" && limit == 0 { 2_100 } else { count };
            let expected = format!("(integer) {count}");
            assert_eq!(card(&format!("{keys} LIMIT {limit}")), expected, "{keys} {limit}");
        }
    }
    assert_eq!(card("2 a nosuch LIMIT 5"), "(integer) 0");
}
