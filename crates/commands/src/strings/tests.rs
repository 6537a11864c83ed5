//! Tests of the string commands as scripts, with the replies that redis-server gives.

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

/// Runs lines on a node with all notifications enabled, and returns the events: `event key`.
fn events(lines: &[&str]) -> Vec<String> {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::ALL
        .union(NotifyClasses::NEW)
        .union(NotifyClasses::KEY_MISS)
        .union(NotifyClasses::KEYEVENT);
    lines.iter().for_each(|line| {
        let reply = node.run(line);
        assert!(!reply.starts_with("(error)"), "{line}: {reply}");
        node.advance(1);
    });
    let told = |event: crate::Event| {
        format!("{} {}", event.name, String::from_utf8(event.key).expect("keys of this test"))
    };
    node.events().into_iter().map(told).collect()
}

#[test]
fn what_was_set_is_got() {
    check(
        r#"
        > SET k v
        OK
        > GET k
        "v"
        > SET n 12
        OK
        > GET n
        "12"
        > GET missing
        (nil)
        > GET
        (error) ERR wrong number of arguments for 'get' command
        > NOSUCH a b
        (error) ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b'
        "#,
    );
}

#[test]
fn set_heeds_its_conditions() {
    check(
        r#"
        > SET k 1 XX
        (nil)
        > SET k 1 NX
        OK
        > SET k 2 NX
        (nil)
        > SET k 2 XX GET
        "1"
        > SET k 3 NX GET
        "2"
        > SET new 1 GET
        (nil)
        > GET new
        "1"
        > SETNX k 4
        (integer) 0
        > SETNX fresh 4
        (integer) 1
        > GETSET k 5
        "2"
        > GETSET other 6
        (nil)
        "#,
    );
}

#[test]
fn set_refuses_options_that_contradict_each_other() {
    check(
        r#"
        > SET k v NX XX
        (error) ERR syntax error
        > SET k v EX 10 PX 10
        (error) ERR syntax error
        > SET k v KEEPTTL EX 10
        (error) ERR syntax error
        > SET k v EX
        (error) ERR syntax error
        > SET k v PERSIST
        (error) ERR syntax error
        > SET k v EX 10 EX 20
        OK
        > SET k v EX ten
        (error) ERR value is not an integer or out of range
        > SET k v PX 0
        (error) ERR invalid expire time in 'set' command
        > SET k v EX 9223372036854775807
        (error) ERR invalid expire time in 'set' command
        > SETEX k 0 v
        (error) ERR invalid expire time in 'setex' command
        > PSETEX k -1 v
        (error) ERR invalid expire time in 'psetex' command
        > PSETEX k 9223372036854775807 v
        (error) ERR invalid expire time in 'psetex' command
        > GETEX k EX 10 PERSIST
        (error) ERR syntax error
        > GETEX k KEEPTTL
        (error) ERR syntax error
        > GETEX k EX 0
        (error) ERR invalid expire time in 'getex' command
        > GETEX missing EX 0
        (nil)
        "#,
    );
}

#[test]
fn a_value_lives_as_long_as_it_was_told_to() {
    check(
        r#"
        > SET seconds 1 EX 10
        OK
        > SET millis 1 PX 9000
        OK
        > SET absolute 1 EXAT 1700000010
        OK
        > SET past 1 PXAT 1
        OK
        > GET past
        (nil)
        > SETEX setex 10 1
        OK
        > PSETEX psetex 10000 1
        OK
        > SET kept 1 EX 10
        OK
        > SET kept 2 KEEPTTL
        OK
        > SET cleared 1 EX 10
        OK
        > SET cleared 2
        OK
        > SET counter 7 EX 10
        OK
        > INCR counter
        (integer) 8
        > INCRBYFLOAT counter 0.5
        "8.5"
        +9s
        > MGET seconds millis absolute setex psetex kept cleared counter
        1) "1"
        2) (nil)
        3) "1"
        4) "1"
        5) "1"
        6) "2"
        7) "2"
        8) "8.5"
        +1s
        > MGET seconds millis absolute setex psetex kept cleared counter
        1) (nil)
        2) (nil)
        3) (nil)
        4) (nil)
        5) (nil)
        6) (nil)
        7) "2"
        8) (nil)
        "#,
    );
}

