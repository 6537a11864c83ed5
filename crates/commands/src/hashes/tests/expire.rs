//! Tests of the expiry of fields, with the replies that Valkey 9 gives.

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

#[test]
fn fields_expire_each_at_its_time() {
    check(
        r#"
        > HSET h a 1 b 2 c 3
        (integer) 3
        > HPEXPIRE h 100 FIELDS 2 a missing
        1) (integer) 1
        2) (integer) -2
        > HEXPIRE h 1 FIELDS 1 b
        1) (integer) 1
        > HPTTL h FIELDS 4 a b c missing
        1) (integer) 100
        2) (integer) 1000
        3) (integer) -1
        4) (integer) -2
        > HTTL h FIELDS 1 b
        1) (integer) 1
        > OBJECT ENCODING h
        "hashtable"
        +99ms
        > HGET h a
        "1"
        +1ms
        > HGET h a
        (nil)
        > HMGET h a b
        1) (nil)
        2) "2"
        > HEXISTS h a
        (integer) 0
        > HSTRLEN h a
        (integer) 0
        > HLEN h
        (integer) 2
        > HGETALL h
        1) "b"
        2) "2"
        3) "c"
        4) "3"
        > HKEYS h
        1) "b"
        2) "c"
        > HVALS h
        1) "2"
        2) "3"
        > HSCAN h 0
        1) "0"
        2) 1) "b"
           2) "2"
           3) "c"
           4) "3"
        > HDEL h a
        (integer) 0
        > HTTL h FIELDS 1 a
        1) (integer) -2
        +900ms
        > HGETALL h
        1) "c"
        2) "3"
        > HRANDFIELD h
        "c"
        > HRANDFIELD h 5
        1) "c"
        > HRANDFIELD h -2
        1) "c"
        2) "c"
        "#,
    );
}

#[test]
fn a_key_goes_with_its_last_field() {
    check(
        r#"
        > HSET h a 1
        (integer) 1
        > HPEXPIRE h 10 FIELDS 1 a
        1) (integer) 1
        +10ms
        > EXISTS h
        (integer) 0
        > TYPE h
        none
        > SET h now-a-string NX
        OK
        > HSETEX g PX 10 FIELDS 2 a 1 b 2
        (integer) 1
        +10ms
        > HSET g b 3
        (integer) 1
        > HGETALL g
        1) "b"
        2) "3"
        > HTTL g FIELDS 1 b
        1) (integer) -1
        > HSETEX i PX 10 FIELDS 2 a 1 b 2
        (integer) 1
        > HSET i b 3
        (integer) 0
        +10ms
        > HDEL i b
        (integer) 1
        > EXISTS i
        (integer) 0
        "#,
    );
}

#[test]
fn hexpire_has_conditions() {
    check(
        r#"
        > HSET h a 1 b 2
        (integer) 2
        > HEXPIRE h 100 XX FIELDS 1 a
        1) (integer) 0
        > HEXPIRE h 100 GT FIELDS 1 a
        1) (integer) 0
        > HEXPIRE h 100 NX FIELDS 1 a
        1) (integer) 1
        > HEXPIRE h 200 NX FIELDS 2 a b
        1) (integer) 0
        2) (integer) 1
        > HEXPIRE h 150 GT FIELDS 2 a b
        1) (integer) 1
        2) (integer) 0
        > HEXPIRE h 120 LT FIELDS 2 a b
        1) (integer) 1
        2) (integer) 1
        > HTTL h FIELDS 2 a b
        1) (integer) 120
        2) (integer) 120
        > HPERSIST h FIELDS 4 a a b missing
        1) (integer) 1
        2) (integer) -1
        3) (integer) 1
        4) (integer) -2
        > HTTL h FIELDS 1 a
        1) (integer) -1
        > HEXPIREAT h 4000000000 FIELDS 1 a
        1) (integer) 1
        > HPEXPIREAT h 4000000000123 FIELDS 1 b
        1) (integer) 1
        > HEXPIRETIME h FIELDS 2 a b
        1) (integer) 4000000000
        2) (integer) 4000000000
        > HPEXPIRETIME h FIELDS 2 a b
        1) (integer) 4000000000000
        2) (integer) 4000000000123
        > HEXPIRE h 0 FIELDS 3 a a missing
        1) (integer) 2
        2) (integer) -2
        3) (integer) -2
        > HPEXPIREAT h 1 FIELDS 1 b
        1) (integer) 2
        > EXISTS h
        (integer) 0
        > HEXPIRE h 10 FIELDS 1 a
        1) (integer) -2
        > HPERSIST h FIELDS 1 a
        1) (integer) -2
        "#,
    );
}

