//! Scripts that set, read and remove scores.

use resp::Protocol;

use crate::testing::{TestNode, check, check_on};

#[test]
fn scores_are_set_and_read() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c
        (integer) 3
        > ZADD z 5 a 4 d
        (integer) 1
        > ZADD z 5 a
        (integer) 0
        > ZSCORE z a
        "5"
        > ZSCORE z missing
        (nil)
        > ZSCORE missing a
        (nil)
        > ZMSCORE z a missing d
        1) "5"
        2) (nil)
        3) "4"
        > ZMSCORE missing a b
        1) (nil)
        2) (nil)
        > ZCARD z
        (integer) 4
        > ZCARD missing
        (integer) 0
        > ZADD z 0.1 f 1e300 big inf top -inf bottom -0 zero 0x10 hex
        (integer) 6
        > ZRANGE z 0 -1 WITHSCORES
         1) "bottom"
         2) "-inf"
         3) "zero"
         4) "0"
         5) "f"
         6) "0.10000000000000001"
         7) "b"
         8) "2"
         9) "c"
        10) "3"
        11) "d"
        12) "4"
        13) "a"
        14) "5"
        15) "hex"
        16) "16"
        17) "big"
        18) "1.0000000000000001e+300"
        19) "top"
        20) "inf"
        > ZADD z nan a
        (error) ERR value is not a valid float
        > ZADD z abc a
        (error) ERR value is not a valid float
        > ZADD z 1 a 2
        (error) ERR syntax error
        > ZADD z 1
        (error) ERR wrong number of arguments for 'zadd' command
        > ZADD z 1 x abc y
        (error) ERR value is not a valid float
        > ZSCORE z x
        (nil)
        > ZADD z 1 twice 2 twice 3 twice
        (integer) 1
        > ZSCORE z twice
        "3"
        "#,
    );
}

#[test]
fn options_of_zadd_decide_what_is_set() {
    check(
        r#"
        > ZADD z NX 1 a
        (integer) 1
        > ZADD z NX 2 a 2 b
        (integer) 1
        > ZRANGE z 0 -1 WITHSCORES
        1) "a"
        2) "1"
        3) "b"
        4) "2"
        > ZADD z XX 5 a 5 c
        (integer) 0
        > ZADD z XX CH 6 a 5 c
        (integer) 1
        > ZADD missing XX 1 a
        (integer) 0
        > EXISTS missing
        (integer) 0
        > ZADD z GT CH 5 a 7 b
        (integer) 1
        > ZADD z LT CH 7 a 1 b
        (integer) 1
        > ZADD z GT 3 new
        (integer) 1
        > ZADD z CH 6 a 8 b 9 d
        (integer) 2
        > ZADD z INCR 2 a
        "8"
        > ZADD z INCR NX 2 a
        (nil)
        > ZADD z INCR XX 2 none
        (nil)
        > ZADD z INCR GT -3 a
        (nil)
        > ZADD z INCR LT -3 a
        "5"
        > ZADD z XX GT INCR 100 a
        "105"
        > ZADD z NX XX 1 a
        (error) ERR XX and NX options at the same time are not compatible
        > ZADD z NX GT 1 a
        (error) ERR GT, LT, and/or NX options at the same time are not compatible
        > ZADD z GT LT 1 a
        (error) ERR GT, LT, and/or NX options at the same time are not compatible
        > ZADD z INCR 1 a 2 b
        (error) ERR INCR option supports a single increment-element pair
        > ZADD z INCR 1
        (error) ERR syntax error
        > ZADD z NX CH
        (error) ERR syntax error
        > ZADD missing XX INCR 1 a
        (nil)
        > ZADD i 1 a 1 a 2 a
        (integer) 1
        > ZADD i CH 1 a 2 a
        (integer) 2
        > ZADD i GT CH 5 a 4 a
        (integer) 1
        > ZRANGE i 0 -1 WITHSCORES
        1) "a"
        2) "5"
        "#,
    );
}

