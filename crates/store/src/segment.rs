//! A sorted open-addressing table: 8-byte entries (16 bits of hash, 48 bits of address) in the order of their hash
//! bits, with gaps. Called by `index.rs` only.
//!
//! An entry is at its home position or, if that is taken, as close behind it as the order allows (Robin Hood
//! hashing with linear probing, without wrapping around). Three things follow: a search ends at the first larger
//! tag; growing reads only the tags, not the items; and a scan can continue from a tag, whatever happened to the
//! table meanwhile.
//!
//! Expiry times are in an array beside the entries, allocated when the first item of the segment gets an expiry:
//! finding the keys that are due reads that array and no item.

use core::mem::ManuallyDrop;

use containers::block_bytes;

use crate::UnixMillis;
use crate::item::{Item, ItemRef};
use crate::prefetch::prefetch;

/// The top 16 bits of the part of a hash that the directory does not use.
pub(crate) type EntryTag = u16;

/// The value for "no expiry" in the array of expiry times.
const NEVER: u64 = u64::MAX;
/// A segment that would need more entries than this is split by `index.rs`, so that no single write ever moves more
/// than this many entries.
pub(crate) const ENTRIES_MAX: usize = 8_192;
const ENTRIES_MIN: usize = 4;
const CACHE_LINE_BYTES: usize = 64;
/// Prefetch distance in entries: processing this many takes about as long as a memory access.
const AHEAD: usize = 6;

/// 16 bits of tag above 48 bits of address; zero for an empty entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
struct SegmentEntry(u64);

const EMPTY: SegmentEntry = SegmentEntry(0);
const ADDRESS_BITS: u32 = 48;
const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;

impl SegmentEntry {
    fn new(tag: EntryTag, item: Item) -> SegmentEntry {
        SegmentEntry((u64::from(tag) << ADDRESS_BITS) | item.into_address())
    }

    #[inline(always)]
    fn tag(self) -> EntryTag {
        (self.0 >> ADDRESS_BITS) as EntryTag
    }

    #[inline(always)]
    fn address(self) -> u64 {
        self.0 & ADDRESS_MASK
    }
}

/// The position of an entry; valid until the segment is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EntryIndex(usize);

/// The result of an insertion.
pub(crate) enum Inserted {
    At(EntryIndex),
    /// The segment has reached its maximum size. The item is returned, nothing was changed.
    Full(Item),
}

#[derive(Default)]
pub(crate) struct Segment {
    /// Sorted by tag, gaps aside.
    entries: Box<[SegmentEntry]>,
    /// The expiry time of each entry; the array is empty while no item of this segment expires.
    expiries: Box<[u64]>,
    len: u32,
    expiring: u32,
}

impl Segment {
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn expiring(&self) -> usize {
        self.expiring as usize
    }

    /// Returns the arrays' memory in the allocator.
    pub(crate) fn bytes(&self) -> usize {
        let array = |len: usize| if len == 0 { 0 } else { block_bytes(len * size_of::<u64>()) };
        array(self.entries.len()) + array(self.expiries.len())
    }

    #[inline]
    pub(crate) fn find(&self, tag: EntryTag, key: &[u8]) -> Option<EntryIndex> {
        let mut at = self.home(tag);
        while let Some(entry) = self.entries.get(at) {
            if *entry == EMPTY || entry.tag() > tag {
                return None;
            }
            if entry.tag() == tag && is_same(item_at(*entry).key(), key) {
                return Some(EntryIndex(at));
            }
            at += 1;
        }
        None
    }

    /// Prefetches the cache line in which a search for `tag` begins.
    #[inline]
    pub(crate) fn prefetch_home(&self, tag: EntryTag) {
        prefetch(self.entries.as_ptr().wrapping_add(self.home(tag)));
    }

    /// Prefetches the cache line of the item that a search for `tag` will most likely compare.
    #[inline]
    pub(crate) fn prefetch_item(&self, tag: EntryTag) {
        let mut at = self.home(tag);
        while let Some(entry) = self.entries.get(at) {
            if *entry == EMPTY || entry.tag() > tag {
                return;
            }
            if entry.tag() == tag {
                return prefetch_item_of(*entry);
            }
            at += 1;
        }
    }

    /// Prefetches the item a few entries after `place`, for a walk over all items.
    #[inline]
    pub(crate) fn prefetch_ahead(&self, place: EntryIndex) {
        if let Some(entry) = self.entries.get(place.0 + AHEAD).filter(|entry| **entry != EMPTY) {
            prefetch_item_of(*entry);
        }
    }