#[test]
fn wrong_clauses_are_refused_and_change_nothing() {
    check(
        r#"
        > HSET h a 1
        (integer) 1
        > SET s 1
        OK
        > HEXPIRE h 10 FIELDS 2 a
        (error) ERR numfields should be greater than 0 and match the provided number of fields
        > HEXPIRE h 10 FIELDS 0 a
        (error) ERR numfields should be greater than 0 and match the provided number of fields
        > HEXPIRE h 10 FIELDS -1 a
        (error) ERR numfields should be greater than 0 and match the provided number of fields
        > HEXPIRE h 10 FIELDS x a
        (error) ERR value is not an integer or out of range
        > HEXPIRE h 10 a b c
        (error) ERR numfields should be greater than 0 and match the provided number of fields
        > HEXPIRE h 10 NX XX FIELDS 1 a
        (error) ERR NX and XX, GT or LT options at the same time are not compatible
        > HEXPIRE h 10 YY FIELDS 1 a
        (error) ERR Unsupported option YY
        > HEXPIRE h -1 FIELDS 1 a
        (error) ERR invalid expire time in 'hexpire' command
        > HEXPIRE h 9223372036854775 FIELDS 1 a
        (error) ERR invalid expire time in 'hexpire' command
        > HEXPIRE h x FIELDS 1 a
        (error) ERR value is not an integer or out of range
        > HEXPIRE s 10 FIELDS 1 a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > HTTL s FIELDS 1 a
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > HTTL h FIELDS 2 a
        (error) ERR syntax error
        > HTTL h WORD 1 a
        (error) ERR Mandatory argument FIELDS is missing or not at the right position
        > HPERSIST h FIELDS 2 a
        (error) ERR numfields should be greater than 0 and match the provided number of fields
        > HGETDEL h FIELDS 2 a
        (error) ERR numfields should be greater than 0 and match the provided number of fields
        > HGETEX h EX FIELDS 1 a
        (error) ERR syntax error
        > HGETEX h EX 1 PERSIST FIELDS 1 a
        (error) ERR syntax error
        > HGETEX h EX -1 FIELDS 1 a
        (error) ERR invalid expire time in 'hgetex' command
        > HSETEX h NX XX FIELDS 1 a 2
        (error) ERR syntax error
        > HSETEX h KEEPTTL EX 5 FIELDS 1 a 2
        (error) ERR syntax error
        > HSETEX h FIELDS 1 a 2 b
        (error) ERR numfields should be greater than 0 and match the provided number of fields
        > HSETEX s FIELDS 1 a 2
        (error) WRONGTYPE Operation against a key holding the wrong kind of value
        > HGETALL h
        1) "a"
        2) "1"
        > HTTL h FIELDS 1 a
        1) (integer) -1
        "#,
    );
}

#[test]
fn hgetex_and_hgetdel_read_and_change() {
    check(
        r#"
        > HSET h a 1 b 2 c 3 d 4
        (integer) 4
        > HGETEX h FIELDS 2 a missing
        1) "1"
        2) (nil)
        > HGETEX h EX 10 FIELDS 3 a b missing
        1) "1"
        2) "2"
        3) (nil)
        > HGETEX h FIELDS 1 a
        1) "1"
        > HTTL h FIELDS 3 a b c
        1) (integer) 10
        2) (integer) 10
        3) (integer) -1
        > HGETEX h PERSIST FIELDS 2 a c
        1) "1"
        2) "3"
        > HTTL h FIELDS 2 a b
        1) (integer) -1
        2) (integer) 10
        > HGETEX h PXAT 1 FIELDS 2 a a
        1) "1"
        2) (nil)
        > HGETDEL h FIELDS 3 b b missing
        1) "2"
        2) (nil)
        3) (nil)
        > HGETALL h
        1) "c"
        2) "3"
        3) "d"
        4) "4"
        > HGETDEL h FIELDS 2 c d
        1) "3"
        2) "4"
        > EXISTS h
        (integer) 0
        > HGETEX h EX 10 FIELDS 1 a
        1) (nil)
        > HGETDEL h FIELDS 1 a
        1) (nil)
        "#,
    );
}

