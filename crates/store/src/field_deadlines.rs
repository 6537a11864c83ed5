//! The hashes of a slot whose fields expire, in the order of their next deadlines. Kept by `change.rs` and `change/hash.rs`;
//! read by [`SlotTable::expires_from`] and, for the fields that are due, by the janitor of `server`.
//!
//! A hash is listed by the position of its key, which takes few bytes. Keys that share a position share an entry.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::ChangeInProgress;
use crate::hash_value::{is_due, pair};
use crate::index::At;
use crate::{
    Database, Found, HashValue, Key, ScanPosition, Seed, SlotTable, StoredValue, UnixMillis,
};

/// Maximum number of fields that are removed, or looked at, at once.
const FIELDS_MAX: usize = 1_000;
/// Approximate length of the names of fields that are removed at once.
const NAMES_BYTES: usize = 64 * 1024;

/// Memory of an entry: a place in each of two trees, whose nodes are two thirds full.
const ENTRY_BYTES: usize = 64;

/// The next deadlines of hashes. A deadline may be too early, never too late.
#[derive(Default, Debug)]
pub(crate) struct FieldDeadlines {
    by_position: BTreeMap<ScanPosition, UnixMillis>,
    in_order: BTreeSet<(UnixMillis, ScanPosition)>,
}

/// Fields of one hash that are due.
pub struct DueFields {
    /// The fields in a row.
    pub fields: Vec<u8>,
    pub count: usize,
    /// True if the hash has no other fields.
    pub is_all: bool,
}

/// Hashes with fields that are due.
pub struct DueHashes {
    /// The names of their keys ([`Key::name`]).
    pub names: Vec<Vec<u8>>,
    /// True if there may be more.
    pub more: bool,
    /// Change of the memory in use: the search forgets deadlines that have passed.
    pub grown_bytes: i64,
}

impl FieldDeadlines {
    /// Returns the first deadline of all.
    #[inline]
    pub(crate) fn first(&self) -> Option<UnixMillis> {
        self.in_order.first().map(|(at, _)| *at)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_position.is_empty()
    }

    fn bytes(&self) -> usize {
        self.by_position.len() * ENTRY_BYTES
    }

    /// Lists a hash with this deadline, unless it is listed with an earlier one.
    fn lower(&mut self, position: ScanPosition, at: UnixMillis) {
        if self.by_position.get(&position).is_none_or(|known| at < *known) {
            self.set(position, Some(at));
        }
    }

    fn swap(&mut self, one: Database, other: Database) {
        for (position, at) in core::mem::take(self).by_position {
            let database = match position.database() {
                Some(database) if database == one => other,
                Some(database) if database == other => one,
                Some(database) => database,
                None => continue,
            };
            self.set(position.in_database(database), Some(at));
        }
    }

    fn set(&mut self, position: ScanPosition, at: Option<UnixMillis>) {
        let old = match at {
            Some(at) => self.by_position.insert(position, at),
            None => self.by_position.remove(&position),
        };
        if let Some(old) = old {
            self.in_order.remove(&(old, position));
        }
        if let Some(at) = at {
            self.in_order.insert((at, position));
        }
    }
}

impl SlotTable {
    pub(crate) fn field_deadline_bytes(&self) -> usize {
        self.field_deadlines().map_or(0, FieldDeadlines::bytes)
    }

    /// Returns whether the item is a hash of which all fields are due. Of a large hash only the first fields are looked
    /// at: until it has been emptied in the background it may be a hash without visible fields.
    #[inline]
    pub fn is_emptied_hash(&self, at: At, now: UnixMillis) -> bool {
        let item = self.index.item(at);
        // Whether there are deadlines at all is in another cache line.
        item.is_hash()
            && self.field_deadlines().is_some()
            && has_only_due(item.value(), self.time(now))
    }

    /// Returns some fields of a hash that are due. They are still in the hash: the caller removes them with an effect.
    pub fn due_fields(&self, key: &Key<'_>, now: UnixMillis) -> DueFields {
        let mut due = DueFields { fields: Vec::new(), count: 0, is_all: false };
        let found = self.peek(key);
        let Some(StoredValue::Hash(hash)) = found.map(|found| found.value()) else { return due };
        hash.due(self.time(now), |entry| {
            pair(entry).0.write(&mut due.fields);
            due.count += 1;
            due.count < FIELDS_MAX && due.fields.len() < NAMES_BYTES
        });
        due.is_all = due.count > 0 && due.count == hash.len();
        due
    }

