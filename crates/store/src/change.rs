//! [`SlotTable::apply`]: the only way to change a slot, on the primary and on its backups alike.
mod hash; // Fields of hashes.
mod list; // Elements of lists.
mod sorted; // Scores of sorted sets.
mod set; //  Members of sets.
mod stream; // Records of streams.

use std::sync::Arc;

use containers::{Row, earliest_of};

use crate::hash_value::PAIR;
use crate::index::At;
use crate::item::{Item, OwnedMemory};
use crate::slot_table::{Applied, Garbage, Items, SHARED_FROM_BYTES, SlotTable};
use crate::value::ItemValue;
use crate::{
    Cause, Database, Effect, Key, NewValue, Seed, StoredValue, StringValue, Touch, UnixMillis,
    Version,
};

/// Values of this size and more are freed outside the slot's lock.
const GARBAGE_FROM_BYTES: usize = 64 * 1024;

/// A change in progress: its parameters, and its side effects.
pub(crate) struct ChangeInProgress<'a> {
    version: Version,
    touch: Touch,
    pub(crate) seed: &'a Seed,
    /// Growth of the items' blocks.
    grown_bytes: i64,
    /// Growth of the memory of tombstones and of the list of hashes whose fields expire. An overwriting SET never reads
    /// it: it lies in another cache line.
    pub(crate) remembered_bytes: i64,
    /// True if a hash was removed, or replaced by another value.
    lost_hash: bool,
    /// True if the next deadline of a field in this slot is another one.
    pub(crate) next_field_changed: bool,
    garbage: Option<Garbage>,
}

impl ChangeInProgress<'_> {
    /// Runs `edit` on an item, and records the change of its size.
    fn edit<R>(
        &mut self,
        item: &mut Item,
        edit: impl FnOnce(&mut ChangeInProgress<'_>, &mut Item) -> R,
    ) -> R {
        self.grown_bytes -= signed(item.as_ref().bytes());
        let result = edit(self, item);
        self.grown_bytes += signed(item.as_ref().bytes());
        result
    }

    /// Records on the item that it was changed.
    fn stamp(&self, item: &mut Item) {
        item.set_version(self.version);
        item.set_mark(self.touch.used(item.as_ref().mark()));
    }

    /// Takes a large value out of an item that is about to lose it, to be freed outside the lock.
    fn discard_value(&mut self, item: &mut Item) {
        self.garbage = match item.take_owned() {
            Some(OwnedMemory::Shared(value)) if value.capacity() >= GARBAGE_FROM_BYTES => {
                Some(Garbage::Value(value))
            }
            Some(OwnedMemory::Table(table)) if table.bytes() >= GARBAGE_FROM_BYTES => {
                Some(Garbage::Table(table))
            }
            Some(OwnedMemory::List(list)) if list.bytes() >= GARBAGE_FROM_BYTES => {
                Some(Garbage::List(list))
            }
            Some(OwnedMemory::Sorted(set)) if set.bytes() >= GARBAGE_FROM_BYTES => {
                Some(Garbage::Sorted(set))
            }
            Some(OwnedMemory::Stream(stream)) if stream.bytes() >= GARBAGE_FROM_BYTES => {
                Some(Garbage::Stream(stream))
            }
            Some(_) | None => None,
        };
    }
}

impl SlotTable {
    /// Applies one effect as `version`. Every effect can be applied to every content: if its key is missing (a
    /// primary never sends such an effect), it does the closest sensible thing.
    pub fn apply(
        &mut self,
        effect: &Effect<'_>,
        version: Version,
        touch: Touch,
        seed: &Seed,
    ) -> Applied {
        let index_bytes = signed(self.index.bytes());
        let seen = self.seen_by_others();
        let (grown_bytes, remembered_bytes) = (0, 0);
        let mut change = ChangeInProgress {
            version,
            touch,
            seed,
            grown_bytes,
            remembered_bytes,
            lost_hash: false,
            next_field_changed: false,
            garbage: None,
        };
        self.carry_out(effect, &mut change);
        if change.lost_hash
            && let Some(key) = effect.key()
        {
            self.look_up_deadlines(&mut change, &key);
        }
        self.version = version;
        if change.grown_bytes != 0 {
            self.item_bytes = self.item_bytes.strict_add_signed(change.grown_bytes as isize);
        }
        Applied {
            grown_bytes: change.grown_bytes + change.remembered_bytes + signed(self.index.bytes())
                - index_bytes,
            reshaped: seen != self.seen_by_others() || change.next_field_changed,
            garbage: change.garbage,
        }
    }

