//! Streams in Redis's serialisation format: listpacks of entries with ids relative to that of the listpack, then the
//! groups with their pending entries and consumers. Every payload is checked completely: the listpacks, counts, the order of
//! ids, and that each pending entry has one consumer.

use std::collections::{BTreeMap, BTreeSet};

use store::{Element, Group, Stream, StreamEntry, StreamId, StreamRecord, StreamRecords};

use super::{RdbReader, listpack, put_length, put_string};
use crate::streams::distance_from_first;

/// As Redis 5 writes it.
pub(super) const TYPE_STREAM_1: u8 = 15;
/// With counters of entries, as Redis 7.0 writes it.
pub(super) const TYPE_STREAM_2: u8 = 19;
/// With the time of a consumer's last delivery, as Redis 7.2 writes it.
pub(super) const TYPE_STREAM_3: u8 = 21;

/// Maximum number of entries and bytes of a listpack, as Redis's defaults have it.
const NODE_ENTRIES_MAX: usize = 100;
const NODE_BYTES_MAX: usize = 4096;
/// The header and the end mark of a listpack.
const LISTPACK_BYTES: usize = 7;

const FLAG_DELETED: i64 = 1;
const FLAG_SAME_FIELDS: i64 = 2;
/// The counter of a group that is unknown.
const UNKNOWN: u64 = u64::MAX;

type Pairs<'a> = Vec<(Element<'a>, Element<'a>)>;

pub(super) fn put_stream(out: &mut Vec<u8>, stream: &Stream) {
    put_nodes(out, stream);
    put_length(out, stream.len());
    put_id(out, stream.last_id());
    put_id(out, stream.first().map_or(StreamId::MIN, |entry| entry.id()));
    put_id(out, stream.max_deleted());
    put_number(out, stream.entries_added());
    put_length(out, stream.groups().len());
    for group in stream.groups() {
        put_group(out, group);
    }
}

fn put_nodes(out: &mut Vec<u8>, stream: &Stream) {
    let (mut count, mut nodes) = (0, Vec::new());
    let mut node: Option<Node<'_>> = None;
    for entry in stream.iter_from(StreamId::MIN) {
        let pairs: Pairs<'_> = entry.fields().collect();
        if let Some(full) = node.take_if(|node| !node.has_room(&pairs)) {
            full.put(&mut nodes);
            count += 1;
        }
        node.get_or_insert_with(|| Node::new(&entry, &pairs)).add(entry.id(), &pairs);
    }
    if let Some(last) = node {
        last.put(&mut nodes);
        count += 1;
    }
    put_length(out, count);
    out.extend_from_slice(&nodes);
}

/// A listpack of entries that is being written.
struct Node<'a> {
    base: StreamId,
    names: Vec<Element<'a>>,
    elements: Vec<Element<'a>>,
    len: usize,
    /// Length of the listpack of the names and the entries.
    bytes: usize,
}

impl<'a> Node<'a> {
    fn new(first: &StreamEntry<'a>, pairs: &Pairs<'a>) -> Node<'a> {
        let names: Vec<Element<'a>> = pairs.iter().map(|(name, _)| *name).collect();
        let mut node = Node { base: first.id(), names, elements: Vec::new(), len: 0, bytes: 0 };
        node.bytes = LISTPACK_BYTES + listpack::len(node.head().into_iter());
        node
    }

    /// Returns the elements before the entries.
    fn head(&self) -> Vec<Element<'a>> {
        let mut head = vec![integer(self.len), integer(0usize), integer(self.names.len())];
        head.extend_from_slice(&self.names);
        head.push(integer(0usize));
        head
    }

    fn has_room(&self, pairs: &Pairs<'_>) -> bool {
        let text: usize = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.len < NODE_ENTRIES_MAX && self.bytes + text < NODE_BYTES_MAX
    }

    fn add(&mut self, id: StreamId, pairs: &Pairs<'a>) {
        let is_same = self.names.iter().eq(pairs.iter().map(|(name, _)| name));
        let start = self.elements.len();
        let flags = if is_same { FLAG_SAME_FIELDS } else { 0 };
        self.elements.push(Element::Integer(flags));
        self.elements.push(difference(id.ms, self.base.ms));
        self.elements.push(difference(id.seq, self.base.seq));
        if is_same {
            self.elements.extend(pairs.iter().map(|(_, value)| *value));
        } else {
            self.elements.push(integer(pairs.len()));
            self.elements.extend(pairs.iter().flat_map(|(name, value)| [*name, *value]));
        }
        // The number of elements that must be skipped to walk backwards.
        let written = self.elements.len() - start;
        self.elements.push(integer(written));
        self.len += 1;
        self.bytes += listpack::len(self.elements[start..].iter().copied());
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_string(out, &id_bytes(self.base));
        let elements = self.head().into_iter().chain(self.elements.iter().copied());
        put_string(out, &listpack::write(elements));
    }
}

