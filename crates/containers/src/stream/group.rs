//! A consumer group: its position in the stream, its consumers, and the entries that they have not acknowledged yet.

use crate::block::array_bytes;
use crate::id_map::{IdMap, NewEntry};
use crate::memory::block_bytes;
use crate::stream_id::StreamId;
use crate::varint;

/// Pending entries are small and removed in any order: small blocks.
type Pendings = IdMap<1024, 1024>;

pub struct Group {
    name: Box<[u8]>,
    last_id: StreamId,
    entries_read: Option<u64>,
    /// The number of its consumer, its delivery and its count are the payload of an entry.
    pending: Pendings,
    /// Consumers by their numbers.
    consumers: Vec<Option<Box<Consumer>>>,
    /// The numbers of consumers, in the order of their names.
    by_name: Vec<u32>,
    /// Memory of the consumers, without the arrays.
    consumer_bytes: usize,
}

pub struct Consumer {
    name: Box<[u8]>,
    seen_at: i64,
    active_at: i64,
    /// The ids of its pending entries.
    pending: Pendings,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingEntry<'a> {
    pub id: StreamId,
    /// The name of the consumer it was delivered to.
    pub consumer: &'a [u8],
    /// Unix time of the last delivery, in milliseconds.
    pub delivered_at: i64,
    pub deliveries: u64,
}

/// The payload of a pending entry.
struct Delivery {
    consumer: u32,
    at: i64,
    count: u64,
}

impl Consumer {
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Unix time of the last command of this consumer, in milliseconds.
    pub fn seen_at(&self) -> i64 {
        self.seen_at
    }

    /// Unix time of its last delivery or claim, in milliseconds; -1 if there was none.
    pub fn active_at(&self) -> i64 {
        self.active_at
    }

    /// Returns the number of its pending entries.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    fn bytes(&self) -> usize {
        block_bytes(size_of::<Consumer>())
            + array_bytes::<u8>(self.name.len())
            + self.pending.bytes()
    }
}