#[test]
fn getex_and_getdel_read_and_change_the_lifetime() {
    check(
        r#"
        > MSET a 1 b 2 c 3 d 4
        OK
        > GETEX a EX 10
        "1"
        > GETEX b PXAT 1
        "2"
        > GET b
        (nil)
        > GETEX c EX 10
        "3"
        > GETEX c PERSIST
        "3"
        > GETEX d
        "4"
        > GETDEL d
        "4"
        > GETDEL d
        (nil)
        +10s
        > MGET a c d
        1) (nil)
        2) "3"
        3) (nil)
        "#,
    );
}

#[test]
fn several_keys_are_set_all_or_none() {
    check(
        r#"
        > MSET a 1 b 2 a 3
        OK
        > MGET a b missing a
        1) "3"
        2) "2"
        3) (nil)
        4) "3"
        > MSET a 1 b
        (error) ERR wrong number of arguments for 'mset' command
        > MSETNX c 1 b 9
        (integer) 0
        > GET c
        (nil)
        > MSETNX c 1 d 2 c 3
        (integer) 1
        > MGET c d
        1) "3"
        2) "2"
        "#,
    );
}

#[test]
fn counters_count_and_refuse_what_is_no_number() {
    check(
        r#"
        > INCR n
        (integer) 1
        > INCRBY n 41
        (integer) 42
        > DECR n
        (integer) 41
        > DECRBY n 50
        (integer) -9
        > DECRBY n -9223372036854775808
        (error) ERR decrement would overflow
        > INCRBY n -9223372036854775808
        (error) ERR increment or decrement would overflow
        > INCRBY n 1.5
        (error) ERR value is not an integer or out of range
        > SET word hello
        OK
        > INCR word
        (error) ERR value is not an integer or out of range
        > APPEND digits 1
        (integer) 1
        > APPEND digits 2
        (integer) 2
        > INCR digits
        (integer) 13
        > INCRBYFLOAT digits 1.25
        "14.25"
        > INCR digits
        (error) ERR value is not an integer or out of range
        > INCRBYFLOAT word 1
        (error) ERR value is not a valid float
        > INCRBYFLOAT digits abc
        (error) ERR value is not a valid float
        > INCRBYFLOAT digits inf
        (error) ERR increment would produce NaN or Infinity
        > INCRBYFLOAT fresh -0.1
        "-0.1"
        "#,
    );
}

#[test]
fn parts_are_read_and_written() {
    check(
        r#"
        > APPEND s Hello
        (integer) 5
        > APPEND s " World"
        (integer) 11
        > STRLEN s
        (integer) 11
        > STRLEN missing
        (integer) 0
        > GETRANGE s 0 4
        "Hello"
        > SUBSTR s -5 -1
        "World"
        > GETRANGE s 0 -100
        "H"
        > GETRANGE s -1 -5
        ""
        > GETRANGE s 20 30
        ""
        > GETRANGE missing 0 -1
        ""
        > GETRANGE s a 1
        (error) ERR value is not an integer or out of range
        > SETRANGE s 6 Redis
        (integer) 11
        > GET s
        "Hello Redis"
        > SETRANGE pad 3 x
        (integer) 4
        > GET pad
        "\x00\x00\x00x"
        > SETRANGE none 5 ""
        (integer) 0
        > SETRANGE s 50 ""
        (integer) 11
        > SETRANGE s -1 x
        (error) ERR offset is out of range
        > SET number 1234
        OK
        > GETRANGE number 1 2
        "23"
        > SETRANGE number 1 x
        (integer) 4
        > GET number
        "1x34"
        "#,
    );
}

#[test]
fn no_string_grows_beyond_the_limit() {
    let mut node = TestNode::default();
    node.env.string_bytes_max = 10;
    check_on(
        &mut node,
        r#"
        > SETRANGE s 9 x
        (integer) 10
        > SETRANGE s 10 x
        (error) ERR string exceeds maximum allowed size (proto-max-bulk-len)
        > SETRANGE s 9223372036854775807 x
        (error) ERR string exceeds maximum allowed size (proto-max-bulk-len)
        > APPEND s x
        (error) ERR string exceeds maximum allowed size (proto-max-bulk-len)
        > APPEND s ""
        (integer) 10
        "#,
    );
}