    #[inline]
    fn carry_out(&mut self, effect: &Effect<'_>, change: &mut ChangeInProgress<'_>) {
        match effect {
            Effect::Put { key, value, expires_at } => {
                self.put(change, key, value, *expires_at);
            }
            Effect::Append { key, tail } => {
                self.rewrite(change, key, |bytes| bytes.extend_from_slice(tail));
            }
            Effect::Overwrite { key, offset, bytes } => self.overwrite(change, key, *offset, bytes),
            Effect::SetFields { key, pairs } => self.set_fields(change, key, pairs),
            Effect::RemoveFields { key, fields } => self.remove_fields(change, key, fields),
            Effect::ExpireFields { key, deadlines } => self.expire_fields(change, key, deadlines),
            Effect::InsertElements { key, index, elements } => {
                self.insert_elements(change, key, *index, elements);
            }
            Effect::SetElement { key, index, element } => {
                self.set_element(change, key, *index, element);
            }
            Effect::RemoveElements { key, ranges } => self.remove_elements(change, key, ranges),
            Effect::SetScores { key, pairs } => self.set_scores(change, key, pairs),
            Effect::RemoveScored { key, members } => self.remove_scored(change, key, members),
            Effect::AddMembers { key, members } => self.add_members(change, key, members),
            Effect::RemoveMembers { key, members } => self.remove_members(change, key, members),
            Effect::ChangeStream { key, records } => self.change_stream(change, key, records),
            Effect::Expire { key, at } => self.expire(change, key, *at),
            Effect::Mark { key, mark } => {
                if let Some(at) = self.locate(key) {
                    self.index.change(at, |item| item.set_mark(*mark));
                }
            }
            Effect::Remove { key, cause } => self.remove(change, key, *cause),
            Effect::Clear => self.clear(change),
            Effect::SwapDatabases { one, other } => self.swap_databases(change, *one, *other),
        }
    }

    /// Returns the numbers that are also published outside the slot's lock (`server/src/keyspace.rs`).
    #[inline]
    fn seen_by_others(&self) -> (usize, usize, Option<UnixMillis>, bool) {
        let has_others = self.index.has_other_databases();
        (self.index.len(), self.index.expiring(), self.keys_expire_from(), has_others)
    }

    #[inline]
    fn put(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        value: &NewValue<'_>,
        expires_at: Option<UnixMillis>,
    ) {
        if let NewValue::Hash(row) = value {
            self.note_deadlines(change, key, earliest_of(Row::new(row, PAIR).entries()));
        }
        let value = item_value(value, change.seed);
        let at = match self.locate(key) {
            Some(at) => {
                self.replace(change, at, value);
                at
            }
            None => self.insert(change, key, value),
        };
        self.set_expiry(at, expires_at);
    }

    fn insert(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        value: ItemValue<'_>,
    ) -> At {
        change.remembered_bytes += self.note_arrival(key);
        let mark = change.touch.new_mark();
        let item = Item::new(key.bytes(), value, change.version, mark);
        change.grown_bytes += signed(item.as_ref().bytes());
        self.index.insert(key.database(), key.hash(), item, change.seed)
    }

    /// Replaces the value of the item at `at`.
    fn replace(&mut self, change: &mut ChangeInProgress<'_>, at: At, value: ItemValue<'_>) {
        self.index.change(at, |item| {
            change.edit(item, |change, item| {
                change.lost_hash |= item.as_ref().is_hash();
                let mark = change.touch.used(item.as_ref().mark());
                change.discard_value(item);
                if let Err(value) = item.overwrite(value, change.version, mark) {
                    *item = Item::new(item.as_ref().key(), value, change.version, mark);
                }
            });
        });
    }

    /// Lets `edit` change the string's bytes: in the string's own block if it is large, in a copy otherwise.
    fn rewrite(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        edit: impl FnOnce(&mut Vec<u8>),
    ) {
        let Some(at) = self.locate(key) else {
            let mut bytes = Vec::new();
            edit(&mut bytes);
            return self.put(change, key, &NewValue::Raw(&bytes), None);
        };
        let mut bytes = match self.index.item(at).value() {
            StoredValue::String(StringValue::Shared(_)) => {
                return self.rewrite_shared(change, at, edit);
            }
            StoredValue::String(string) => string.to_bytes().into_owned(),
            StoredValue::Hash(_)
            | StoredValue::List(_)
            | StoredValue::SortedSet(_)
            | StoredValue::Set(_)
            | StoredValue::Stream(_) => Vec::new(),
        };
        edit(&mut bytes);
        let value = item_value(&NewValue::Raw(&bytes), change.seed);
        self.replace(change, at, value);
    }

