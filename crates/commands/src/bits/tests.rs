//! Tests of the bit commands as scripts, with the replies that redis-server gives.

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};
use placement::SplitMix64;

#[test]
fn a_bit_is_set_and_got() {
    check(
        r#"
        > SETBIT k 7 1
        (integer) 0
        > GET k
        "\x01"
        > GETBIT k 7
        (integer) 1
        > GETBIT k 100
        (integer) 0
        > GETBIT missing 0
        (integer) 0
        > SETBIT k 7 0
        (integer) 1
        > SETBIT k 16 0
        (integer) 0
        > STRLEN k
        (integer) 3
        > SET n 12
        OK
        > SETBIT n 15 1
        (integer) 0
        > GET n
        "13"
        > SETBIT k 0 2
        (error) ERR bit is not an integer or out of range
        > SETBIT k -1 1
        (error) ERR bit offset is not an integer or out of range
        > SETBIT k 4294967296 1
        (error) ERR bit offset is not an integer or out of range
        > GETBIT k #1
        (error) ERR bit offset is not an integer or out of range
        "#,
    );
}

#[test]
fn bits_are_counted_in_bytes_and_in_bits() {
    check(
        r#"
        > SET k foobar
        OK
        > BITCOUNT k
        (integer) 26
        > BITCOUNT k 0 0
        (integer) 4
        > BITCOUNT k 1 1 BYTE
        (integer) 6
        > BITCOUNT k 5 30 BIT
        (integer) 17
        > BITCOUNT k 9 9 bit
        (integer) 1
        > BITCOUNT k -2 -1
        (integer) 7
        > BITCOUNT k 4 2
        (integer) 0
        > BITCOUNT k 0
        (error) ERR syntax error
        > BITCOUNT k 0 1 WORD
        (error) ERR syntax error
        > BITCOUNT k -1 -2 WORD
        (integer) 0
        > BITCOUNT k a 1
        (error) ERR value is not an integer or out of range
        > BITCOUNT missing a
        (integer) 0
        > SET empty ""
        OK
        > BITCOUNT empty
        (integer) 0
        "#,
    );
}

#[test]
fn the_first_bit_of_a_kind_is_found() {
    check(
        r#"
        > SET k "\xff\xf0\x00"
        OK
        > BITPOS k 0
        (integer) 12
        > BITPOS k 1 2
        (integer) -1
        > BITPOS k 1 0 0 BIT
        (integer) 0
        > BITPOS k 0 4 11 BIT
        (integer) -1
        > BITPOS k 1 -100 -200
        (integer) 0
        > SET ones "\xff\xff\xff"
        OK
        > BITPOS ones 0
        (integer) 24
        > BITPOS ones 0 0
        (integer) 24
        > BITPOS ones 0 0 -1
        (integer) -1
        > BITPOS ones 0 5
        (integer) -1
        > BITPOS missing 0
        (integer) 0
        > BITPOS missing 1
        (integer) -1
        > BITPOS k 2
        (error) ERR The bit argument must be 1 or 0.
        > BITPOS k 1 0 1 WORD
        (error) ERR syntax error
        > BITPOS k 1 0 1 BIT more
        (error) ERR syntax error
        "#,
    );
}

#[test]
fn counting_and_finding_agree_with_a_look_at_every_bit() {
    let mut node = TestNode::default();
    let mut rng = SplitMix64::new(3);
    let string: Vec<u8> = (0..40).map(|at| if at % 20 < 3 { 0x5A } else { 0 }).collect();
    node.args(1, &[b"SET", b"k", &string]);
    let is_set = |bit: usize| string[bit / 8] & 0x80 >> (bit % 8) != 0;
    for _ in 0..500 {
        let [a, b] = [(); 2].map(|()| (rng.draw() % 320) as usize);
        let (start, end) = (a.min(b), a.max(b));
        let count = (start..=end).filter(|bit| is_set(*bit)).count();
        let told = node.run(&format!("BITCOUNT k {start} {end} BIT"));
        assert_eq!(told, format!("(integer) {count}"));
        for (sought, wanted) in [(1, true), (0, false)] {
            let place = (start..=end).find(|bit| is_set(*bit) == wanted);
            let place = place.map_or("-1".to_owned(), |place| place.to_string());
            let told = node.run(&format!("BITPOS k {sought} {start} {end} BIT"));
            assert_eq!(told, format!("(integer) {place}"));
        }
    }
}