fn integer(number: usize) -> Element<'static> {
    Element::Integer(number.cast_signed() as i64)
}

fn difference(number: u64, base: u64) -> Element<'static> {
    Element::Integer(number.wrapping_sub(base).cast_signed())
}

fn id_bytes(id: StreamId) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.ms.to_be_bytes());
    bytes[8..].copy_from_slice(&id.seq.to_be_bytes());
    bytes
}

fn put_id(out: &mut Vec<u8>, id: StreamId) {
    put_number(out, id.ms);
    put_number(out, id.seq);
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    put_length(out, usize::try_from(number).unwrap_or(usize::MAX));
}

fn put_group(out: &mut Vec<u8>, group: &Group) {
    put_string(out, group.name());
    put_id(out, group.last_id());
    put_number(out, group.entries_read().unwrap_or(UNKNOWN));
    put_length(out, group.pending_len());
    for it in group.pending_from(StreamId::MIN) {
        out.extend_from_slice(&id_bytes(it.id));
        out.extend_from_slice(&it.delivered_at.to_le_bytes());
        put_number(out, it.deliveries);
    }
    put_length(out, group.consumer_count());
    for consumer in group.consumers() {
        put_string(out, consumer.name());
        out.extend_from_slice(&consumer.seen_at().to_le_bytes());
        put_length(out, consumer.pending_len());
        for it in group.pending_of(consumer, StreamId::MIN) {
            out.extend_from_slice(&id_bytes(it.id));
        }
    }
}

/// Reads a stream as records of at most `bytes_max` bytes.
pub(super) fn read(reader: &mut RdbReader<'_>, kind: u8, bytes_max: usize) -> Option<Vec<u8>> {
    let mut entries = Entries::default();
    for _ in 0..reader.length()? {
        entries.read_node(reader, bytes_max)?;
    }
    let (len, last_id) = (reader.length()?, read_id(reader)?);
    let (mut max_deleted, mut entries_added) = (StreamId::MIN, len as u64);
    if kind >= TYPE_STREAM_2 {
        read_id(reader)?;
        max_deleted = read_id(reader)?;
        entries_added = reader.length()? as u64;
    }
    let is_consistent = len == entries.len && entries.last.is_none_or(|last| last <= last_id);
    if !is_consistent {
        return None;
    }
    let mut records = Vec::new();
    StreamRecord::Head { last_id, entries_added, max_deleted }.write(&mut records);
    records.extend_from_slice(&entries.records);
    // What Redis 5 did not write is computed from the stream.
    let stream = (kind == TYPE_STREAM_1).then(|| Stream::of(StreamRecords::new(&records)));
    let mut names = BTreeSet::new();
    for _ in 0..reader.length()? {
        let name = read_group(reader, kind, (stream.as_ref(), bytes_max), &mut records)?;
        if !names.insert(name) || records.len() > bytes_max {
            return None;
        }
    }
    (records.len() <= bytes_max).then_some(records)
}

/// The entries read so far.
#[derive(Default)]
struct Entries {
    records: Vec<u8>,
    len: usize,
    last: Option<StreamId>,
}

