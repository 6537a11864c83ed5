//! A stream: entries of fields and values by rising ids, and groups of consumers that share them.
//!
//! The entries lie in the blocks of an [`IdMap`]. The names of a block's fields stand in its head once; entries with
//! other names have theirs beside the values. A new stream is one small block. Changes come as [`StreamRecord`]s, and
//! a stream is copied as such records, portion by portion, while it changes ([`StreamPosition`]).
mod record; // Streams and their changes as bytes.
mod group; //  Consumer groups.
mod copy; //   Copies in portions.

pub use copy::StreamPosition;
pub use group::{Consumer, Group, PendingEntry};
pub use record::{StreamRecord, StreamRecords};

use crate::block::array_bytes;
use crate::element::{self, Element};
use crate::id_map::{IdEntry, IdMap, NewEntry};
use crate::memory::block_bytes;
use crate::row::Row;
use crate::stream_id::StreamId;

/// Maximum bytes and entries of a block, as of a node in Redis: trimming with `~` removes whole ones.
type Entries = IdMap<4096, 100>;

/// The first byte of a payload whose fields have the names in the block's head.
const VALUES: u8 = 0;
/// The first byte of a payload with names of its own.
const PAIRS: u8 = 1;

#[derive(Default)]
pub struct Stream {
    entries: Entries,
    last_id: StreamId,
    max_deleted: StreamId,
    entries_added: u64,
    groups: Option<Box<Groups>>,
}

#[derive(Default)]
struct Groups {
    /// In the order of their names.
    #[expect(clippy::vec_box, reason = "a new group moves pointers, not the groups behind it")]
    list: Vec<Box<Group>>,
    /// Memory of the groups, without the array.
    bytes: usize,
}

/// An entry of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamEntry<'a>(IdEntry<'a>);

impl<'a> StreamEntry<'a> {
    pub fn id(&self) -> StreamId {
        self.0.id
    }

    /// Iterates over the fields and their values.
    pub fn fields(&self) -> impl Iterator<Item = (Element<'a>, Element<'a>)> + use<'a> {
        let (names, values) = match self.0.payload.split_first() {
            Some((&VALUES, values)) => (self.0.head, values),
            Some((_, pairs)) => (&[][..], pairs),
            None => (&[][..], &[][..]),
        };
        let has_names = self.0.payload.first() == Some(&PAIRS);
        let (mut names, mut values) = (names, values);
        core::iter::from_fn(move || {
            if values.is_empty() {
                return None;
            }
            let from = if has_names { &mut values } else { &mut names };
            let name = take(from);
            Some((name, take(&mut values)))
        })
    }

    /// Returns the number of fields. Walks over all of them.
    pub fn field_count(&self) -> usize {
        self.fields().count()
    }

    /// Appends the fields and values as a row of pairs.
    pub fn write_pairs(&self, out: &mut Vec<u8>) {
        for (field, value) in self.fields() {
            field.write(out);
            value.write(out);
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8]) -> Element<'a> {
    let (element, rest) = element::read(bytes);
    *bytes = rest;
    element
}

impl Stream {
    /// Returns the stream of these records.
    pub fn of(records: StreamRecords<'_>) -> Stream {
        let mut stream = Stream::default();
        drop(stream.change(records));
        stream
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the highest id that the stream has given to an entry.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// Returns the highest id of an entry that was deleted.
    pub fn max_deleted(&self) -> StreamId {
        self.max_deleted
    }

    /// Returns the number of entries that were ever added.
    pub fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// Returns the stream's memory in the allocator, including the block of the stream itself.
    pub fn bytes(&self) -> usize {
        let groups = self.groups.as_ref().map_or(0, |groups| {
            let array = array_bytes::<Box<Group>>(groups.list.capacity());
            block_bytes(size_of::<Groups>()) + array + groups.bytes
        });
        block_bytes(size_of::<Stream>()) + self.entries.bytes() + groups
    }

    /// Returns the number of blocks of entries.
    pub fn block_count(&self) -> usize {
        self.entries.block_count()
    }

    /// Iterates over the blocks of entries: their number of entries, and the last id.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, StreamId)> {
        self.entries.blocks().map(|(len, last)| (len, last.map_or(StreamId::MIN, |it| it.id)))
    }

    /// Returns the id of the entry at this index. Takes time for each block before it.
    pub fn nth_id(&self, index: usize) -> Option<StreamId> {
        self.entries.nth_id(index)
    }