#[test]
fn increments_are_added() {
    check(
        r#"
        > ZINCRBY z 5 a
        "5"
        > ZINCRBY z -7.5 a
        "-2.5"
        > ZINCRBY z inf a
        "inf"
        > ZINCRBY z -inf a
        (error) ERR resulting score is not a number (NaN)
        > ZINCRBY z x a
        (error) ERR value is not a valid float
        > ZINCRBY z 0 b
        "0"
        > ZINCRBY z 0.1 b
        "0.10000000000000001"
        > ZINCRBY z 0.2 b
        "0.30000000000000004"
        > ZRANGE z 0 -1 WITHSCORES
        1) "b"
        2) "0.30000000000000004"
        3) "a"
        4) "inf"
        > SET s 1
        OK
        > ZINCRBY s 1 a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn a_sorted_set_goes_with_its_last_member() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c
        (integer) 3
        > ZREM z a a missing
        (integer) 1
        > ZREM z missing
        (integer) 0
        > ZREM missing a
        (integer) 0
        > ZREM z b c
        (integer) 2
        > EXISTS z
        (integer) 0
        > TYPE z
        none
        > ZADD z 1 a 2 b 3 c 4 d
        (integer) 4
        > ZREMRANGEBYRANK z 1 -2
        (integer) 2
        > ZRANGE z 0 -1
        1) "a"
        2) "d"
        > ZREMRANGEBYSCORE z (1 (4
        (integer) 0
        > ZREMRANGEBYSCORE z -inf +inf
        (integer) 2
        > EXISTS z
        (integer) 0
        > ZADD z 0 a 0 b 0 c 0 d
        (integer) 4
        > ZREMRANGEBYLEX z [b (d
        (integer) 2
        > ZRANGE z 0 -1
        1) "a"
        2) "d"
        > ZREMRANGEBYLEX z - +
        (integer) 2
        > EXISTS z
        (integer) 0
        > ZREMRANGEBYRANK missing 0 1
        (integer) 0
        > ZREMRANGEBYRANK z x 1
        (error) ERR value is not an integer or out of range
        > ZREMRANGEBYSCORE z x 1
        (error) ERR min or max is not a float
        > ZREMRANGEBYLEX z a b
        (error) ERR min or max not valid string range item
        > ZADD z 1 a
        (integer) 1
        > ZREMRANGEBYRANK z 5 9
        (integer) 0
        > ZREMRANGEBYRANK z -9 -5
        (integer) 0
        > ZREMRANGEBYRANK z -100 100
        (integer) 1
        "#,
    );
}

#[test]
fn members_are_ranked() {
    check(
        r#"
        > ZADD z 1 a 2 b 2 bb 3 c
        (integer) 4
        > ZRANK z a
        (integer) 0
        > ZRANK z bb
        (integer) 2
        > ZREVRANK z a
        (integer) 3
        > ZREVRANK z c
        (integer) 0
        > ZRANK z missing
        (nil)
        > ZREVRANK missing a
        (nil)
        > ZCOUNT z 2 3
        (integer) 3
        > ZCOUNT z (2 3
        (integer) 1
        > ZCOUNT z -inf (3
        (integer) 3
        > ZCOUNT z 3 2
        (integer) 0
        > ZCOUNT z "" 2
        (integer) 3
        > ZCOUNT z " 1" 2
        (integer) 3
        > ZCOUNT z x 2
        (error) ERR min or max is not a float
        > ZCOUNT missing 0 1
        (integer) 0
        > ZCOUNT z nan 1
        (error) ERR min or max is not a float
        > ZLEXCOUNT z - +
        (integer) 4
        > ZLEXCOUNT z [a [b
        (integer) 2
        > ZLEXCOUNT z a b
        (error) ERR min or max not valid string range item
        > ZLEXCOUNT z + -
        (integer) 0
        "#,
    );
}

#[test]
fn other_types_are_refused() {
    check(
        r#"
        > SET s v
        OK
        > HSET h f 1
        (integer) 1
        > ZADD z 1 a
        (integer) 1
        > ZADD s 1 a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZADD h 1 a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZADD s XX 1 a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZREM s a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZCARD h
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZSCORE s a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZMSCORE s a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANK s a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZCOUNT s 0 1
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZLEXCOUNT s - +
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANGE s 0 1
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZREMRANGEBYRANK s 0 1
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZPOPMAX s
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANDMEMBER s
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZSCAN s 0
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > GET z
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > HGET z f
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > APPEND z x
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > HSET z f 1
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > SETRANGE z 1 x
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > TYPE z
        zset
        > SET z new
        OK
        > TYPE z
        string
        "#,
    );
}

#[test]
fn random_members() {
    check(
        r#"
        > ZRANDMEMBER missing
        (nil)
        > ZRANDMEMBER missing 3
        (empty array)
        > ZADD z 1 a
        (integer) 1
        > ZRANDMEMBER z
        "a"
        > ZRANDMEMBER z 5
        1) "a"
        > ZRANDMEMBER z -3
        1) "a"
        2) "a"
        3) "a"
        > ZRANDMEMBER z 5 WITHSCORES
        1) "a"
        2) "1"
        > ZRANDMEMBER z -2 WITHSCORES
        1) "a"
        2) "1"
        3) "a"
        4) "1"
        > ZRANDMEMBER z 0
        (empty array)
        > ZRANDMEMBER z x
        (error) ERR value is not an integer or out of range
        > ZRANDMEMBER z 1 SCORES
        (error) ERR syntax error
        > ZRANDMEMBER z 1 WITHSCORES x
        (error) ERR syntax error
        > ZRANDMEMBER z -9223372036854775808
        (error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > ZRANDMEMBER z 9223372036854775807 WITHSCORES
        (error) ERR value is out of range
        "#,
    );
}

