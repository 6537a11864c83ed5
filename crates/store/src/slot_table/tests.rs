//! Tests of a slot against a plain ordered map, small ones and a large one filled by a hash tag.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::key::tests::alike;
use crate::{Cause, Effect, NewValue, Seed, decode_effect, digest_of, encode_effect};

const NOW: UnixMillis = UnixMillis(1_000_000);

/// A slot with its effects recorded, as a primary records them.
struct Recorded {
    table: SlotTable,
    seed: Seed,
    log: Vec<u8>,
}

impl Recorded {
    fn new() -> Recorded {
        Recorded { table: SlotTable::default(), seed: Seed::new(42), log: Vec::new() }
    }

    fn apply(&mut self, effect: &Effect<'_>) {
        encode_effect(effect, &mut self.log);
        let before = self.table.bytes();
        let version = self.table.next_version(NOW);
        let applied = self.table.apply(effect, version, Touch::Nothing, &self.seed);
        assert_eq!(applied.grown_bytes, self.table.bytes() as i64 - before as i64);
    }

    fn put(&mut self, key: &[u8], value: &[u8], expires_at: Option<u64>) {
        let key = self.seed.key(key);
        let expires_at = expires_at.map(UnixMillis);
        self.apply(&Effect::Put { key, value: new_value(value), expires_at });
    }

    fn remove(&mut self, key: &[u8]) {
        let key = self.seed.key(key);
        self.apply(&Effect::Remove { key, cause: Cause::Deleted });
    }

    fn content(&self) -> BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)> {
        let mut content = BTreeMap::new();
        self.table.for_each(|found| {
            let value = (
                found.string().expect("a string").to_bytes().into_owned(),
                found.expires_at.map(|at| at.0),
            );
            assert!(content.insert(found.item.key().to_vec(), value).is_none(), "visited twice");
        });
        content
    }

    /// Returns a second slot, with another seed, that has applied the recorded effects.
    fn replayed(&self) -> SlotTable {
        let seed = Seed::new(7);
        let mut copy = SlotTable::default();
        let mut rest = self.log.as_slice();
        while !rest.is_empty() {
            let (effect, behind) = decode_effect(rest, &seed).expect("what was encoded");
            let version = copy.next_version(NOW);
            let _ = copy.apply(&effect, version, Touch::Nothing, &seed);
            rest = behind;
        }
        copy
    }
}

#[test]
fn keys_that_hash_alike_are_slow_and_nothing_worse() {
    let mut slot = Recorded { seed: Seed::weak(), ..Recorded::new() };
    for number in 0..9_000 {
        slot.put(&alike(number), b"v", None);
    }
    assert_eq!(slot.table.len(), 9_000);
    assert!(slot.table.peek(&slot.seed.key(&alike(8_999))).is_some());
    assert_eq!(slot.content().len(), 9_000);
    for number in 0..9_000 {
        slot.remove(&alike(number));
    }
    assert_eq!((slot.table.len(), slot.table.bytes()), (0, 0));
}

