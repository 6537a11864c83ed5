//! Entries found by their [`StreamId`]: the entries of a stream, the pending entries of a group and of a consumer.
//!
//! A tree of fixed depth: groups of up to 128 blocks. A block has a few kilobytes at most: the entries' ids as
//! differences from its base, their payloads, and a head that they share (the names of a stream's fields). It begins
//! small, so a map of few entries takes few bytes. Ids mostly rise: then the last block is filled, and followed by a new
//! one.

mod block;

use block::Block;

use crate::block::array_bytes;
use crate::stream_id::StreamId;

/// Maximum number of blocks in a group.
const GROUP_BLOCKS_MAX: usize = 128;

/// A map whose blocks have at most `BYTES` bytes and `ENTRIES` entries. An entry that is longer has a block for itself.
pub(crate) struct IdMap<const BYTES: usize, const ENTRIES: usize> {
    /// Blocks in the order of their bases; no group and no block is empty.
    groups: Vec<Vec<Block>>,
    len: usize,
    /// Memory of the blocks and of the groups' arrays.
    bytes: usize,
}

/// An entry: its id, the head of its block, and its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdEntry<'a> {
    pub(crate) id: StreamId,
    pub(crate) head: &'a [u8],
    pub(crate) payload: &'a [u8],
}

/// The entry to be inserted.
pub(crate) struct NewEntry<'a> {
    pub(crate) id: StreamId,
    /// The head of a block that has this entry as its first one.
    pub(crate) head: &'a [u8],
    /// The payload in a block with that head, in two parts.
    pub(crate) payload: [&'a [u8]; 2],
    /// The payload in any block.
    pub(crate) full_payload: [&'a [u8]; 2],
}

/// The location of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockIndex {
    group: usize,
    block: usize,
}

impl<const BYTES: usize, const ENTRIES: usize> Default for IdMap<BYTES, ENTRIES> {
    fn default() -> Self {
        IdMap { groups: Vec::new(), len: 0, bytes: 0 }
    }
}

