//! Tests of sorted sets in a slot: against a map of maps, replayed, and copied in parts.

use std::collections::BTreeMap;

use containers::{Element, Score, ScoredMember, TablePosition};
use placement::SplitMix64;

use crate::change::tests::RecordedSlot;
use crate::{
    Cause, DecodeError, Effect, Encoding, ItemExtent, NewValue, Seed, SlotTable, StoredValue,
    Touch, UnixMillis, decode_effect, decode_item, digest_of, encode_effect, encode_item_part,
};

type Scores = BTreeMap<Vec<u8>, i64>;

const NOW: UnixMillis = UnixMillis(1_000_000);

/// Returns scores in tenths and members as a row.
fn row<'a>(pairs: impl IntoIterator<Item = (i64, &'a [u8])>) -> Vec<u8> {
    let mut row = Vec::new();
    for (tenths, member) in pairs {
        let score = Score::new(tenths as f64 / 10.0).expect("a number");
        ScoredMember { score, member: Element::of(member) }.write(&mut row);
    }
    row
}

fn set(slot: &mut RecordedSlot, key: &[u8], tenths: i64, member: &[u8]) {
    let seed = slot.seed.clone();
    let pairs = row([(tenths, member)]);
    slot.apply(&Effect::SetScores { key: seed.key(key), pairs: &pairs });
}

fn remove(slot: &mut RecordedSlot, key: &[u8], member: &[u8]) {
    let seed = slot.seed.clone();
    let mut members = Vec::new();
    Element::of(member).write(&mut members);
    slot.apply(&Effect::RemoveScored { key: seed.key(key), members: &members });
}

/// Returns the members of a set with their scores, after checking their order.
fn scores(slot: &RecordedSlot, key: &[u8]) -> Option<Scores> {
    let found = slot.table.peek(&slot.seed.key(key))?;
    let StoredValue::SortedSet(set) = found.value() else { panic!("not a sorted set") };
    assert!(set.iter_from(0).is_sorted_by(|one, other| one < other));
    assert!(set.iter_back_from(set.len()).is_sorted_by(|one, other| one > other));
    let tenths = |it: ScoredMember<'_>| (it.score.get() * 10.0).round() as i64;
    let pairs = set.iter_from(0).map(|it| (it.member.to_text().into_owned(), tenths(it)));
    let pairs: Scores = pairs.collect();
    assert_eq!(pairs.len(), set.len());
    Some(pairs)
}

fn encoding(slot: &RecordedSlot, key: &[u8]) -> Option<Encoding> {
    slot.table.peek(&slot.seed.key(key)).map(|found| found.item.encoding())
}

#[test]
fn sorted_sets_behave_like_maps_and_their_effects_and_copies_agree() {
    for seed in 0..6 {
        let mut rng = SplitMix64::new(seed);
        let mut slot = RecordedSlot::new();
        let mut model: BTreeMap<Vec<u8>, Scores> = BTreeMap::new();
        for _ in 0..6_000 {
            let key = [b"{t}", &[b'a' + (rng.draw() % 3) as u8][..]].concat();
            let name = rng.draw() % 400;
            let long = if name.is_multiple_of(97) { 100 } else { 0 };
            let member = format!("m{name}{}", "x".repeat(long)).into_bytes();
            match rng.draw() % 100 {
                0 => {
                    let name = slot.seed.clone();
                    slot.apply(&Effect::Remove { key: name.key(&key), cause: Cause::Deleted });
                    model.remove(&key);
                }
                1..40 => {
                    remove(&mut slot, &key, &member);
                    if let Some(scores) = model.get_mut(&key) {
                        scores.remove(&member);
                    }
                    model.retain(|_, scores| !scores.is_empty());
                }
                _ => {
                    let tenths = (rng.draw() % 500) as i64 - 250;
                    set(&mut slot, &key, tenths, &member);
                    model.entry(key.clone()).or_default().insert(member, tenths);
                }
            }
            assert_eq!(slot.table.len(), model.len());
        }
        for (key, expected) in &model {
            assert_eq!(scores(&slot, key).as_ref(), Some(expected));
        }
        assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
        assert_eq!(digest_of(&slot.table), digest_of(&slot.copied()));
    }
}

#[test]
fn a_sorted_set_becomes_large_where_redis_makes_it_so() {
    let mut slot = RecordedSlot::new();
    set(&mut slot, b"z", 5, &[b'm'; 64]);
    assert_eq!(encoding(&slot, b"z"), Some(Encoding::Listpack));
    set(&mut slot, b"z", 5, &[b'm'; 65]);
    assert_eq!(encoding(&slot, b"z"), Some(Encoding::Skiplist));
    remove(&mut slot, b"z", &[b'm'; 65]);
    assert_eq!(encoding(&slot, b"z"), Some(Encoding::Skiplist));
    remove(&mut slot, b"z", &[b'm'; 64]);
    assert_eq!(encoding(&slot, b"z"), None);
    for number in 0..128 {
        set(&mut slot, b"z", number, format!("m{number}").as_bytes());
    }
    assert_eq!(encoding(&slot, b"z"), Some(Encoding::Listpack));
    set(&mut slot, b"z", -1, b"one more");
    assert_eq!(encoding(&slot, b"z"), Some(Encoding::Skiplist));
    assert_eq!(scores(&slot, b"z").map(|scores| scores.len()), Some(129));
}