    fn rewrite_shared(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        at: At,
        edit: impl FnOnce(&mut Vec<u8>),
    ) {
        self.index.change(at, |item| {
            change.edit(item, |change, item| {
                let mut shared = item.take_shared().expect("the caller has seen that it is shared");
                // A reply or a fill in flight may still hold the old bytes and keeps them; only in that case this
                // copies.
                edit(Arc::make_mut(&mut shared));
                item.put_shared(shared);
                change.stamp(item);
            });
        });
    }

    fn overwrite(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        offset: usize,
        bytes: &[u8],
    ) {
        let end = offset + bytes.len();
        if self.overwrite_in_place(change, key, offset, bytes) {
            return;
        }
        self.rewrite(change, key, |all| {
            if all.len() < end {
                all.resize(end, 0);
            }
            all[offset..end].copy_from_slice(bytes);
        });
    }

    /// Overwrites bytes of a string stored in its item's own block. Returns false, and changes nothing, if they do
    /// not lie within such a string.
    fn overwrite_in_place(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        offset: usize,
        bytes: &[u8],
    ) -> bool {
        let Some(at) = self.locate(key) else { return false };
        let end = offset + bytes.len();
        self.index.change(at, |item| {
            let target = item.inline_bytes_mut().and_then(|all| all.get_mut(offset..end));
            let Some(target) = target else { return false };
            target.copy_from_slice(bytes);
            change.stamp(item);
            true
        })
    }

    fn expire(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        expires_at: Option<UnixMillis>,
    ) {
        if let Some(at) = self.locate(key) {
            self.index.change(at, |item| item.set_version(change.version));
            self.set_expiry(at, expires_at);
        }
    }

    fn remove(&mut self, change: &mut ChangeInProgress<'_>, key: &Key<'_>, cause: Cause) {
        let Some(at) = self.locate(key) else { return };
        let mut item = self.index.remove(at);
        let versions = (item.as_ref().version(), change.version);
        change.remembered_bytes += self.note_removal(key, versions, cause);
        change.grown_bytes -= signed(item.as_ref().bytes());
        change.lost_hash |= item.as_ref().is_hash();
        change.discard_value(&mut item);
        self.last_removal = change.version;
    }

    fn clear(&mut self, change: &mut ChangeInProgress<'_>) {
        if self.is_empty() {
            return;
        }
        change.grown_bytes -= signed(self.item_bytes);
        let items = core::mem::take(&mut self.index);
        change.garbage = Some(Garbage::Items(Box::new(Items(items))));
        self.last_removal = change.version;
        self.forget_deadlines(change);
        change.remembered_bytes += self.note_emptied(change.version);
    }

    /// Exchanges the contents of two databases. The items keep their versions, so a watched key counts as changed if the
    /// other database has another item of this name, or none.
    fn swap_databases(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        one: Database,
        other: Database,
    ) {
        if self.len_in(one) + self.len_in(other) == 0 {
            return;
        }
        self.index.swap_databases(one, other);
        self.swap_deadlines(change, one, other);
        self.last_removal = change.version;
    }

    #[inline]
    fn set_expiry(&mut self, at: At, expires_at: Option<UnixMillis>) {
        self.index.set_expiry(at, expires_at);
        if let Some(time) = expires_at {
            let is_only = self.index.expiring() == 1;
            self.expires_from = if is_only { time } else { self.expires_from.min(time) };
        }
    }
}

/// Returns the form in which an item keeps a value: a large string, hash or set gets memory of its own.
#[inline]
fn item_value<'a>(value: &NewValue<'a>, seed: &Seed) -> ItemValue<'a> {
    match value {
        NewValue::Plain(bytes) | NewValue::Raw(bytes) if bytes.len() >= SHARED_FROM_BYTES => {
            ItemValue::Shared(Arc::new(bytes.to_vec()))
        }
        NewValue::Plain(bytes) => ItemValue::Plain(bytes),
        NewValue::Raw(bytes) => ItemValue::Raw(bytes),
        NewValue::Integer(number) => ItemValue::Integer(*number),
        NewValue::Shared(shared) => ItemValue::Shared(Arc::clone(shared)),
        NewValue::Hash(row) => hash::hash_value(row, seed),
        NewValue::List(row) => list::list_value(row),
        NewValue::SortedSet(row) => sorted::sorted_value(row, seed),
        NewValue::Set(row) => set::set_value(row, seed),
        NewValue::Stream(records) => stream::stream_value(records),
    }
}

/// Converts a size to signed: no machine's memory comes near 2^63 bytes.
fn signed(bytes: usize) -> i64 {
    bytes as i64
}

#[cfg(test)]
mod tests;