    pub fn get(&self, id: StreamId) -> Option<StreamEntry<'_>> {
        self.entries.get(id).map(StreamEntry)
    }

    pub fn contains(&self, id: StreamId) -> bool {
        self.entries.contains(id)
    }

    pub fn first(&self) -> Option<StreamEntry<'_>> {
        self.entries.first().map(StreamEntry)
    }

    pub fn last(&self) -> Option<StreamEntry<'_>> {
        self.entries.last().map(StreamEntry)
    }

    /// Iterates over entries from an id on.
    pub fn iter_from(&self, id: StreamId) -> impl Iterator<Item = StreamEntry<'_>> {
        self.entries.iter_from(id).map(StreamEntry)
    }

    /// Iterates backwards over entries from an id on.
    pub fn iter_back_from(&self, id: StreamId) -> impl Iterator<Item = StreamEntry<'_>> {
        self.entries.iter_back_from(id).map(StreamEntry)
    }

    /// Returns the groups in the order of their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.group_list().iter().map(AsRef::as_ref)
    }

    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        let list = self.group_list();
        list.binary_search_by(|group| group.name().cmp(name)).ok().map(|index| list[index].as_ref())
    }

    fn group_list(&self) -> &[Box<Group>] {
        self.groups.as_ref().map_or(&[], |groups| &groups.list)
    }

    /// Applies changes. Returns what they have removed, as a stream that can only be freed.
    pub fn change(&mut self, changes: StreamRecords<'_>) -> Stream {
        let mut removed = Stream::default();
        let (mut group, mut consumer) = (None, None);
        for record in changes.iter() {
            match record {
                StreamRecord::Head { last_id, entries_added, max_deleted } => {
                    self.last_id = last_id;
                    self.entries_added = entries_added;
                    self.max_deleted = max_deleted;
                }
                StreamRecord::Entry { id, pairs } => self.add(id, pairs),
                StreamRecord::RemoveEntry { id } => {
                    self.entries.remove(id);
                }
                StreamRecord::Trim { id } => removed.entries = self.entries.remove_before(id),
                StreamRecord::Group { name, last_id, entries_read } => {
                    (group, consumer) = (Some(name), None);
                    self.change_group(name, |group| group.set(last_id, entries_read));
                }
                StreamRecord::InGroup { name } => (group, consumer) = (Some(name), None),
                StreamRecord::Consumer { name, seen_at, active_at } => {
                    consumer = Some(name);
                    if let Some(group) = group {
                        self.change_group(group, |it| it.set_consumer(name, seen_at, active_at));
                    }
                }
                StreamRecord::OfConsumer { name } => consumer = Some(name),
                StreamRecord::Pending { id, delivered_at, deliveries } => {
                    if let (Some(group), Some(consumer)) = (group, consumer) {
                        let pending = PendingEntry { id, consumer, delivered_at, deliveries };
                        self.change_group(group, |group| group.set_pending(pending));
                    }
                }
                StreamRecord::RemoveGroup => {
                    let taken = group.and_then(|name| self.take_group(name));
                    removed.keep_group(taken);
                }
                StreamRecord::RemoveConsumer => {
                    if let (Some(group), Some(consumer)) = (group, consumer) {
                        self.change_present(group, |group| group.remove_consumer(consumer));
                    }
                }
                StreamRecord::RemovePending { id } => {
                    if let Some(group) = group {
                        self.change_present(group, |group| group.remove_pending(id));
                    }
                }
            }
        }
        removed
    }

    fn add(&mut self, id: StreamId, pairs: &[u8]) {
        let is_last = id > self.last_id;
        self.last_id = self.last_id.max(id);
        let (mut names, mut values) = (Vec::new(), Vec::with_capacity(pairs.len()));
        for (name, value) in Row::new(pairs, 2).pairs() {
            name.write(&mut names);
            value.write(&mut values);
        }
        let (payload, full_payload) = ([&[VALUES][..], &values], [&[PAIRS][..], pairs]);
        let new = NewEntry { id, head: &names, payload, full_payload };
        self.entries.insert(&new, is_last);
    }

    /// Changes a group, which is created if it is missing.
    fn change_group(&mut self, name: &[u8], change: impl FnOnce(&mut Group)) {
        let groups = self.groups.get_or_insert_default();
        let index = match groups.list.binary_search_by(|group| group.name().cmp(name)) {
            Ok(index) => index,
            Err(index) => {
                let group = Box::new(Group::new(name));
                groups.bytes += group.bytes();
                groups.list.insert(index, group);
                index
            }
        };
        let group = &mut groups.list[index];
        let before = group.bytes();
        change(group);
        groups.bytes = groups.bytes + group.bytes() - before;
    }

    fn change_present(&mut self, name: &[u8], change: impl FnOnce(&mut Group)) {
        if self.group(name).is_some() {
            self.change_group(name, change);
        }
    }

    fn take_group(&mut self, name: &[u8]) -> Option<Box<Group>> {
        let groups = self.groups.as_mut()?;
        let index = groups.list.binary_search_by(|group| group.name().cmp(name)).ok()?;
        let group = groups.list.remove(index);
        groups.bytes -= group.bytes();
        if groups.list.is_empty() {
            self.groups = None;
        }
        Some(group)
    }

    /// Keeps a removed group, to be freed.
    fn keep_group(&mut self, group: Option<Box<Group>>) {
        if let Some(group) = group {
            let groups = self.groups.get_or_insert_default();
            groups.bytes += group.bytes();
            groups.list.push(group);
        }
    }

    /// Frees a part of a stream that is no longer needed. Returns false when nothing is left. Nothing else may be
    /// called afterwards.
    pub fn free_some(&mut self, blocks: usize) -> bool {
        if self.entries.free_some(blocks) {
            return true;
        }
        let Some(groups) = &mut self.groups else { return false };
        let Some(last) = groups.list.last_mut() else { return false };
        if !last.free_some(blocks) {
            groups.list.pop();
        }
        true
    }
}

#[cfg(test)]
mod tests;
