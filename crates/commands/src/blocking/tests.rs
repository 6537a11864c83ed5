//! Tests of commands that wait for keys, as scripts. `2<` is the reply to connection 2, whose wait has ended.

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

#[test]
fn a_list_that_exists_is_popped_at_once() {
    check(
        r#"
        > RPUSH l a b c d e f
        (integer) 6
        > BLPOP missing l 0
        1) "l"
        2) "a"
        > BRPOP l missing 1.5
        1) "l"
        2) "f"
        > BLMPOP 0 2 missing l RIGHT COUNT 2
        1) "l"
        2) 1) "e"
           2) "d"
        > BLMOVE l m LEFT RIGHT 0
        "b"
        > BRPOPLPUSH l m 0
        "c"
        > EXISTS l
        (integer) 0
        > LRANGE m 0 -1
        1) "c"
        2) "b"
        "#,
    );
}

#[test]
fn a_sorted_set_that_exists_is_popped_at_once() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c 4 d
        (integer) 4
        > BZPOPMIN missing z 0
        1) "z"
        2) "a"
        3) "1"
        > BZPOPMAX z 0
        1) "z"
        2) "d"
        3) "4"
        > BZMPOP 0 2 missing z MAX COUNT 5
        1) "z"
        2) 1) 1) "c"
              2) "3"
           2) 1) "b"
              2) "2"
        "#,
    );
}

#[test]
fn those_who_wait_are_served_in_the_order_in_which_they_came() {
    check(
        r#"
        2> BLPOP l 0
        3> BRPOP k l 0
        4> BLMPOP 0 1 l LEFT COUNT 2
        > RPUSH l a b c d e
        (integer) 5
        2< 1) "l"
        2< 2) "a"
        3< 1) "l"
        3< 2) "e"
        4< 1) "l"
        4< 2) 1) "b"
        4<    2) "c"
        > LRANGE l 0 -1
        1) "d"
        > RPUSH k x
        (integer) 1
        > LLEN k
        (integer) 1
        "#,
    );
}

#[test]
fn who_comes_later_waits_until_there_is_more() {
    check(
        r#"
        2> BZPOPMIN z 0
        3> BZPOPMAX z 0
        > ZADD z 1 a
        (integer) 1
        2< 1) "z"
        2< 2) "a"
        2< 3) "1"
        > ZADD z 5 b
        (integer) 1
        3< 1) "z"
        3< 2) "b"
        3< 3) "5"
        > EXISTS z
        (integer) 0
        "#,
    );
}

#[test]
fn every_command_that_brings_the_value_ends_the_wait() {
    check(
        r#"
        2> BLPOP l{t} 0
        > RPUSH other{t} a b c d e f
        (integer) 6
        > COPY other{t} l{t}
        (integer) 1
        2< 1) "l{t}"
        2< 2) "a"
        > DEL l{t}
        (integer) 1
        2> BLPOP l{t} 0
        > LMOVE other{t} l{t} LEFT LEFT
        "a"
        2< 1) "l{t}"
        2< 2) "a"
        2> BLPOP l{t} 0
        > RPOPLPUSH other{t} l{t}
        "f"
        2< 1) "l{t}"
        2< 2) "f"
        2> BLPOP l{t} 0
        > RENAME other{t} l{t}
        OK
        2< 1) "l{t}"
        2< 2) "b"
        > DEL l{t}
        (integer) 1
        2> BZPOPMIN z{t} 0
        > ZADD y{t} 1 a 2 b
        (integer) 2
        > ZUNIONSTORE z{t} 1 y{t}
        (integer) 2
        2< 1) "z{t}"
        2< 2) "a"
        2< 3) "1"
        > SORT other{t} BY nosort ALPHA STORE s{t}
        (integer) 0
        > RPUSH other{t} b a
        (integer) 2
        2> BLPOP s{t} 0
        > SORT other{t} ALPHA STORE s{t}
        (integer) 2
        2< 1) "s{t}"
        2< 2) "a"
        > DEL z{t}
        (integer) 1
        2> BZPOPMAX z{t} 0
        > ZRANGESTORE z{t} y{t} 0 0
        (integer) 1
        2< 1) "z{t}"
        2< 2) "a"
        2< 3) "1"
        "#,
    );
}

#[test]
fn a_restored_value_ends_the_wait() {
    let mut node = TestNode::default();
    node.run("RPUSH l a");
    let dump = node.args(1, &[b"DUMP", b"l"]).remove(0);
    let resp::Value::Bulk(dump) = dump else { panic!("{dump:?}") };
    node.on(2, "BLPOP k 0");
    node.args(1, &[b"RESTORE", b"k", b"0", &dump]);
    assert_eq!(node.run("PING"), "PONG\n2< 1) \"k\"\n2< 2) \"a\"");
}

#[test]
fn one_who_is_served_may_serve_the_next() {
    check(
        r#"
        2> BRPOPLPUSH a{t} b{t} 0
        3> BLMOVE b{t} c{t} LEFT LEFT 0
        4> BLPOP c{t} 0
        > RPUSH a{t} x
        (integer) 1
        2< "x"
        3< "x"
        4< 1) "c{t}"
        4< 2) "x"
        > EXISTS a{t} b{t} c{t}
        (integer) 0
        "#,
    );
}

