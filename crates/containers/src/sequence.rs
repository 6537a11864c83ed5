//! Entries found by index or by comparison: lists, and the order of a sorted set.
//!
//! A counted tree of fixed depth: groups of leaves, leaves of entries. A leaf is one block of about a kilobyte, a group
//! has up to 128 leaves, so ten million short entries need about two thousand groups, and finding an index adds up a
//! few thousand counts at most. No change moves more than a leaf, the leaves' heads of a group, or the groups' heads.

use core::ops::Range;

use crate::block::{self, array_bytes};
use crate::row::{Row, skip_entry};

/// A leaf that would be longer is split. A single longer entry has a leaf for itself.
const LEAF_BYTES_MAX: usize = 1024;
/// A shorter leaf is joined with a neighbour.
const LEAF_BYTES_MIN: usize = LEAF_BYTES_MAX / 4;
/// A group with more leaves is split.
const GROUP_LEAVES_MAX: usize = 128;

pub struct Sequence {
    groups: Vec<Group>,
    width: usize,
    len: usize,
    /// Memory of the leaves' blocks and of the groups' arrays.
    bytes: usize,
}

struct Group {
    leaves: Vec<Leaf>,
    len: usize,
}

struct Leaf {
    entries: Vec<u8>,
    len: usize,
}

/// The leaf of an entry, and the entry's index in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LeafIndex {
    group: usize,
    leaf: usize,
    index: usize,
}

impl Leaf {
    fn of(entry: &[u8]) -> Leaf {
        Leaf { entries: block::of(entry), len: 1 }
    }

    fn bytes(&self) -> usize {
        array_bytes::<u8>(self.entries.capacity())
    }

    /// Returns the offset of the entry at `index`, or of the end.
    fn offset(&self, index: usize, width: usize) -> usize {
        (0..index).fold(0, |at, _| skip_entry(&self.entries, at, width))
    }

    /// Returns the range of bytes of the entry at `index`.
    fn range(&self, index: usize, width: usize) -> Range<usize> {
        let start = self.offset(index, width);
        start..skip_entry(&self.entries, start, width)
    }

    fn row(&self, width: usize) -> Row<'_> {
        Row::new(&self.entries, width)
    }

    fn first(&self, width: usize) -> &[u8] {
        &self.entries[self.range(0, width)]
    }

    /// Splits the leaf before the entry at `index`; returns the second part.
    fn split(&mut self, index: usize, width: usize) -> Leaf {
        let at = self.offset(index, width);
        let second = Leaf { entries: block::of(&self.entries[at..]), len: self.len - index };
        let end = self.entries.len();
        block::splice(&mut self.entries, at..end, &[]);
        self.len = index;
        second
    }

    /// Returns the index at which both parts have about the same length, and none is empty.
    fn middle(&self, width: usize) -> usize {
        let half = self.entries.len() / 2;
        let (mut at, mut index) = (0, 0);
        while at < half {
            at = skip_entry(&self.entries, at, width);
            index += 1;
        }
        index.clamp(1, self.len - 1)
    }

    fn append(&mut self, other: &Leaf) {
        let end = self.entries.len();
        block::splice(&mut self.entries, end..end, &other.entries);
        self.len += other.len;
    }
}

impl Group {
    fn of(leaves: Vec<Leaf>) -> Group {
        let len = leaves.iter().map(|leaf| leaf.len).sum();
        Group { leaves, len }
    }

    fn array_bytes(&self) -> usize {
        array_bytes::<Leaf>(self.leaves.capacity())
    }

    /// Returns the memory of the array and of the leaves in a range.
    fn bytes_around(&self, leaves: Range<usize>) -> usize {
        let end = leaves.end.min(self.leaves.len());
        let blocks: usize = self.leaves[leaves.start.min(end)..end].iter().map(Leaf::bytes).sum();
        self.array_bytes() + blocks
    }

    fn first(&self, width: usize) -> &[u8] {
        self.leaves[0].first(width)
    }
}

impl Sequence {
    /// Creates an empty sequence of entries with `width` elements.
    pub fn new(width: usize) -> Sequence {
        Sequence { groups: Vec::new(), width, len: 0, bytes: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the sequence's memory in the allocator, without the block of the sequence itself.
    pub fn bytes(&self) -> usize {
        self.bytes + array_bytes::<Group>(self.groups.capacity())
    }

    /// Returns the entry at `index` in packed form.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        if index >= self.len {
            return None;
        }
        let at = self.locate(index);
        let leaf = self.leaf(at);
        Some(&leaf.entries[leaf.range(at.index, self.width)])
    }

    /// Inserts an entry before the one at `index`, or at the end.
    pub fn insert(&mut self, index: usize, entry: &[u8]) {
        assert!(index <= self.len, "inserted behind the end");
        let at = self.locate_for_insertion(index);
        self.len += 1;
        if self.groups.is_empty() {
            self.groups.push(Group { leaves: Vec::new(), len: 0 });
        }
        let width = self.width;
        self.change(at.group, at.leaf..at.leaf + 1, |group| {
            group.len += 1;
            insert_into(&mut group.leaves, at, entry, width);
        });
        self.split_group(at.group);
    }

