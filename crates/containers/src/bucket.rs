//! One bucket of a table: a block of entries in packed form, each behind a byte with seven bits of its hash. An entry
//! that is too large for that has a block of its own. Called by `table.rs` only.

use crate::block::{self, array_bytes};
use crate::element::Encoded;
use crate::memory::block_bytes;
use crate::row::skip_entry;

/// Longer entries have a block of their own.
const INLINE_BYTES_MAX: usize = 256;
/// Set in the tag of an entry with a block of its own: nothing follows the tag. The blocks are in the order of the
/// tags.
const LARGE: u8 = 0x80;

#[derive(Default)]
pub(crate) struct Bucket {
    entries: Vec<u8>,
    larges: Option<Box<LargeEntries>>,
}

#[derive(Default)]
struct LargeEntries(Vec<Box<[u8]>>);

/// The location of an entry; valid until the bucket is changed.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Offset of the tag.
    at: usize,
    /// Offset behind the entry.
    end: usize,
    /// Index of the entry's own block.
    large: Option<usize>,
}

/// Returns the bits of a hash that are stored with an entry. They do not take part in the choice of the bucket.
#[inline]
pub(crate) fn tag_of(hash: u64) -> u8 {
    (hash >> 57) as u8
}

impl Bucket {
    #[inline]
    pub(crate) fn find(&self, tag: u8, first: &Encoded<'_>, width: usize) -> Option<Place> {
        self.places(width).find(|place| {
            self.entries[place.at] & !LARGE == tag && first.begins(self.entry_on(*place))
        })
    }

    #[inline]
    pub(crate) fn entry(&self, place: Place) -> &[u8] {
        match place.large {
            None => &self.entries[place.at + 1..place.end],
            Some(index) => self.large(index),
        }
    }

    /// Iterates over tags and entries.
    pub(crate) fn iter(&self, width: usize) -> impl Iterator<Item = (u8, &[u8])> {
        self.places(width).map(|place| (self.entries[place.at] & !LARGE, self.entry(place)))
    }

    /// Returns the number of entries. Walks over all of them.
    pub(crate) fn len(&self, width: usize) -> usize {
        self.places(width).count()
    }

    pub(crate) fn append(&mut self, tag: u8, entry: &[u8]) {
        let end = self.entries.len();
        if entry.len() > INLINE_BYTES_MAX {
            block::splice(&mut self.entries, end..end, &[tag | LARGE]);
            self.larges.get_or_insert_default().0.push(entry.into());
        } else {
            block::splice(&mut self.entries, end..end, &[tag]);
            block::splice(&mut self.entries, end + 1..end + 1, entry);
        }
    }

    /// Replaces an entry by another one with the same first element.
    pub(crate) fn replace(&mut self, place: Place, entry: &[u8]) {
        let is_large = entry.len() > INLINE_BYTES_MAX;
        match place.large {
            None if !is_large => block::splice(&mut self.entries, place.at + 1..place.end, entry),
            Some(index) if is_large => self.larges.get_or_insert_default().0[index] = entry.into(),
            None | Some(_) => {
                let tag = self.entries[place.at] & !LARGE;
                self.remove(place);
                self.append(tag, entry);
            }
        }
    }

    pub(crate) fn remove(&mut self, place: Place) {
        block::splice(&mut self.entries, place.at..place.end, &[]);
        if let (Some(index), Some(larges)) = (place.large, &mut self.larges) {
            larges.0.remove(index);
            if larges.0.is_empty() {
                self.larges = None;
            }
        }
    }

    /// Returns the length of the packed entries.
    pub(crate) fn packed_len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the bucket's memory in the allocator.
    pub(crate) fn bytes(&self) -> usize {
        let larges = self.larges.as_ref().map_or(0, |larges| {
            let entries = larges.0.iter().map(|entry| block_bytes(entry.len())).sum::<usize>();
            let array = array_bytes::<Box<[u8]>>(larges.0.capacity());
            block_bytes(size_of::<LargeEntries>()) + array + entries
        });
        array_bytes::<u8>(self.entries.capacity()) + larges
    }

    /// Returns the bytes at a place, up to the end of the block: enough to compare the first element.
    #[inline]
    fn entry_on(&self, place: Place) -> &[u8] {
        match place.large {
            None => &self.entries[place.at + 1..],
            Some(index) => self.large(index),
        }
    }

    fn large(&self, index: usize) -> &[u8] {
        &self.larges.as_ref().expect("a tag says that there is one").0[index]
    }

    #[inline]
    fn places(&self, width: usize) -> impl Iterator<Item = Place> {
        let (mut at, mut larges) = (0, 0);
        core::iter::from_fn(move || {
            let tag = *self.entries.get(at)?;
            let place = if tag & LARGE == 0 {
                Place { at, end: skip_entry(&self.entries, at + 1, width), large: None }
            } else {
                larges += 1;
                Place { at, end: at + 1, large: Some(larges - 1) }
            };
            at = place.end;
            Some(place)
        })
    }
}
