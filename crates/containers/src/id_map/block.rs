//! One block of a map by ids: a head, and entries of rising ids in packed form. Called by `id_map.rs` only.
//!
//! ~~~text
//! head...  entry...  entry...
//! entry: milliseconds since those of the base, number (minus that of the base in its millisecond), length, payload
//! ~~~

use core::ops::Range;

use super::IdEntry;
use crate::block::{self, array_bytes};
use crate::stream_id::StreamId;
use crate::varint;

pub(super) struct Block {
    /// Not above the id of any entry.
    pub(super) base: StreamId,
    bytes: Vec<u8>,
    pub(super) len: u32,
    head_len: u32,
}

/// The location of an entry in its block.
pub(super) struct Place {
    pub(super) bytes: Range<usize>,
    pub(super) is_present: bool,
}

impl Block {
    pub(super) fn new(base: StreamId, head: &[u8]) -> Block {
        let head_len = u32::try_from(head.len()).expect("an entry is shorter than 4 GiB");
        Block { base, bytes: block::of(head), len: 0, head_len }
    }

    pub(super) fn head(&self) -> &[u8] {
        &self.bytes[..self.head_len as usize]
    }

    pub(super) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&self) -> usize {
        array_bytes::<u8>(self.bytes.capacity())
    }

    /// Reads the entry at an offset; returns it and the offset behind it. `None` at the end.
    #[inline]
    pub(super) fn entry_at(&self, at: usize) -> Option<(IdEntry<'_>, usize)> {
        let rest = &self.bytes[at..];
        if rest.is_empty() {
            return None;
        }
        let (id, rest) = self.read_id(rest);
        let (payload, rest) = varint::read_bytes(rest).expect("written by this crate");
        let behind = self.bytes.len() - rest.len();
        Some((IdEntry { id, head: self.head(), payload }, behind))
    }

    #[inline]
    fn read_id<'b>(&self, bytes: &'b [u8]) -> (StreamId, &'b [u8]) {
        let (later, rest) = varint::read(bytes).expect("written by this crate");
        let (seq, rest) = varint::read(rest).expect("written by this crate");
        let seq = if later == 0 { self.base.seq + seq } else { seq };
        (StreamId { ms: self.base.ms + later, seq }, rest)
    }

    /// Iterates over the entries from an offset on, each with its own offset.
    pub(super) fn entries_from(&self, at: usize) -> impl Iterator<Item = (usize, IdEntry<'_>)> {
        let mut at = at;
        core::iter::from_fn(move || {
            let (entry, behind) = self.entry_at(at)?;
            let start = core::mem::replace(&mut at, behind);
            Some((start, entry))
        })
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, IdEntry<'_>)> {
        self.entries_from(self.head_len as usize)
    }

    /// Returns the place of an entry; if it is missing, the place to insert it.
    pub(super) fn place(&self, id: StreamId) -> Place {
        let mut at = self.head_len as usize;
        while let Some((entry, behind)) = self.entry_at(at) {
            if entry.id >= id {
                let is_present = entry.id == id;
                return Place { bytes: at..if is_present { behind } else { at }, is_present };
            }
            at = behind;
        }
        Place { bytes: at..at, is_present: false }
    }

    /// Returns the place behind the last entry.
    pub(super) fn end(&self) -> Place {
        Place { bytes: self.bytes.len()..self.bytes.len(), is_present: false }
    }

    pub(super) fn last(&self) -> Option<IdEntry<'_>> {
        self.entries().last().map(|(_, entry)| entry)
    }

    /// Writes an entry at its place.
    pub(super) fn write(&mut self, place: Place, id: StreamId, payload: [&[u8]; 2]) {
        let len = payload[0].len() + payload[1].len();
        let mut entry = Vec::with_capacity(len + 24);
        let later = id.ms - self.base.ms;
        varint::put(&mut entry, later);
        varint::put(&mut entry, if later == 0 { id.seq - self.base.seq } else { id.seq });
        varint::put(&mut entry, len as u64);
        payload.iter().for_each(|part| entry.extend_from_slice(part));
        self.len += u32::from(!place.is_present);
        block::splice(&mut self.bytes, place.bytes, &entry);
    }

    pub(super) fn remove(&mut self, place: Place) {
        block::splice(&mut self.bytes, place.bytes, &[]);
        self.len -= 1;
    }

    /// Removes the entries before an offset; returns their number.
    pub(super) fn remove_before(&mut self, end: usize) -> u32 {
        let start = self.head_len as usize;
        let removed = self.entries().take_while(|(at, _)| *at < end).count();
        let removed = u32::try_from(removed).expect("no more than the length");
        block::splice(&mut self.bytes, start..end, &[]);
        self.len -= removed;
        removed
    }

    /// Moves the entries from an offset on into a new block.
    pub(super) fn split(&mut self, at: usize) -> Option<Block> {
        let (first, _) = self.entry_at(at)?;
        let mut second = Block::new(first.id, self.head());
        let mut moved = Vec::new();
        moved.extend(self.entries_from(at).map(|(_, entry)| (entry.id, entry.payload.to_vec())));
        for (id, payload) in &moved {
            second.write(second.end(), *id, [payload, &[]]);
        }
        let end = self.bytes.len();
        block::splice(&mut self.bytes, at..end, &[]);
        self.len -= second.len;
        Some(second)
    }

    /// Appends the entries of the next block, which has the same head.
    pub(super) fn append(&mut self, next: &Block) {
        for (_, entry) in next.entries() {
            self.write(self.end(), entry.id, [entry.payload, &[]]);
        }
    }
}
