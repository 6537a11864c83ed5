//! Tests of the deadlines of fields: against a map of maps, replayed and copied; and the list of what is due next.

use std::collections::BTreeMap;

use containers::write_field;

use super::*;
use crate::{Database, Key};

/// Fields with their values and deadlines.
type Timed = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;
type Model = BTreeMap<Vec<u8>, Timed>;

/// Returns a deadline a little later than `now`, or none.
fn draw_deadline(rng: &mut SplitMix64, now: u64) -> Option<u64> {
    (!rng.draw().is_multiple_of(3)).then(|| now + 1 + rng.draw() % 400)
}

fn fields_row(fields: &Timed) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, (value, at)) in fields {
        write_field(Element::of(field), *at, Element::of(value), &mut out);
    }
    out
}

/// Returns all content of a slot, with the deadlines.
fn content(table: &SlotTable) -> Model {
    let mut content = Model::new();
    table.for_each(|found| {
        let StoredValue::Hash(hash) = found.value() else { panic!("only hashes") };
        let hash = hash.at(UnixMillis(0));
        let entries = hash.entries().zip(hash.pairs()).map(|(entry, (field, value))| {
            let value = value.to_text().into_owned();
            (field.to_text().into_owned(), (value, containers::deadline_of(entry)))
        });
        content.insert(found.name().into_owned(), entries.collect());
    });
    content
}

struct TimedSlot {
    slot: RecordedSlot,
    model: Model,
    rng: SplitMix64,
    now: u64,
}

impl TimedSlot {
    fn new(seed: u64) -> TimedSlot {
        let rng = SplitMix64::new(seed);
        TimedSlot { slot: RecordedSlot::new(), model: Model::new(), rng, now: NOW.0 }
    }

    fn draw_fields(&mut self) -> Timed {
        let count = if self.rng.draw().is_multiple_of(50) { 900 } else { self.rng.draw() % 6 + 1 };
        let mut fields = Timed::new();
        for _ in 0..count {
            let field = format!("f{}", self.rng.draw() % 1_500).into_bytes();
            let at = draw_deadline(&mut self.rng, self.now);
            fields.insert(field, (value(&mut self.rng), at));
        }
        fields
    }

    fn write(&mut self) {
        let name = [b"{t}", &[b'a' + (self.rng.draw() % 5) as u8][..]].concat();
        let seed = self.slot.seed.clone();
        let key = seed.key(&name);
        let new = self.draw_fields();
        let row_of_new = fields_row(&new);
        let names: Vec<&[u8]> = new.keys().map(Vec::as_slice).collect();
        match self.rng.draw() % 24 {
            0 => {
                self.slot.apply(&Effect::Remove { key, cause: Cause::Deleted });
                self.model.remove(&name);
            }
            1 => {
                let value = NewValue::Hash(&row_of_new);
                self.slot.apply(&Effect::Put { key, value, expires_at: None });
                self.model.insert(name, new);
            }
            2..9 => {
                let at = draw_deadline(&mut self.rng, self.now);
                let mut deadlines = Vec::new();
                for field in &names {
                    Element::of(field).write(&mut deadlines);
                    Element::Integer(at.unwrap_or(0).cast_signed()).write(&mut deadlines);
                }
                self.slot.apply(&Effect::ExpireFields { key, deadlines: &deadlines });
                for (field, (_, present)) in self.model.entry(name).or_default() {
                    if new.contains_key(field) {
                        *present = at;
                    }
                }
            }
            9..13 => self.remove_fields(key, &names),
            13 if self.rng.draw().is_multiple_of(20) => {
                self.slot.apply(&Effect::Clear);
                self.model.clear();
            }
            _ => {
                self.slot.apply(&Effect::SetFields { key, pairs: &row_of_new });
                self.model.entry(name).or_default().extend(new);
            }
        }
        self.model.retain(|_, fields| !fields.is_empty());
    }

    fn remove_fields(&mut self, key: Key<'_>, names: &[&[u8]]) {
        self.slot.apply(&Effect::RemoveFields { key, fields: &row(names) });
        if let Some(fields) = self.model.get_mut(key.bytes()) {
            fields.retain(|field, _| !names.contains(&field.as_slice()));
        }
    }