#[test]
fn a_large_value_is_read_in_parts_and_changed_in_place() {
    let mut node = TestNode::default();
    let large = vec![b'x'; 100_000];
    node.args(1, &[b"SET", b"k", &large]);
    check_on(
        &mut node,
        r#"
        > GETRANGE k 99998 -1
        "xx"
        > SETRANGE k 99999 y
        (integer) 100000
        > APPEND k z
        (integer) 100001
        > GETRANGE k -3 -1
        "xyz"
        > INCR k
        (error) ERR value is not an integer or out of range
        > STRLEN k
        (integer) 100001
        "#,
    );
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn listeners_are_told_what_redis_tells_in_its_order() {
    let told = events(&[
        "SET k 1",
        "SET k 2 EX 10",
        "SET k 3 NX",
        "SETEX e 1 x",
        "SETNX n 1",
        "GETSET k 4",
        "MSET k 1 m 2",
        "APPEND k x",
        "APPEND app x",
        "SETRANGE k 0 y",
        "INCR i",
        "INCRBYFLOAT i 1",
    ]);
    let expected = "new k, set k, set k, expire k, new e, set e, expire e, new n, set n, set k, \
                    set k, new m, set m, append k, new app, append app, setrange k, new i, \
                    incrby i, incrbyfloat i";
    assert_eq!(told.join(", "), expected);
}

#[test]
fn listeners_hear_of_ends_too() {
    let told = events(&[
        "SET past 1 PXAT 1",
        "GET past",
        "SET k v PX 1",
        "SET k w",
        "GETEX k EX 10",
        "GETEX k PERSIST",
        "GETEX k PERSIST",
        "GETEX k PXAT 1",
        "SET k v",
        "GETDEL k",
        "GETDEL k",
    ]);
    let expected = "new past, set past, expire past, expired past, keymiss past, new k, set k, \
                    expire k, expired k, new k, set k, expire k, persist k, del k, new k, set k, \
                    del k, keymiss k";
    assert_eq!(told.join(", "), expected);
}

#[test]
fn the_longest_common_subsequence_is_found_as_redis_finds_it() {
    check(
        r#"
        > MSET a ohmytext b mynewtext n 1234
        OK
        > LCS a b
        "mytext"
        > LCS a b LEN
        (integer) 6
        > LCS a b IDX
        1) "matches"
        2) 1) 1) 1) (integer) 4
        2) (integer) 7
        2) 1) (integer) 5
        2) (integer) 8
        2) 1) 1) (integer) 2
        2) (integer) 3
        2) 1) (integer) 0
        2) (integer) 1
        3) "len"
        4) (integer) 6
        > LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN
        1) "matches"
        2) 1) 1) 1) (integer) 4
        2) (integer) 7
        2) 1) (integer) 5
        2) (integer) 8
        3) (integer) 4
        3) "len"
        4) (integer) 6
        > LCS a missing
        ""
        > LCS n n MINMATCHLEN -1
        "1234"
        > LCS a missing IDX
        1) "matches"
        2) (empty array)
        3) "len"
        4) (integer) 0
        > LCS a b LEN IDX
        (error) ERR If you want both the length and indexes, please just use IDX.
        > LCS a b MINMATCHLEN
        (error) ERR syntax error
        > LCS a b MINMATCHLEN x
        (error) ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn a_search_that_would_take_too_much_is_refused() {
    let mut node = TestNode::default();
    let long = vec![b'x'; 20_000];
    node.args(1, &[b"MSET", b"a", &long, b"b", &long]);
    check_on(
        &mut node,
        r#"
        > LCS a b LEN
        (error) ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len
        "#,
    );
}

