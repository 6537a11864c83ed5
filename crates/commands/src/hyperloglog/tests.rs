//! Tests of HyperLogLogs as dialogues, and against digests and numbers of redis-server 7.0.15.

use super::sketch::{Form, Sketch};
use crate::testing::{TestNode, check};

#[test]
fn elements_are_counted_and_merged() {
    check(
        r#"
        > PFADD visits a b c
        (integer) 1
        > PFADD visits a
        (integer) 0
        > PFADD visits
        (integer) 0
        > PFCOUNT visits
        (integer) 3
        > PFCOUNT nosuch
        (integer) 0
        > PFADD empty
        (integer) 1
        > PFCOUNT empty
        (integer) 0
        > TYPE empty
        string
        > PFADD other c d e
        (integer) 1
        > PFCOUNT visits other nosuch
        (integer) 5
        > PFMERGE sum visits other nosuch
        OK
        > PFCOUNT sum
        (integer) 5
        > PFMERGE sum
        OK
        > PFCOUNT sum
        (integer) 5
        > OBJECT ENCODING sum
        "raw"
        "#,
    );
}

#[test]
fn an_expiry_stays() {
    check(
        r#"
        > PFADD key a
        (integer) 1
        > EXPIRE key 100
        (integer) 1
        > PFADD key b
        (integer) 1
        > PFMERGE key nosuch
        OK
        > PFDEBUG TODENSE key
        (integer) 1
        > PFADD key c
        (integer) 1
        > PFCOUNT key
        (integer) 3
        > TTL key
        (integer) 100
        "#,
    );
}

#[test]
fn only_hyperloglogs_are_accepted() {
    const HEAD: &str = r"HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80";
    let wrong_type = "(error) WRONGTYPE Key is not a valid HyperLogLog string value.";
    for value in ["123", "HYLL", "text", r"HYLL\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"] {
        let mut node = TestNode::default();
        node.run(&format!("SET key \"{value}\""));
        for command in
            ["PFADD key a", "PFCOUNT key", "PFCOUNT key k", "PFMERGE k key", "PFDEBUG DECODE key"]
        {
            assert_eq!(node.run(command), wrong_type, "{command} {value}");
        }
        assert_eq!(node.run("EXISTS k"), "(integer) 0");
    }
    let corrupted = "(error) INVALIDOBJ Corrupted HLL object detected";
    for runs in ["", r"\x40\x00", r"\x7f\xff\x00", r"\x7f\xff\xff", r"\x7f"] {
        let mut node = TestNode::default();
        node.run(&format!("SET key \"{HEAD}{runs}\""));
        for command in [
            "PFCOUNT key",
            "PFCOUNT key k",
            "PFMERGE k key",
            "PFDEBUG TODENSE key",
            "PFDEBUG GETREG key",
        ] {
            assert_eq!(node.run(command), corrupted, "{command} {runs}");
        }
        assert_eq!(node.run("EXISTS k"), "(integer) 0");
    }
    let mut node = TestNode::default();
    node.run(&format!("SET key \"{HEAD}\""));
    assert_eq!(node.run("PFADD key a"), corrupted);
    node.run("RPUSH list 1");
    let other_type = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    for command in ["PFADD list a", "PFCOUNT list", "PFMERGE list", "PFDEBUG ENCODING list"] {
        assert_eq!(node.run(command), other_type);
    }
}

/// The digest of the database of redis-server 7.0.15 after so many elements, its PFCOUNT, and the digest after that.
const STAGES: &[(usize, &str, u64, &str)] = &[
    (1, "73284a06e3bd883502e36bb369b516a1fb4717d8", 1, "1d32dc1a567e84b79b2175d09c5af5be6e9746b9"),
    (
        10,
        "1dfdfcf75b1a1ebe76eb9efce98fcff0f8e1b587",
        10,
        "b3bc9f35853e7722460dd511c3c1a3c1224dd058",
    ),
    (
        100,
        "eda46cd37fb805fc153e2dcdbb720ca71fd11714",
        99,
        "44b56316fb6e8466d480a5bae9f77872a0403487",
    ),
    (
        400,
        "a4be963cfa8f73bd295f9e6d891229187fc7f009",
        401,
        "9a9b6d3275090ce84b6d95ed55f41c61dc7949ad",
    ),
    (
        1000,
        "318b06a122d4e584d14c911d9f3d13c26f9fbe20",
        997,
        "cd437589eaa6a3c0638317470a8c3d385eed02e9",
    ),
    (
        1500,
        "6686afac06eb1da807aa2524ea77f1afec9b6a39",
        1500,
        "09c04a45caf4c6c2107b21957c3894eeb605804c",
    ),
    (
        1700,
        "83d3cbd75ba6df49ef909ee19c69f271e83f8ca6",
        1706,
        "85a17af51b62c028fac90957a3389847be936a2a",
    ),
    (
        20_000,
        "8c9dfca6532bfc0feea0bf6d09c3a385393451f9",
        19_986,
        "fa63ef35be55288a25643ef922a53fbedfb7f83f",
    ),
];