    /// Replaces the entry at `index`.
    pub fn replace(&mut self, index: usize, entry: &[u8]) {
        self.remove_range(index..index + 1);
        self.insert(index, entry);
    }

    /// Removes the entries of a range of indices.
    pub fn remove_range(&mut self, range: Range<usize>) {
        let end = range.end.min(self.len);
        let mut left = end.saturating_sub(range.start);
        while left > 0 {
            left -= self.remove_some(range.start, left);
        }
    }

    /// Iterates over entries from `index` on.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let at = self.locate(index.min(self.len));
        let leaves =
            self.groups.iter().enumerate().skip(at.group).flat_map(move |(number, group)| {
                let first = if number == at.group { at.leaf } else { 0 };
                &group.leaves[first.min(group.leaves.len())..]
            });
        leaves.flat_map(|leaf| leaf.row(self.width).entries()).skip(at.index)
    }

    /// Iterates backwards over the entries before `index`.
    pub fn iter_back_from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let end = index.min(self.len);
        let at = self.locate(end.saturating_sub(1));
        let skipped = match self.groups.get(at.group) {
            Some(_) if end > 0 => self.leaf(at).len - 1 - at.index,
            Some(_) | None => usize::MAX,
        };
        let groups = self.groups.iter().enumerate().take(at.group + 1).rev();
        let leaves = groups.flat_map(move |(number, group)| {
            let last = if number == at.group { at.leaf + 1 } else { group.leaves.len() };
            group.leaves[..last].iter().rev()
        });
        let entries = leaves.flat_map(|leaf| {
            let mut entries: Vec<&[u8]> = leaf.row(self.width).entries().collect();
            entries.reverse();
            entries
        });
        entries.skip(skipped)
    }

    /// Returns the length of all entries in a row.
    pub fn row_len(&self) -> usize {
        self.leaves().map(|leaf| leaf.entries.len()).sum()
    }

    /// Appends all entries in a row.
    pub fn write_row(&self, out: &mut Vec<u8>) {
        self.leaves().for_each(|leaf| out.extend_from_slice(&leaf.entries));
    }

    /// Returns an upper bound of the length of each entry. Takes time for each block, not for each entry.
    pub fn longest_bound(&self) -> usize {
        self.leaves().map(|leaf| leaf.entries.len()).max().unwrap_or(0)
    }

    fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.groups.iter().flat_map(|group| &group.leaves)
    }

    /// Returns the index of the first entry for which `is_before` is false. It must be true for all entries before that
    /// one.
    pub fn partition_point(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let groups = self.groups.partition_point(|group| is_before(group.first(self.width)));
        let Some(group) = groups.checked_sub(1) else { return 0 };
        let before: usize = self.groups[..group].iter().map(|group| group.len).sum();
        let leaves = &self.groups[group].leaves;
        // The first leaf begins with an entry that is before.
        let leaf = leaves.partition_point(|leaf| is_before(leaf.first(self.width))) - 1;
        let earlier: usize = leaves[..leaf].iter().map(|leaf| leaf.len).sum();
        let within = leaves[leaf].row(self.width).entries().take_while(|entry| is_before(entry));
        before + earlier + within.count()
    }

    /// Frees up to `leaves` leaves of a sequence that is no longer needed. Returns false when nothing is left. Nothing
    /// else may be called afterwards.
    pub fn free_some(&mut self, leaves: usize) -> bool {
        for _ in 0..leaves {
            let Some(group) = self.groups.last_mut() else { return false };
            if group.leaves.pop().is_none() {
                self.groups.pop();
            }
        }
        !self.groups.is_empty()
    }

    fn leaf(&self, at: LeafIndex) -> &Leaf {
        &self.groups[at.group].leaves[at.leaf]
    }

    /// Returns the leaf of the entry at `index`; behind the last leaf if there is none.
    fn locate(&self, index: usize) -> LeafIndex {
        let (group, rest) = self.group_of(index);
        let Some(found) = self.groups.get(group) else {
            return LeafIndex { group, leaf: 0, index: 0 };
        };
        let mut at = LeafIndex { group, leaf: 0, index: rest };
        while at.index >= found.leaves[at.leaf].len {
            at.index -= found.leaves[at.leaf].len;
            at.leaf += 1;
        }
        at
    }

    /// Returns the leaf that gets an entry inserted at `index`: the end of a leaf rather than the start of the next.
    fn locate_for_insertion(&self, index: usize) -> LeafIndex {
        match index.checked_sub(1) {
            Some(previous) => {
                let at = self.locate(previous);
                LeafIndex { index: at.index + 1, ..at }
            }
            None => LeafIndex { group: 0, leaf: 0, index: 0 },
        }
    }

    /// Returns the group of the entry at `index`, and the entry's index in the group.
    fn group_of(&self, index: usize) -> (usize, usize) {
        if index >= self.len / 2 {
            // From the end: lists are often used as queues.
            let mut after = self.len;
            for (number, group) in self.groups.iter().enumerate().rev() {
                after -= group.len;
                if index >= after && index - after < group.len {
                    return (number, index - after);
                }
            }
            return (self.groups.len(), 0);
        }
        let mut rest = index;
        for (number, group) in self.groups.iter().enumerate() {
            if rest < group.len {
                return (number, rest);
            }
            rest -= group.len;
        }
        (self.groups.len(), 0)
    }

    /// Changes a group in which the leaves of a range may change their size, and leaves may be added beside them.
    fn change(&mut self, group: usize, leaves: Range<usize>, change: impl FnOnce(&mut Group)) {
        let group = &mut self.groups[group];
        let before = (group.leaves.len(), group.bytes_around(leaves.clone()));
        change(group);
        let added = group.leaves.len().saturating_sub(before.0);
        let after = group.bytes_around(leaves.start..leaves.end + added);
        self.bytes = self.bytes + after - before.1;
    }

    /// Removes at most `max` entries of one leaf, beginning with the one at `index`. Returns their number.
    fn remove_some(&mut self, index: usize, max: usize) -> usize {
        let (at, width) = (self.locate(index), self.width);
        let group = &mut self.groups[at.group];
        let leaf = &mut group.leaves[at.leaf];
        let count = max.min(leaf.len - at.index);
        self.bytes -= leaf.bytes();
        group.len -= count;
        self.len -= count;
        if count == leaf.len {
            group.leaves.remove(at.leaf);
            if group.leaves.is_empty() {
                self.bytes -= group.array_bytes();
                self.groups.remove(at.group);
            }
            return count;
        }
        let start = leaf.offset(at.index, width);
        let end = (0..count).fold(start, |at, _| skip_entry(&leaf.entries, at, width));
        block::splice(&mut leaf.entries, start..end, &[]);
        leaf.len -= count;
        self.bytes += leaf.bytes();
        if self.leaf(at).entries.len() < LEAF_BYTES_MIN {
            self.join_leaf(at);
        }
        count
    }

    /// Joins a leaf with the one behind it, or before it, if both fit into one.
    fn join_leaf(&mut self, at: LeafIndex) {
        let leaves = &self.groups[at.group].leaves;
        let length = |leaf: usize| leaves.get(leaf).map_or(usize::MAX, |leaf| leaf.entries.len());
        let fits =
            |one: usize| length(one).saturating_add(length(one + 1)) <= LEAF_BYTES_MAX * 3 / 4;
        let first =
            [Some(at.leaf), at.leaf.checked_sub(1)].into_iter().flatten().find(|leaf| fits(*leaf));
        let Some(first) = first else { return };
        let leaves = &mut self.groups[at.group].leaves;
        let second = leaves.remove(first + 1);
        self.bytes -= leaves[first].bytes() + second.bytes();
        leaves[first].append(&second);
        self.bytes += leaves[first].bytes();
    }

    fn split_group(&mut self, number: usize) {
        let group = &mut self.groups[number];
        if group.leaves.len() <= GROUP_LEAVES_MAX {
            return;
        }
        let array_before = group.array_bytes();
        // A group that grew at one end, as that of a queue, stays full.
        let at = match (group.leaves.first(), group.leaves.last()) {
            (_, Some(last)) if last.len == 1 => GROUP_LEAVES_MAX,
            (Some(first), _) if first.len == 1 => 1,
            _ => group.leaves.len() / 2,
        };
        let second = Group::of(group.leaves.split_off(at));
        group.len -= second.len;
        group.leaves.shrink_to_fit();
        self.bytes = self.bytes + group.array_bytes() + second.array_bytes() - array_before;
        self.groups.insert(number + 1, second);
    }
}