/// Recorded from Valkey 9.1.2.
const SEVERAL_KEYS_WITH_OPTIONS: &str = r#"
> MSETEX 2 a 1 b 2
(integer) 1
> MGET a b
1) "1"
2) "2"
> MSETEX 2 a 3 c 4 NX
(integer) 0
> MGET a b c
1) "1"
2) "2"
3) (nil)
> MSETEX 2 d 5 e 6 NX EX 100
(integer) 1
> TTL d
(integer) 100
> MSETEX 2 a 7 d 8 XX
(integer) 1
> MGET a d
1) "7"
2) "8"
> TTL d
(integer) -1
> MSETEX 2 a 7 nosuch 8 XX
(integer) 0
> GET a
"7"
> MSETEX 1 e 7 KEEPTTL
(integer) 1
> TTL e
(integer) 100
> MSETEX 1 e 7 PX 100000
(integer) 1
> TTL e
(integer) 100
> MSETEX 1 e 7 EXAT 4000000000
(integer) 1
> EXPIRETIME e
(integer) 4000000000
> MSETEX 1 e 8 PXAT 4000000000000 XX
(integer) 1
> PEXPIRETIME e
(integer) 4000000000000
> MSETEX 2 a 1 a 2
(integer) 1
> GET a
"2"
> MSETEX 0 a 1
(error) ERR invalid numkeys value or out of range
> MSETEX -1 a 1
(error) ERR invalid numkeys value or out of range
> MSETEX x a 1
(error) ERR invalid numkeys value or out of range
> MSETEX 2 a 1
(error) ERR syntax error
> MSETEX 2 a 1 b
(error) ERR syntax error
> MSETEX 1 a 1 b
(error) ERR syntax error
> MSETEX 1 a 1 NX XX
(error) ERR syntax error
> MSETEX 1 a 1 EX 10 PX 10
(error) ERR syntax error
> MSETEX 1 a 1 EX
(error) ERR syntax error
> MSETEX 1 a 1 EX 0
(error) ERR invalid expire time in 'msetex' command
> MSETEX 1 a 1 EX x
(error) ERR value is not an integer or out of range
> MSETEX 1 a 1 GET
(error) ERR syntax error
> MSETEX 1 a 1 IFEQ 1
(error) ERR syntax error
> MSETEX 9223372036854775807 a 1
(error) ERR invalid numkeys value or out of range
> MSETEX 1 a
(error) ERR wrong number of arguments for 'msetex' command
> LPUSH l 1
(integer) 1
> MSETEX 1 l 1 XX
(integer) 1
> TYPE l
string
> MSETEX 1 a 1 NX NX
(integer) 0
> MSETEX 1 a 1 KEEPTTL KEEPTTL
(integer) 1
> MSETEX 1 a 1 EX 10 EX 20
(integer) 1
> TTL a
(integer) 20
"#;

#[test]
fn several_keys_are_set_with_options() {
    check(SEVERAL_KEYS_WITH_OPTIONS);
}

/// Recorded from Valkey 9.1.2.
const COMPARED_STRINGS: &str = r#"
> SET k a
OK
> SET k b IFEQ x
(nil)
> SET k b IFEQ a
OK
> SET k c IFEQ b GET
"b"
> SET k d IFEQ x GET
"c"
> SET n v IFEQ a
(nil)
> SET n v IFEQ a GET
(nil)
> EXISTS n
(integer) 0
> SET k v IFEQ
(error) ERR syntax error
> SET k v IFEQ c NX
(error) ERR syntax error
> SET k v NX IFEQ c
(error) ERR syntax error
> SET k v IFEQ c IFEQ c
(error) ERR syntax error
> GET k
"c"
> SET k w IFEQ c EX 100 GET
"c"
> SET k x IFEQ w KEEPTTL
OK
> TTL k
(integer) 100
> SET k y IFEQ x
OK
> TTL k
(integer) -1
> SET i 10
OK
> SET i 11 IFEQ 010
(nil)
> SET i 11 IFEQ 10
OK
> DELIFEQ i 10
(integer) 0
> DELIFEQ i 11
(integer) 1
> DELIFEQ i 11
(integer) 0
> RPUSH l 1
(integer) 1
> SET l v IFEQ 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> SET l v IFEQ 1 GET
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> DELIFEQ l 1
(error) WRONGTYPE Operation against a key holding the wrong kind of value
> DELIFEQ l
(error) ERR wrong number of arguments for 'delifeq' command
> TYPE l
list
"#;

#[test]
fn a_string_is_replaced_or_deleted_if_it_is_the_expected_one() {
    check(COMPARED_STRINGS);
}
