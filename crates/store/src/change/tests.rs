//! Tests of hashes in a slot: against a map of maps, replayed, and copied in parts.

mod deadlines; // Deadlines of fields.
mod lists; // Lists.

use std::collections::BTreeMap;

use containers::{Element, Row, TablePosition};
use placement::SplitMix64;

use crate::{
    Cause, Effect, Encoding, ItemExtent, NewValue, Seed, SlotTable, StoredValue, Touch, UnixMillis,
    decode_effect, decode_item, digest_of, encode_effect, encode_item_in_parts, encode_item_part,
};

type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

const NOW: UnixMillis = UnixMillis(1_000_000);

fn row(elements: &[&[u8]]) -> Vec<u8> {
    let mut row = Vec::new();
    elements.iter().for_each(|element| Element::of(element).write(&mut row));
    row
}

/// A slot with its effects recorded, as a primary records them.
pub(super) struct RecordedSlot {
    pub(super) table: SlotTable,
    pub(super) seed: Seed,
    pub(super) log: Vec<u8>,
}

impl RecordedSlot {
    pub(super) fn new() -> RecordedSlot {
        RecordedSlot { table: SlotTable::default(), seed: Seed::new(42), log: Vec::new() }
    }

    pub(super) fn apply(&mut self, effect: &Effect<'_>) {
        encode_effect(effect, &mut self.log);
        let before = self.table.bytes();
        let version = self.table.next_version(NOW);
        let applied = self.table.apply(effect, version, Touch::Nothing, &self.seed);
        assert_eq!(applied.grown_bytes, self.table.bytes() as i64 - before as i64);
    }

    fn set(&mut self, key: &[u8], field: &[u8], value: &[u8]) {
        let seed = self.seed.clone();
        let pairs = row(&[field, value]);
        self.apply(&Effect::SetFields { key: seed.key(key), pairs: &pairs });
    }

    fn remove(&mut self, key: &[u8], field: &[u8]) {
        let seed = self.seed.clone();
        let fields = row(&[field]);
        self.apply(&Effect::RemoveFields { key: seed.key(key), fields: &fields });
    }

    fn fields(&self, key: &[u8]) -> Option<Fields> {
        let found = self.table.peek(&self.seed.key(key))?;
        let StoredValue::Hash(hash) = found.value() else { panic!("not a hash") };
        let pairs = hash
            .at(UnixMillis(0))
            .pairs()
            .map(|(field, value)| (field.to_text().into_owned(), value.to_text().into_owned()));
        Some(pairs.collect())
    }

    pub(super) fn replayed(&self) -> SlotTable {
        let seed = Seed::new(7);
        let mut copy = SlotTable::default();
        let mut rest = self.log.as_slice();
        while !rest.is_empty() {
            let (effect, behind) = decode_effect(rest, &seed).expect("complete");
            let version = copy.next_version(NOW);
            let _ = copy.apply(&effect, version, Touch::Nothing, &seed);
            rest = behind;
        }
        copy
    }

    /// Returns a copy made of items and their parts.
    pub(super) fn copied(&self) -> SlotTable {
        let seed = Seed::new(9);
        let mut bytes = Vec::new();
        let mut parts = 0;
        self.table.for_each(|found| encode_item_in_parts(&found, &mut bytes, |_| parts += 1));
        assert!(parts >= self.table.len());
        let mut copy = SlotTable::default();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (item, behind) = decode_item(rest).expect("complete");
            let _ = copy.copy_item(&item, &seed);
            rest = behind;
        }
        copy
    }
}

fn value(rng: &mut SplitMix64) -> Vec<u8> {
    match rng.draw() % 40 {
        0 => vec![b'v'; (rng.draw() % 2_000) as usize],
        1..20 => rng.draw().to_string().into_bytes(),
        _ => vec![b'v'; (rng.draw() % 30) as usize],
    }
}

#[test]
fn hashes_behave_like_maps_and_their_effects_and_copies_agree() {
    for seed in 0..6 {
        let mut rng = SplitMix64::new(seed);
        let mut slot = RecordedSlot::new();
        let mut model: BTreeMap<Vec<u8>, Fields> = BTreeMap::new();
        for _ in 0..6_000 {
            let key = [b"{t}", &[b'a' + (rng.draw() % 3) as u8][..]].concat();
            let field = format!("f{}", rng.draw() % 700).into_bytes();
            match rng.draw() % 100 {
                0 => {
                    let name = slot.seed.clone();
                    slot.apply(&Effect::Remove { key: name.key(&key), cause: Cause::Deleted });
                    model.remove(&key);
                }
                1..30 => {
                    slot.remove(&key, &field);
                    if let Some(fields) = model.get_mut(&key) {
                        fields.remove(&field);
                    }
                    model.retain(|_, fields| !fields.is_empty());
                }
                _ => {
                    let value = value(&mut rng);
                    slot.set(&key, &field, &value);
                    model.entry(key.clone()).or_default().insert(field, value);
                }
            }
            assert_eq!(slot.table.len(), model.len());
        }
        for (key, fields) in &model {
            assert_eq!(slot.fields(key).as_ref(), Some(fields));
        }
        assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
        assert_eq!(digest_of(&slot.table), digest_of(&slot.copied()));
    }
}

