//! Tests of sets in a slot: against a map of sets, replayed, and copied in parts.

use std::collections::{BTreeMap, BTreeSet};

use containers::{Element, Row, TablePosition};
use placement::SplitMix64;

use crate::{
    Cause, Effect, Encoding, ItemExtent, NewValue, Seed, SetValue, SlotTable, StoredValue, Touch,
    UnixMillis, decode_effect, decode_item, digest_of, encode_effect, encode_item_in_parts,
    encode_item_part,
};

type Members = BTreeSet<Vec<u8>>;

const NOW: UnixMillis = UnixMillis(1_000_000);

fn row<T: AsRef<[u8]>>(members: &[T]) -> Vec<u8> {
    let mut row = Vec::new();
    members.iter().for_each(|member| Element::of(member.as_ref()).write(&mut row));
    row
}

/// A slot with its effects recorded, as a primary records them.
struct RecordedSlot {
    table: SlotTable,
    seed: Seed,
    log: Vec<u8>,
}

impl RecordedSlot {
    fn new() -> RecordedSlot {
        RecordedSlot { table: SlotTable::default(), seed: Seed::new(42), log: Vec::new() }
    }

    fn apply(&mut self, effect: &Effect<'_>) {
        encode_effect(effect, &mut self.log);
        let before = self.table.bytes();
        let version = self.table.next_version(NOW);
        let applied = self.table.apply(effect, version, Touch::Nothing, &self.seed);
        assert_eq!(applied.grown_bytes, self.table.bytes() as i64 - before as i64);
    }

    fn add<T: AsRef<[u8]>>(&mut self, key: &str, members: &[T]) {
        let (seed, members) = (self.seed.clone(), row(members));
        self.apply(&Effect::AddMembers { key: seed.key(key.as_bytes()), members: &members });
    }

    fn remove<T: AsRef<[u8]>>(&mut self, key: &str, members: &[T]) {
        let (seed, members) = (self.seed.clone(), row(members));
        self.apply(&Effect::RemoveMembers { key: seed.key(key.as_bytes()), members: &members });
    }

    fn put(&mut self, key: &str, members: &[u8]) {
        let (seed, value) = (self.seed.clone(), NewValue::Set(members));
        self.apply(&Effect::Put { key: seed.key(key.as_bytes()), value, expires_at: None });
    }

    /// Returns the members in their order.
    fn listed(&self, key: &str) -> Option<Vec<Vec<u8>>> {
        let found = self.table.peek(&self.seed.key(key.as_bytes()))?;
        let StoredValue::Set(set) = found.value() else { panic!("not a set") };
        Some(set.members().map(|member| member.to_text().into_owned()).collect())
    }

    fn encoding(&self, key: &str) -> Option<Encoding> {
        self.table.peek(&self.seed.key(key.as_bytes())).map(|found| found.item.encoding())
    }

