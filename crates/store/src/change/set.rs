//! Changes of sets: members added and removed. A set begins as a row in its item's block: numbers only (`intset` in
//! Redis) or any members (`listpack`). It becomes a table when it no longer fits (`set_value.rs`), and never becomes a
//! row again, as in Redis.

use std::borrow::Cow;

use containers::{Element, Row};

use super::ChangeInProgress;
use crate::index::At;
use crate::set_value::{
    INTEGERS_MAX, MEMBER, PACKED_MEMBERS_MAX, SetForm, SetValue, form_of, is_short_enough, table_of,
};
use crate::slot_table::SlotTable;
use crate::value::ItemValue;
use crate::{Cause, Key, Seed, StoredValue};

impl SlotTable {
    /// Adds the members of a row. A missing key, or one of another type, becomes a new set.
    pub(super) fn add_members(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        members: &[u8],
    ) {
        let (members, seed) = (Row::new(members, MEMBER), change.seed);
        let Some(at) = self.locate(key) else {
            let value = merged(SetValue::Integers(Row::new(&[], MEMBER)), members, seed);
            self.insert(change, key, value);
            return;
        };
        match self.set_at(at) {
            Some(SetValue::Table(_)) => self.change_table(change, at, |table, seed| {
                for entry in members.entries() {
                    table.put_entry(seed, entry);
                }
            }),
            present => {
                let empty = SetValue::Integers(Row::new(&[], MEMBER));
                let value = merged(present.unwrap_or(empty), members, seed);
                self.replace(change, at, value);
            }
        }
    }

    /// Removes the members of a row. If none is left, removes the key.
    pub(super) fn remove_members(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        members: &[u8],
    ) {
        let members = Row::new(members, MEMBER).elements();
        let Some(at) = self.locate(key) else { return };
        let Some(set) = self.set_at(at) else { return };
        let is_emptied = match set {
            SetValue::Table(_) => self.change_table(change, at, |table, seed| {
                for member in members {
                    table.remove(seed, member);
                }
                table.is_empty()
            }),
            SetValue::Integers(row) | SetValue::Packed(row) => {
                let left = without_members(row, members);
                let is_emptied = left.is_empty();
                let left = Cow::Owned(left);
                let value = match set {
                    SetValue::Integers(_) => ItemValue::IntegerSet(left),
                    SetValue::Packed(_) | SetValue::Table(_) => ItemValue::PackedSet(left),
                };
                self.replace(change, at, value);
                is_emptied
            }
        };
        if is_emptied {
            self.remove(change, key, Cause::Deleted);
        }
    }

    fn set_at(&self, at: At) -> Option<SetValue<'_>> {
        match self.index.item(at).value() {
            StoredValue::Set(set) => Some(set),
            StoredValue::String(_)
            | StoredValue::Hash(_)
            | StoredValue::List(_)
            | StoredValue::SortedSet(_)
            | StoredValue::Stream(_) => None,
        }
    }
}

/// Returns the form in which an item keeps a set.
pub(super) fn set_value<'a>(row: &'a [u8], seed: &Seed) -> ItemValue<'a> {
    let members = Row::new(row, MEMBER);
    match form_of(members) {
        SetForm::Integers => ItemValue::IntegerSet(ascending(members)),
        SetForm::Packed => ItemValue::PackedSet(Cow::Borrowed(row)),
        SetForm::Table => ItemValue::SetTable(table_of(members.entries(), seed)),
    }
}

/// Returns a set in a row after more members were added. Some of them may be in it already.
fn merged(present: SetValue<'_>, members: Row<'_>, seed: &Seed) -> ItemValue<'static> {
    let all = || present.entries().chain(members.entries());
    let (mut row, leading) = match present {
        // As in Redis, numbers are sorted until the first other member comes.
        SetValue::Integers(row) => {
            let leading = members.elements().map_while(number_of).count();
            (with_numbers(row, members.elements().map_while(number_of)), leading)
        }
        SetValue::Packed(_) | SetValue::Table(_) => (present.to_row(), 0),
    };
    let others = || members.elements().skip(leading);
    let (row_len, others_len) = (Row::new(&row, MEMBER).len(), others().count());
    if others_len == 0 && matches!(present, SetValue::Integers(_)) {
        return if row_len <= INTEGERS_MAX {
            ItemValue::IntegerSet(Cow::Owned(row))
        } else {
            ItemValue::SetTable(table_of(all(), seed))
        };
    }
    if row_len + others_len > PACKED_MEMBERS_MAX || !others().all(is_short_enough) {
        let table = table_of(all(), seed);
        // Otherwise members were given that it has, and it may stay a row.
        if table.len() > PACKED_MEMBERS_MAX || !others().all(is_short_enough) {
            return ItemValue::SetTable(table);
        }
    }
    for member in others() {
        if !Row::new(&row, MEMBER).contains(member) {
            member.write(&mut row);
        }
    }
    ItemValue::PackedSet(Cow::Owned(row))
}

fn number_of(member: Element<'_>) -> Option<i64> {
    match member {
        Element::Integer(number) => Some(number),
        Element::Bytes(_) => None,
    }
}

/// Returns a row of ascending numbers with more numbers.
fn with_numbers(row: Row<'_>, more: impl Iterator<Item = i64>) -> Vec<u8> {
    let mut more = more.peekable();
    let Some(first) = more.next() else { return row.bytes().to_vec() };
    if more.peek().is_none() {
        return with_number(row, first);
    }
    let mut numbers: Vec<i64> = row.elements().filter_map(number_of).collect();
    numbers.push(first);
    numbers.extend(more);
    row_of(numbers)
}

/// Returns a row of ascending numbers with one more number.
fn with_number(row: Row<'_>, number: i64) -> Vec<u8> {
    let (mut before, mut after) = (0, 0);
    for (entry, member) in row.entries().zip(row.elements()) {
        match number_of(member) {
            Some(present) if present < number => before += entry.len(),
            Some(present) if present == number => after += entry.len(),
            Some(_) | None => break,
        }
    }
    let bytes = row.bytes();
    let mut out = Vec::with_capacity(bytes.len() + 9);
    out.extend_from_slice(&bytes[..before]);
    Element::Integer(number).write(&mut out);
    out.extend_from_slice(&bytes[before + after..]);
    out
}

/// Returns the numbers in ascending order in a row, each once.
fn row_of(mut numbers: Vec<i64>) -> Vec<u8> {
    numbers.sort_unstable();
    numbers.dedup();
    let mut row = Vec::new();
    numbers.into_iter().for_each(|number| Element::Integer(number).write(&mut row));
    row
}

/// Returns a row of numbers in ascending order.
fn ascending(row: Row<'_>) -> Cow<'_, [u8]> {
    if row.elements().is_sorted() {
        return Cow::Borrowed(row.bytes());
    }
    Cow::Owned(row_of(row.elements().filter_map(number_of).collect()))
}

fn without_members<'a>(row: Row<'_>, members: impl Iterator<Item = Element<'a>>) -> Vec<u8> {
    members.fold(row.bytes().to_vec(), |row, member| {
        Row::new(&row, MEMBER).without(member).unwrap_or(row)
    })
}

#[cfg(test)]
mod tests;