    #[inline]
    pub(crate) fn item(&self, place: EntryIndex) -> ItemRef<'_> {
        item_at(self.entries[place.0])
    }

    pub(crate) fn expiry(&self, place: EntryIndex) -> Option<UnixMillis> {
        match self.expiries.get(place.0) {
            None | Some(&NEVER) => None,
            Some(&at) => Some(UnixMillis(at)),
        }
    }

    pub(crate) fn set_expiry(&mut self, place: EntryIndex, expiry: Option<UnixMillis>) {
        let had = self.expiry(place).is_some();
        if !had && expiry.is_none() {
            return;
        }
        if self.expiries.is_empty() {
            self.expiries = vec![NEVER; self.entries.len()].into_boxed_slice();
        }
        self.expiries[place.0] = expiry.map_or(NEVER, |at| at.0.min(NEVER - 1));
        self.expiring = self.expiring + u32::from(expiry.is_some()) - u32::from(had);
        if self.expiring == 0 {
            self.expiries = Box::default();
        }
    }

    /// Lets `change` modify the item in place, or replace it by another with the same key.
    #[inline]
    pub(crate) fn change<R>(
        &mut self,
        place: EntryIndex,
        change: impl FnOnce(&mut Item) -> R,
    ) -> R {
        let entry = &mut self.entries[place.0];
        // Not dropped if `change` panics: the entry still owns the item then.
        let mut item = ManuallyDrop::new(own_item(*entry));
        let result = change(&mut item);
        *entry = SegmentEntry::new(entry.tag(), ManuallyDrop::into_inner(item));
        result
    }

    /// Inserts an item that is known to be absent, if `entries_max` entries are enough.
    pub(crate) fn insert(&mut self, tag: EntryTag, item: Item, entries_max: usize) -> Inserted {
        let mut capacity = self.entries.len();
        if self.is_crowded_at(capacity) {
            capacity = larger(capacity);
        }
        loop {
            if capacity > entries_max {
                return Inserted::Full(item);
            }
            let fits = capacity == self.entries.len() || self.rebuild(capacity);
            if let Some(place) = fits.then(|| self.make_room(tag)).flatten() {
                self.entries[place.0] = SegmentEntry::new(tag, item);
                self.len += 1;
                return Inserted::At(place);
            }
            capacity = larger(capacity);
        }
    }

    /// Removes an item and returns it.
    pub(crate) fn remove(&mut self, place: EntryIndex) -> Item {
        self.set_expiry(place, None);
        let item = own_item(self.entries[place.0]);
        let mut end = place.0 + 1;
        while end < self.entries.len()
            && self.entries[end] != EMPTY
            && self.home(self.entries[end].tag()) < end
        {
            end += 1;
        }
        self.entries.copy_within(place.0 + 1..end, place.0);
        self.entries[end - 1] = EMPTY;
        if !self.expiries.is_empty() {
            self.expiries.copy_within(place.0 + 1..end, place.0);
            self.expiries[end - 1] = NEVER;
        }
        self.len -= 1;
        self.shrink();
        item
    }

    /// Returns the first entry at or after `from`, in the order of tags.
    pub(crate) fn next_from(&self, from: EntryIndex) -> Option<(EntryIndex, EntryTag)> {
        let behind = self.entries.get(from.0..)?;
        let gap = behind.iter().position(|entry| *entry != EMPTY)?;
        Some((EntryIndex(from.0 + gap), behind[gap].tag()))
    }

    /// Returns the first entry whose tag is `tag` or larger.
    pub(crate) fn first_with(&self, tag: EntryTag) -> Option<(EntryIndex, EntryTag)> {
        let mut at = EntryIndex(self.home(tag));
        loop {
            let (place, found) = self.next_from(at)?;
            if found >= tag {
                return Some((place, found));
            }
            at = place.next();
        }
    }

    /// Returns the first entry at or after `from` that has an expiry.
    pub(crate) fn next_expiring(&self, from: EntryIndex) -> Option<EntryIndex> {
        let behind = self.expiries.get(from.0..)?;
        behind.iter().position(|at| *at != NEVER).map(|gap| EntryIndex(from.0 + gap))
    }

    /// Returns the first entry at or after `from` that is due at `now`.
    pub(crate) fn next_due(&self, from: EntryIndex, now: UnixMillis) -> Option<EntryIndex> {
        let behind = self.expiries.get(from.0..)?;
        behind.iter().position(|at| *at <= now.0).map(|gap| EntryIndex(from.0 + gap))
    }

    /// Returns the earliest expiry time in this segment.
    pub(crate) fn earliest_expiry(&self) -> Option<UnixMillis> {
        self.expiries.iter().min().filter(|at| **at != NEVER).map(|at| UnixMillis(*at))
    }

    /// Returns a position chosen by a random number; it may be empty.
    pub(crate) fn random_place(&self, roll: u64) -> EntryIndex {
        let scaled = u128::from(roll) * self.entries.len() as u128;
        EntryIndex(usize::try_from(scaled >> 64).expect("below the length"))
    }

    /// Removes all items, and returns them in order with their expiry.
    pub(crate) fn drain(&mut self) -> Vec<(Item, Option<UnixMillis>)> {
        let count = self.entries.len();
        let entries: Vec<(SegmentEntry, Option<UnixMillis>)> =
            (0..count).map(|at| (self.entries[at], self.expiry(EntryIndex(at)))).collect();
        // Emptied before the items are owned again, so that none has two owners.
        self.entries = Box::default();
        *self = Segment::default();
        let there = entries.into_iter().filter(|(entry, _)| *entry != EMPTY);
        there.map(|(entry, expiry)| (own_item(entry), expiry)).collect()
    }

    /// Returns the home position of a tag. The last sixteenth is no tag's home; it takes the entries that are
    /// pushed behind the last home.
    #[inline(always)]
    fn home(&self, tag: EntryTag) -> usize {
        (usize::from(tag) * homes(self.entries.len())) >> EntryTag::BITS
    }

    /// Returns whether more than seven eighths would be in use: above that, searches become long.
    fn is_crowded_at(&self, capacity: usize) -> bool {
        (self.len() + 1) * 8 > capacity * 7
    }

    /// Opens a gap at the position of `tag`. `None` if the entries behind it reach to the end.
    fn make_room(&mut self, tag: EntryTag) -> Option<EntryIndex> {
        let mut at = self.home(tag);
        while *self.entries.get(at)? != EMPTY && self.entries[at].tag() <= tag {
            at += 1;
        }
        let gap = at + self.entries[at..].iter().position(|entry| *entry == EMPTY)?;
        self.entries.copy_within(at..gap, at + 1);
        if !self.expiries.is_empty() {
            self.expiries.copy_within(at..gap, at + 1);
            self.expiries[at] = NEVER;
        }
        Some(EntryIndex(at))
    }

    /// Lays out the entries again in `capacity` positions. Returns false, and changes nothing, if they do not fit
    /// in their order.
    fn rebuild(&mut self, capacity: usize) -> bool {
        let mut entries = vec![EMPTY; capacity].into_boxed_slice();
        let mut expiries = vec![NEVER; if self.expiring > 0 { capacity } else { 0 }];
        let mut free = 0;
        for (from, entry) in self.entries.iter().enumerate().filter(|(_, entry)| **entry != EMPTY) {
            let at = ((usize::from(entry.tag()) * homes(capacity)) >> EntryTag::BITS).max(free);
            if at >= capacity {
                return false;
            }
            entries[at] = *entry;
            if self.expiring > 0 {
                expiries[at] = self.expiries[from];
            }
            free = at + 1;
        }
        self.entries = entries;
        self.expiries = expiries.into_boxed_slice();
        true
    }

    fn shrink(&mut self) {
        if self.len == 0 {
            self.entries = Box::default();
        } else if self.len() * 4 < self.entries.len() && self.entries.len() > ENTRIES_MIN {
            self.rebuild(self.entries.len() / 2);
        }
    }
}

