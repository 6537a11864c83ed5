//! Changes of lists: elements inserted, replaced and removed by index. A list begins as a row in its item's block, and
//! becomes a structure of its own when it no longer fits (`list_value.rs`). Unlike a hash it becomes a row again when
//! it has shrunk to half of that, as in Redis.

use core::ops::Range;

use containers::{List, Row};

use super::ChangeInProgress;
use crate::index::At;
use crate::list_ranges::ListRanges;
use crate::list_value::{ListValue, fits_packed, fits_packed_with, list_of, shrunk_row};
use crate::slot_table::SlotTable;
use crate::value::ItemValue;
use crate::{Cause, Key, StoredValue};

/// The present form of a list, without its content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListForm {
    Packed,
    Large,
    /// A value of another type.
    Other,
}

impl SlotTable {
    /// Inserts elements before the one at `index`, or at the end. A missing key, or one of another type, becomes a new
    /// list.
    pub(super) fn insert_elements(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        index: usize,
        elements: &[u8],
    ) {
        let Some(at) = self.locate(key) else {
            if elements.is_empty() {
                return;
            }
            let fits = fits_packed_with(Row::new(&[], 1), Row::new(elements, 1));
            self.insert(change, key, list_form(elements, fits));
            return;
        };
        if self.list_form(at) == ListForm::Large {
            return self.change_list(change, at, |list| {
                let first = index.min(list.len());
                for (distance, entry) in Row::new(elements, 1).entries().enumerate() {
                    list.insert_entry(first + distance, entry);
                }
            });
        }
        // The row of a value of another type is empty.
        let row = self.packed_list(at);
        let fits = fits_packed_with(row, Row::new(elements, 1));
        let offset = row.offset(index);
        let grown = [&row.bytes()[..offset], elements, &row.bytes()[offset..]].concat();
        self.replace(change, at, list_form(&grown, fits));
    }

    /// Replaces the element at `index`, if it exists, by the one of a row.
    pub(super) fn set_element(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        index: usize,
        element: &[u8],
    ) {
        let Some(at) = self.locate(key) else { return };
        match self.list_form(at) {
            ListForm::Large => {
                self.change_list(change, at, |list| {
                    if index < list.len() {
                        list.set_entry(index, element);
                    }
                });
                self.pack_if_shrunk(change, at);
            }
            ListForm::Packed => {
                let row = self.packed_list(at);
                let (start, end) = (row.offset(index), row.offset(index.saturating_add(1)));
                if start == end {
                    return;
                }
                let fits = fits_packed_with(row, Row::new(element, 1));
                let new = [&row.bytes()[..start], element, &row.bytes()[end..]].concat();
                self.replace(change, at, list_form(&new, fits));
            }
            ListForm::Other => {}
        }
    }

    /// Removes the elements of these ranges ([`ListRanges`]). If none is left, removes the key.
    pub(super) fn remove_elements(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        ranges: &[u8],
    ) {
        let Some(at) = self.locate(key) else { return };
        let is_emptied = match self.list_form(at) {
            ListForm::Large => self.change_list(change, at, |list| {
                let ranges: Vec<Range<usize>> = ListRanges::read(ranges).collect();
                ranges.into_iter().rev().for_each(|range| list.remove(range));
                list.is_empty()
            }),
            ListForm::Packed => {
                let row = without_ranges(self.packed_list(at), ranges);
                self.replace(change, at, ItemValue::PackedList(&row));
                row.is_empty()
            }
            ListForm::Other => false,
        };
        if is_emptied {
            self.remove(change, key, Cause::Deleted);
        } else {
            self.pack_if_shrunk(change, at);
        }
    }

    fn pack_if_shrunk(&mut self, change: &mut ChangeInProgress<'_>, at: At) {
        let StoredValue::List(ListValue::Large(list)) = self.index.item(at).value() else { return };
        if let Some(row) = shrunk_row(list) {
            self.replace(change, at, ItemValue::PackedList(&row));
        }
    }

    fn list_form(&self, at: At) -> ListForm {
        match self.index.item(at).value() {
            StoredValue::List(ListValue::Packed(_)) => ListForm::Packed,
            StoredValue::List(ListValue::Large(_)) => ListForm::Large,
            StoredValue::String(_)
            | StoredValue::Hash(_)
            | StoredValue::SortedSet(_)
            | StoredValue::Set(_)
            | StoredValue::Stream(_) => ListForm::Other,
        }
    }

    fn packed_list(&self, at: At) -> Row<'_> {
        match self.index.item(at).value() {
            StoredValue::List(ListValue::Packed(row)) => row,
            StoredValue::List(ListValue::Large(_))
            | StoredValue::String(_)
            | StoredValue::Hash(_)
            | StoredValue::SortedSet(_)
            | StoredValue::Set(_)
            | StoredValue::Stream(_) => Row::new(&[], 1),
        }
    }

    fn change_list<R>(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        at: At,
        edit: impl FnOnce(&mut List) -> R,
    ) -> R {
        self.index.change(at, |item| {
            change.edit(item, |change, item| {
                let result = edit(item.list_mut().expect("the form was checked"));
                change.stamp(item);
                result
            })
        })
    }
}

/// Returns the form in which an item keeps a list.
pub(super) fn list_value(row: &[u8]) -> ItemValue<'_> {
    list_form(row, fits_packed(Row::new(row, 1)))
}

fn list_form(row: &[u8], is_packed: bool) -> ItemValue<'_> {
    if is_packed {
        ItemValue::PackedList(row)
    } else {
        ItemValue::LargeList(list_of(Row::new(row, 1)))
    }
}

fn without_ranges(row: Row<'_>, ranges: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(row.bytes().len());
    let mut ranges = ListRanges::read(ranges).peekable();
    for (index, entry) in row.entries().enumerate() {
        while ranges.peek().is_some_and(|range| range.end <= index) {
            ranges.next();
        }
        if !ranges.peek().is_some_and(|range| range.contains(&index)) {
            kept.extend_from_slice(entry);
        }
    }
    kept
}