#[test]
fn a_hash_becomes_a_table_where_redis_makes_it_one() {
    let encoding = |slot: &RecordedSlot| {
        slot.table.peek(&slot.seed.key(b"h")).map(|found| found.item.encoding())
    };
    let mut slot = RecordedSlot::new();
    slot.set(b"h", b"field", &[b'v'; 64]);
    assert_eq!(encoding(&slot), Some(Encoding::Listpack));
    slot.set(b"h", b"field", &[b'v'; 65]);
    assert_eq!(encoding(&slot), Some(Encoding::Hashtable));
    slot.set(b"h", b"field", b"v");
    assert_eq!(encoding(&slot), Some(Encoding::Hashtable));
    slot.remove(b"h", b"field");
    assert_eq!(encoding(&slot), None);
    for number in 0..512 {
        slot.set(b"h", format!("f{number}").as_bytes(), b"v");
    }
    assert_eq!(encoding(&slot), Some(Encoding::Listpack));
    slot.set(b"h", b"one more", b"v");
    assert_eq!(encoding(&slot), Some(Encoding::Hashtable));
}

#[test]
fn many_fields_are_set_at_once_and_again() {
    let mut slot = RecordedSlot::new();
    let seed = slot.seed.clone();
    let names: Vec<Vec<u8>> = (0..20_000).map(|number| format!("f{number}").into_bytes()).collect();
    let all = names.iter().flat_map(|name| [name.as_slice(), b"v"]).collect::<Vec<_>>();
    slot.apply(&Effect::SetFields { key: seed.key(b"many"), pairs: &row(&all) });
    assert_eq!(slot.fields(b"many").map(|fields| fields.len()), Some(20_000));
    // One field a thousand times is one field, and its last value stays.
    let values: Vec<Vec<u8>> = (0..1_000).map(|number| format!("v{number}").into_bytes()).collect();
    let same = values.iter().flat_map(|value| [b"f".as_slice(), value]).collect::<Vec<_>>();
    slot.apply(&Effect::SetFields { key: seed.key(b"one"), pairs: &row(&same) });
    let fields = slot.fields(b"one").expect("it is there");
    assert_eq!(fields.into_iter().collect::<Vec<_>>(), [(b"f".to_vec(), b"v999".to_vec())]);
    let encoding = slot.table.peek(&seed.key(b"one")).map(|found| found.item.encoding());
    assert_eq!(encoding, Some(Encoding::Listpack));
    assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
}

#[test]
fn a_hash_replaces_and_is_replaced_by_a_string() {
    let mut slot = RecordedSlot::new();
    let seed = slot.seed.clone();
    let key = seed.key(b"k");
    slot.apply(&Effect::Put { key, value: NewValue::Plain(b"text"), expires_at: None });
    slot.set(b"k", b"f", b"v");
    assert_eq!(slot.fields(b"k").map(|fields| fields.len()), Some(1));
    slot.set(b"k", b"long", &[b'v'; 100_000]);
    slot.apply(&Effect::Append { key, tail: b"tail" });
    let found = slot.table.peek(&key).expect("it is there");
    assert_eq!(found.string().expect("a string").to_bytes().as_ref(), b"tail");
    let pairs = row(&[b"a", b"1", b"b", b"2"]);
    slot.apply(&Effect::Put { key, value: NewValue::Hash(&pairs), expires_at: Some(NOW) });
    assert_eq!(slot.fields(b"k").map(|fields| fields.len()), Some(2));
    assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
}

#[test]
fn a_large_hash_is_garbage_when_it_goes() {
    let mut slot = RecordedSlot::new();
    for number in 0..5_000 {
        slot.set(b"h", format!("field {number}").as_bytes(), b"some value");
    }
    let seed = slot.seed.clone();
    let key = seed.key(b"h");
    let version = slot.table.next_version(NOW);
    let remove = Effect::Remove { key, cause: Cause::Deleted };
    let applied = slot.table.apply(&remove, version, Touch::Nothing, &seed);
    assert!(matches!(applied.garbage, Some(crate::Garbage::Table(table)) if table.len() == 5_000));
}

#[test]
fn a_large_hash_is_copied_in_parts_while_it_is_written_to() {
    let mut rng = SplitMix64::new(5);
    let mut slot = RecordedSlot::new();
    for number in 0..5_000 {
        slot.set(b"h", format!("field {number}").as_bytes(), b"some value");
    }
    let (seed, other) = (slot.seed.clone(), Seed::new(9));
    let mut copy = SlotTable::default();
    let mut from = Some(TablePosition::START);
    let mut parts = 0;
    while let Some(position) = from {
        let found = slot.table.peek(&seed.key(b"h")).expect("it is there");
        assert!(found.goes_in_parts());
        let StoredValue::Hash(hash) = found.value() else { panic!("not a hash") };
        let mut pairs = Vec::new();
        from = hash.at(UnixMillis(0)).scan(&seed, position, |field, value| {
            field.write(&mut pairs);
            value.write(&mut pairs);
            pairs.len() < 4_096
        });
        assert!(Row::check(&pairs, 2).is_ok());
        let extent = if parts == 0 { ItemExtent::Whole } else { ItemExtent::More };
        let mut item = Vec::new();
        encode_item_part(&found, &pairs, extent, &mut item);
        let (item, _) = decode_item(&item).expect("complete");
        let _ = copy.copy_item(&item, &other);
        parts += 1;
        for _ in 0..50 {
            // Each write goes to both, wherever its field is.
            let field = format!("field {}", rng.draw() % 8_000).into_bytes();
            let before = slot.log.len();
            if rng.draw().is_multiple_of(2) {
                slot.remove(b"h", &field);
            } else {
                slot.set(b"h", &field, b"written meanwhile");
            }
            let (effect, _) = decode_effect(&slot.log[before..], &other).expect("complete");
            let _ = copy.apply(&effect, slot.table.version(), Touch::Nothing, &other);
        }
    }
    assert!(parts > 10, "only {parts} parts");
    assert_eq!(digest_of(&slot.table), digest_of(&copy));
    assert_eq!(digest_of(&slot.table), digest_of(&slot.copied()));
}
