//! The source of a fill: the bucket's primary. It sends slot after slot, chunk after chunk. Each chunk is taken
//! under the slot's lock and put on the link before the lock is released.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use placement::{Hashmask, Slot};
use store::{
    Found, HashValue, ItemExtent, ListValue, ScanPosition, Seed, SetValue, SlotTable, StoredValue,
    StreamPosition, StringValue, TablePosition, Version, encode_item, encode_item_part,
    encode_item_without_value,
};

use crate::balance::MoveId;
use crate::map::{Epoch, LogIndex};
use crate::replication::{
    Downstream, FillSize, Frame, FrameNumber, LinkId, Outbox, Position, SlotReplica, SyncState,
    write_gone,
};

/// Approximate number of bytes taken per hold of a lock. Larger values are sent in pieces of this size.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// Number of items scanned between two checks of the chunk's size.
const STRIDE: usize = 16;

pub struct FillSource {
    pub fill: MoveId,
    pub bucket: Hashmask,
    pub link: LinkId,
    pub reign: LogIndex,
    /// Slots that are not fully sent; the first is the current one.
    slots: Range<u16>,
    /// Position in the current slot.
    walk: SlotWalk,
    /// Large strings of the current slot, to be sent in pieces.
    large: VecDeque<LargeItem>,
    /// Large containers of the current slot, to be sent in parts.
    containers: VecDeque<ContainerCopy>,
    /// Positions of the copies that the taker has kept, for slots that are not begun.
    kept: BTreeMap<Slot, Position>,
    /// Only items newer than this are sent of the current slot.
    newer_than: Version,
    sent: Sent,
}

/// Totals of what fills have sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sent {
    pub bytes: u64,
    pub items: u64,
    /// Keys that the taker must remove.
    pub gone: u64,
    /// Slots that were sent whole.
    pub whole_slots: u64,
    /// Slots of which only the changes were sent.
    pub newer_slots: u64,
}

impl core::ops::Sub for Sent {
    type Output = Sent;

    fn sub(self, less: Sent) -> Sent {
        Sent {
            bytes: self.bytes - less.bytes,
            items: self.items - less.items,
            gone: self.gone - less.gone,
            whole_slots: self.whole_slots - less.whole_slots,
            newer_slots: self.newer_slots - less.newer_slots,
        }
    }
}

impl core::ops::AddAssign for Sent {
    fn add_assign(&mut self, more: Sent) {
        self.bytes += more.bytes;
        self.items += more.items;
        self.gone += more.gone;
        self.whole_slots += more.whole_slots;
        self.newer_slots += more.newer_slots;
    }
}

enum SlotWalk {
    NotBegun,
    /// Sending the slot's tombstones (`DivergenceLog`), after this key.
    Remembered(Option<Box<[u8]>>),
    At(ScanPosition),
    Over,
}

struct LargeItem {
    /// Its name (`Key::name`).
    key: Vec<u8>,
    version: Version,
    value: Arc<Vec<u8>>,
    sent: usize,
}

/// A large container that is being copied, from its present content.
struct ContainerCopy {
    /// Its name (`Key::name`).
    key: Vec<u8>,
    from: ResumePoint,
}

/// The point to continue a copy from: all that lies before it is sent. That of a list is in the downstream: writes move
/// it.
#[derive(Clone, PartialEq, Eq)]
enum ResumePoint {
    Start,
    Table(TablePosition),
    Stream(StreamPosition),
}

impl FillSource {
    pub fn new(fill: MoveId, bucket: Hashmask, link: LinkId, reign: LogIndex) -> FillSource {
        FillSource {
            fill,
            bucket,
            link,
            reign,
            slots: bucket.slots(),
            walk: SlotWalk::NotBegun,
            large: VecDeque::new(),
            containers: VecDeque::new(),
            kept: BTreeMap::new(),
            newer_than: Version::ZERO,
            sent: Sent::default(),
        }
    }

    /// Announces the bucket to the taker. The slots get their downstream after it. By the time the taker
    /// acknowledges this frame, it has reported its stale copies.
    pub fn start(&self, size: FillSize, outbox: &mut Outbox) -> FrameNumber {
        let (fill, bucket, reign) = (self.fill, self.bucket, self.reign);
        outbox.push(&Frame::FillStart { fill, bucket, reign, size })
    }