#[test]
fn many_scores_are_set_at_once_and_again() {
    let mut slot = RecordedSlot::new();
    let seed = slot.seed.clone();
    let names: Vec<Vec<u8>> = (0..20_000).map(|number| format!("m{number}").into_bytes()).collect();
    let all = row(names.iter().map(|name| (7, name.as_slice())));
    slot.apply(&Effect::SetScores { key: seed.key(b"many"), pairs: &all });
    assert_eq!(scores(&slot, b"many").map(|scores| scores.len()), Some(20_000));
    // One member a thousand times is one member, and its last score stays.
    let same = row((0..1_000).map(|tenths| (tenths, &b"m"[..])));
    slot.apply(&Effect::SetScores { key: seed.key(b"one"), pairs: &same });
    let expected = Scores::from([(b"m".to_vec(), 999)]);
    assert_eq!(scores(&slot, b"one"), Some(expected));
    assert_eq!(encoding(&slot, b"one"), Some(Encoding::Listpack));
    // A row in any order becomes a sorted set.
    let mixed = row([(5, &b"b"[..]), (1, b"c"), (5, b"a")]);
    let put = Effect::Put {
        key: seed.key(b"mixed"),
        value: NewValue::SortedSet(&mixed),
        expires_at: None,
    };
    slot.apply(&put);
    assert_eq!(scores(&slot, b"mixed").map(|scores| scores.len()), Some(3));
    assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
}

#[test]
fn a_sorted_set_replaces_and_is_replaced_by_other_values() {
    let mut slot = RecordedSlot::new();
    let seed = slot.seed.clone();
    let key = seed.key(b"k");
    slot.apply(&Effect::Put { key, value: NewValue::Plain(b"text"), expires_at: None });
    remove(&mut slot, b"k", b"m");
    assert!(slot.table.peek(&key).is_some_and(|found| found.string().is_some()));
    set(&mut slot, b"k", 1, b"m");
    assert_eq!(scores(&slot, b"k").map(|scores| scores.len()), Some(1));
    let mut pair = Vec::new();
    [&b"f"[..], b"v"].iter().for_each(|text| Element::of(text).write(&mut pair));
    slot.apply(&Effect::SetFields { key, pairs: &pair });
    set(&mut slot, b"k", 1, &[b'm'; 100_000]);
    slot.apply(&Effect::Append { key, tail: b"tail" });
    let found = slot.table.peek(&key).expect("it is there");
    assert_eq!(found.string().expect("a string").to_bytes().as_ref(), b"tail");
    assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
}

#[test]
fn a_malformed_row_of_scores_is_refused() {
    let seed = Seed::new(1);
    let mut bytes = Vec::new();
    let effect = Effect::SetScores { key: seed.key(b"k"), pairs: &row([(15, &b"m"[..])]) };
    encode_effect(&effect, &mut bytes);
    assert!(decode_effect(&bytes, &seed).is_ok());
    let at = bytes.len() - 3;
    bytes[at] = 0xFF; // The exponent of 1.5 becomes that of NaN.
    bytes[at - 1] = 0xF8;
    assert_eq!(decode_effect(&bytes, &seed).map(|_| ()), Err(DecodeError::BadNumber));
}

#[test]
fn a_large_sorted_set_is_copied_in_parts_while_it_is_written_to() {
    let mut rng = SplitMix64::new(5);
    let mut slot = RecordedSlot::new();
    for number in 0..5_000 {
        set(&mut slot, b"z", number, format!("member {number}").as_bytes());
    }
    let (seed, other) = (slot.seed.clone(), Seed::new(9));
    let mut copy = SlotTable::default();
    let mut from = Some(TablePosition::START);
    let mut parts = 0;
    while let Some(position) = from {
        let found = slot.table.peek(&seed.key(b"z")).expect("it is there");
        assert!(found.goes_in_parts());
        let StoredValue::SortedSet(sorted) = found.value() else { panic!("not a sorted set") };
        let mut pairs = Vec::new();
        from = sorted.scan(&seed, position, |it| {
            it.write(&mut pairs);
            pairs.len() < 4_096
        });
        let extent = if parts == 0 { ItemExtent::Whole } else { ItemExtent::More };
        let mut item = Vec::new();
        encode_item_part(&found, &pairs, extent, &mut item);
        let (item, _) = decode_item(&item).expect("complete");
        let _ = copy.copy_item(&item, &other);
        parts += 1;
        for _ in 0..50 {
            // Each write goes to both, wherever its member is.
            let member = format!("member {}", rng.draw() % 8_000).into_bytes();
            let before = slot.log.len();
            if rng.draw().is_multiple_of(2) {
                remove(&mut slot, b"z", &member);
            } else {
                set(&mut slot, b"z", -7, &member);
            }
            let (effect, _) = decode_effect(&slot.log[before..], &other).expect("complete");
            let _ = copy.apply(&effect, slot.table.version(), Touch::Nothing, &other);
        }
    }
    assert!(parts > 10, "only {parts} parts");
    assert_eq!(digest_of(&slot.table), digest_of(&copy));
    assert_eq!(digest_of(&slot.table), digest_of(&slot.copied()));
    let version = slot.table.next_version(NOW);
    let gone = Effect::Remove { key: seed.key(b"z"), cause: Cause::Deleted };
    let applied = slot.table.apply(&gone, version, Touch::Nothing, &seed);
    assert!(matches!(applied.garbage, Some(crate::Garbage::Sorted(set)) if set.len() > 4_000));
}
