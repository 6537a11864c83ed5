//! Tests of the table's guarantees: order, growth without reading items, removal that leaves no holes.

use super::*;
use crate::value::ItemValue;
use crate::{AccessMark, Version};

fn item(number: u32) -> Item {
    let key = number.to_be_bytes();
    Item::new(&key, ItemValue::Integer(i64::from(number)), Version(1), AccessMark(0))
}

fn spread(number: u32) -> EntryTag {
    (number.wrapping_mul(2_654_435_761) >> 16) as EntryTag
}

fn filled(count: u32, tag: impl Fn(u32) -> EntryTag) -> Segment {
    let mut segment = Segment::default();
    for number in 0..count {
        let Inserted::At(_) = segment.insert(tag(number), item(number), ENTRIES_MAX) else {
            panic!("full at {number}");
        };
    }
    segment
}

fn assert_sorted(segment: &Segment) {
    let there: Vec<(usize, EntryTag)> = (segment.entries.iter().enumerate())
        .filter(|(_, entry)| **entry != EMPTY)
        .map(|(at, entry)| (at, entry.tag()))
        .collect();
    assert_eq!(there.len(), segment.len());
    assert!(there.is_sorted_by_key(|(_, tag)| *tag));
    for (at, tag) in there {
        let home = segment.home(tag);
        assert!(home <= at);
        assert!(segment.entries[home..at].iter().all(|entry| *entry != EMPTY), "a hole on the way");
    }
}

#[test]
fn everything_put_in_is_found_and_nothing_else() {
    let segment = filled(5_000, spread);
    assert_sorted(&segment);
    for number in 0..5_000u32 {
        let place = segment.find(spread(number), &number.to_be_bytes());
        let place = place.unwrap_or_else(|| panic!("{number} is missing"));
        assert_eq!(segment.item(place).key(), number.to_be_bytes());
    }
    assert!(segment.find(spread(5_000), &5_000u32.to_be_bytes()).is_none());
}

#[test]
fn equal_tags_stand_side_by_side() {
    let segment = filled(40, |_| 0xFFFF);
    assert_sorted(&segment);
    assert!((0..40u32).all(|number| segment.find(0xFFFF, &number.to_be_bytes()).is_some()));
}

#[test]
fn removal_leaves_no_holes_and_gives_memory_back() {
    let mut segment = filled(3_000, spread);
    let full = segment.bytes();
    for number in (0..3_000u32).filter(|number| number % 50 != 0) {
        let place = segment.find(spread(number), &number.to_be_bytes()).expect("still there");
        assert_eq!(segment.remove(place).as_ref().key(), number.to_be_bytes());
    }
    assert_sorted(&segment);
    assert!(segment.bytes() * 8 < full, "{} of {full} bytes are left", segment.bytes());
    for number in (0..3_000u32).step_by(50) {
        assert!(segment.find(spread(number), &number.to_be_bytes()).is_some());
    }
}

#[test]
fn expiry_times_move_with_their_entries() {
    let mut segment = Segment::default();
    for number in 0..500u32 {
        let Inserted::At(place) = segment.insert(spread(number), item(number), ENTRIES_MAX) else {
            panic!("full");
        };
        if number % 3 == 0 {
            segment.set_expiry(place, Some(UnixMillis(u64::from(number) + 1)));
        }
    }
    for number in 0..500u32 {
        let place = segment.find(spread(number), &number.to_be_bytes()).expect("there");
        let expected = (number % 3 == 0).then(|| UnixMillis(u64::from(number) + 1));
        assert_eq!(segment.expiry(place), expected);
    }
    assert_eq!(segment.earliest_expiry(), Some(UnixMillis(1)));
    let due =
        core::iter::successors(segment.next_due(EntryIndex::FIRST, UnixMillis(100)), |place| {
            segment.next_due(place.next(), UnixMillis(100))
        });
    assert_eq!(due.count(), 34, "0, 3, ... 99");
}

#[test]
fn a_well_filled_table_costs_little_more_than_its_entries() {
    let counts = 40..400u32;
    let bytes: usize = counts.clone().map(|count| filled(count, spread).bytes()).sum();
    let keys: u32 = counts.sum();
    let per_key = bytes as f64 / f64::from(keys);
    assert!(per_key < 10.5, "{per_key} bytes for each 8-byte entry");
}

#[test]
fn a_segment_says_when_it_is_full() {
    let mut segment = Segment::default();
    let full = (0..20_000u32).find(|number| {
        matches!(segment.insert(spread(*number), item(*number), ENTRIES_MAX), Inserted::Full(_))
    });
    let held = full.expect("it never ended") as usize;
    assert!(held > ENTRIES_MAX * 3 / 4 && held <= ENTRIES_MAX, "{held}");
    assert_eq!(segment.len(), held);
}