#[test]
fn pages_of_members() {
    check(
        r#"
        > ZSCAN missing 0
        1) "0"
        2) (empty array)
        > ZSCAN missing 0 COUNT 0
        1) "0"
        2) (empty array)
        > ZSCAN missing x
        (error) ERR invalid cursor
        > ZADD z 1 a 2.5 b
        (integer) 2
        > ZSCAN z 0
        1) "0"
        2) 1) "a"
           2) "1"
           3) "b"
           4) "2.5"
        > ZSCAN z 0 MATCH b
        1) "0"
        2) 1) "b"
           2) "2.5"
        > ZSCAN z 0 COUNT 0
        (error) ERR syntax error
        > ZSCAN z 0 COUNT x
        (error) ERR value is not an integer or out of range
        > ZSCAN z 0 COUNT
        (error) ERR syntax error
        "#,
    );
}

#[test]
fn replies_of_the_third_protocol() {
    let mut node = TestNode::default();
    node.session(1).protocol = Protocol::Resp3;
    check_on(
        &mut node,
        r#"
        > ZADD {t}z 1 a 2.5 b inf c
        (integer) 3
        > ZSCORE {t}z b
        (double) 2.5
        > ZINCRBY {t}z 0.1 a
        (double) 1.1000000000000001
        > ZMSCORE {t}z a none
        1) (double) 1.1000000000000001
        2) (nil)
        > ZRANGE {t}z 0 -1 WITHSCORES
        1) 1) "a"
           2) (double) 1.1000000000000001
        2) 1) "b"
           2) (double) 2.5
        3) 1) "c"
           2) (double) inf
        > ZRANGE {t}z 0 1 REV
        1) "c"
        2) "b"
        > ZUNION 1 {t}z WITHSCORES
        1) 1) "a"
           2) (double) 1.1000000000000001
        2) 1) "b"
           2) (double) 2.5
        3) 1) "c"
           2) (double) inf
        > ZDIFF 1 {t}z WITHSCORES
        1) 1) "a"
           2) (double) 1.1000000000000001
        2) 1) "b"
           2) (double) 2.5
        3) 1) "c"
           2) (double) inf
        > ZSCAN {t}z 0
        1) "0"
        2) 1) "a"
           2) "1.1000000000000001"
           3) "b"
           4) "2.5"
           5) "c"
           6) "inf"
        > ZADD {t}z INCR 1 a
        (double) 2.1000000000000001
        > ZADD {t}z NX INCR 1 a
        (nil)
        > ZRANK {t}z none
        (nil)
        > ZPOPMIN {t}z
        1) "a"
        2) (double) 2.1000000000000001
        > ZPOPMIN {t}z 1
        1) 1) "b"
           2) (double) 2.5
        > ZMPOP 1 {t}none MIN
        (nil)
        > ZMPOP 1 {t}z MIN
        1) "{t}z"
        2) 1) 1) "c"
              2) (double) inf
        "#,
    );
}
