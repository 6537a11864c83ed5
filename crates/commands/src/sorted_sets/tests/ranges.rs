//! Scripts that read and store ranges.

use crate::testing::check;

#[test]
fn ranges_by_rank() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c 4 d
        (integer) 4
        > ZRANGE z 0 -1
        1) "a"
        2) "b"
        3) "c"
        4) "d"
        > ZRANGE z 1 2
        1) "b"
        2) "c"
        > ZRANGE z -2 -1
        1) "c"
        2) "d"
        > ZRANGE z -100 1
        1) "a"
        2) "b"
        > ZRANGE z 3 100
        1) "d"
        > ZRANGE z 4 5
        (empty array)
        > ZRANGE z 2 1
        (empty array)
        > ZRANGE z 0 1 REV
        1) "d"
        2) "c"
        > ZRANGE z 0 1 REV WITHSCORES
        1) "d"
        2) "4"
        3) "c"
        4) "3"
        > ZREVRANGE z 0 1
        1) "d"
        2) "c"
        > ZREVRANGE z -1 -1 WITHSCORES
        1) "a"
        2) "1"
        > ZREVRANGE z 0 -1 REV
        (error) ERR syntax error
        > ZRANGE z 0 1 LIMIT 0 1
        (error) ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        > ZRANGE z 0 1 LIMIT 0 -1
        1) "a"
        2) "b"
        > ZRANGE z a 1
        (error) ERR value is not an integer or out of range
        > ZRANGE z 0 1 NOSUCH
        (error) ERR syntax error
        > ZRANGE z 0 1 LIMIT 0
        (error) ERR syntax error
        > ZRANGE missing 0 -1
        (empty array)
        > ZRANGE missing 0 -1 BYSCORE
        (empty array)
        > ZRANGE z 9223372036854775807 -9223372036854775808
        (empty array)
        "#,
    );
}

#[test]
fn ranges_by_score() {
    check(
        r#"
        > ZADD z 1 a 2 b 2 bb 3 c 4 d
        (integer) 5
        > ZRANGEBYSCORE z 2 3
        1) "b"
        2) "bb"
        3) "c"
        > ZRANGEBYSCORE z (2 +inf WITHSCORES
        1) "c"
        2) "3"
        3) "d"
        4) "4"
        > ZRANGEBYSCORE z -inf inf LIMIT 1 2
        1) "b"
        2) "bb"
        > ZRANGEBYSCORE z -inf inf LIMIT 1 -1
        1) "b"
        2) "bb"
        3) "c"
        4) "d"
        > ZRANGEBYSCORE z -inf inf LIMIT -1 2
        (empty array)
        > ZRANGEBYSCORE z -inf inf LIMIT 9 2
        (empty array)
        > ZRANGEBYSCORE z -inf inf LIMIT 0 0
        (empty array)
        > ZREVRANGEBYSCORE z 3 2
        1) "c"
        2) "bb"
        3) "b"
        > ZREVRANGEBYSCORE z 2 3
        (empty array)
        > ZREVRANGEBYSCORE z +inf -inf LIMIT 1 2 WITHSCORES
        1) "c"
        2) "3"
        3) "bb"
        4) "2"
        > ZRANGE z 2 3 BYSCORE
        1) "b"
        2) "bb"
        3) "c"
        > ZRANGE z 3 2 BYSCORE REV
        1) "c"
        2) "bb"
        3) "b"
        > ZRANGE z (3 (1 BYSCORE REV LIMIT 0 1
        1) "bb"
        > ZRANGEBYSCORE z 2 3 BYLEX
        (error) ERR syntax error
        > ZRANGEBYSCORE z 2 3 REV
        (error) ERR syntax error
        > ZRANGEBYSCORE z x 3
        (error) ERR min or max is not a float
        > ZRANGEBYSCORE z 2 3 LIMIT x 1
        (error) ERR value is not an integer or out of range
        > ZRANGEBYSCORE z 2 3 LIMIT 1
        (error) ERR syntax error
        > ZRANGE z 1 2 BYSCORE BYLEX
        (error) ERR syntax error
        "#,
    );
}

#[test]
fn ranges_by_text() {
    check(
        r#"
        > ZADD z 0 a 0 b 0 c 0 d 0 10 0 9
        (integer) 6
        > ZRANGEBYLEX z - +
        1) "10"
        2) "9"
        3) "a"
        4) "b"
        5) "c"
        6) "d"
        > ZRANGEBYLEX z [b (d
        1) "b"
        2) "c"
        > ZRANGEBYLEX z (b [d LIMIT 1 1
        1) "d"
        > ZRANGEBYLEX z [c [b
        (empty array)
        > ZRANGEBYLEX z + -
        (empty array)
        > ZREVRANGEBYLEX z + -
        1) "d"
        2) "c"
        3) "b"
        4) "a"
        5) "9"
        6) "10"
        > ZREVRANGEBYLEX z (d [b LIMIT 0 2
        1) "c"
        2) "b"
        > ZRANGE z [1 [a BYLEX
        1) "10"
        2) "9"
        3) "a"
        > ZRANGE z [b - BYLEX REV
        1) "b"
        2) "a"
        3) "9"
        4) "10"
        > ZRANGE z - + BYLEX WITHSCORES
        (error) ERR syntax error, WITHSCORES not supported in combination with BYLEX
        > ZRANGEBYLEX z b d
        (error) ERR min or max not valid string range item
        > ZRANGEBYLEX z -x +
        (error) ERR min or max not valid string range item
        > ZRANGEBYLEX z [b [d WITHSCORES
        (error) ERR syntax error, WITHSCORES not supported in combination with BYLEX
        "#,
    );
}

#[test]
fn ranges_are_stored() {
    check(
        r#"
        > ZADD {t}z 1 a 2 b 3 c 4 d
        (integer) 4
        > ZRANGESTORE {t}d {t}z 1 2
        (integer) 2
        > ZRANGE {t}d 0 -1 WITHSCORES
        1) "b"
        2) "2"
        3) "c"
        4) "3"
        > ZRANGESTORE {t}d {t}z (1 +inf BYSCORE LIMIT 1 1
        (integer) 1
        > ZRANGE {t}d 0 -1 WITHSCORES
        1) "c"
        2) "3"
        > ZRANGESTORE {t}d {t}z 0 0 REV
        (integer) 1
        > ZRANGE {t}d 0 -1
        1) "d"
        > ZRANGESTORE {t}d {t}z +inf -inf BYSCORE REV LIMIT 0 2
        (integer) 2
        > ZRANGE {t}d 0 -1
        1) "c"
        2) "d"
        > EXPIRE {t}d 100
        (integer) 1
        > ZRANGESTORE {t}d {t}z 0 -1
        (integer) 4
        > TTL {t}d
        (integer) -1
        > ZRANGESTORE {t}d {t}z 0 -1 WITHSCORES
        (error) ERR syntax error
        > ZRANGESTORE {t}d {t}z 0 -1 LIMIT 0 1
        (error) ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        > ZRANGESTORE {t}d {t}z 5 9
        (integer) 0
        > EXISTS {t}d
        (integer) 0
        > ZRANGESTORE {t}d {t}missing 0 -1
        (integer) 0
        > SET {t}s 1
        OK
        > ZRANGESTORE {t}d {t}s 0 -1
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANGESTORE {t}s {t}z 0 0
        (integer) 1
        > TYPE {t}s
        zset
        > ZRANGESTORE {t}z {t}z 0 0
        (integer) 1
        > ZRANGE {t}z 0 -1
        1) "a"
        "#,
    );
}