impl Group {
    pub(super) fn new(name: &[u8]) -> Group {
        Group {
            name: name.into(),
            last_id: StreamId::MIN,
            entries_read: None,
            pending: Pendings::default(),
            consumers: Vec::new(),
            by_name: Vec::new(),
            consumer_bytes: 0,
        }
    }

    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the id of the last entry that was delivered to the group.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// Returns the number of entries that were ever delivered, if it is known.
    pub fn entries_read(&self) -> Option<u64> {
        self.entries_read
    }

    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    pub fn pending(&self, id: StreamId) -> Option<PendingEntry<'_>> {
        let entry = self.pending.get(id)?;
        Some(self.pending_entry(id, entry.payload))
    }

    /// Iterates over pending entries from an id on.
    pub fn pending_from(&self, id: StreamId) -> impl Iterator<Item = PendingEntry<'_>> {
        self.pending.iter_from(id).map(|entry| self.pending_entry(entry.id, entry.payload))
    }

    pub fn last_pending(&self) -> Option<PendingEntry<'_>> {
        self.pending.last().map(|entry| self.pending_entry(entry.id, entry.payload))
    }

    /// Iterates over pending entries of a consumer from an id on.
    pub fn pending_of<'g>(
        &'g self,
        consumer: &'g Consumer,
        id: StreamId,
    ) -> impl Iterator<Item = PendingEntry<'g>> {
        consumer.pending.iter_from(id).filter_map(|entry| self.pending(entry.id))
    }

    pub fn consumer_count(&self) -> usize {
        self.by_name.len()
    }

    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        let index = self.search(name).ok()?;
        Some(self.numbered(self.by_name[index]))
    }

    /// Iterates over consumers in the order of their names, from a name on.
    pub fn consumers_from(&self, name: &[u8]) -> impl Iterator<Item = &Consumer> {
        let index = self.search(name).unwrap_or_else(|index| index);
        self.by_name[index..].iter().map(|number| self.numbered(*number))
    }

    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.consumers_from(&[])
    }

    /// Returns the group's memory in the allocator.
    pub(super) fn bytes(&self) -> usize {
        block_bytes(size_of::<Group>())
            + array_bytes::<u8>(self.name.len())
            + self.pending.bytes()
            + array_bytes::<Option<Box<Consumer>>>(self.consumers.capacity())
            + array_bytes::<u32>(self.by_name.capacity())
            + self.consumer_bytes
    }

    pub(super) fn set(&mut self, last_id: StreamId, entries_read: Option<u64>) {
        (self.last_id, self.entries_read) = (last_id, entries_read);
    }

    pub(super) fn set_consumer(&mut self, name: &[u8], seen_at: i64, active_at: i64) {
        let number = self.number_of(name, seen_at);
        if let Some(consumer) = &mut self.consumers[number as usize] {
            (consumer.seen_at, consumer.active_at) = (seen_at, active_at);
        }
    }

    /// Sets a pending entry of a consumer, and takes it from another one if needed.
    pub(super) fn set_pending(&mut self, pending: PendingEntry<'_>) {
        let id = pending.id;
        let number = self.number_of(pending.consumer, pending.delivered_at);
        let old = self.pending.get(id).map(|entry| Delivery::read(id, entry.payload).consumer);
        if let Some(old) = old.filter(|old| *old != number) {
            self.change(old, |consumer| consumer.pending.remove(id));
        }
        let at = pending.delivered_at;
        let payload = Delivery { consumer: number, at, count: pending.deliveries }.written(id);
        insert(&mut self.pending, id, &payload);
        if old != Some(number) {
            self.change(number, |consumer| insert(&mut consumer.pending, id, &[]));
        }
    }

    pub(super) fn remove_pending(&mut self, id: StreamId) {
        let Some(entry) = self.pending.get(id) else { return };
        let consumer = Delivery::read(id, entry.payload).consumer;
        self.pending.remove(id);
        self.change(consumer, |consumer| consumer.pending.remove(id));
    }

    pub(super) fn remove_consumer(&mut self, name: &[u8]) {
        let Ok(index) = self.search(name) else { return };
        let number = self.by_name.remove(index);
        let Some(consumer) = self.consumers[number as usize].take() else { return };
        self.consumer_bytes -= consumer.bytes();
        for entry in consumer.pending.iter_from(StreamId::MIN) {
            self.pending.remove(entry.id);
        }
        if self.by_name.is_empty() {
            (self.by_name, self.consumers) = (Vec::new(), Vec::new());
        }
    }

    /// Frees a part of a group that is no longer needed. Returns false when nothing is left.
    pub(super) fn free_some(&mut self, blocks: usize) -> bool {
        if self.pending.free_some(blocks) {
            return true;
        }
        let Some(last) = self.consumers.last_mut() else { return false };
        if !last.as_mut().is_some_and(|consumer| consumer.pending.free_some(blocks)) {
            self.consumers.pop();
        }
        true
    }

    /// Returns the index of a consumer in `by_name`, or the one it would have.
    fn search(&self, name: &[u8]) -> Result<usize, usize> {
        self.by_name.binary_search_by(|number| (*self.numbered(*number).name).cmp(name))
    }

    fn numbered(&self, number: u32) -> &Consumer {
        self.consumers[number as usize].as_ref().expect("removed together with its number")
    }

    /// Returns the number of a consumer, which is created if it is missing.
    fn number_of(&mut self, name: &[u8], seen_at: i64) -> u32 {
        let index = match self.search(name) {
            Ok(index) => return self.by_name[index],
            Err(index) => index,
        };
        let pending = Pendings::default();
        let consumer = Box::new(Consumer { name: name.into(), seen_at, active_at: -1, pending });
        self.consumer_bytes += consumer.bytes();
        let has_gaps = self.by_name.len() < self.consumers.len();
        let free = if has_gaps { self.consumers.iter().position(Option::is_none) } else { None };
        let number = match free {
            Some(number) => {
                self.consumers[number] = Some(consumer);
                number
            }
            None => {
                self.consumers.push(Some(consumer));
                self.consumers.len() - 1
            }
        };
        let number = u32::try_from(number).expect("fewer consumers than that fit into memory");
        self.by_name.insert(index, number);
        number
    }

    fn change<R>(&mut self, number: u32, change: impl FnOnce(&mut Consumer) -> R) {
        if let Some(consumer) = &mut self.consumers[number as usize] {
            let before = consumer.bytes();
            change(consumer);
            self.consumer_bytes = self.consumer_bytes + consumer.bytes() - before;
        }
    }

    fn pending_entry(&self, id: StreamId, payload: &[u8]) -> PendingEntry<'_> {
        let delivery = Delivery::read(id, payload);
        let consumer = &self.numbered(delivery.consumer).name;
        PendingEntry { id, consumer, delivered_at: delivery.at, deliveries: delivery.count }
    }
}

impl Delivery {
    fn read(id: StreamId, payload: &[u8]) -> Delivery {
        let read = || {
            let (consumer, rest) = varint::read(payload)?;
            let (later, rest) = varint::read_signed(rest)?;
            let at = id.ms.cast_signed().wrapping_add(later);
            let (count, _) = varint::read(rest)?;
            Some(Delivery { consumer: u32::try_from(consumer).ok()?, at, count })
        };
        read().expect("written by this crate")
    }

    /// Returns the payload: the time is kept as its distance from that of the entry's id.
    fn written(&self, id: StreamId) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        varint::put(&mut out, self.consumer.into());
        varint::put_signed(&mut out, self.at.wrapping_sub(id.ms.cast_signed()));
        varint::put(&mut out, self.count);
        out
    }
}

fn insert(map: &mut Pendings, id: StreamId, payload: &[u8]) {
    let payload = [payload, &[]];
    map.insert(&NewEntry { id, head: &[], payload, full_payload: payload }, false);
}

#[cfg(test)]
impl Group {
    /// Checks the sums by counting again, and that both lists of pending entries agree.
    pub(super) fn check(&self) {
        self.pending.check();
        let mut pending = 0;
        let mut bytes = 0;
        for consumer in self.consumers() {
            consumer.pending.check();
            bytes += consumer.bytes();
            pending += consumer.pending.len();
            assert_eq!(self.pending_of(consumer, StreamId::MIN).count(), consumer.pending.len());
        }
        assert_eq!((self.pending.len(), self.consumer_bytes), (pending, bytes));
        assert!(self.consumers().map(Consumer::name).is_sorted());
    }
}