    /// Records that the taker has kept a copy of a slot, at this position.
    pub fn note_kept(&mut self, slot: Slot, position: Position) {
        self.kept.insert(slot, position);
    }

    /// Returns the slot whose lock is needed for the next chunk; `None` when all are sent.
    pub fn slot(&self) -> Option<Slot> {
        self.slots.clone().next().and_then(Slot::new)
    }

    /// Returns the number of slots that are still to be sent.
    pub fn slots_left(&self) -> usize {
        self.slots.len()
    }

    pub fn sent(&self) -> Sent {
        self.sent
    }

    /// Sends the next piece of a large value; this needs no lock. Returns false if there is none.
    pub fn send_piece(&mut self, outbox: &mut Outbox) -> bool {
        let Some(slot) = self.slot() else { return false };
        let Some(large) = self.large.front_mut() else { return false };
        let end = large.value.len().min(large.sent + CHUNK_BYTES);
        let bytes = &large.value[large.sent..end];
        if bytes.is_empty() {
            return false;
        }
        outbox.push(&Frame::FillPart { fill: self.fill, slot, bytes });
        self.sent.bytes += bytes.len() as u64;
        large.sent = end;
        true
    }

    /// Sends the next chunk of the current slot, whose lock is held.
    pub fn send_chunk(
        &mut self,
        table: &SlotTable,
        replica: &mut SlotReplica,
        seed: &Seed,
        outbox: &mut Outbox,
    ) {
        let Some(slot) = self.slot() else { return };
        if replica.downstream_mut(self.link).is_none() {
            return;
        }
        if matches!(self.walk, SlotWalk::NotBegun) {
            self.begin_slot(slot, table, replica, seed, outbox);
        }
        if let SlotWalk::Remembered(after) = &self.walk {
            self.walk = send_remembered(table, self.fill, slot, after.as_deref(), outbox);
        }
        let Some(downstream) = replica.downstream_mut(self.link) else { return };
        let SyncState::Partly { begun_at, .. } = downstream.sync_state() else { return };
        self.conclude_large(table, seed, slot, outbox);
        self.send_part(table, downstream, seed, slot, outbox);
        self.walk_on(table, downstream, begun_at, slot, outbox);
        match self.walk {
            SlotWalk::At(position) => downstream.reach(position),
            SlotWalk::Over => downstream.reach(ScanPosition::END),
            SlotWalk::NotBegun | SlotWalk::Remembered(_) => {}
        }
        if matches!(self.walk, SlotWalk::Over) && !self.has_large() {
            downstream.complete();
            outbox.push(&Frame::FillSlotEnd { fill: self.fill, slot });
            self.slots.start += 1;
            self.walk = SlotWalk::NotBegun;
        }
    }

    /// Tells the taker whether the whole slot follows, or only the changes since its stale copy.
    fn begin_slot(
        &mut self,
        slot: Slot,
        table: &SlotTable,
        replica: &mut SlotReplica,
        seed: &Seed,
        outbox: &mut Outbox,
    ) {
        let (fill, position) = (self.fill, replica.position(table));
        let kept = self.kept.remove(&slot).filter(|kept| replica.history_includes(*kept, table));
        self.walk = SlotWalk::Remembered(None);
        if let Some(from) = kept {
            self.newer_than = from.version;
            self.sent.newer_slots += 1;
            outbox.push(&Frame::FillNewer { fill, slot, from, position });
            if let Some(past) = replica.past().filter(|_| from != position) {
                let mut keys = Vec::new();
                for key in past.gone_since(from.version, table, seed) {
                    write_gone(key, &mut keys);
                    self.sent.gone += 1;
                    if keys.len() >= CHUNK_BYTES {
                        outbox.push(&Frame::FillGone { fill, slot, keys: &keys });
                        keys.clear();
                    }
                }
                outbox.push(&Frame::FillGone { fill, slot, keys: &keys });
            }
        } else {
            self.newer_than = Version::ZERO;
            self.sent.whole_slots += 1;
            outbox.push(&Frame::FillSlot { fill, slot, position });
        }
        if let Some(downstream) = replica.downstream_mut(self.link) {
            downstream.begin(position.version);
        }
    }