#[test]
fn strings_are_combined_bit_by_bit() {
    check(
        r#"
        > MSET a "\xff\x0f" b "\x0f" n 12
        OK
        > BITOP AND r a b
        (integer) 2
        > GET r
        "\x0f\x00"
        > BITOP OR r b a
        (integer) 2
        > GET r
        "\xff\x0f"
        > BITOP xor r a b a
        (integer) 2
        > GET r
        "\x0f\x00"
        > BITOP NOT r a
        (integer) 2
        > GET r
        "\x00\xf0"
        > BITOP AND r a missing
        (integer) 2
        > GET r
        "\x00\x00"
        > BITOP OR n n
        (integer) 2
        > GET n
        "12"
        > BITOP NOT r missing
        (integer) 0
        > GET r
        (nil)
        > BITOP NOT r a b
        (error) ERR BITOP NOT must be called with a single source key.
        > BITOP NAND r a b
        (error) ERR syntax error
        "#,
    );
}

#[test]
fn fields_are_read_and_written_in_order() {
    check(
        r#"
        > BITFIELD k SET u8 0 255 GET u4 0 INCRBY i5 8 -3 GET i5 8
        1) (integer) 0
        2) (integer) 15
        3) (integer) -3
        4) (integer) -3
        > GET k
        "\xff\xe8"
        > BITFIELD k GET u8 #1 GET i64 100
        1) (integer) 232
        2) (integer) 0
        > BITFIELD_RO k GET u2 0
        1) (integer) 3
        > BITFIELD_RO k SET u2 0 1
        (error) ERR BITFIELD_RO only supports the GET subcommand
        > BITFIELD k
        (empty array)
        > BITFIELD k GET u64 0
        (error) ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        > BITFIELD k GET u8 x
        (error) ERR bit offset is not an integer or out of range
        > BITFIELD k SET u8 0
        (error) ERR syntax error
        > BITFIELD k OVERFLOW NEVER
        (error) ERR Invalid OVERFLOW type specified
        > BITFIELD k SET u8 0 1 SET u8 0 x
        (error) ERR value is not an integer or out of range
        > GET k
        "\xff\xe8"
        "#,
    );
}

#[test]
fn overflow_wraps_saturates_or_fails() {
    check(
        r#"
        > BITFIELD k INCRBY u2 0 5 OVERFLOW SAT INCRBY u2 2 5 OVERFLOW FAIL INCRBY u2 4 5
        1) (integer) 1
        2) (integer) 3
        3) (nil)
        > BITFIELD k SET i8 8 200 OVERFLOW SAT SET i8 16 200 INCRBY i8 16 1
        1) (integer) 0
        2) (integer) 0
        3) (integer) 127
        > BITFIELD k GET i8 8
        1) (integer) -56
        > BITFIELD fresh OVERFLOW FAIL SET u2 0 100
        1) (nil)
        > GET fresh
        "\x00"
        "#,
    );
}

#[test]
fn a_bit_that_stays_as_it_is_changes_nothing() {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::ALL.union(NotifyClasses::KEYEVENT);
    let script = r#"
        > SETBIT k 3 1
        (integer) 0
        > SETBIT k 3 1
        (integer) 1
        > BITFIELD k SET u1 3 1
        1) (integer) 1
        "#;
    check_on(&mut node, script);
    assert_eq!(node.outcome.changes, 1);
    assert_eq!(node.events().len(), 1);
}