impl Entries {
    fn read_node(&mut self, reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<()> {
        let base = reader.string(bytes_max)?;
        let base = id_of(base.as_ref().try_into().ok()?);
        let listpack = reader.string(bytes_max)?;
        let elements = listpack::read(&listpack)?;
        let mut rest = Elements(elements.as_slice());
        let (count, deleted) = (rest.count()?, rest.count()?);
        let names_len = rest.count()?;
        let names = rest.take(names_len)?;
        if rest.integer()? != 0 || count + deleted == 0 {
            return None;
        }
        let mut present = 0;
        for _ in 0..count.checked_add(deleted)? {
            present += usize::from(self.read_entry(&mut rest, base, names)?);
            // Each entry may repeat long names of fields that the payload has once.
            if self.records.len() > bytes_max {
                return None;
            }
        }
        (present == count && rest.0.is_empty()).then_some(())
    }

    /// Reads an entry; returns whether it is one, rather than a deleted one.
    fn read_entry(
        &mut self,
        rest: &mut Elements<'_, '_>,
        base: StreamId,
        names: &[Element<'_>],
    ) -> Option<bool> {
        let before = rest.0.len();
        let flags = rest.integer()?;
        let ms = base.ms.wrapping_add(rest.integer()?.cast_unsigned());
        let seq = base.seq.wrapping_add(rest.integer()?.cast_unsigned());
        let is_present = flags & FLAG_DELETED == 0;
        let mut pairs = Vec::new();
        if flags & FLAG_SAME_FIELDS != 0 {
            let values = rest.take(names.len())?;
            for (name, value) in names.iter().zip(values).filter(|_| is_present) {
                name.write(&mut pairs);
                value.write(&mut pairs);
            }
        } else {
            let fields = rest.count()?.checked_mul(2)?;
            rest.take(fields)?.iter().for_each(|element| element.write(&mut pairs));
        }
        let read = before - rest.0.len();
        if rest.count()? != read || flags & !(FLAG_DELETED | FLAG_SAME_FIELDS) != 0 {
            return None;
        }
        let id = StreamId { ms, seq };
        if self.last.is_some_and(|last| id <= last) || id < base {
            return None;
        }
        self.last = Some(id);
        if is_present {
            StreamRecord::Entry { id, pairs: &pairs }.write(&mut self.records);
            self.len += 1;
        }
        Some(is_present)
    }
}

/// The unread elements of a listpack.
struct Elements<'l, 'a>(&'l [Element<'a>]);

impl<'l, 'a> Elements<'l, 'a> {
    fn take(&mut self, count: usize) -> Option<&'l [Element<'a>]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn integer(&mut self) -> Option<i64> {
        match self.take(1)? {
            [Element::Integer(number)] => Some(*number),
            _ => None,
        }
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.integer()?).ok()
    }
}

fn id_of(bytes: [u8; 16]) -> StreamId {
    let (ms, seq) = bytes.split_at(8);
    let number = |half: &[u8]| u64::from_be_bytes(half.try_into().expect("eight bytes"));
    StreamId { ms: number(ms), seq: number(seq) }
}

fn read_id(reader: &mut RdbReader<'_>) -> Option<StreamId> {
    Some(StreamId { ms: reader.length()? as u64, seq: reader.length()? as u64 })
}

/// Reads a group, and appends its records; returns its name.
fn read_group(
    reader: &mut RdbReader<'_>,
    kind: u8,
    (stream, bytes_max): (Option<&Stream>, usize),
    records: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let name = reader.string(bytes_max)?.into_owned();
    let last_id = read_id(reader)?;
    let entries_read = match stream {
        Some(stream) => distance_from_first(stream, last_id),
        None => match reader.length()? as u64 {
            UNKNOWN => None,
            read => Some(i64::try_from(read).ok()?.cast_unsigned()),
        },
    };
    StreamRecord::Group { name: &name, last_id, entries_read }.write(records);
    let mut deliveries = BTreeMap::new();
    for _ in 0..reader.length()? {
        let id = id_of(reader.array()?);
        let delivery = (i64::from_le_bytes(reader.array()?), reader.length()? as u64);
        if deliveries.insert(id, delivery).is_some() {
            return None;
        }
    }
    let mut names = BTreeSet::new();
    for _ in 0..reader.length()? {
        let name = read_consumer(reader, kind, bytes_max, &mut deliveries, records)?;
        if !names.insert(name) || records.len() > bytes_max {
            return None;
        }
    }
    // Every pending entry has had a consumer.
    deliveries.is_empty().then_some(name)
}

/// Reads a consumer, and takes its entries out of the pending ones of its group; returns its name.
fn read_consumer(
    reader: &mut RdbReader<'_>,
    kind: u8,
    bytes_max: usize,
    deliveries: &mut BTreeMap<StreamId, (i64, u64)>,
    records: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let name = reader.string(bytes_max)?.into_owned();
    let seen_at = i64::from_le_bytes(reader.array()?);
    // Earlier versions only know when the consumer was last seen.
    let active_at =
        if kind == TYPE_STREAM_3 { i64::from_le_bytes(reader.array()?) } else { seen_at };
    StreamRecord::Consumer { name: &name, seen_at, active_at }.write(records);
    for _ in 0..reader.length()? {
        let id = id_of(reader.array()?);
        let (delivered_at, count) = deliveries.remove(&id)?;
        StreamRecord::Pending { id, delivered_at, deliveries: count }.write(records);
    }
    Some(name)
}

#[cfg(test)]
mod tests;
