//! Tests of several databases in one slot against a plain ordered map, through effects as a backup applies them.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    Cause, Effect, NewValue, SlotTable, Touch, decode_effect, decode_item, digest_of,
    encode_effect, encode_item,
};

const NOW: UnixMillis = UnixMillis(1_000_000);

/// A slot without several databases must not grow.
const _: () = assert!(size_of::<Index>() == size_of::<HashIndex>());

fn database(number: u16) -> Database {
    Database::new(number).expect("small enough")
}

type NamedKey = (Database, Vec<u8>);
type ValueAndExpiry = (Vec<u8>, Option<u64>);

/// A slot, and its expected content.
struct Slot {
    table: SlotTable,
    seed: Seed,
    log: Vec<u8>,
    expected: BTreeMap<NamedKey, ValueAndExpiry>,
}

impl Slot {
    fn new() -> Slot {
        let (table, log) = (SlotTable::default(), Vec::new());
        Slot { table, seed: Seed::new(3), log, expected: BTreeMap::new() }
    }

    fn apply(&mut self, effect: &Effect<'_>) {
        encode_effect(effect, &mut self.log);
        let before = self.table.bytes() as i64;
        let version = self.table.next_version(NOW);
        let applied = self.table.apply(effect, version, Touch::Nothing, &self.seed);
        assert_eq!(applied.grown_bytes, self.table.bytes() as i64 - before, "{effect:?}");
    }

    fn put(&mut self, number: u16, key: &[u8], value: &[u8], expiry: Option<u64>) {
        let name = self.seed.key(key).in_database(database(number));
        let expires_at = expiry.map(UnixMillis);
        self.apply(&Effect::Put { key: name, value: NewValue::Raw(value), expires_at });
        self.expected.insert((database(number), key.to_vec()), (value.to_vec(), expiry));
    }

    fn remove(&mut self, number: u16, key: &[u8]) {
        let name = self.seed.key(key).in_database(database(number));
        self.apply(&Effect::Remove { key: name, cause: Cause::Deleted });
        self.expected.remove(&(database(number), key.to_vec()));
    }

    fn swap(&mut self, one: u16, other: u16) {
        let (one, other) = (database(one), database(other));
        self.apply(&Effect::SwapDatabases { one, other });
        let content = core::mem::take(&mut self.expected).into_iter();
        let exchanged = content.map(|((database, key), value)| {
            let database = match database {
                it if it == one => other,
                it if it == other => one,
                it => it,
            };
            ((database, key), value)
        });
        self.expected = exchanged.collect();
    }

    fn check(&self) {
        let table = &self.table;
        let mut content = BTreeMap::new();
        table.for_each(|found| {
            let value = found.string().expect("a string").to_bytes().into_owned();
            let key = (found.database, found.item.key().to_vec());
            assert!(content.insert(key, (value, found.expires_at.map(|at| at.0))).is_none());
        });
        assert_eq!(content, self.expected);
        assert_eq!(table.len(), self.expected.len());
        let expiring = self.expected.values().filter(|(_, expiry)| expiry.is_some()).count();
        assert_eq!(table.expiring(), expiring);
        let has_others = self.expected.keys().any(|(database, _)| *database != Database::ZERO);
        assert_eq!(table.has_other_databases(), has_others);
        self.check_databases();
        for ((database, key), (value, _)) in &self.expected {
            let key = self.seed.key(key).in_database(*database);
            let found = table.peek(&key).expect("it is there");
            assert_eq!((found.database, found.name()), (*database, key.name()));
            assert_eq!(*found.string().expect("a string").to_bytes(), **value);
        }
    }

    /// Compares what the table says about each database.
    fn check_databases(&self) {
        let mut sizes: BTreeMap<Database, (usize, usize)> = BTreeMap::new();
        for ((database, _), (_, expiry)) in &self.expected {
            let (len, expiring) = sizes.entry(*database).or_default();
            *len += 1;
            *expiring += usize::from(expiry.is_some());
        }
        let told = self.table.databases().map(|it| (it.database, (it.len, it.expiring)));
        assert!(told.eq(sizes.clone()));
        for number in 0..8 {
            let database = database(number);
            let expected = sizes.get(&database).map_or(0, |(len, _)| *len);
            assert_eq!(self.table.len_in(database), expected);
            let mut seen = 0;
            let mut next = Some(ScanPosition::START);
            while let Some(from) = next {
                next = self.table.scan_database(database, from, 3, |found| {
                    assert_eq!(found.database, database);
                    seen += 1;
                });
            }
            assert_eq!(seen, expected);
            for roll in [0, 1, u64::MAX / 3, u64::MAX] {
                let found = self.table.random_in(database, roll);
                assert_eq!(found.map(|found| found.database), (expected > 0).then_some(database));
            }
        }
    }
}