    /// Concludes a large value whose pieces are all sent: they are valid only if the value is unchanged.
    fn conclude_large(&mut self, table: &SlotTable, seed: &Seed, slot: Slot, outbox: &mut Outbox) {
        if self.large.front().is_none_or(|large| large.sent < large.value.len()) {
            return;
        }
        let Some(large) = self.large.pop_front() else { return };
        let mut item = Vec::new();
        if let Some(found) = table.peek(&seed.named(&large.key))
            && found.item.version() == large.version
        {
            encode_item_without_value(&found, &mut item);
        }
        outbox.push(&Frame::FillWhole { fill: self.fill, slot, item: &item });
    }

    /// Sends the next part of a large container, from its resume point. If the key is something else by now, it was
    /// shipped as that.
    fn send_part(
        &mut self,
        table: &SlotTable,
        downstream: &mut Downstream,
        seed: &Seed,
        slot: Slot,
        outbox: &mut Outbox,
    ) {
        let Some(copy) = self.containers.pop_front() else { return };
        let found = table.peek(&seed.named(&copy.key)).filter(Found::goes_in_parts);
        let Some(found) = found else { return };
        if let StoredValue::List(list) = found.value() {
            return self.send_elements((copy, &found, list), downstream, slot, outbox);
        }
        let ContainerCopy { key, from } = copy;
        let Some((row, next)) = next_part(&found, seed, &from) else { return };
        self.send_container_part(&found, &row, from == ResumePoint::Start, slot, outbox);
        if let Some(from) = next {
            self.containers.push_front(ContainerCopy { key, from });
        }
    }

    fn send_elements(
        &mut self,
        (copy, found, list): (ContainerCopy, &Found<'_>, ListValue<'_>),
        downstream: &mut Downstream,
        slot: Slot,
        outbox: &mut Outbox,
    ) {
        // A list that has replaced another value was shipped as a whole.
        let Some(sent) = downstream.list_sent(&copy.key) else { return };
        let mut row = Vec::new();
        let mut next = sent;
        for element in list.iter_from(sent) {
            element.write(&mut row);
            next += 1;
            if row.len() >= CHUNK_BYTES {
                break;
            }
        }
        // An empty part at the end brings the version of changes that were not shipped.
        self.send_container_part(found, &row, sent == 0, slot, outbox);
        if next < list.len() {
            downstream.advance_list(&copy.key, next);
            self.containers.push_front(copy);
        } else {
            downstream.end_list(&copy.key);
        }
    }

    fn send_container_part(
        &mut self,
        found: &Found<'_>,
        row: &[u8],
        is_first: bool,
        slot: Slot,
        outbox: &mut Outbox,
    ) {
        let extent = if is_first { ItemExtent::Whole } else { ItemExtent::More };
        let mut item = Vec::new();
        encode_item_part(found, row, extent, &mut item);
        self.sent.items += u64::from(is_first);
        self.send_items(slot, &mut item, outbox);
    }

    fn has_large(&self) -> bool {
        !self.large.is_empty() || !self.containers.is_empty()
    }

    fn walk_on(
        &mut self,
        table: &SlotTable,
        downstream: &mut Downstream,
        begun_at: Version,
        slot: Slot,
        outbox: &mut Outbox,
    ) {
        let mut items = Vec::new();
        let sent_before = self.sent.bytes;
        while let SlotWalk::At(from) = self.walk
            && items.len() < CHUNK_BYTES
            && self.sent.bytes == sent_before
            && !self.has_large()
        {
            let next = table.scan(from, STRIDE, |found| {
                let version = found.item.version();
                if version > self.newer_than && found.goes_in_parts() {
                    // Written since or not: changes to it are not shipped before the walk has reached it.
                    let (key, from) = (found.name().into_owned(), ResumePoint::Start);
                    if let StoredValue::List(_) = found.value() {
                        downstream.begin_list(&key);
                    }
                    self.containers.push_back(ContainerCopy { key, from });
                } else if version > self.newer_than && version <= begun_at {
                    // Items written since then have already been shipped.
                    self.sent.items += 1;
                    if !self.set_aside(&found) {
                        encode_item(&found, &mut items);
                    }
                    // Keys may be long, too: those of a whole stride may exceed the size of a frame.
                    if items.len() >= CHUNK_BYTES {
                        self.send_items(slot, &mut items, outbox);
                    }
                }
            });
            self.walk = next.map_or(SlotWalk::Over, SlotWalk::At);
        }
        self.send_items(slot, &mut items, outbox);
    }