    fn replayed(&self) -> SlotTable {
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
    fn copied(&self) -> SlotTable {
        let seed = Seed::new(9);
        let mut bytes = Vec::new();
        self.table.for_each(|found| encode_item_in_parts(&found, &mut bytes, |_| {}));
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

fn member(rng: &mut SplitMix64, key: u64) -> Vec<u8> {
    let number = rng.draw() % 700;
    match (key, rng.draw() % 60) {
        // The set of this key has only numbers.
        (0, _) => (number as i64 - 350).to_string().into_bytes(),
        (1, 0) => vec![b'm'; (rng.draw() % 2_000) as usize],
        (_, 1..20) => number.to_string().into_bytes(),
        _ => format!("m{number}").into_bytes(),
    }
}

#[test]
fn sets_behave_like_sets_and_their_effects_and_copies_agree() {
    for seed in 0..6 {
        let mut rng = SplitMix64::new(seed);
        let mut slot = RecordedSlot::new();
        let mut model: BTreeMap<String, Members> = BTreeMap::new();
        for _ in 0..6_000 {
            let number = rng.draw() % 3;
            let key = format!("{{t}}{number}");
            let members: Vec<_> =
                (0..1 + rng.draw() % 3).map(|_| member(&mut rng, number)).collect();
            match rng.draw() % 100 {
                0 => {
                    let (name, cause) = (slot.seed.clone(), Cause::Deleted);
                    slot.apply(&Effect::Remove { key: name.key(key.as_bytes()), cause });
                    model.remove(&key);
                }
                1..40 => {
                    slot.remove(&key, &members);
                    if let Some(present) = model.get_mut(&key) {
                        present.retain(|member| !members.contains(member));
                    }
                    model.retain(|_, members| !members.is_empty());
                }
                _ => {
                    slot.add(&key, &members);
                    model.entry(key).or_default().extend(members);
                }
            }
            assert_eq!(slot.table.len(), model.len());
        }
        for (key, members) in &model {
            let listed = slot.listed(key).expect("it is there");
            assert_eq!(listed.len(), members.len());
            assert_eq!(&listed.into_iter().collect::<Members>(), members);
        }
        assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
        assert_eq!(digest_of(&slot.table), digest_of(&slot.copied()));
    }
}

fn numbers(range: std::ops::Range<i64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[test]
fn a_set_has_the_form_that_valkey_gives_it() {
    let mut slot = RecordedSlot::new();
    slot.add("s", &numbers(0..512));
    assert_eq!(slot.encoding("s"), Some(Encoding::Intset));
    slot.add("s", &["512"]);
    assert_eq!(slot.encoding("s"), Some(Encoding::Hashtable));
    // It stays a table, and goes with its last member.
    slot.remove("s", &numbers(1..513));
    assert_eq!(slot.encoding("s"), Some(Encoding::Hashtable));
    slot.remove("s", &["0"]);
    assert_eq!(slot.encoding("s"), None);

    slot.add("s", &numbers(0..127));
    slot.add("s", &["text"]);
    assert_eq!(slot.encoding("s"), Some(Encoding::Listpack));
    slot.add("s", &["more"]);
    assert_eq!(slot.encoding("s"), Some(Encoding::Hashtable));

    // Too many numbers for a listpack.
    slot.add("many", &numbers(0..200));
    slot.add("many", &["text"]);
    assert_eq!(slot.encoding("many"), Some(Encoding::Hashtable));

    // Once there was another member, it is no intset any more.
    slot.add("mixed", &["1", "text"]);
    slot.remove("mixed", &["text"]);
    assert_eq!(slot.encoding("mixed"), Some(Encoding::Listpack));

    slot.add("long", &["x".repeat(64)]);
    assert_eq!(slot.encoding("long"), Some(Encoding::Listpack));
    slot.add("long", &["x".repeat(65)]);
    assert_eq!(slot.encoding("long"), Some(Encoding::Hashtable));

    slot.put("put", &row(&numbers(0..513)));
    assert_eq!(slot.encoding("put"), Some(Encoding::Hashtable));
    slot.put("put", &row(&numbers(0..512)));
    assert_eq!(slot.encoding("put"), Some(Encoding::Intset));
    slot.put("put", &row(&["a", "1"]));
    assert_eq!(slot.encoding("put"), Some(Encoding::Listpack));
    assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
}

#[test]
fn numbers_are_kept_in_order() {
    let mut slot = RecordedSlot::new();
    for number in ["70000", "5", "-3", "100", "5", "9223372036854775807", "-200"] {
        slot.add("s", &[number]);
    }
    let ordered = ["-200", "-3", "5", "100", "70000", "9223372036854775807"];
    assert_eq!(slot.listed("s"), Some(ordered.map(|text| text.as_bytes().to_vec()).to_vec()));
    slot.add("s", &["7", "-7", "b", "1", "a"]);
    let mixed =
        ["-200", "-7", "-3", "5", "7", "100", "70000", "9223372036854775807", "b", "1", "a"];
    assert_eq!(slot.listed("s"), Some(mixed.map(|text| text.as_bytes().to_vec()).to_vec()));
    slot.put("put", &row(&["3", "1", "2"]));
    assert_eq!(slot.listed("put"), Some(["1", "2", "3"].map(|it| it.as_bytes().to_vec()).to_vec()));
}

#[test]
fn members_that_are_added_again_change_nothing() {
    let mut slot = RecordedSlot::new();
    let few: Vec<String> = (0..100).map(|number| format!("m{number}")).collect();
    slot.add("s", &few);
    slot.add("s", &few);
    slot.add("s", &few);
    assert_eq!(slot.listed("s").map(|members| members.len()), Some(100));
    assert_eq!(slot.encoding("s"), Some(Encoding::Listpack));
    let none: [&str; 0] = [];
    slot.add("ints", &["1", "2"]);
    slot.add("ints", &none);
    slot.remove("ints", &none);
    assert_eq!(slot.encoding("ints"), Some(Encoding::Intset));
    let set = slot.table.peek(&slot.seed.key(b"ints")).expect("it is there");
    let StoredValue::Set(set) = set.value() else { panic!("not a set") };
    assert!(set.equals_row(&row(&["2", "1"]), &slot.seed));
    assert!(!set.equals_row(&row(&["2", "3"]), &slot.seed));
    assert!(!set.equals_row(&row(&["2"]), &slot.seed));
}

#[test]
fn a_set_replaces_and_is_replaced_by_other_types() {
    let mut slot = RecordedSlot::new();
    let seed = slot.seed.clone();
    let key = seed.key(b"k");
    slot.apply(&Effect::Put { key, value: NewValue::Plain(b"text"), expires_at: None });
    slot.remove("k", &["text"]);
    slot.add("k", &["m"]);
    assert_eq!(slot.listed("k").map(|members| members.len()), Some(1));
    slot.add("k", &["x".repeat(100_000)]);
    let pairs = row(&["f", "v"]);
    slot.apply(&Effect::SetFields { key, pairs: &pairs });
    assert_eq!(slot.encoding("k"), Some(Encoding::Listpack));
    slot.add("k", &["m"]);
    assert_eq!(slot.listed("k").map(|members| members.len()), Some(1));
    slot.apply(&Effect::Append { key, tail: b"tail" });
    let found = slot.table.peek(&key).expect("it is there");
    assert_eq!(found.string().expect("a string").to_bytes().as_ref(), b"tail");
    assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
}

#[test]
fn a_large_set_is_garbage_when_it_goes() {
    let mut slot = RecordedSlot::new();
    slot.add("s", &(0..9_000).map(|number| format!("member {number}")).collect::<Vec<_>>());
    let (seed, version) = (slot.seed.clone(), slot.table.next_version(NOW));
    let remove = Effect::Remove { key: seed.key(b"s"), cause: Cause::Deleted };
    let applied = slot.table.apply(&remove, version, Touch::Nothing, &seed);
    assert!(matches!(applied.garbage, Some(crate::Garbage::Table(table)) if table.len() == 9_000));
}

#[test]
fn a_large_set_is_copied_in_parts_while_it_is_written_to() {
    let mut rng = SplitMix64::new(5);
    let mut slot = RecordedSlot::new();
    slot.add("s", &(0..9_000).map(|number| format!("member {number}")).collect::<Vec<_>>());
    let (seed, other) = (slot.seed.clone(), Seed::new(9));
    let mut copy = SlotTable::default();
    let mut from = Some(TablePosition::START);
    let mut parts = 0;
    while let Some(position) = from {
        let found = slot.table.peek(&seed.key(b"s")).expect("it is there");
        assert!(found.goes_in_parts());
        let StoredValue::Set(set @ SetValue::Table(_)) = found.value() else { panic!("no table") };
        let mut members = Vec::new();
        from = set.scan(&seed, position, |member| {
            member.write(&mut members);
            members.len() < 4_096
        });
        assert!(Row::check(&members, 1).is_ok());
        let extent = if parts == 0 { ItemExtent::Whole } else { ItemExtent::More };
        let mut item = Vec::new();
        encode_item_part(&found, &members, extent, &mut item);
        let (item, _) = decode_item(&item).expect("complete");
        let _ = copy.copy_item(&item, &other);
        parts += 1;
        for _ in 0..50 {
            // Each write goes to both, wherever its member is.
            let member = format!("member {}", rng.draw() % 15_000);
            let before = slot.log.len();
            if rng.draw().is_multiple_of(2) {
                slot.remove("s", &[member]);
            } else {
                slot.add("s", &[member]);
            }
            let (effect, _) = decode_effect(&slot.log[before..], &other).expect("complete");
            let _ = copy.apply(&effect, slot.table.version(), Touch::Nothing, &other);
        }
    }
    assert!(parts > 10, "only {parts} parts");
    assert_eq!(digest_of(&slot.table), digest_of(&copy));
    assert_eq!(digest_of(&slot.table), digest_of(&slot.copied()));
}