proptest! {
    #[test]
    fn several_databases_are_like_several_maps(
        steps in proptest::collection::vec((0..8u8, 0..5u16, 0..9u8, 0..40u16), 1..200),
    ) {
        let mut slot = Slot::new();
        for (kind, number, key, other) in steps {
            // Some of the keys begin like the tag of a name.
            let key = [&[0xFF_u8, 0, 1][..usize::from(key % 4)], &[key]].concat();
            match kind {
                0..4 => slot.put(number, &key, &other.to_be_bytes(), None),
                4 => slot.put(number, &key, b"brief", Some(NOW.0 + u64::from(other))),
                5 | 6 => slot.remove(number, &key),
                _ => slot.swap(number, other % 5),
            }
            slot.check();
        }
        let mut copy = SlotTable::default();
        let seed = Seed::new(4);
        let mut rest = slot.log.as_slice();
        while !rest.is_empty() {
            let (effect, behind) = decode_effect(rest, &seed).expect("just written");
            let _ = copy.apply(&effect, copy.next_version(NOW), Touch::Nothing, &seed);
            rest = behind;
        }
        prop_assert_eq!(digest_of(&copy), digest_of(&slot.table));
        prop_assert_eq!(digest_of(&refilled(&slot.table)), digest_of(&slot.table));
    }
}

/// Returns a copy made in strides, as a fill makes it.
fn refilled(table: &SlotTable) -> SlotTable {
    let seed = Seed::new(5);
    let mut copy = SlotTable::default();
    let mut next = Some(ScanPosition::START);
    while let Some(from) = next {
        let mut items = Vec::new();
        next = table.scan(from, 2, |found| {
            let key = Seed::new(3).key(found.item.key()).in_database(found.database);
            assert!(key.scan_position() >= from, "walks only forwards");
            encode_item(&found, &mut items);
        });
        let mut rest = items.as_slice();
        while !rest.is_empty() {
            let (item, behind) = decode_item(rest).expect("just written");
            let _ = copy.copy_item(&item, &seed);
            rest = behind;
        }
    }
    copy
}

#[test]
fn keys_of_all_databases_expire_and_are_drawn_in_proportion() {
    let mut slot = Slot::new();
    for number in 0..90u8 {
        slot.put(if number < 30 { 0 } else { 7 }, &[number], b"x", Some(NOW.0 + 5));
    }
    let due = slot.table.due(UnixMillis(NOW.0 + 5), 1_000);
    let count = |wanted: u16| {
        due.keys.iter().filter(|name| slot.seed.named(name).database() == database(wanted)).count()
    };
    assert_eq!((count(0), count(7), due.more), (30, 60, false));
    let mut drawn = BTreeMap::new();
    let mut rng = placement::SplitMix64::new(9);
    for _ in 0..3_000 {
        let found = slot.table.random_expiring(rng.draw()).expect("there are some");
        *drawn.entry(found.database).or_insert(0) += 1;
    }
    assert!((800..1_200).contains(&drawn[&Database::ZERO]), "{drawn:?}");
}

#[test]
fn a_large_slot_keeps_its_databases_apart() {
    let mut slot = Slot::new();
    for number in 0..20_000u32 {
        slot.put((number % 3) as u16, &number.to_be_bytes(), b"x", None);
    }
    slot.swap(0, 2);
    slot.check();
    for number in 0..20_000u32 {
        slot.remove([2, 1, 0][number as usize % 3], &number.to_be_bytes());
    }
    slot.check();
    assert_eq!(slot.table.index_bytes(), 0, "nothing is left");
}

#[test]
fn what_is_in_database_0_is_encoded_as_before_there_were_databases() {
    let seed = Seed::new(1);
    let mut bytes = Vec::new();
    let effect = |number: u16| Effect::Remove {
        key: seed.key(b"k").in_database(database(number)),
        cause: Cause::Deleted,
    };
    encode_effect(&effect(0), &mut bytes);
    assert_eq!(bytes, [0x26, 1, b'k', 0]);
    bytes.clear();
    encode_effect(&effect(300), &mut bytes);
    assert_eq!(bytes, [0x40, 44, 1, 0x26, 1, b'k', 0]);
    for wrong in [&[0x40, 0, 0, 0x26, 1, b'k', 0][..], &[0x40, 0x10, 0x27, 0x26, 1, b'k', 0]] {
        assert!(decode_effect(wrong, &seed).is_err(), "{wrong:?}");
    }
    assert!(decode_effect(&[0x40, 1, 0, 0x27], &seed).is_err(), "a slot has no database");
}
