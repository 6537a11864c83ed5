//! One slot: its index of items, its version, its next expiry, its memory. Called by `commands` under the slot's
//! lock. This file reads; `apply`, in `change.rs`, is the only way to change a slot.

use std::borrow::Cow;
use std::sync::Arc;

use containers::{List, SortedSet, Stream, Table};

use crate::databases::{DatabaseSize, Index};
use crate::extras::SlotExtras;
use crate::index::At;
use crate::item::ItemRef;
use crate::key::name_of;
use crate::{
    Database, HashValue, Key, ListValue, SetValue, SortedSetValue, StoredValue, StringValue, Touch,
    UnixMillis, Version,
};

/// Values of this size and more have a block of their own that replies and fills share, so that nothing large is
/// ever copied under a slot's lock.
pub const SHARED_FROM_BYTES: usize = 16 * 1024;

/// Containers of more memory than this are copied in parts.
const PARTS_FROM_BYTES: usize = 64 * 1024;

/// The items of one slot. The order of the fields puts a lock and everything that a read or an overwriting SET
/// needs into one cache line.
#[repr(C)]
pub struct SlotTable {
    pub(crate) index: Index,
    /// The version of the last change.
    pub(crate) version: Version,
    /// Nothing expires before this time. It may be too early (a key was removed or its expiry extended), never too
    /// late. Meaningless if no item expires: then neither it nor its cache line is read.
    pub(crate) expires_from: UnixMillis,
    /// The version of the last change that removed a key; `WATCH` of a missing key compares it.
    pub(crate) last_removal: Version,
    /// The items' memory in the allocator.
    pub(crate) item_bytes: usize,
    /// Present while another side of the cluster may have continued after a split, or fields of hashes expire.
    pub(crate) extras: Option<Box<SlotExtras>>,
}

/// A time later than any expiry.
pub(crate) const NEVER: UnixMillis = UnixMillis(u64::MAX);

impl Default for SlotTable {
    fn default() -> SlotTable {
        SlotTable {
            index: Index::default(),
            version: Version::ZERO,
            expires_from: NEVER,
            last_removal: Version::ZERO,
            item_bytes: 0,
            extras: None,
        }
    }
}

/// An item found by a lookup, borrowed from its slot.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub item: ItemRef<'a>,
    pub expires_at: Option<UnixMillis>,
    pub database: Database,
}

impl<'a> Found<'a> {
    /// Returns the name of the item's key ([`Key::name`]).
    pub fn name(&self) -> Cow<'a, [u8]> {
        name_of(self.database, self.item.key())
    }

    pub fn value(&self) -> StoredValue<'a> {
        self.item.value()
    }

    /// Returns the value if it is a string.
    #[inline]
    pub fn string(&self) -> Option<StringValue<'a>> {
        self.item.string()
    }

    /// Returns whether the value is a container that a fill copies in parts, while it is written to.
    pub fn goes_in_parts(&self) -> bool {
        match self.value() {
            StoredValue::Hash(HashValue::Table(table)) => table.bytes() > PARTS_FROM_BYTES,
            StoredValue::List(ListValue::Large(list)) => list.bytes() > PARTS_FROM_BYTES,
            StoredValue::SortedSet(SortedSetValue::Large(set)) => set.bytes() > PARTS_FROM_BYTES,
            StoredValue::Hash(HashValue::Packed(_))
            | StoredValue::List(ListValue::Packed(_))
            | StoredValue::SortedSet(SortedSetValue::Packed(_))
            | StoredValue::String(_) => false,
            StoredValue::Set(SetValue::Table(table)) => table.bytes() > PARTS_FROM_BYTES,
            StoredValue::Set(SetValue::Integers(_) | SetValue::Packed(_)) => false,
            StoredValue::Stream(stream) => stream.bytes() > PARTS_FROM_BYTES,
        }
    }

    pub fn is_expired(&self, now: UnixMillis) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// The side effects of applying an effect.
#[derive(Default)]
#[must_use]
pub struct Applied {
    /// Change of the memory in use.
    pub grown_bytes: i64,
    /// True if the number of keys, or the published facts about their expiry, changed.
    pub reshaped: bool,
    /// Memory that is better freed outside the slot's lock.
    pub garbage: Option<Garbage>,
}