#[test]
fn a_transaction_wakes_when_it_is_over_and_waits_for_nothing() {
    check(
        r#"
        2> BLPOP l 0
        > MULTI
        OK
        > RPUSH l a
        QUEUED
        > DEL l
        QUEUED
        > BLPOP l 0
        QUEUED
        > BLMOVE l m LEFT LEFT 0
        QUEUED
        > BLMPOP 0 1 l LEFT
        QUEUED
        > BZPOPMIN z 0
        QUEUED
        > BZMPOP 0 1 z MIN
        QUEUED
        > EXEC
        1) (integer) 1
        2) (integer) 1
        3) (nil)
        4) (nil)
        5) (nil)
        6) (nil)
        7) (nil)
        > MULTI
        OK
        > RPUSH l a b
        QUEUED
        > LPOP l
        QUEUED
        > EXEC
        1) (integer) 2
        2) "a"
        2< 1) "l"
        2< 2) "b"
        "#,
    );
}

#[test]
fn a_wait_ends_on_time() {
    check(
        r#"
        2> BLPOP l 0.02
        3> BZMPOP 1 1 z MIN
        4> BLMOVE l m LEFT LEFT 0.0001
        +1ms
        4< (nil)
        +18ms
        +1ms
        2< (nil)
        +979ms
        +1ms
        3< (nil)
        > RPUSH l a
        (integer) 1
        > LLEN l
        (integer) 1
        "#,
    );
}

#[test]
fn another_client_ends_the_wait() {
    check(
        r#"
        2> BLPOP l 0
        3> BLPOP l 0
        4> BLPOP l 0
        > CLIENT UNBLOCK 2
        (integer) 1
        2< (nil)
        > CLIENT UNBLOCK 2
        (integer) 0
        > CLIENT UNBLOCK 3 ERROR
        (integer) 1
        3< (error) UNBLOCKED client unblocked via CLIENT UNBLOCK
        > RPUSH l a b
        (integer) 2
        4< 1) "l"
        4< 2) "a"
        > CLIENT UNBLOCK 4 TIMEOUT
        (integer) 0
        "#,
    );
}

#[test]
fn a_value_of_another_type_is_an_error_only_for_one_who_comes() {
    check(
        r#"
        > SET s x
        OK
        > BLPOP missing s 0
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > BZPOPMIN s 0
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > BLMOVE s l LEFT LEFT 0
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        2> BLPOP k l 0
        3> BZPOPMIN k l 0
        4> BRPOPLPUSH l s 0
        > SET k x
        OK
        > SADD l x
        (integer) 1
        > DEL l
        (integer) 1
        > RPUSH l a b c
        (integer) 3
        2< 1) "l"
        2< 2) "a"
        4< (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > LRANGE l 0 -1
        1) "b"
        2) "c"
        > DEL l
        (integer) 1
        > ZADD l 1 a
        (integer) 1
        3< 1) "l"
        3< 2) "a"
        3< 3) "1"
        "#,
    );
}

#[test]
fn wrong_arguments_are_refused_as_by_redis() {
    check(
        r#"
        > BLPOP l x
        (error) ERR timeout is not a float or out of range
        > BLPOP l nan
        (error) ERR timeout is not a float or out of range
        > BRPOP l -1
        (error) ERR timeout is negative
        > BZPOPMIN z inf
        (error) ERR timeout is out of range
        > BZPOPMAX z 1e400
        (error) ERR timeout is out of range
        > BLPOP l
        (error) ERR wrong number of arguments for 'blpop' command
        > BLMOVE l m UP LEFT x
        (error) ERR syntax error
        > BLMOVE l m LEFT LEFT x
        (error) ERR timeout is not a float or out of range
        > BRPOPLPUSH l m 1e300
        (error) ERR timeout is out of range
        > BLMPOP x 0 l LEFT
        (error) ERR numkeys should be greater than 0
        > BLMPOP x 1 l LEFT
        (error) ERR timeout is not a float or out of range
        > BLMPOP 0 0 l LEFT
        (error) ERR numkeys should be greater than 0
        > BLMPOP 0 1 l UP
        (error) ERR syntax error
        > BLMPOP 0 1 l LEFT COUNT 0
        (error) ERR count should be greater than 0
        > BZMPOP -1 0 z MIN
        (error) ERR numkeys should be greater than 0
        > BZMPOP -1 1 z MIN
        (error) ERR timeout is negative
        > BZMPOP 0 x z MIN
        (error) ERR numkeys should be greater than 0
        > BZMPOP 0 1 z UP
        (error) ERR syntax error
        "#,
    );
}

#[test]
fn events_are_those_of_the_command_without_waiting() {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::ALL.union(NotifyClasses::KEYEVENT);
    check_on(
        &mut node,
        r#"
        2> BLMOVE a{t} b{t} LEFT RIGHT 0
        3> BZPOPMIN z 0
        > RPUSH a{t} x
        (integer) 1
        2< "x"
        > ZADD z 1 m
        (integer) 1
        3< 1) "z"
        3< 2) "m"
        3< 3) "1"
        "#,
    );
    let events: Vec<_> = node
        .events()
        .into_iter()
        .map(|event| (event.name, String::from_utf8(event.key).expect("ASCII")))
        .collect();
    let event = |name, key: &str| (name, key.to_owned());
    let expected = [
        event("rpush", "a{t}"),
        event("rpush", "b{t}"),
        event("lpop", "a{t}"),
        event("del", "a{t}"),
        event("zadd", "z"),
        event("zpopmin", "z"),
        event("del", "z"),
    ];
    assert_eq!(events, expected);
}