/// Makes the value that a command would pass for these bytes.
fn new_value(bytes: &[u8]) -> NewValue<'_> {
    let number = core::str::from_utf8(bytes).ok().and_then(|text| text.parse::<i64>().ok());
    match number.filter(|number| number.to_string().as_bytes() == bytes) {
        Some(number) => NewValue::Integer(number),
        None => NewValue::Plain(bytes),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Vec<u8>, Option<u64>),
    Append(u8, Vec<u8>),
    Overwrite(u8, usize, Vec<u8>),
    Expire(u8, Option<u64>),
    Remove(u8),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..40u8;
    let value = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..60),
        (-1000i64..1000).prop_map(|number| number.to_string().into_bytes()),
        (16_000usize..17_000).prop_map(|len| vec![b'x'; len]),
    ];
    let expiry = proptest::option::of(1..5_000_000u64);
    prop_oneof![
        8 => (key.clone(), value.clone(), expiry.clone()).prop_map(|(k, v, e)| Step::Put(k, v, e)),
        3 => (key.clone(), value.clone()).prop_map(|(k, v)| Step::Append(k, v)),
        3 => (key.clone(), 0..100usize, value).prop_map(|(k, o, v)| Step::Overwrite(k, o, v)),
        2 => (key.clone(), expiry).prop_map(|(k, e)| Step::Expire(k, e)),
        4 => key.prop_map(Step::Remove),
        1 => Just(Step::Clear),
    ]
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn take_step(slot: &mut Recorded, model: &mut Model, step: &Step) {
    let name = |number: &u8| format!("key:{number}").into_bytes();
    match step {
        Step::Put(key, value, expiry) => {
            slot.put(&name(key), value, *expiry);
            model.insert(name(key), (value.clone(), *expiry));
        }
        Step::Append(key, tail) => {
            let name = name(key);
            slot.apply(&Effect::Append { key: slot.seed.key(&name), tail });
            model.entry(name).or_default().0.extend_from_slice(tail);
        }
        Step::Overwrite(key, offset, bytes) => {
            let name = name(key);
            slot.apply(&Effect::Overwrite { key: slot.seed.key(&name), offset: *offset, bytes });
            let value = &mut model.entry(name).or_default().0;
            value.resize(value.len().max(offset + bytes.len()), 0);
            value[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        Step::Expire(key, expiry) => {
            let name = name(key);
            slot.apply(&Effect::Expire { key: slot.seed.key(&name), at: expiry.map(UnixMillis) });
            if let Some(value) = model.get_mut(&name) {
                value.1 = *expiry;
            }
        }
        Step::Remove(key) => {
            slot.remove(&name(key));
            model.remove(&name(key));
        }
        Step::Clear => {
            slot.apply(&Effect::Clear);
            model.clear();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_slot_is_a_map_and_its_effects_rebuild_it(steps in proptest::collection::vec(step(), 1..150)) {
        let mut slot = Recorded::new();
        let mut model = Model::new();
        for step in &steps {
            take_step(&mut slot, &mut model, step);
            prop_assert_eq!(slot.table.len(), model.len());
            let expiring = model.values().filter(|(_, expiry)| expiry.is_some()).count();
            prop_assert_eq!(slot.table.expiring(), expiring);
        }
        prop_assert_eq!(slot.content(), model);
        prop_assert_eq!(digest_of(&slot.replayed()), digest_of(&slot.table));
    }
}

fn numbered(number: u32) -> Vec<u8> {
    format!("{{tag}}:{number}").into_bytes()
}

#[test]
fn a_slot_filled_by_a_hash_tag_grows_segment_by_segment() {
    let mut slot = Recorded::new();
    for number in 0..60_000 {
        slot.put(&numbered(number), b"v", (number % 7 == 0).then_some(2_000_000));
    }
    assert_eq!(slot.table.len(), 60_000);
    assert_eq!(slot.table.expiring(), 60_000usize.div_ceil(7));
    for number in 0..60_000 {
        let name = numbered(number);
        let found = slot.table.peek(&slot.seed.key(&name)).unwrap_or_else(|| panic!("{number}"));
        assert_eq!(found.expires_at.is_some(), number % 7 == 0);
    }
    for number in 0..60_000 {
        slot.remove(&numbered(number));
    }
    assert!(slot.table.is_empty());
    assert_eq!(slot.table.bytes(), 0);
}

#[test]
fn a_scan_meets_everything_that_stayed_however_much_else_came_and_went() {
    let mut slot = Recorded::new();
    for number in 0..1_000 {
        slot.put(&numbered(number), b"stays", None);
    }
    let mut met = std::collections::BTreeSet::new();
    let mut position = Some(ScanPosition::START);
    let mut other = 1_000;
    while let Some(from) = position {
        position = slot.table.scan(from, 10, |found| {
            met.insert(found.item.key().to_vec());
        });
        // Grow far beyond one segment on the way, then shrink again.
        for _ in 0..200 {
            slot.put(&numbered(other), b"goes", None);
            other += 1;
        }
        if met.len() % 3 == 0 {
            (1_000..other).for_each(|number| slot.remove(&numbered(number)));
        }
    }
    assert!((0..1_000).all(|number| met.contains(&numbered(number))));
}

#[test]
fn what_is_due_is_found_without_touching_the_rest() {
    /// Later than any version that the slot gets.
    const BASE: u64 = 1 << 40;
    let mut slot = Recorded::new();
    for number in 0..500 {
        slot.put(&numbered(number), b"v", Some(BASE + u64::from(number)));
    }
    assert_eq!(slot.table.expires_from(), Some(UnixMillis(BASE)));
    let early = slot.table.due(UnixMillis(BASE - 1), 100);
    assert!(early.keys.is_empty());
    let due = slot.table.due(UnixMillis(BASE + 2), 100);
    assert_eq!(due.keys.len(), 3);
    for key in due.keys {
        slot.remove(&key);
    }
    assert!(slot.table.due(UnixMillis(BASE + 2), 100).keys.is_empty());
    assert_eq!(slot.table.expires_from(), Some(UnixMillis(BASE + 3)));
}

#[test]
fn a_large_value_is_not_copied_for_a_reader() {
    let mut slot = Recorded::new();
    slot.put(b"big", &[b'x'; 100_000], None);
    let key = slot.seed.key(b"big");
    let Some(StringValue::Shared(seen)) = slot.table.peek(&key).and_then(|found| found.string())
    else {
        panic!("not shared");
    };
    let kept = seen.to_arc();
    slot.apply(&Effect::Append { key, tail: b"more" });
    assert_eq!(kept.len(), 100_000, "a reader keeps what it has seen");
    assert_eq!(
        slot.table.peek(&key).and_then(|found| found.string()).map(StringValue::len),
        Some(100_004)
    );
}

#[test]
fn what_a_read_needs_fits_one_cache_line_beside_the_lock() {
    let lock = size_of::<usize>();
    assert!(lock + core::mem::offset_of!(SlotTable, last_removal) <= 64);
    assert!(lock + size_of::<SlotTable>() <= 128);
}