impl<const BYTES: usize, const ENTRIES: usize> IdMap<BYTES, ENTRIES> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the map's memory in the allocator, without the map itself.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + array_bytes::<Vec<Block>>(self.groups.capacity())
    }

    /// Returns the number of blocks.
    pub(crate) fn block_count(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// Returns the id of the entry at this index. Takes time for each block before it.
    pub(crate) fn nth_id(&self, index: usize) -> Option<StreamId> {
        let mut rest = index;
        for block in self.groups.iter().flatten() {
            if rest < block.len as usize {
                return block.entries().nth(rest).map(|(_, entry)| entry.id);
            }
            rest -= block.len as usize;
        }
        None
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<IdEntry<'_>> {
        let block = self.block(self.find_block(id)?);
        let place = block.place(id);
        if place.is_present { block.entry_at(place.bytes.start).map(|it| it.0) } else { None }
    }

    pub(crate) fn contains(&self, id: StreamId) -> bool {
        self.get(id).is_some()
    }

    pub(crate) fn first(&self) -> Option<IdEntry<'_>> {
        let block = self.groups.first()?.first()?;
        block.entries().next().map(|(_, entry)| entry)
    }

    pub(crate) fn last(&self) -> Option<IdEntry<'_>> {
        self.groups.last()?.last()?.last()
    }

    /// Iterates over entries from an id on.
    pub(crate) fn iter_from(&self, id: StreamId) -> impl Iterator<Item = IdEntry<'_>> {
        let start = self.find_block(id).unwrap_or(BlockIndex { group: 0, block: 0 });
        self.blocks_from(start)
            .flat_map(|block| block.entries().map(|(_, entry)| entry))
            .skip_while(move |entry| entry.id < id)
    }

    /// Iterates backwards over entries from an id on.
    pub(crate) fn iter_back_from(&self, id: StreamId) -> impl Iterator<Item = IdEntry<'_>> {
        let end = self.find_block(id);
        let groups = self.groups.iter().enumerate().take(end.map_or(0, |end| end.group + 1)).rev();
        let blocks = groups.flat_map(move |(number, group)| {
            let last =
                end.filter(|end| end.group == number).map_or(group.len(), |end| end.block + 1);
            group[..last].iter().rev()
        });
        let entries = blocks.flat_map(|block| {
            let mut entries: Vec<IdEntry<'_>> = block.entries().map(|(_, entry)| entry).collect();
            entries.reverse();
            entries
        });
        entries.skip_while(move |entry| entry.id > id)
    }

    /// Iterates over the blocks from the first: the number of entries and the last one of each.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (usize, Option<IdEntry<'_>>)> {
        let start = BlockIndex { group: 0, block: 0 };
        self.blocks_from(start).map(|block| (block.len as usize, block.last()))
    }

    /// Inserts an entry, or replaces the one with its id. Returns whether it is new. `is_last`: no id is higher, and
    /// this one is new.
    pub(crate) fn insert(&mut self, new: &NewEntry<'_>, is_last: bool) -> bool {
        let found = if is_last { self.last_block() } else { self.find_block(new.id) };
        let Some(at) = found else {
            self.insert_block(BlockIndex { group: 0, block: 0 }, block_of(new));
            self.len += 1;
            return true;
        };
        let block = self.block(at);
        if new.id < block.base {
            self.insert_block(at, block_of(new));
            self.len += 1;
            return true;
        }
        let place = if is_last { block.end() } else { block.place(new.id) };
        let is_new = !place.is_present;
        let payload = if block.head() == new.head { new.payload } else { new.full_payload };
        let added = payload[0].len() + payload[1].len() + 4;
        let is_full = block.byte_len() + added > BYTES || block.len as usize >= ENTRIES;
        if !is_new && is_full {
            self.remove(new.id);
            self.insert(new, false);
            return false;
        }
        if !is_full {
            self.change(at, |block| block.write(place, new.id, payload));
            self.len += usize::from(is_new);
            return is_new;
        }
        self.insert_into_full(at, place.bytes.start, new);
        self.len += 1;
        true
    }

    /// Inserts an entry at an offset of a full block: behind it, or by splitting it there.
    fn insert_into_full(&mut self, at: BlockIndex, start: usize, new: &NewEntry<'_>) {
        let second = self.change(at, |block| block.split(start));
        if let Some(second) = second {
            self.insert_block(BlockIndex { block: at.block + 1, ..at }, second);
        }
        // The new block may have moved the old one to another group.
        let at = self.find_block(new.id).unwrap_or(at);
        if self.block(at).len == 0 {
            // The entry comes before all others of the block, and its id is not below the base.
            self.change(at, |block| *block = block_of(new));
            return;
        }
        self.insert_block(BlockIndex { block: at.block + 1, ..at }, block_of(new));
    }

    /// Removes an entry. Returns whether there was one.
    pub(crate) fn remove(&mut self, id: StreamId) -> bool {
        let Some(at) = self.find_block(id) else { return false };
        let place = self.block(at).place(id);
        if !place.is_present {
            return false;
        }
        self.change(at, |block| block.remove(place));
        self.len -= 1;
        if self.block(at).len == 0 {
            self.remove_block(at);
        } else if self.block(at).byte_len() < BYTES / 4 {
            self.join(at);
        }
        true
    }

    /// Removes all entries before an id; returns what had blocks for itself, to be freed later.
    pub(crate) fn remove_before(&mut self, id: StreamId) -> Self {
        let mut removed = Self::default();
        // Whole groups first: they change hands without being read.
        while self.groups.get(1).is_some_and(|group| group[0].base <= id) {
            let group = self.groups.remove(0);
            let len: usize = group.iter().map(|block| block.len as usize).sum();
            let bytes = array_bytes::<Block>(group.capacity())
                + group.iter().map(Block::bytes).sum::<usize>();
            (self.len, self.bytes) = (self.len - len, self.bytes - bytes);
            (removed.len, removed.bytes) = (removed.len + len, removed.bytes + bytes);
            removed.groups.push(group);
        }
        let first = BlockIndex { group: 0, block: 0 };
        while self.groups.first().and_then(|group| group.get(1)).is_some_and(|it| it.base <= id) {
            self.len -= self.block(first).len as usize;
            self.remove_block(first);
        }
        if !self.is_empty() {
            let end = self.block(first).place(id).bytes.start;
            self.len -= self.change(first, |block| block.remove_before(end)) as usize;
            if self.block(first).len == 0 {
                self.remove_block(first);
            }
        }
        removed
    }

    /// Frees up to `blocks` blocks of a map that is no longer needed. Returns false when nothing is left. Nothing else
    /// may be called afterwards.
    pub(crate) fn free_some(&mut self, blocks: usize) -> bool {
        for _ in 0..blocks {
            let Some(group) = self.groups.last_mut() else { return false };
            if group.pop().is_none() {
                self.groups.pop();
            }
        }
        !self.groups.is_empty()
    }

    /// Returns the last block whose base is not above an id: the only one that may have the entry. The first block if
    /// all bases are above. `None` if there is no block.
    fn find_block(&self, id: StreamId) -> Option<BlockIndex> {
        let group = self.groups.partition_point(|group| group[0].base <= id).saturating_sub(1);
        let blocks = self.groups.get(group)?;
        let block = blocks.partition_point(|block| block.base <= id).saturating_sub(1);
        Some(BlockIndex { group, block })
    }

    fn last_block(&self) -> Option<BlockIndex> {
        let group = self.groups.len().checked_sub(1)?;
        Some(BlockIndex { group, block: self.groups[group].len() - 1 })
    }

    fn block(&self, at: BlockIndex) -> &Block {
        &self.groups[at.group][at.block]
    }

    fn blocks_from(&self, start: BlockIndex) -> impl Iterator<Item = &Block> {
        let groups = self.groups.iter().enumerate().skip(start.group);
        groups.flat_map(move |(number, group)| {
            &group[if number == start.group { start.block } else { 0 }..]
        })
    }

    /// Changes a block and updates the memory.
    fn change<R>(&mut self, at: BlockIndex, change: impl FnOnce(&mut Block) -> R) -> R {
        let block = &mut self.groups[at.group][at.block];
        let before = block.bytes();
        let result = change(block);
        self.bytes = self.bytes + block.bytes() - before;
        result
    }

    /// Inserts a block at a location, or behind the last block of the group.
    fn insert_block(&mut self, at: BlockIndex, block: Block) {
        if self.groups.is_empty() {
            self.groups.reserve_exact(1);
            self.groups.push(Vec::new());
        }
        let mut at = at;
        if self.groups[at.group].len() == GROUP_BLOCKS_MAX {
            let array = array_bytes::<Block>(self.groups[at.group].capacity());
            // A group that grew at its end, as that of a queue, stays full.
            let is_end = at.block == GROUP_BLOCKS_MAX;
            let cut = if is_end { GROUP_BLOCKS_MAX } else { GROUP_BLOCKS_MAX / 2 };
            let second = self.groups[at.group].split_off(cut);
            let arrays = array_bytes::<Block>(self.groups[at.group].capacity())
                + array_bytes::<Block>(second.capacity());
            self.bytes = self.bytes + arrays - array;
            self.groups.insert(at.group + 1, second);
            if at.block >= cut {
                at = BlockIndex { group: at.group + 1, block: at.block - cut };
            }
        }
        let group = &mut self.groups[at.group];
        let before = array_bytes::<Block>(group.capacity());
        if group.len() == group.capacity() {
            // One block takes no more memory than it needs.
            group.reserve_exact(group.len().clamp(1, GROUP_BLOCKS_MAX / 2));
        }
        self.bytes += block.bytes();
        group.insert(at.block, block);
        self.bytes = self.bytes + array_bytes::<Block>(group.capacity()) - before;
    }

    fn remove_block(&mut self, at: BlockIndex) {
        let group = &mut self.groups[at.group];
        let block = group.remove(at.block);
        self.bytes -= block.bytes();
        if group.is_empty() {
            self.bytes -= array_bytes::<Block>(group.capacity());
            self.groups.remove(at.group);
            if self.groups.is_empty() {
                self.groups = Vec::new();
            }
        }
    }

    /// Joins a block with the next or the previous one of its group, if both have the same head and fit into one.
    fn join(&mut self, at: BlockIndex) {
        let group = &self.groups[at.group];
        let fits = |first: usize| {
            let (Some(one), Some(other)) = (group.get(first), group.get(first + 1)) else {
                return false;
            };
            // Ids may take more bytes behind another base.
            let bytes = one.byte_len() + other.byte_len() + 8 * other.len as usize;
            one.head() == other.head()
                && bytes <= BYTES * 3 / 4
                && (one.len + other.len) as usize <= ENTRIES
        };
        let first =
            [Some(at.block), at.block.checked_sub(1)].into_iter().flatten().find(|it| fits(*it));
        let Some(first) = first else { return };
        let next = BlockIndex { block: first + 1, ..at };
        let taken =
            self.change(next, |block| core::mem::replace(block, Block::new(block.base, &[])));
        self.change(BlockIndex { block: first, ..at }, |block| block.append(&taken));
        self.remove_block(next);
    }
}

fn block_of(new: &NewEntry<'_>) -> Block {
    let mut block = Block::new(new.id, new.head);
    block.write(block.end(), new.id, new.payload);
    block
}

#[cfg(test)]
mod tests;