    /// Removes what is due, as the janitor does, and checks that nothing is forgotten.
    fn expire(&mut self) {
        let seed = self.slot.seed.clone();
        let now = UnixMillis(self.now);
        loop {
            let before = self.slot.table.bytes();
            let due = self.slot.table.due_hashes(now, 2, &seed);
            assert_eq!(due.grown_bytes, self.slot.table.bytes() as i64 - before as i64);
            for name in &due.names {
                let fields = self.slot.table.due_fields(&seed.named(name), now);
                let key = seed.named(name);
                assert!(fields.count > 0);
                assert!(fields.is_all == (fields.count == self.model[name].len()));
                self.slot.apply(&Effect::RemoveFields { key, fields: &fields.fields });
            }
            if due.names.is_empty() && !due.more {
                break;
            }
        }
        for fields in self.model.values_mut() {
            fields.retain(|_, (_, at)| at.is_none_or(|at| at > self.now));
        }
        self.model.retain(|_, fields| !fields.is_empty());
        assert_eq!(content(&self.slot.table), self.model);
        // What is next is known exactly, or too early, never too late.
        let next =
            self.model.values().flat_map(|fields| fields.values().filter_map(|it| it.1)).min();
        let told = self.slot.table.expires_from().map(|at| at.0);
        assert!(next.is_none_or(|next| told.is_some_and(|told| told <= next)), "{told:?} {next:?}");
    }
}

#[test]
fn fields_with_deadlines_behave_like_maps_and_expire_in_time() {
    for seed in 0..4 {
        let mut slot = TimedSlot::new(seed);
        for round in 0..150 {
            (0..10).for_each(|_| slot.write());
            slot.now += slot.rng.draw() % 60;
            slot.expire();
            if round % 30 == 0 {
                let digest = digest_of(&slot.slot.table);
                assert_eq!(digest, digest_of(&slot.slot.replayed()));
                assert_eq!(digest, digest_of(&slot.slot.copied()));
            }
        }
        // Long afterwards only what has no deadline is left, in the copies as well.
        slot.now += 10_000;
        let mut copy = slot.slot.copied();
        slot.expire();
        assert_eq!(slot.slot.table.expires_from(), None);
        assert!(copy.expires_from().is_some());
        let due = copy.due_hashes(UnixMillis(slot.now), 100, &Seed::new(9));
        assert!(!due.names.is_empty());
    }
}

#[test]
fn a_deadline_belongs_to_the_fingerprint() {
    let digests = [None, Some(5_000), Some(6_000)].map(|at| {
        let mut slot = RecordedSlot::new();
        let seed = slot.seed.clone();
        let fields = Timed::from([(b"f".to_vec(), (b"v".to_vec(), at))]);
        slot.apply(&Effect::SetFields { key: seed.key(b"h"), pairs: &fields_row(&fields) });
        digest_of(&slot.table)
    });
    assert_ne!(digests[0], digests[1]);
    assert_ne!(digests[1], digests[2]);
}

#[test]
fn deadlines_follow_their_databases() {
    let mut slot = RecordedSlot::new();
    let seed = slot.seed.clone();
    let [zero, other] = [Database::ZERO, Database::new(3).expect("small enough")];
    let fields = Timed::from([(b"f".to_vec(), (b"v".to_vec(), Some(NOW.0 + 5)))]);
    slot.apply(&Effect::SetFields { key: seed.key(b"h"), pairs: &fields_row(&fields) });
    slot.apply(&Effect::SwapDatabases { one: zero, other });
    let due = slot.table.due_hashes(UnixMillis(NOW.0 + 5), 10, &seed);
    assert_eq!(due.names, [seed.key(b"h").in_database(other).name().into_owned()]);
}

#[test]
fn a_hash_is_gone_when_all_its_fields_are_due() {
    let mut slot = RecordedSlot::new();
    let seed = slot.seed.clone();
    let mut fields = Timed::from([(b"f".to_vec(), (b"v".to_vec(), Some(NOW.0 + 5)))]);
    slot.apply(&Effect::SetFields { key: seed.key(b"h"), pairs: &fields_row(&fields) });
    let emptied = |slot: &RecordedSlot, now| {
        let at = slot.table.locate(&seed.key(b"h")).expect("it is there");
        slot.table.is_emptied_hash(at, UnixMillis(now))
    };
    assert!(!emptied(&slot, NOW.0 + 4));
    assert!(emptied(&slot, NOW.0 + 5));
    fields.insert(b"g".to_vec(), (b"v".to_vec(), None));
    slot.apply(&Effect::SetFields { key: seed.key(b"h"), pairs: &fields_row(&fields) });
    assert!(!emptied(&slot, NOW.0 + 5));
}