impl EntryIndex {
    pub(crate) const FIRST: EntryIndex = EntryIndex(0);

    pub(crate) fn next(self) -> EntryIndex {
        EntryIndex(self.0 + 1)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        for (place, entry) in self.entries.iter().enumerate() {
            self.prefetch_ahead(EntryIndex(place));
            if *entry != EMPTY {
                drop(own_item(*entry));
            }
        }
    }
}

/// Compares two keys; those of 8 to 16 bytes, which are most, as two words that may overlap.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    const WORD: usize = 8;
    if one.len() != other.len() || one.len() > 2 * WORD {
        return one == other;
    }
    match (one.first_chunk::<WORD>(), one.last_chunk::<WORD>()) {
        (Some(first), Some(last)) => {
            Some(first) == other.first_chunk() && Some(last) == other.last_chunk()
        }
        (None, _) | (_, None) => one == other,
    }
}

fn homes(capacity: usize) -> usize {
    capacity - (capacity / 16).max(usize::from(capacity > 0))
}

/// Returns the next larger number of entries that fills a block of the allocator.
fn larger(capacity: usize) -> usize {
    let bytes = capacity.max(ENTRIES_MIN - 1) * size_of::<SegmentEntry>();
    block_bytes(bytes + size_of::<SegmentEntry>()) / size_of::<SegmentEntry>()
}

#[inline]
fn prefetch_item_of(entry: SegmentEntry) {
    // Most items extend into a second cache line.
    let address = item_at(entry).address();
    prefetch(address);
    prefetch(address.wrapping_add(CACHE_LINE_BYTES));
}

#[inline(always)]
#[expect(unsafe_code, reason = "an entry is a packed pointer")]
fn item_at<'a>(entry: SegmentEntry) -> ItemRef<'a> {
    // SAFETY: entries are made from items alone, the segment owns the items of its entries, and every
    // caller binds the result to its own borrow of the segment or drops it before it returns.
    unsafe { ItemRef::from_address(entry.address()) }
}

#[inline(always)]
#[expect(unsafe_code, reason = "an entry is a packed pointer")]
fn own_item(entry: SegmentEntry) -> Item {
    // SAFETY: the caller takes the entry out of the table (or puts the item back over it, or drops
    // the table), so the item has one owner.
    unsafe { Item::from_address(entry.address()) }
}

#[cfg(test)]
mod tests;
