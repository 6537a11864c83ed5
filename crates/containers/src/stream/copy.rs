//! Copies of a stream in portions. The stream may change between two portions: what lies behind the position is sent
//! as it is then, and changes of what lies before it reach the copy as records of their own.

use super::{Group, PendingEntry, Stream, StreamRecord};
use crate::stream_id::StreamId;

/// A position in a stream, to continue a copy from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum StreamPosition {
    #[default]
    Start,
    /// The entries from this id on, then the groups.
    Entries(StreamId),
    /// The groups from this name on.
    Groups(Vec<u8>),
    /// The consumers of a group from this name on, then its pending entries.
    Consumers { group: Vec<u8>, from: Vec<u8> },
    /// The pending entries of a group from this id on, then the groups behind it.
    Pending { group: Vec<u8>, from: StreamId },
}

impl Stream {
    /// Appends records from a position on, until there are at least `bytes_max` bytes of them. Returns the position to
    /// continue from; `None` at the end.
    pub fn copy_some(
        &self,
        from: &StreamPosition,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Option<StreamPosition> {
        let end = out.len().saturating_add(bytes_max);
        let mut position = from.clone();
        loop {
            position = self.copy_stage(&position, end, out)?;
            if out.len() >= end {
                return Some(position);
            }
        }
    }

    /// Appends the whole stream.
    pub fn write_records(&self, out: &mut Vec<u8>) {
        let end = self.copy_some(&StreamPosition::Start, usize::MAX, out);
        debug_assert!(end.is_none());
    }

    pub fn to_records(&self) -> Vec<u8> {
        let mut records = Vec::new();
        self.write_records(&mut records);
        records
    }

    /// Returns the length of the whole stream as records. Writes them portion by portion to measure them.
    pub fn records_len(&self) -> usize {
        let (mut portion, mut len) = (Vec::new(), 0);
        let mut position = Some(StreamPosition::Start);
        while let Some(from) = position {
            position = self.copy_some(&from, 64 * 1024, &mut portion);
            len += portion.len();
            portion.clear();
        }
        // A portion may name its group and its consumer again: never less than the real length.
        len
    }

    /// Copies one stage, or a part of it that ends at the length `end`. Returns the position behind.
    fn copy_stage(
        &self,
        from: &StreamPosition,
        end: usize,
        out: &mut Vec<u8>,
    ) -> Option<StreamPosition> {
        match from {
            StreamPosition::Start => {
                let (last_id, max_deleted) = (self.last_id, self.max_deleted);
                let entries_added = self.entries_added;
                StreamRecord::Head { last_id, entries_added, max_deleted }.write(out);
                Some(StreamPosition::Entries(StreamId::MIN))
            }
            StreamPosition::Entries(from) => Some(self.copy_entries(*from, end, out)),
            StreamPosition::Groups(from) => {
                let group = self.group_from(from)?;
                let (name, last_id) = (group.name(), group.last_id());
                let entries_read = group.entries_read();
                StreamRecord::Group { name, last_id, entries_read }.write(out);
                Some(StreamPosition::Consumers { group: name.to_vec(), from: Vec::new() })
            }
            StreamPosition::Consumers { group, from } => match self.group(group) {
                Some(group) => Some(copy_consumers(group, from, end, out)),
                None => Some(StreamPosition::Groups(group.clone())),
            },
            StreamPosition::Pending { group, from } => match self.group(group) {
                Some(group) => Some(copy_pending(group, *from, end, out)),
                None => Some(StreamPosition::Groups(group.clone())),
            },
        }
    }

    fn copy_entries(&self, from: StreamId, end: usize, out: &mut Vec<u8>) -> StreamPosition {
        let mut pairs = Vec::new();
        let mut has_one = false;
        for entry in self.iter_from(from) {
            if has_one && out.len() >= end {
                return StreamPosition::Entries(entry.id());
            }
            pairs.clear();
            entry.write_pairs(&mut pairs);
            StreamRecord::Entry { id: entry.id(), pairs: &pairs }.write(out);
            has_one = true;
        }
        StreamPosition::Groups(Vec::new())
    }

    fn group_from(&self, name: &[u8]) -> Option<&Group> {
        let list = self.group_list();
        list.get(list.partition_point(|group| group.name() < name)).map(AsRef::as_ref)
    }
}

fn copy_consumers(group: &Group, from: &[u8], end: usize, out: &mut Vec<u8>) -> StreamPosition {
    StreamRecord::InGroup { name: group.name() }.write(out);
    let mut has_one = false;
    for consumer in group.consumers_from(from) {
        let name = consumer.name();
        // At least one, however long the name of the group is.
        if has_one && out.len() >= end {
            return StreamPosition::Consumers { group: group.name().to_vec(), from: name.to_vec() };
        }
        let (seen_at, active_at) = (consumer.seen_at(), consumer.active_at());
        StreamRecord::Consumer { name, seen_at, active_at }.write(out);
        has_one = true;
    }
    StreamPosition::Pending { group: group.name().to_vec(), from: StreamId::MIN }
}

fn copy_pending(group: &Group, from: StreamId, end: usize, out: &mut Vec<u8>) -> StreamPosition {
    StreamRecord::InGroup { name: group.name() }.write(out);
    let mut named = None;
    for PendingEntry { id, consumer, delivered_at, deliveries } in group.pending_from(from) {
        if named.is_some() && out.len() >= end {
            return StreamPosition::Pending { group: group.name().to_vec(), from: id };
        }
        if named != Some(consumer) {
            StreamRecord::OfConsumer { name: consumer }.write(out);
            named = Some(consumer);
        }
        StreamRecord::Pending { id, delivered_at, deliveries }.write(out);
    }
    // The name right behind this one.
    let mut next = group.name().to_vec();
    next.push(0);
    StreamPosition::Groups(next)
}