#[test]
fn hsetex_sets_all_fields_or_none() {
    check(
        r#"
        > HSETEX h XX FIELDS 1 a 1
        (integer) 0
        > HSETEX h FXX FIELDS 1 a 1
        (integer) 0
        > HSETEX h NX EX 10 FIELDS 2 a 1 b 2
        (integer) 1
        > HSETEX h NX FIELDS 1 a 3
        (integer) 0
        > HSETEX h FNX FIELDS 2 c 1 a 3
        (integer) 0
        > HSETEX h FXX KEEPTTL FIELDS 2 a 4 b 5
        (integer) 1
        > HTTL h FIELDS 3 a b c
        1) (integer) 10
        2) (integer) 10
        3) (integer) -2
        > HMGET h a b
        1) "4"
        2) "5"
        > HSETEX h FIELDS 1 a 6
        (integer) 1
        > HTTL h FIELDS 1 a
        1) (integer) -1
        > HSETEX h XX PX 500 FIELDS 2 b 7 b 8
        (integer) 1
        > HPTTL h FIELDS 1 b
        1) (integer) 500
        > HGET h b
        "8"
        > HSETEX h EXAT 1 FIELDS 2 a 1 b 1
        (integer) 1
        > EXISTS h
        (integer) 0
        "#,
    );
}

#[test]
fn writing_a_field_removes_its_deadline_and_counting_keeps_it() {
    check(
        r#"
        > HSETEX h PX 100 FIELDS 4 a 1 b 2 c 3 d 4
        (integer) 1
        > HSET h a 5
        (integer) 0
        > HINCRBY h b 5
        (integer) 7
        > HINCRBYFLOAT h c 0.5
        "3.5"
        > HSETNX h d 9
        (integer) 0
        > HPTTL h FIELDS 4 a b c d
        1) (integer) -1
        2) (integer) 100
        3) (integer) 100
        4) (integer) 100
        +100ms
        > HINCRBY h b 5
        (integer) 5
        > HSETNX h d 9
        (integer) 1
        > HPTTL h FIELDS 2 b d
        1) (integer) -1
        2) (integer) -1
        > HLEN h
        (integer) 3
        "#,
    );
}

#[test]
fn deadlines_go_along_with_their_hash() {
    check(
        r#"
        > HSETEX h PX 100 FIELDS 1 a 1
        (integer) 1
        > HSET h b 2
        (integer) 1
        > COPY h i
        (integer) 1
        > RENAME h j
        OK
        > COPY i {x}k DB 3
        (integer) 1
        > HPTTL i FIELDS 2 a b
        1) (integer) 100
        2) (integer) -1
        > HPTTL j FIELDS 2 a b
        1) (integer) 100
        2) (integer) -1
        +100ms
        > HGETALL i
        1) "b"
        2) "2"
        > HGETALL j
        1) "b"
        2) "2"
        > SELECT 3
        OK
        > HGETALL {x}k
        1) "b"
        2) "2"
        "#,
    );
}

#[test]
fn a_dumped_hash_keeps_its_deadlines() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        "> HSET h a 1 b 2\n(integer) 2\n> HPEXPIRE h 100 FIELDS 1 a\n1) (integer) 1",
    );
    let key = node.env.seed.key(b"h");
    let found = node.slots.table_mut(key.slot()).peek(&key).expect("it is there");
    let payload = crate::rdb::dump(found.value(), node.env.now);
    let replies = node.args(1, &[b"RESTORE", b"i", b"0", &payload]);
    assert_eq!(replies[0].to_string(), "OK");
    check_on(
        &mut node,
        "> HPTTL i FIELDS 2 a b\n1) (integer) 100\n2) (integer) -1\n+100ms\n> HGETALL i\n1) \"b\"\n2) \"2\"",
    );
}

#[test]
fn events_name_what_happened_to_fields() {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::ALL.union(NotifyClasses::KEYEVENT);
    check_on(
        &mut node,
        r#"
        > HSETEX h PX 100 FIELDS 2 a 1 b 2
        (integer) 1
        > HPEXPIRE h 200 FIELDS 1 a
        1) (integer) 1
        > HPERSIST h FIELDS 1 a
        1) (integer) 1
        > HGETEX h PERSIST FIELDS 1 a
        1) "1"
        > HGETEX h PX 5 FIELDS 1 a
        1) "1"
        > HEXPIRE h 0 FIELDS 1 a
        1) (integer) 2
        > HGETDEL h FIELDS 1 missing
        1) (nil)
        +100ms
        > EXISTS h
        (integer) 0
        "#,
    );
    let names: Vec<&str> = node.events().iter().map(|event| event.name).collect();
    let expected =
        ["hset", "hexpire", "hexpire", "hpersist", "hexpire", "hexpired", "hexpired", "del"];
    assert_eq!(names, expected);
}