#[test]
fn the_bytes_are_those_of_redis() {
    let mut node = TestNode::default();
    let mut stages = STAGES.iter().peekable();
    for count in 1..=20_000 {
        node.run(&format!("PFADD h element:{}", count - 1));
        let Some((_, changed, estimate, counted)) = stages.next_if(|stage| stage.0 == count) else {
            continue;
        };
        assert_eq!(node.run("DEBUG DIGEST"), *changed, "{count} elements");
        assert_eq!(node.run("PFCOUNT h"), format!("(integer) {estimate}"));
        assert_eq!(node.run("DEBUG DIGEST"), *counted, "{count} elements, counted");
    }
    assert!(stages.next().is_none(), "every stage was compared");
    assert_eq!(node.slots.digest(), node.replayed().digest(), "a backup has the same bytes");
}

#[test]
fn merged_bytes_are_those_of_redis() {
    let mut node = TestNode::default();
    for number in 0..300 {
        node.run(&format!("PFADD a a{number}"));
        node.run(&format!("PFADD b b{number}"));
    }
    node.run("PFMERGE c a b");
    assert_eq!(node.run("PFCOUNT c"), "(integer) 603");
    assert_eq!(node.run("PFCOUNT a b"), "(integer) 603");
    assert_eq!(node.run("DEBUG DIGEST"), "fc0bedf0ecb159d5ef0b14a637be40def80ac1fd");
    for number in 0..5_000 {
        node.run(&format!("PFADD d a{number}"));
    }
    node.run("PFMERGE c d");
    assert_eq!(node.run("PFCOUNT c"), "(integer) 5289");
    assert_eq!(node.run("PFCOUNT a b d"), "(integer) 5289");
    assert_eq!(node.run("DEBUG DIGEST"), "89d0f873d60f7d56dca783af6a81f4bb7259a9a5");
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn many_elements_at_once_are_recorded_in_few_bytes() {
    let mut node = TestNode::default();
    node.run("PFADD h");
    node.run("PFDEBUG TODENSE h");
    let before = node.log.len();
    node.run("PFADD h one");
    assert!(node.log.len() - before < 200, "{} bytes for one element", node.log.len() - before);
    let before = node.log.len();
    let elements: Vec<String> = (0..5_000).map(|number| format!("e{number}")).collect();
    node.run(&format!("PFADD h {}", elements.join(" ")));
    let recorded = node.log.len() - before;
    assert!(recorded < super::RECORDED_BYTES_MAX, "{recorded} bytes for many elements");
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn the_estimate_is_kept_until_a_register_changes() {
    let mut node = TestNode::default();
    node.run("PFADD h a b c");
    let before = node.log.len();
    node.run("PFCOUNT h");
    assert!(node.log.len() > before, "a primary keeps the estimate");
    let before = node.log.len();
    node.run("PFCOUNT h");
    assert_eq!(node.log.len(), before, "a kept estimate is not written again");
}

#[test]
fn registers_are_shown() {
    check(
        r#"
        > PFADD h a b c
        (integer) 1
        > PFDEBUG DECODE h
        "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"
        > PFDEBUG ENCODING h
        sparse
        > PFDEBUG ToDense h
        (integer) 1
        > PFDEBUG TODENSE h
        (integer) 0
        > PFDEBUG ENCODING h
        dense
        > PFDEBUG DECODE h
        (error) ERR HLL encoding is not sparse
        > PFDEBUG NOSUCH h
        (error) ERR Unknown PFDEBUG subcommand 'NOSUCH'
        > PFDEBUG GETREG nosuch
        (error) ERR The specified key does not exist
        > PFDEBUG GETREG
        (error) ERR wrong number of arguments for 'pfdebug' command
        > PFSELFTEST
        OK
        "#,
    );
    let mut node = TestNode::default();
    node.run("PFADD h a b c");
    let registers = node.run("PFDEBUG GETREG h");
    assert_eq!(registers.lines().count(), 16_384);
    assert_eq!(registers.lines().filter(|line| !line.ends_with(" 0")).count(), 3);
    assert_eq!(node.run("PFDEBUG ENCODING h"), "dense");
}

#[test]
fn both_forms_hold_the_same_registers() {
    let mut sparse = Sketch::new();
    let mut dense = Sketch::new();
    dense.make_dense().expect("an empty one is sound");
    for number in 0..3_000u32 {
        let element = number.to_le_bytes();
        assert_eq!(sparse.add(&element), dense.add(&element), "element {number}");
        if number % 100 == 0 {
            assert_eq!(sparse.registers(), dense.registers());
        }
    }
    assert_eq!(Form::of(sparse.bytes()), Some(Form::Dense), "it has become too long");
}
