//! Changes of sorted sets: scores set, members removed. A sorted set begins as a row in its item's block, and becomes large
//! when it no longer fits (`sorted_value.rs`); it never becomes a row again, as in Redis.

use std::borrow::Cow;

use containers::{Element, Row, Score, ScoredMember, ScoredRow, SortedSet};

use super::ChangeInProgress;
use crate::index::At;
use crate::slot_table::SlotTable;
use crate::sorted_value::{PACKED_MEMBERS_MAX, SortedSetValue, fits_packed};
use crate::value::ItemValue;
use crate::{Cause, Key, Seed, StoredValue};

/// The present form of a sorted set, without its content.
enum SortedForm {
    Packed,
    Large,
    /// A value of another type.
    Other,
}

impl SlotTable {
    /// Sets the scores of a row of pairs. A missing key, or one of another type, becomes a new sorted set.
    pub(super) fn set_scores(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        pairs: &[u8],
    ) {
        let (pairs, seed) = (ScoredRow::new(pairs), change.seed);
        let Some(at) = self.locate(key) else {
            let mut merged = MergedSet::of(ScoredRow::new(&[]), pairs, seed);
            self.insert(change, key, merged.value());
            return;
        };
        match self.sorted_form(at) {
            SortedForm::Large => {
                self.change_sorted(change, at, |set, seed| set.insert_row(seed, pairs));
            }
            SortedForm::Packed | SortedForm::Other => {
                // The row of a value of another type is empty.
                let mut merged = MergedSet::of(self.scored_row(at), pairs, seed);
                self.replace(change, at, merged.value());
            }
        }
    }

    /// Removes the members of a row. If none is left, removes the key.
    pub(super) fn remove_scored(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        members: &[u8],
    ) {
        let members = Row::new(members, 1).elements();
        let Some(at) = self.locate(key) else { return };
        let is_emptied = match self.sorted_form(at) {
            SortedForm::Large => self.change_sorted(change, at, |set, seed| {
                for member in members {
                    set.remove(seed, member);
                }
                set.is_empty()
            }),
            SortedForm::Packed => {
                let row = without_members(self.scored_row(at), members);
                self.replace(change, at, ItemValue::PackedSorted(Cow::Borrowed(&row)));
                row.is_empty()
            }
            SortedForm::Other => false,
        };
        if is_emptied {
            self.remove(change, key, Cause::Deleted);
        }
    }

    fn sorted_form(&self, at: At) -> SortedForm {
        match self.index.item(at).value() {
            StoredValue::SortedSet(SortedSetValue::Packed(_)) => SortedForm::Packed,
            StoredValue::SortedSet(SortedSetValue::Large(_)) => SortedForm::Large,
            StoredValue::String(_)
            | StoredValue::Hash(_)
            | StoredValue::List(_)
            | StoredValue::Set(_)
            | StoredValue::Stream(_) => SortedForm::Other,
        }
    }

    fn scored_row(&self, at: At) -> ScoredRow<'_> {
        match self.index.item(at).value() {
            StoredValue::SortedSet(SortedSetValue::Packed(row)) => row,
            StoredValue::SortedSet(SortedSetValue::Large(_))
            | StoredValue::String(_)
            | StoredValue::Hash(_)
            | StoredValue::List(_)
            | StoredValue::Set(_)
            | StoredValue::Stream(_) => ScoredRow::new(&[]),
        }
    }

    fn change_sorted<R>(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        at: At,
        edit: impl FnOnce(&mut SortedSet, &Seed) -> R,
    ) -> R {
        self.index.change(at, |item| {
            change.edit(item, |change, item| {
                let result = edit(item.sorted_mut().expect("the form was checked"), change.seed);
                change.stamp(item);
                result
            })
        })
    }
}

/// A packed sorted set after more scores were set.
struct MergedSet {
    row: Vec<u8>,
    /// Present if the members are too many or too long for a row.
    set: Option<Box<SortedSet>>,
}

impl MergedSet {
    fn of(row: ScoredRow<'_>, pairs: ScoredRow<'_>, seed: &Seed) -> MergedSet {
        // Setting a score in a row takes time for each member of the row: not for more than a row may have.
        let is_many = pairs.len() > 1 && row.len() + pairs.len() > PACKED_MEMBERS_MAX;
        if !is_many && fits_packed(pairs) {
            let row = with_scores(row, pairs);
            if fits_packed(ScoredRow::new(&row)) {
                return MergedSet { row, set: None };
            }
        }
        let mut set = large_of(row, seed);
        set.insert_row(seed, pairs);
        MergedSet::of_large(set)
    }

    /// Packs the set if it fits, because scores of the same members were set again.
    fn of_large(set: Box<SortedSet>) -> MergedSet {
        if set.len() <= PACKED_MEMBERS_MAX {
            let mut row = Vec::new();
            set.iter_from(0).for_each(|it| packed(it).write(&mut row));
            if fits_packed(ScoredRow::new(&row)) {
                return MergedSet { row, set: None };
            }
        }
        MergedSet { row: Vec::new(), set: Some(set) }
    }

    fn value(&mut self) -> ItemValue<'_> {
        match self.set.take() {
            Some(set) => ItemValue::Sorted(set),
            None => ItemValue::PackedSorted(Cow::Borrowed(&self.row)),
        }
    }
}

/// A sorted set in the form in which an item keeps it; the row is borrowed if it can be kept as it is.
pub(super) fn sorted_value<'a>(row: &'a [u8], seed: &Seed) -> ItemValue<'a> {
    let pairs = ScoredRow::new(row);
    let has_sign =
        |it: ScoredMember<'_>| it.score.get() == 0.0 && it.score.get().is_sign_negative();
    if fits_packed(pairs) && pairs.is_sorted() && !pairs.iter().any(has_sign) {
        return ItemValue::PackedSorted(Cow::Borrowed(row));
    }
    let MergedSet { row, set } = MergedSet::of_large(large_of(pairs, seed));
    match set {
        Some(set) => ItemValue::Sorted(set),
        None => ItemValue::PackedSorted(Cow::Owned(row)),
    }
}

fn large_of(row: ScoredRow<'_>, seed: &Seed) -> Box<SortedSet> {
    let mut set = Box::new(SortedSet::default());
    set.insert_row(seed, row);
    set
}

/// Returns the member with its score as a row keeps it: as in Redis, without the sign of zero.
fn packed(it: ScoredMember<'_>) -> ScoredMember<'_> {
    ScoredMember { score: Score::new(it.score.get() + 0.0).unwrap_or(it.score), ..it }
}

fn with_scores(row: ScoredRow<'_>, pairs: ScoredRow<'_>) -> Vec<u8> {
    let mut pairs = pairs.iter().map(packed);
    let Some(first) = pairs.next() else { return row.bytes().to_vec() };
    pairs.fold(row.with(first), |row, pair| ScoredRow::new(&row).with(pair))
}

fn without_members<'a>(row: ScoredRow<'_>, members: impl Iterator<Item = Element<'a>>) -> Vec<u8> {
    members.fold(row.bytes().to_vec(), |row, member| {
        ScoredRow::new(&row).without(member).unwrap_or(row)
    })
}

#[cfg(test)]
mod tests;