    fn send_items(&mut self, slot: Slot, items: &mut Vec<u8>, outbox: &mut Outbox) {
        if !items.is_empty() {
            self.sent.bytes += items.len() as u64;
            outbox.push(&Frame::FillItems { fill: self.fill, slot, items });
            items.clear();
        }
    }

    /// Queues a large value for sending in pieces, so that it is not copied under the lock. Returns false if it
    /// is small.
    fn set_aside(&mut self, found: &Found<'_>) -> bool {
        let Some(StringValue::Shared(shared)) = found.string() else { return false };
        if shared.bytes().len() <= CHUNK_BYTES {
            return false;
        }
        let (key, version) = (found.name().into_owned(), found.item.version());
        self.large.push_back(LargeItem { key, version, value: shared.to_arc(), sent: 0 });
        true
    }

    /// Ends the fill. Every slot's downstream must count (`Downstream::join_wait_set`) before that.
    pub fn end(&self, epoch: Epoch, outbox: &mut Outbox) {
        outbox.push(&Frame::FillEnd { fill: self.fill, epoch });
    }

    pub fn cancel(&self, outbox: &mut Outbox) {
        outbox.push(&Frame::FillCancel { fill: self.fill });
    }
}

/// Returns the next elements of a large container in a row, and the position behind them; `None` for another value, and
/// for a container of another type than the one whose copy was begun: that one was shipped as a whole.
fn next_part(
    found: &Found<'_>,
    seed: &Seed,
    from: &ResumePoint,
) -> Option<(Vec<u8>, Option<ResumePoint>)> {
    let mut row = Vec::new();
    if let StoredValue::Stream(stream) = found.value() {
        let from = match from {
            ResumePoint::Start => &StreamPosition::Start,
            ResumePoint::Stream(position) => position,
            ResumePoint::Table(_) => return None,
        };
        let next = stream.copy_some(from, CHUNK_BYTES, &mut row);
        return Some((row, next.map(ResumePoint::Stream)));
    }
    let from = match from {
        ResumePoint::Start => TablePosition::START,
        ResumePoint::Table(position) => *position,
        ResumePoint::Stream(_) => return None,
    };
    let next = match found.value() {
        StoredValue::Hash(HashValue::Table(table)) | StoredValue::Set(SetValue::Table(table)) => {
            table.scan(seed, from, |entry| {
                row.extend_from_slice(entry);
                row.len() < CHUNK_BYTES
            })
        }
        StoredValue::SortedSet(set) => set.scan(seed, from, |member| {
            member.write(&mut row);
            row.len() < CHUNK_BYTES
        }),
        StoredValue::Hash(_)
        | StoredValue::List(_)
        | StoredValue::Set(_)
        | StoredValue::Stream(_)
        | StoredValue::String(_) => return None,
    };
    Some((row, next.map(ResumePoint::Table)))
}

/// Sends the slot's tombstones since the split brain. They go before the items: a key that exists again by then
/// is among the items.
fn send_remembered(
    table: &SlotTable,
    fill: MoveId,
    slot: Slot,
    after: Option<&[u8]>,
    outbox: &mut Outbox,
) -> SlotWalk {
    let Some(divergence) = table.divergence() else { return SlotWalk::At(ScanPosition::START) };
    let mut piece = Vec::new();
    let more = divergence.encode(after, CHUNK_BYTES, &mut piece);
    outbox.push(&Frame::FillTombstones { fill, slot, piece: &piece });
    more.map_or(SlotWalk::At(ScanPosition::START), |key| SlotWalk::Remembered(Some(key)))
}