/// Inserts an entry into a leaf, or into a new leaf beside it if the leaf would become too long.
fn insert_into(leaves: &mut Vec<Leaf>, at: LeafIndex, entry: &[u8], width: usize) {
    let Some(leaf) = leaves.get_mut(at.leaf) else {
        leaves.push(Leaf::of(entry));
        return;
    };
    if leaf.entries.len() + entry.len() <= LEAF_BYTES_MAX {
        let offset = leaf.offset(at.index, width);
        block::splice(&mut leaf.entries, offset..offset, entry);
        leaf.len += 1;
        return;
    }
    if at.index == leaf.len {
        leaves.insert(at.leaf + 1, Leaf::of(entry));
    } else if at.index == 0 {
        leaves.insert(at.leaf, Leaf::of(entry));
    } else {
        let middle = leaf.middle(width);
        let is_long = entry.len() > LEAF_BYTES_MAX / 2;
        let cut = if is_long { at.index } else { middle };
        let second = leaf.split(cut, width);
        leaves.insert(at.leaf + 1, second);
        let at = if at.index <= cut {
            at
        } else {
            LeafIndex { leaf: at.leaf + 1, index: at.index - cut, ..at }
        };
        insert_into(leaves, at, entry, width);
    }
}

#[cfg(test)]
mod tests;
