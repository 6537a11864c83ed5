//! Tests of KEYS and SCAN, and of the guarantee that keys that stay are returned.

use std::collections::BTreeSet;

use placement::SplitMix64;
use resp::Value;

use super::*;
use crate::testing::{TestNode, check, check_on};

#[test]
fn keys_lists_what_matches_and_has_not_expired() {
    check(
        r#"
        > KEYS *
        (empty array)
        > SET one 1
        OK
        > SET two 2
        OK
        > PEXPIRE two 5
        (integer) 1
        > KEYS t*
        1) "two"
        +6ms
        > KEYS *
        1) "one"
        > KEYS two
        (empty array)
        "#,
    );
}

#[test]
fn bad_cursors_and_options_are_refused() {
    check(
        r#"
        > SCAN x
        (error) ERR invalid cursor
        > SCAN " 0"
        (error) ERR invalid cursor
        > SCAN 0x
        (error) ERR invalid cursor
        > SCAN 18446744073709551616
        (error) ERR invalid cursor
        > SCAN 0 COUNT
        (error) ERR syntax error
        > SCAN 0 COUNT 0
        (error) ERR syntax error
        > SCAN 0 COUNT x
        (error) ERR value is not an integer or out of range
        > SCAN 0 FOO bar
        (error) ERR syntax error
        > SCAN 18446744073709551615
        1) "0"
        2) (empty array)
        > SCAN ""
        1) "0"
        2) (empty array)
        > SCAN +0
        1) "0"
        2) (empty array)
        "#,
    );
}

#[test]
fn type_and_pattern_choose_what_is_told() {
    check(
        r#"
        > SET a 1
        OK
        > SCAN 0 TYPE STRING
        1) "0"
        2) 1) "a"
        > SCAN 0 TYPE hash
        1) "0"
        2) (empty array)
        > SCAN 0 MATCH b*
        1) "0"
        2) (empty array)
        > SCAN 0 MATCH a* COUNT 100
        1) "0"
        2) 1) "a"
        "#,
    );
}

#[test]
fn a_scan_takes_expired_keys_away() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r#"
        > SET a 1
        OK
        > PEXPIRE a 5
        (integer) 1
        +5ms
        > SCAN 0
        1) "0"
        2) (empty array)
        > DBSIZE
        (integer) 0
        "#,
    );
}

/// Runs one call of SCAN; returns the next cursor and the names.
fn page(node: &mut TestNode, cursor: &[u8], count: u64) -> (Vec<u8>, Vec<String>) {
    let count = count.to_string();
    let mut replies = node.args(1, &[b"SCAN", cursor, b"COUNT", count.as_bytes()]);
    let Some(Value::Array(parts)) = replies.pop() else { panic!("SCAN answers an array") };
    let [cursor, Value::Array(names)] = parts.as_slice() else { panic!("of two") };
    let text = |value: &Value| String::from_utf8(value.text().unwrap().to_vec()).unwrap();
    (text(cursor).into_bytes(), names.iter().map(text).collect())
}

#[test]
fn what_stays_is_seen_whatever_comes_and_goes() {
    for seed in 1..40u64 {
        let mut rng = SplitMix64::new(seed);
        let mut node = TestNode::default();
        // Half of the runs put all keys into one slot, where the table grows and shrinks.
        let prefix = if seed % 2 == 0 { "{tag}" } else { "" };
        let stays: BTreeSet<String> = (0..200).map(|n| format!("{prefix}stays:{n}")).collect();
        for name in &stays {
            node.run(&format!("SET {name} x"));
        }
        let mut seen = BTreeSet::new();
        let mut cursor = b"0".to_vec();
        loop {
            let (next, names) = page(&mut node, &cursor, 1 + rng.draw() % 20);
            seen.extend(names);
            if next == b"0" {
                break;
            }
            cursor = next;
            for _ in 0..rng.draw() % 50 {
                let number = rng.draw() % 2_000;
                if rng.draw().is_multiple_of(3) {
                    node.run(&format!("DEL {prefix}other:{number}"));
                } else {
                    node.run(&format!("SET {prefix}other:{number} x"));
                }
            }
        }
        let missed: Vec<&String> = stays.difference(&seen).collect();
        assert!(missed.is_empty(), "seed {seed} missed {missed:?}");
    }
}

#[test]
fn a_quiet_keyspace_is_told_once_and_bit_by_bit() {
    let mut node = TestNode::default();
    for number in 0..1_000 {
        node.run(&format!("SET key:{number} x"));
    }
    let (mut told, mut calls, mut cursor) = (Vec::new(), 0, b"0".to_vec());
    loop {
        let (next, names) = page(&mut node, &cursor, 10);
        assert!(names.len() < 20, "a page of {}", names.len());
        told.extend(names);
        calls += 1;
        if next == b"0" {
            break;
        }
        cursor = next;
    }
    assert_eq!(told.len(), 1_000);
    assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), 1_000);
    assert!((100..=101).contains(&calls), "{calls} calls");
}

#[test]
fn a_cursor_survives_being_written_as_a_number() {
    for number in [0, 1, 1 << 33, 1 << 34, (1 << 48) - 1] {
        assert_eq!(Cursor::from_number(number).number(), number);
    }
}
