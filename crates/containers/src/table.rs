//! Entries found by their first element: large hashes (field, value), large sets (member), the members of a sorted set
//! (member, score).
//!
//! Linear hashing: bucket `n` holds the entries whose hashes end in the bits of `n`. To grow, the table splits one
//! bucket in two by the next bit; to shrink, it joins two. So a write moves about a kilobyte at most, and there is no
//! array that must be doubled at once.
//!
//! Reversed, the bits of a bucket's number are the first bits of its entries' reversed hashes. In the order of reversed
//! hashes, the entries of a bucket follow one another, however many buckets there are. A [`TablePosition`] is a place in
//! that order: a walk can stop there and continue later, whatever happened to the table meanwhile.
//!
//! Entries may have deadlines (`deadline.rs`). Each array of buckets knows a time before which none of its entries is
//! due, so a search for due entries reads only arrays that may have some.

use crate::block::array_bytes;
use crate::bucket::{Bucket, tag_of};
use crate::deadline::deadline_of;
use crate::element::{self, Element, Encoded};
use crate::memory::block_bytes;
use crate::row::pair;

/// The table grows when its buckets have more entries than this on average ...
const BUCKET_ENTRIES: usize = 32;
/// ... or are longer than this on average.
const BUCKET_BYTES: usize = 512;
/// Number of elements of an entry that may have a deadline.
const PAIR: usize = 2;
/// Number of buckets in one array.
const CHUNK_BUCKETS: usize = 64;
/// Attempts to draw a random entry, each of which succeeds with a probability of about a quarter.
const DRAWS_MAX: usize = 64;

/// A hash function with its seed.
pub trait HashBytes {
    fn hash(&self, bytes: &[u8]) -> u64;
}

/// A place in the order of reversed hashes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct TablePosition(pub u64);

impl TablePosition {
    pub const START: TablePosition = TablePosition(0);

    fn of_hash(hash: u64) -> TablePosition {
        TablePosition(hash.reverse_bits())
    }
}

/// An array of buckets.
struct Chunk {
    buckets: Vec<Bucket>,
    /// No entry is due before this time. It may be too early, never too late.
    due_from: u64,
}

impl Chunk {
    fn new(buckets: Vec<Bucket>) -> Chunk {
        Chunk { buckets, due_from: NEVER }
    }
}

/// A time later than any deadline.
const NEVER: u64 = u64::MAX;

pub struct Table {
    /// Arrays of buckets; all but the last one are full.
    chunks: Vec<Chunk>,
    bucket_count: usize,
    len: usize,
    /// Sum of the lengths of the packed entries.
    packed_len: usize,
    /// Memory of the buckets' blocks.
    block_bytes: usize,
    /// Memory of the arrays.
    array_bytes: usize,
    width: u8,
    /// False if no entry has a deadline.
    has_deadlines: bool,
}

