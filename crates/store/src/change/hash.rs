//! Changes of hashes: fields set and removed, and their deadlines. A hash begins as a row in its item's block, and becomes a table when it
//! no longer fits (`hash_value.rs`); it never becomes a row again, as in Redis.

use containers::{Element, Row, Table, earliest_of, with_deadline};

use super::ChangeInProgress;
use crate::hash_value::{HashValue, PACKED_FIELDS_MAX, PAIR, fits_packed, table_of};
use crate::index::At;
use crate::slot_table::SlotTable;
use crate::value::ItemValue;
use crate::{Cause, Key, Seed, StoredValue};

/// The present form of a hash, without its content.
enum HashForm {
    Packed,
    Table,
    /// A value of another type.
    Other,
}

impl SlotTable {
    /// Sets the fields of a row of pairs. A missing key, or one of another type, becomes a new hash.
    pub(super) fn set_fields(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        pairs: &[u8],
    ) {
        let (pairs, seed) = (Row::new(pairs, PAIR), change.seed);
        self.note_deadlines(change, key, earliest_of(pairs.entries()));
        let Some(at) = self.locate(key) else {
            let mut merged = MergedHash::of(Row::new(&[], PAIR), pairs, seed);
            self.insert(change, key, merged.value(seed));
            return;
        };
        match self.hash_form(at) {
            HashForm::Table => self.change_table(change, at, |table, seed| {
                for entry in pairs.entries() {
                    table.put_entry(seed, entry);
                }
            }),
            HashForm::Packed | HashForm::Other => {
                // The row of a value of another type is empty.
                let mut merged = MergedHash::of(self.packed(at), pairs, seed);
                self.replace(change, at, merged.value(seed));
            }
        }
    }

    /// Removes the fields of a row. If none is left, removes the key.
    pub(super) fn remove_fields(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        fields: &[u8],
    ) {
        let fields = Row::new(fields, 1).elements();
        let Some(at) = self.locate(key) else { return };
        let is_emptied = match self.hash_form(at) {
            HashForm::Table => self.change_table(change, at, |table, seed| {
                for field in fields {
                    table.remove(seed, field);
                }
                table.is_empty()
            }),
            HashForm::Packed => {
                let row = without_fields(self.packed(at), fields);
                // Never a table again; an empty row is removed below.
                self.replace(change, at, ItemValue::PackedHash(&row));
                row.is_empty()
            }
            HashForm::Other => false,
        };
        if is_emptied {
            self.remove(change, key, Cause::Deleted);
        }
    }

    /// Sets the deadlines of fields. Fields that are missing stay missing.
    pub(super) fn expire_fields(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        deadlines: &[u8],
    ) {
        let Some(at) = self.locate(key) else { return };
        let StoredValue::Hash(hash) = self.index.item(at).value() else { return };
        let mut entries = Vec::new();
        for (field, time) in Row::new(deadlines, PAIR).pairs() {
            let Some(entry) = hash.entry(field, change.seed) else { continue };
            entries.extend_from_slice(&with_deadline(entry, deadline_in(time)));
        }
        if !entries.is_empty() {
            self.set_fields(change, key, &entries);
        }
    }

    fn hash_form(&self, at: At) -> HashForm {
        match self.index.item(at).value() {
            StoredValue::Hash(HashValue::Packed(_)) => HashForm::Packed,
            StoredValue::Hash(HashValue::Table(_)) => HashForm::Table,
            StoredValue::String(_)
            | StoredValue::List(_)
            | StoredValue::SortedSet(_)
            | StoredValue::Set(_)
            | StoredValue::Stream(_) => HashForm::Other,
        }
    }

    fn packed(&self, at: At) -> Row<'_> {
        match self.index.item(at).value() {
            StoredValue::Hash(HashValue::Packed(row)) => row,
            StoredValue::Hash(HashValue::Table(_))
            | StoredValue::String(_)
            | StoredValue::List(_) => Row::new(&[], PAIR),
            StoredValue::SortedSet(_) | StoredValue::Set(_) | StoredValue::Stream(_) => {
                Row::new(&[], PAIR)
            }
        }
    }

    pub(super) fn change_table<R>(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        at: At,
        edit: impl FnOnce(&mut Table, &Seed) -> R,
    ) -> R {
        self.index.change(at, |item| {
            change.edit(item, |change, item| {
                let result = edit(item.table_mut().expect("the form was checked"), change.seed);
                change.stamp(item);
                result
            })
        })
    }
}

/// Returns the time in an effect; `None` for 0, or for what no node of ours sends.
fn deadline_in(time: Element<'_>) -> Option<u64> {
    match time {
        Element::Integer(time) => u64::try_from(time).ok().filter(|time| *time > 0),
        Element::Bytes(_) => None,
    }
}

/// A packed hash after more fields were set.
struct MergedHash {
    row: Vec<u8>,
    /// Present if the fields are too many for a row.
    table: Option<Box<Table>>,
}

impl MergedHash {
    fn of(row: Row<'_>, pairs: Row<'_>, seed: &Seed) -> MergedHash {
        // Setting fields of a row takes time for each field of the row: not for more than a row may have.
        if pairs.len() > 1 && row.len() + pairs.len() > PACKED_FIELDS_MAX {
            let mut table = table_of(row, seed);
            for entry in pairs.entries() {
                table.put_entry(seed, entry);
            }
            // Otherwise fields were set again, and it may stay a row.
            if table.len() > PACKED_FIELDS_MAX {
                return MergedHash { row: Vec::new(), table: Some(table) };
            }
        }
        MergedHash { row: with_pairs(row, pairs), table: None }
    }

    fn value(&mut self, seed: &Seed) -> ItemValue<'_> {
        match self.table.take() {
            Some(table) => ItemValue::HashTable(table),
            None => hash_value(&self.row, seed),
        }
    }
}

/// Returns the form in which an item keeps a hash.
pub(super) fn hash_value<'a>(row: &'a [u8], seed: &Seed) -> ItemValue<'a> {
    let pairs = Row::new(row, PAIR);
    if fits_packed(pairs) {
        ItemValue::PackedHash(row)
    } else {
        ItemValue::HashTable(table_of(pairs, seed))
    }
}

fn with_pairs(row: Row<'_>, pairs: Row<'_>) -> Vec<u8> {
    let mut entries = pairs.entries();
    let Some(first) = entries.next() else { return row.bytes().to_vec() };
    entries.fold(row.with_entry(first), |row, entry| Row::new(&row, PAIR).with_entry(entry))
}

fn without_fields<'a>(row: Row<'_>, fields: impl Iterator<Item = Element<'a>>) -> Vec<u8> {
    fields
        .fold(row.bytes().to_vec(), |row, field| Row::new(&row, PAIR).without(field).unwrap_or(row))
}
