//! A slot's record of a split of the cluster (split brain): its version at the split, and tombstones of the keys
//! removed since. Kept only while the map says that another side may have continued; `cluster` starts and ends it,
//! sends it along with a slot, and reads it when the two sides merge. Keys are kept by their names ([`Key::name`]).

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::encoding::{ByteReader, put_bytes, put_u64};
use crate::{Applied, Cause, DecodeError, Key, SlotTable, Version};

/// Memory of a tombstone besides its key: its entry in the tree, and the block of the key.
const TOMB_BYTES: usize = 64;

/// The divergence of one slot's history from that of another side.
#[derive(Debug, Default)]
pub struct DivergenceLog {
    /// The slot's version at the split; zero if this side held nothing of it.
    at: Version,
    /// Every key removed after this version is known.
    complete_from: Version,
    /// The version at which the whole slot was last emptied. Tombstones are of keys removed since.
    emptied_at: Version,
    tombstones: BTreeMap<Box<[u8]>, Tombstone>,
    /// Items merged from another side that are unchanged since: their version here, and their original version. Not
    /// replicated: only this node has this information.
    brought: BTreeMap<Box<[u8]>, (Version, Version)>,
    bytes: usize,
}

/// A tombstone: the record of a removed key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tombstone {
    pub version: Version,
    /// True if the key expired or was evicted, and had not changed since the split: then it also goes away on the
    /// other side by itself.
    pub by_itself: bool,
}

impl DivergenceLog {
    /// Returns the slot's version at the split.
    pub fn at(&self) -> Version {
        self.at
    }

    /// Returns whether every key removed since the split is known.
    pub fn is_complete(&self) -> bool {
        self.complete_from <= self.at
    }

    /// Returns the version at which the whole slot was last emptied; zero if never.
    pub fn emptied_at(&self) -> Version {
        self.emptied_at
    }

    pub fn tombstone(&self, key: &[u8]) -> Option<Tombstone> {
        self.tombstones.get(key).copied()
    }

    pub fn tombstone_count(&self) -> usize {
        self.tombstones.len() + self.brought.len()
    }

    /// Returns the original version of an item that has `version` here.
    pub fn made_at(&self, key: &[u8], version: Version) -> Version {
        let brought = self.brought.get(key).filter(|(here, _)| *here == version);
        brought.map_or(version, |(_, made)| *made)
    }

    /// Returns the tombstones in the order of their keys, starting after the key `after`.
    pub fn tombstones(&self, after: Option<&[u8]>) -> impl Iterator<Item = (&[u8], Tombstone)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tombstones = self.tombstones.range::<[u8], _>((from, Bound::Unbounded));
        tombstones.map(|(key, tombstone)| (&**key, *tombstone))
    }

    /// Appends about `max` bytes of the record. If there is more, returns the key after which to continue.
    pub fn encode(&self, after: Option<&[u8]>, max: usize, out: &mut Vec<u8>) -> Option<Box<[u8]>> {
        let start = out.len();
        put_u64(out, self.at.0);
        put_u64(out, self.complete_from.0);
        put_u64(out, self.emptied_at.0);
        for (key, tombstone) in self.tombstones(after) {
            put_u64(out, tombstone.version.0);
            out.push(u8::from(tombstone.by_itself));
            put_bytes(out, key);
            if out.len() - start >= max {
                return Some(key.into());
            }
        }
        None
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn insert_tombstone(&mut self, key: &[u8], tombstone: Tombstone) {
        if self.tombstones.insert(key.into(), tombstone).is_none() {
            self.bytes += TOMB_BYTES + key.len();
        }
    }

    fn remove_tombstone(&mut self, key: &[u8]) {
        if self.tombstones.remove(key).is_some() {
            self.bytes -= TOMB_BYTES + key.len();
        }
    }

    fn forget_tombstones(&mut self, now: Version) {
        (self.complete_from, self.bytes) = (now, 0);
        self.tombstones.clear();
        self.brought.clear();
    }
}

impl SlotTable {
    /// Records the split-brain point of this slot at version `at`. Idempotent: only the first call counts.
    pub fn begin_divergence(&mut self, at: Version) {
        if self.divergence().is_none() {
            // Removals before this moment are unknown.
            let divergence =
                DivergenceLog { at, complete_from: self.version, ..DivergenceLog::default() };
            self.set_divergence(Some(divergence));
        }
    }