    /// Returns the names of some hashes with fields that are due.
    pub fn due_hashes(&mut self, now: UnixMillis, max: usize, seed: &Seed) -> DueHashes {
        let now = self.time(now);
        let mut due = DueHashes { names: Vec::new(), more: false, grown_bytes: 0 };
        let Some(deadlines) = self.field_deadlines() else { return due };
        let first = deadlines.in_order.range(..=(now, ScanPosition::END)).take(max);
        let positions: Vec<ScanPosition> = first.map(|(_, position)| *position).collect();
        let before = self.field_deadline_bytes();
        for position in &positions {
            let known = due.names.len();
            self.visit_hashes_at(*position, seed, |found, hash| {
                let mut has_due = false;
                hash.due(now, |_| {
                    has_due = true;
                    false
                });
                if has_due {
                    due.names.push(found.name().into_owned());
                }
            });
            if due.names.len() == known {
                self.settle(*position, now, seed);
            }
        }
        due.more = positions.len() == max;
        due.grown_bytes = grown(before, self.field_deadline_bytes());
        due
    }

    /// Records that a field of the hash at `key` is due at `at`, or that none has a new deadline.
    pub(crate) fn note_deadlines(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        at: Option<u64>,
    ) {
        if let Some(at) = at.map(UnixMillis) {
            let position = key.scan_position();
            self.change_deadlines(change, |deadlines| deadlines.lower(position, at));
        }
    }

    /// Looks up the deadlines of a hash that was removed or replaced.
    pub(crate) fn look_up_deadlines(&mut self, change: &mut ChangeInProgress<'_>, key: &Key<'_>) {
        let position = key.scan_position();
        if let Some(earliest) = self.earliest_deadline(position, change.seed) {
            self.change_deadlines(change, |deadlines| deadlines.set(position, earliest));
        }
    }

    pub(crate) fn forget_deadlines(&mut self, change: &mut ChangeInProgress<'_>) {
        if self.field_deadlines().is_some() {
            self.change_deadlines(change, |deadlines| *deadlines = FieldDeadlines::default());
        }
    }

    pub(crate) fn swap_deadlines(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        one: Database,
        other: Database,
    ) {
        if self.field_deadlines().is_some() {
            self.change_deadlines(change, |deadlines| deadlines.swap(one, other));
        }
    }

    fn change_deadlines(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        edit: impl FnOnce(&mut FieldDeadlines),
    ) {
        let next = |table: &SlotTable| table.field_deadlines().and_then(FieldDeadlines::first);
        let (bytes, first) = (self.field_deadline_bytes(), next(self));
        self.change_field_deadlines(edit);
        change.remembered_bytes += grown(bytes, self.field_deadline_bytes());
        change.next_field_changed |= next(self) != first;
    }

    /// Looks up the next deadline of the hashes at a position, after a search has found nothing due there.
    fn settle(&mut self, position: ScanPosition, now: UnixMillis, seed: &Seed) {
        let mut names = Vec::new();
        self.visit_hashes_at(position, seed, |found, _| names.push(found.name().into_owned()));
        for name in &names {
            let Some(at) = self.locate(&seed.named(name)) else { continue };
            self.index.change(at, |item| {
                if let Some(table) = item.table_mut() {
                    table.settle_deadlines(now.0);
                }
            });
        }
        if let Some(earliest) = self.earliest_deadline(position, seed) {
            self.change_field_deadlines(|deadlines| deadlines.set(position, earliest));
        }
    }

    /// Returns the earliest deadline of the hashes at a listed position; `None` if it is not listed.
    fn earliest_deadline(&self, position: ScanPosition, seed: &Seed) -> Option<Option<UnixMillis>> {
        self.field_deadlines()?.by_position.get(&position)?;
        let mut earliest: Option<UnixMillis> = None;
        self.visit_hashes_at(position, seed, |_, hash| {
            earliest = earliest.into_iter().chain(hash.due_from()).min();
        });
        Some(earliest)
    }

    fn visit_hashes_at(
        &self,
        position: ScanPosition,
        seed: &Seed,
        mut visit: impl FnMut(Found<'_>, HashValue<'_>),
    ) {
        // One item is asked for; all that share its position are visited.
        let _behind = self.scan(position, 1, |found| {
            let key = seed.key(found.item.key()).in_database(found.database);
            if let StoredValue::Hash(hash) = found.value()
                && key.scan_position() == position
            {
                visit(found, hash);
            }
        });
    }
}

fn has_only_due(value: StoredValue<'_>, now: UnixMillis) -> bool {
    let StoredValue::Hash(hash) = value else { return false };
    let mut entries = hash.entries();
    entries.by_ref().take(FIELDS_MAX).all(|entry| is_due(entry, now)) && entries.next().is_none()
}

fn grown(before: usize, after: usize) -> i64 {
    after as i64 - before as i64
}