/// A large object that nothing references any more; dropping it takes a while.
pub enum Garbage {
    Value(Arc<Vec<u8>>),
    /// A large hash or set.
    Table(Box<Table>),
    /// A large list.
    List(Box<List>),
    /// A large sorted set.
    Sorted(Box<SortedSet>),
    /// A large stream, or what was removed from one.
    Stream(Box<Stream>),
    /// A slot's whole content.
    Items(Box<Items>),
}

/// The former content of a slot; it can only be dropped.
pub struct Items(#[expect(dead_code, reason = "it is kept to be dropped")] pub(crate) Index);

/// Keys that are due.
pub struct Expired {
    /// Their names ([`Key::name`]).
    pub keys: Vec<Vec<u8>>,
    /// True if there may be more.
    pub more: bool,
}

/// A position in the order of databases and hashes, for walks over a slot that tolerate changes of the slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ScanPosition(u64);

impl ScanPosition {
    /// The number of bits of a hash in a position; all items that share them are visited together.
    pub const BITS: u32 = 34;
    pub const START: ScanPosition = ScanPosition(0);
    /// A position after that of every item.
    pub const END: ScanPosition = ScanPosition((Database::COUNT_MAX as u64) << Self::BITS);

    /// Reverts [`ScanPosition::number`], for database 0. `None` if no position has this number.
    pub fn from_number(number: u64) -> Option<ScanPosition> {
        (number >> Self::BITS == 0).then_some(ScanPosition(number))
    }

    /// Returns the position within its database as a number of `BITS` bits.
    pub fn number(self) -> u64 {
        self.0 & ((1 << Self::BITS) - 1)
    }

    /// Returns the same position in the order of another database's hashes.
    #[must_use]
    pub fn in_database(self, database: Database) -> ScanPosition {
        ScanPosition(u64::from(database.number()) << Self::BITS | self.number())
    }

    /// Returns the database that the position lies in; `None` behind the last one.
    pub(crate) fn database(self) -> Option<Database> {
        u16::try_from(self.0 >> Self::BITS).ok().and_then(Database::new)
    }

    pub(crate) fn of_hash(hash: u64) -> ScanPosition {
        ScanPosition(hash >> (u64::BITS - Self::BITS))
    }

    pub(crate) fn first_hash(self) -> u64 {
        self.number() << (u64::BITS - Self::BITS)
    }
}

impl SlotTable {
    /// The size of the first fields: all that a read needs, and most of what an overwriting SET needs.
    pub const HOT_BYTES: usize = core::mem::offset_of!(SlotTable, expires_from);

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items that expire.
    pub fn expiring(&self) -> usize {
        self.index.expiring()
    }

    pub fn version(&self) -> Version {
        self.version
    }

    pub fn last_removal(&self) -> Version {
        self.last_removal
    }

    /// Returns the version for a change made now, and with it the slot's time: never earlier than that of an
    /// earlier change, so that time does not run backwards when another machine takes over.
    pub fn next_version(&self, now: UnixMillis) -> Version {
        self.version.next(now)
    }

    /// Returns the time by which deadlines in this slot are computed and checked: see [`Version::hybrid_time`].
    #[inline]
    pub fn time(&self, now: UnixMillis) -> UnixMillis {
        self.version.hybrid_time(now)
    }

    /// Returns the slot's memory in the allocator.
    pub fn bytes(&self) -> usize {
        let remembered = self.divergence().map_or(0, |it| it.bytes());
        self.item_bytes + self.index.bytes() + remembered + self.field_deadline_bytes()
    }

    /// Returns the part of that memory that is not items.
    pub fn index_bytes(&self) -> usize {
        self.index.bytes()
    }

    /// Returns the location of the key, expired or not.
    #[inline]
    pub fn locate(&self, key: &Key<'_>) -> Option<At> {
        self.index.find(key.database(), key.hash(), key.bytes())
    }

    #[inline]
    pub fn found(&self, at: At) -> Found<'_> {
        Found {
            item: self.index.item(at),
            expires_at: self.index.expiry(at),
            database: self.index.database(at),
        }
    }

    #[inline]
    pub fn expiry(&self, at: At) -> Option<UnixMillis> {
        self.index.expiry(at)
    }

    /// Records a use of the item, and returns it. Writes to it only if that changes its mark.
    #[inline]
    pub fn touch(&mut self, at: At, touch: Touch) -> Found<'_> {
        let old = self.index.item(at).mark();
        let new = touch.used(old);
        if new != old {
            self.index.change(at, |item| item.set_mark(new));
        }
        self.found(at)
    }

    /// Looks up a key without recording a use.
    pub fn peek(&self, key: &Key<'_>) -> Option<Found<'_>> {
        self.locate(key).map(|at| self.found(at))
    }

    /// Prefetches the cache line in which a search for the key begins.
    #[inline]
    pub fn prefetch_entry(&self, key: &Key<'_>) {
        self.index.prefetch_home(key.database(), key.hash());
    }

    /// Prefetches the cache line of the item itself.
    #[inline]
    pub fn prefetch_item(&self, key: &Key<'_>) {
        self.index.prefetch_item(key.database(), key.hash());
    }

    /// Visits at least `count` items of all databases from `from` on, and returns the position to continue from; `None` at
    /// the end.
    pub fn scan(
        &self,
        from: ScanPosition,
        count: usize,
        mut visit: impl FnMut(Found<'_>),
    ) -> Option<ScanPosition> {
        self.index.scan(from, count, &mut visit)
    }

    /// Same as `scan`, for the items of one database.
    pub fn scan_database(
        &self,
        database: Database,
        from: ScanPosition,
        count: usize,
        mut visit: impl FnMut(Found<'_>),
    ) -> Option<ScanPosition> {
        self.index.scan_database(database, from, count, &mut visit)
    }

    /// Returns the databases that have items here, in ascending order.
    pub fn databases(&self) -> impl Iterator<Item = DatabaseSize> {
        self.index.databases()
    }

    /// Returns the number of items in one database.
    pub fn len_in(&self, database: Database) -> usize {
        self.index.size_of(database).len
    }

    /// Returns whether there are items in databases other than 0.
    #[inline]
    pub fn has_other_databases(&self) -> bool {
        self.index.has_other_databases()
    }

    /// Visits all items.
    pub fn for_each(&self, visit: impl FnMut(Found<'_>)) {
        let end = self.scan(ScanPosition::START, usize::MAX, visit);
        debug_assert!(end.is_none());
    }

    /// Returns an item of one database chosen by a random number.
    pub fn random_in(&self, database: Database, roll: u64) -> Option<Found<'_>> {
        self.index.random_in(database, roll).map(|at| self.found(at))
    }

    /// Returns an item of any database chosen by a random number.
    pub fn random(&self, roll: u64) -> Option<Found<'_>> {
        self.index.random(roll).map(|at| self.found(at))
    }

    /// Returns an item of one database chosen by a random number among those that expire.
    pub fn random_expiring_in(&self, database: Database, roll: u64) -> Option<Found<'_>> {
        self.index.random_expiring_in(database, roll).map(|at| self.found(at))
    }

    /// Returns an item of any database chosen by a random number among those that expire.
    pub fn random_expiring(&self, roll: u64) -> Option<Found<'_>> {
        self.index.random_expiring(roll).map(|at| self.found(at))
    }

    /// Returns the clock time at which to look for expired keys and fields next; possibly too early.
    #[inline]
    pub fn expires_from(&self) -> Option<UnixMillis> {
        let fields = self.field_deadlines().and_then(|deadlines| deadlines.first());
        let first = self.keys_expire_from().into_iter().chain(fields).min();
        first.map(|first| self.version.clock_at(first))
    }

    #[inline]
    pub(crate) fn keys_expire_from(&self) -> Option<UnixMillis> {
        (self.index.expiring() > 0).then_some(self.expires_from)
    }

    /// Returns the keys that are due by the slot's time, at most `max` of them. They are still in the slot: the
    /// caller removes each with an effect of its own.
    pub fn due(&mut self, now: UnixMillis, max: usize) -> Expired {
        let now = self.time(now);
        if self.index.expiring() == 0 || self.expires_from > now {
            return Expired { keys: Vec::new(), more: false };
        }
        let keys = self.index.due(now, max);
        let more = keys.len() == max;
        if keys.is_empty() {
            self.expires_from = self.index.earliest_expiry().unwrap_or(NEVER);
        }
        Expired { keys, more }
    }
}

#[cfg(test)]
mod tests;