    /// Drops the record: there is only one history again.
    pub fn end_divergence(&mut self) -> Applied {
        let before = self.divergence_bytes();
        self.set_divergence(None);
        Applied { grown_bytes: -before, ..Applied::default() }
    }

    /// Records that the item just written here comes from another side, which had created it at version `made`.
    pub fn note_brought(&mut self, key: &Key<'_>, made: Version) {
        let here = self.peek(key).map(|found| found.item.version());
        let name = key.name();
        let tombstone = self.divergence().and_then(|it| it.tombstone(&name));
        let Some(divergence) = self.divergence_mut() else { return };
        match (here, tombstone) {
            (Some(here), _) => {
                if divergence.brought.insert((*name).into(), (here, made)).is_none() {
                    divergence.bytes += TOMB_BYTES + name.len();
                }
            }
            (None, Some(tombstone)) => {
                divergence.insert_tombstone(&name, Tombstone { version: made, ..tombstone });
            }
            (None, None) => {}
        }
    }

    /// Drops all tombstones because there are too many, and records that they are incomplete from now on.
    pub fn forget_tombstones(&mut self) -> Applied {
        let before = self.divergence_bytes();
        let now = self.version;
        if let Some(divergence) = self.divergence_mut() {
            divergence.forget_tombstones(now);
        }
        Applied { grown_bytes: self.divergence_bytes() - before, ..Applied::default() }
    }

    /// Adds a piece of another node's record of this slot.
    pub fn take_divergence(&mut self, piece: &[u8]) -> Result<Applied, DecodeError> {
        let before = self.divergence_bytes();
        let mut input = ByteReader(piece);
        let at = Version(input.u64()?);
        let complete_from = Version(input.u64()?);
        let emptied_at = Version(input.u64()?);
        if self.divergence().is_none() {
            self.set_divergence(Some(DivergenceLog::default()));
        }
        let divergence = self.divergence_mut().expect("it has just been set");
        (divergence.at, divergence.complete_from, divergence.emptied_at) =
            (at, complete_from, emptied_at);
        while !input.0.is_empty() {
            let version = Version(input.u64()?);
            let by_itself = input.flag()?;
            divergence.insert_tombstone(input.bytes()?, Tombstone { version, by_itself });
        }
        Ok(Applied { grown_bytes: self.divergence_bytes() - before, ..Applied::default() })
    }

    /// Takes over the other table's record, except for tombstones of keys that this table contains.
    pub fn inherit_divergence(&mut self, from: &mut SlotTable) {
        self.set_divergence(None);
        let Some(mut divergence) = from.take_divergence_log() else { return };
        let mut back = Vec::new();
        self.for_each(|found| back.push(found.name().into_owned()));
        back.iter().for_each(|key| divergence.remove_tombstone(key));
        self.set_divergence(Some(divergence));
    }

    pub(crate) fn divergence_bytes(&self) -> i64 {
        self.divergence().map_or(0, |divergence| divergence.bytes() as i64)
    }

    /// Records the removal of a key that had the version `was`. Returns the growth of the record in bytes.
    pub(crate) fn note_removal(
        &mut self,
        key: &Key<'_>,
        (was, now): (Version, Version),
        cause: Cause,
    ) -> i64 {
        self.remember(|divergence| {
            let is_changed = was > divergence.at;
            let by_itself = !is_changed && cause != Cause::Deleted;
            divergence.insert_tombstone(&key.name(), Tombstone { version: now, by_itself });
        })
    }

    /// Records that the key exists again. Returns the growth of the record in bytes.
    #[inline]
    pub(crate) fn note_arrival(&mut self, key: &Key<'_>) -> i64 {
        self.remember(|divergence| divergence.remove_tombstone(&key.name()))
    }

    /// Records the removal of all keys. Returns the growth of the record in bytes.
    pub(crate) fn note_emptied(&mut self, now: Version) -> i64 {
        self.remember(|divergence| {
            let complete_from = divergence.complete_from;
            divergence.forget_tombstones(complete_from);
            divergence.emptied_at = now;
        })
    }

    #[inline]
    fn remember(&mut self, edit: impl FnOnce(&mut DivergenceLog)) -> i64 {
        let Some(divergence) = self.divergence_mut() else { return 0 };
        let before = divergence.bytes() as i64;
        edit(divergence);
        divergence.bytes() as i64 - before
    }
}

#[cfg(test)]
mod tests;