impl Table {
    /// Creates an empty table of entries with `width` elements.
    pub fn new(width: usize) -> Table {
        let width = u8::try_from(width).expect("an entry has one or two elements");
        let mut table = Table {
            chunks: Vec::with_capacity(1),
            bucket_count: 0,
            len: 0,
            packed_len: 0,
            block_bytes: 0,
            array_bytes: array_bytes::<Chunk>(1),
            width,
            has_deadlines: false,
        };
        table.push_bucket();
        table
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn width(&self) -> usize {
        self.width.into()
    }

    /// Returns the table's memory in the allocator, including the block of the table itself.
    pub fn bytes(&self) -> usize {
        block_bytes(size_of::<Table>()) + self.block_bytes + self.array_bytes
    }

    pub fn contains(&self, hasher: &impl HashBytes, first: Element<'_>) -> bool {
        self.entry(hasher, first).is_some()
    }

    /// Returns the second element of the pair that begins with `first`.
    #[inline]
    pub fn get(&self, hasher: &impl HashBytes, first: Element<'_>) -> Option<Element<'_>> {
        self.entry(hasher, first).map(|entry| pair(entry).1)
    }

    /// Returns the entry that begins with `first`.
    #[inline]
    pub fn entry(&self, hasher: &impl HashBytes, first: Element<'_>) -> Option<&[u8]> {
        let first = Encoded::of(first);
        let hash = hasher.hash(first.hashed());
        let bucket = self.bucket(self.number_of(hash));
        bucket.find(tag_of(hash), &first, self.width()).map(|place| bucket.entry(place))
    }

    /// Sets the pair that begins with `first`. Returns whether it is new.
    pub fn set(
        &mut self,
        hasher: &impl HashBytes,
        first: Element<'_>,
        second: Element<'_>,
    ) -> bool {
        let mut entry = Vec::with_capacity(Encoded::of(first).len() + Encoded::of(second).len());
        first.write(&mut entry);
        second.write(&mut entry);
        self.put(hasher, first, &entry)
    }

    /// Adds a member. Returns whether it is new.
    pub fn add(&mut self, hasher: &impl HashBytes, member: Element<'_>) -> bool {
        let mut entry = Vec::with_capacity(Encoded::of(member).len());
        member.write(&mut entry);
        self.put(hasher, member, &entry)
    }

    /// Sets an entry in packed form. Returns whether it is new.
    pub fn put_entry(&mut self, hasher: &impl HashBytes, entry: &[u8]) -> bool {
        self.put(hasher, element::read(entry).0, entry)
    }

    fn put(&mut self, hasher: &impl HashBytes, first: Element<'_>, entry: &[u8]) -> bool {
        let first = Encoded::of(first);
        let hash = hasher.hash(first.hashed());
        let (tag, width) = (tag_of(hash), self.width());
        self.note_deadline(self.number_of(hash), entry);
        let is_new =
            self.change(self.number_of(hash), |bucket| match bucket.find(tag, &first, width) {
                Some(place) => {
                    bucket.replace(place, entry);
                    false
                }
                None => {
                    bucket.append(tag, entry);
                    true
                }
            });
        self.len += usize::from(is_new);
        // One entry adds less than one bucket, except after a change of many lengths: then a few writes share the work.
        for _ in 0..2 {
            if self.bucket_count < self.wanted_buckets() {
                self.split(hasher);
            }
        }
        is_new
    }

    /// Removes the entry that begins with `first`. Returns whether there was one.
    pub fn remove(&mut self, hasher: &impl HashBytes, first: Element<'_>) -> bool {
        let first = Encoded::of(first);
        let hash = hasher.hash(first.hashed());
        let (tag, width) = (tag_of(hash), self.width());
        let is_removed = self.change(self.number_of(hash), |bucket| {
            let place = bucket.find(tag, &first, width);
            place.inspect(|place| bucket.remove(*place)).is_some()
        });
        self.len -= usize::from(is_removed);
        if self.bucket_count > 2 * self.wanted_buckets() {
            self.join();
        }
        is_removed
    }

    /// Iterates over all entries in packed form.
    pub fn entries(&self) -> impl Iterator<Item = &[u8]> {
        let buckets = self.chunks.iter().flat_map(|chunk| &chunk.buckets);
        buckets.flat_map(|bucket| bucket.iter(self.width()).map(|(_, entry)| entry))
    }

    /// Iterates over all entries of a table of pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (Element<'_>, Element<'_>)> {
        self.entries().map(pair)
    }

    /// Visits entries in the order of their reversed hashes from `from` on, until `visit` returns false. Returns the
    /// position to continue from; `None` at the end. An entry that is in the table during a whole walk is visited by
    /// that walk; entries with the same hash are visited together.
    pub fn scan(
        &self,
        hasher: &impl HashBytes,
        from: TablePosition,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Option<TablePosition> {
        let mut from = from;
        let mut goes_on = true;
        loop {
            let number = self.number_of(from.0.reverse_bits());
            let mut last = None;
            for (position, entry) in self.sorted(hasher, number, from) {
                if !goes_on && last != Some(position) {
                    return Some(position);
                }
                goes_on = visit(entry) && goes_on;
                last = Some(position);
            }
            from = self.end_of(number)?;
            if !goes_on {
                return Some(from);
            }
        }
    }

    /// Returns a random entry; all are about equally likely.
    pub fn random(&self, mut roll: impl FnMut() -> u64) -> Option<&[u8]> {
        if self.is_empty() {
            return None;
        }
        // Few buckets have more than twice the average, so this is a draw among all entries and some gaps.
        let places = 2 * self.len.div_ceil(self.bucket_count) + 8;
        for _ in 0..DRAWS_MAX {
            let roll = roll();
            let bucket = self.bucket((roll % self.bucket_count as u64) as usize);
            let place = (roll >> 32) as usize % places.max(bucket.len(self.width()));
            if let Some((_, entry)) = bucket.iter(self.width()).nth(place) {
                return Some(entry);
            }
        }
        let start = (roll() % self.bucket_count as u64) as usize;
        (0..self.bucket_count).find_map(|step| {
            let bucket = self.bucket((start + step) % self.bucket_count);
            bucket.iter(self.width()).next().map(|(_, entry)| entry)
        })
    }

    /// Returns a time before which no entry is due; `None` if none has a deadline. It may be too early, never too late.
    pub fn due_from(&self) -> Option<u64> {
        if !self.has_deadlines {
            return None;
        }
        let earliest = self.chunks.iter().map(|chunk| chunk.due_from).min();
        earliest.filter(|from| *from != NEVER)
    }

    /// Visits entries that are due at `now`, until `visit` returns false.
    pub fn due(&self, now: u64, mut visit: impl FnMut(&[u8]) -> bool) {
        let width = self.width();
        let chunks = self.chunks.iter().filter(|chunk| chunk.due_from <= now);
        let entries = chunks.flat_map(|chunk| &chunk.buckets).flat_map(|bucket| bucket.iter(width));
        for (_, entry) in entries {
            if deadline_of(entry).is_some_and(|at| at <= now) && !visit(entry) {
                return;
            }
        }
    }

    /// Looks up the earliest deadlines where one may be due at `now`, so that the next search reads less.
    pub fn settle_deadlines(&mut self, now: u64) {
        let width = self.width();
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.due_from <= now) {
            let entries = chunk.buckets.iter().flat_map(|bucket| bucket.iter(width));
            let earliest = entries.filter_map(|(_, entry)| deadline_of(entry)).min();
            chunk.due_from = earliest.unwrap_or(NEVER);
        }
        self.has_deadlines = self.chunks.iter().any(|chunk| chunk.due_from != NEVER);
    }

    /// Records that an entry is, or is about to be, in this bucket.
    #[inline]
    fn note_deadline(&mut self, number: usize, entry: &[u8]) {
        if self.width() == PAIR
            && let Some(at) = deadline_of(entry)
        {
            let chunk = &mut self.chunks[number / CHUNK_BUCKETS];
            chunk.due_from = chunk.due_from.min(at);
            self.has_deadlines = true;
        }
    }

    /// Frees up to `buckets` buckets of a table that is no longer needed. Returns false when nothing is left. Nothing
    /// else may be called afterwards.
    pub fn free_some(&mut self, buckets: usize) -> bool {
        for _ in 0..buckets {
            let Some(chunk) = self.chunks.last_mut() else { return false };
            if chunk.buckets.pop().is_none() {
                self.chunks.pop();
            }
        }
        !self.chunks.is_empty()
    }

    /// Returns the entries of a bucket from a position on, in the order of their positions.
    fn sorted(
        &self,
        hasher: &impl HashBytes,
        number: usize,
        from: TablePosition,
    ) -> Vec<(TablePosition, &[u8])> {
        let entries = self.bucket(number).iter(self.width()).map(|(_, entry)| entry);
        let placed = entries.map(|entry| (TablePosition::of_hash(hash_of(hasher, entry)), entry));
        let mut sorted: Vec<_> = placed.filter(|(position, _)| *position >= from).collect();
        sorted.sort_unstable_by_key(|(position, _)| *position);
        sorted
    }

    /// Returns the first position after those of a bucket; `None` if there is none.
    fn end_of(&self, number: usize) -> Option<TablePosition> {
        let bits = self.bits_of(number);
        let step = 1u64.checked_shl(u64::BITS - bits)?;
        let first = (number as u64).reverse_bits();
        first.checked_add(step).map(TablePosition)
    }

    /// Returns the number of bits of a hash that select this bucket.
    fn bits_of(&self, number: usize) -> u32 {
        let all = self.bucket_count.next_power_of_two();
        let half = all / 2;
        let is_split = number >= half || number + half < self.bucket_count;
        all.ilog2() - u32::from(!is_split)
    }

    #[inline]
    fn number_of(&self, hash: u64) -> usize {
        let mask = self.bucket_count.next_power_of_two() - 1;
        let number = hash as usize & mask;
        if number < self.bucket_count { number } else { number & mask >> 1 }
    }

    /// Returns the bucket that the last one was split from.
    fn origin_of_last(&self) -> usize {
        let mask = self.bucket_count.next_power_of_two() - 1;
        (self.bucket_count - 1) & mask >> 1
    }

    #[inline]
    fn bucket(&self, number: usize) -> &Bucket {
        &self.chunks[number / CHUNK_BUCKETS].buckets[number % CHUNK_BUCKETS]
    }

    /// Changes a bucket and updates the sums.
    fn change<R>(&mut self, number: usize, change: impl FnOnce(&mut Bucket) -> R) -> R {
        let bucket = &mut self.chunks[number / CHUNK_BUCKETS].buckets[number % CHUNK_BUCKETS];
        let (bytes, packed_len) = (bucket.bytes(), bucket.packed_len());
        let result = change(bucket);
        self.block_bytes = self.block_bytes + bucket.bytes() - bytes;
        self.packed_len = self.packed_len + bucket.packed_len() - packed_len;
        result
    }

    fn wanted_buckets(&self) -> usize {
        self.len.div_ceil(BUCKET_ENTRIES).max(self.packed_len.div_ceil(BUCKET_BYTES)).max(1)
    }

    /// Adds a bucket, and moves to it the entries of the bucket that it splits.
    fn split(&mut self, hasher: &impl HashBytes) {
        self.push_bucket();
        let (origin, last, width) = (self.origin_of_last(), self.bucket_count - 1, self.width());
        let old = self.change(origin, core::mem::take);
        for (tag, entry) in old.iter(width) {
            let number = self.number_of(hash_of(hasher, entry));
            debug_assert!(number == origin || number == last);
            self.change(number, |bucket| bucket.append(tag, entry));
            if self.has_deadlines {
                self.note_deadline(number, entry);
            }
        }
    }

    /// Joins the last bucket with the one that it was split from.
    fn join(&mut self) {
        let (origin, last, width) = (self.origin_of_last(), self.bucket_count - 1, self.width());
        let old = self.change(last, core::mem::take);
        self.change(origin, |bucket| {
            old.iter(width).for_each(|(tag, entry)| bucket.append(tag, entry));
        });
        let arrays = self.last_arrays();
        let due_from = self.chunks[last / CHUNK_BUCKETS].due_from;
        let origin = &mut self.chunks[origin / CHUNK_BUCKETS];
        origin.due_from = origin.due_from.min(due_from);
        let chunk = self.chunks.last_mut().expect("there is a bucket");
        chunk.buckets.pop();
        if chunk.buckets.is_empty() {
            self.chunks.pop();
        }
        self.bucket_count -= 1;
        self.count_arrays(arrays);
    }

    fn push_bucket(&mut self) {
        let arrays = self.last_arrays();
        match self.chunks.last_mut() {
            Some(chunk) if chunk.buckets.len() < CHUNK_BUCKETS => {
                chunk.buckets.push(Bucket::default());
            }
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK_BUCKETS);
                chunk.push(Bucket::default());
                self.chunks.push(Chunk::new(chunk));
            }
            None => self.chunks.push(Chunk::new(vec![Bucket::default()])),
        }
        self.bucket_count += 1;
        self.count_arrays(arrays);
    }

    /// Returns the memory of the arrays that a change of the last bucket may affect, except new ones.
    fn last_arrays(&self) -> (usize, usize) {
        let capacity = self.chunks.last().map(|chunk| chunk.buckets.capacity());
        let last = capacity.map_or(0, array_bytes::<Bucket>);
        (self.chunks.len(), last + array_bytes::<Chunk>(self.chunks.capacity()))
    }

    /// Updates the memory of the arrays after a change of the last bucket.
    fn count_arrays(&mut self, (count, bytes): (usize, usize)) {
        let full = array_bytes::<Bucket>(CHUNK_BUCKETS);
        let (new_count, new_bytes) = self.last_arrays();
        // The last array is counted on both sides. All arrays before it are full ones; the first one, too, by then.
        self.array_bytes = self.array_bytes + new_bytes - bytes;
        match new_count.cmp(&count) {
            core::cmp::Ordering::Greater if count > 0 => self.array_bytes += full,
            core::cmp::Ordering::Less => self.array_bytes -= full,
            core::cmp::Ordering::Greater | core::cmp::Ordering::Equal => {}
        }
    }
}

fn hash_of(hasher: &impl HashBytes, entry: &[u8]) -> u64 {
    hasher.hash(Encoded::of(element::read(entry).0).hashed())
}

#[cfg(test)]
mod tests;
