//! Tests of sorted sets in Redis's format, with payloads of Redis, and broken ones.

use store::{Element, Score, ScoredMember};

use crate::rdb::tests::{NO_LIMIT, bytes_of, sealed};
use crate::rdb::{PayloadError, RestoredValue, dump, restore};

fn row(pairs: &[(f64, &[u8])]) -> Vec<u8> {
    let mut row = Vec::new();
    for (score, member) in pairs {
        let score = Score::new(*score).expect("a number");
        ScoredMember { score, member: Element::of(member) }.write(&mut row);
    }
    row
}

/// Payloads of sorted sets on redis-server 7.0.15, and their scores and members.
fn dumped_by_redis() -> [(Vec<u8>, &'static str); 3] {
    let small: &[(f64, &[u8])] = &[
        (f64::NEG_INFINITY, b"c"),
        (-5.0, b"text"),
        (0.1, b"b"),
        (1.0, b"a"),
        (1e16, b"big"),
        (1e300, b"-70000"),
    ];
    let large: &[(f64, &[u8])] = &[(-0.0, b"z"), (1.5, &[b'm'; 65]), (f64::INFINITY, b"x")];
    [
        (
            row(small),
            "11c3405040631f630000000c00816302842d696e6605847465787405dffb0281620293302e3130e005001d3114\
             81610201018362696704f40000c16ff286230009f290eefe0497312ee0052b083031652b33303018ff0a002dc0\
             0d374b675709",
        ),
        (
            row(large),
            "05030178000000000000f07fc3094041016d6de03400016d6d000000000000f83f017a00000000000000800a00\
             eb50644c2f149110",
        ),
        (row(&[(1.0, b"2")]), "110b0b000000020002010101ff0a00d90fd5861bc652e0"),
    ]
}

/// Returns the payload of a sorted set as a slot keeps it.
fn dumped(row: &[u8]) -> Vec<u8> {
    let seed = store::Seed::new(1);
    let mut table = store::SlotTable::default();
    let (key, value) = (seed.key(b"z"), store::NewValue::SortedSet(row));
    let put = store::Effect::Put { key, value, expires_at: None };
    let version = table.next_version(store::UnixMillis(1));
    let _ = table.apply(&put, version, store::Touch::Nothing, &seed);
    dump(table.peek(&key).expect("it was put").value(), store::UnixMillis(1))
}

#[test]
fn payloads_of_sorted_sets_are_those_of_redis() {
    for (row, hex) in dumped_by_redis() {
        assert_eq!(dumped(&row), bytes_of(hex));
        assert_eq!(restore(&bytes_of(hex), NO_LIMIT), Ok(RestoredValue::SortedSet(row)));
    }
}

#[test]
fn scores_as_texts_are_read() {
    let body =
        [3, 4, 1, b'a', 3, b'1', b'.', b'5', 1, b'b', 255, 1, b'c', 254, 1, b'd', 2, b'-', b'2'];
    let expected: &[(f64, &[u8])] =
        &[(f64::NEG_INFINITY, b"b"), (-2.0, b"d"), (1.5, b"a"), (f64::INFINITY, b"c")];
    let restored = restore(&sealed(&body), NO_LIMIT).map(|value| format!("{value:?}"));
    assert_eq!(restored, Ok(format!("{:?}", RestoredValue::SortedSet(row(expected)))));
}

#[test]
fn payloads_that_are_no_sorted_set_are_refused() {
    let one = 1.0f64.to_le_bytes();
    let nan = f64::NAN.to_le_bytes();
    let binary = |pairs: &[(&[u8], [u8; 8])]| {
        let mut body = vec![5, pairs.len() as u8];
        for (member, score) in pairs {
            body.push(member.len() as u8);
            body.extend_from_slice(member);
            body.extend_from_slice(score);
        }
        body
    };
    assert!(restore(&sealed(&binary(&[(b"a", one), (b"b", one)])), NO_LIMIT).is_ok());
    let bodies: [Vec<u8>; 13] = [
        vec![5, 0],                                                    // No members.
        binary(&[(b"a", one), (b"a", nan)]),                           // Not a number.
        binary(&[(b"a", one), (b"a", one)]),                           // A member twice.
        binary(&[(b"a", one), (b"a", 2.0f64.to_le_bytes())]),          // ... with other scores.
        vec![5, 1, 1, b'a', 0, 0],                                     // Half a score.
        vec![5, 0x81, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0],             // Far too many.
        vec![3, 1, 1, b'a', 253],                                      // Not a number.
        vec![3, 1, 1, b'a', 2, b'x', b'y'],                            // No number at all.
        vec![3, 1, 1, b'a', 9, b'1'],                                  // An incomplete text.
        vec![17, 7, 7, 0, 0, 0, 0, 0, 0xFF],                           // No members.
        vec![17, 9, 9, 0, 0, 0, 1, 0, 1, 1, 0xFF],                     // A member alone.
        vec![17, 15, 15, 0, 0, 0, 4, 0, 1, 1, 2, 1, 1, 1, 3, 1, 0xFF], // A member twice.
        vec![17, 12, 12, 0, 0, 0, 2, 0, 1, 1, 0x81, b'x', 2, 0xFF],    // A text as a score.
    ];
    for body in bodies {
        let payload = sealed(&body);
        assert_eq!(restore(&payload, NO_LIMIT), Err(PayloadError::BadFormat), "{body:?}");
    }
    let whole = dumped(&row(&[(1.0, &[b'v'; 100])]));
    assert!(restore(&whole, 110).is_ok());
    assert_eq!(restore(&whole, 100), Err(PayloadError::BadFormat));
}
