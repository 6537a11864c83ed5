//! The source of a fill: the bucket's primary. Slot after slot, chunk after chunk, each taken under the
//! slot's lock and put on the link before the lock is let go.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use placement::{Hashmask, Slot};
use store::{
    Found, ScanPosition, Seed, SlotTable, Value, Version, encode_item, encode_item_without_value,
};

use crate::map::{Epoch, LogIndex};
use crate::replication::{
    Duty, FillId, Frame, FrameNumber, LinkId, Outbox, Position, Stage, write_gone,
};

/// About so much is taken under one hold of a lock. A value that is larger goes in pieces of this size.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// Items looked at between two looks at how much has come together.
const STRIDE: usize = 16;

pub struct Source {
    pub fill: FillId,
    pub bucket: Hashmask,
    pub link: LinkId,
    pub reign: LogIndex,
    /// Slots that are not all sent; the first is the one at hand.
    slots: Range<u16>,
    /// Where the walk over the slot at hand is.
    walk: Walk,
    /// Large values of the slot at hand, to be sent in pieces.
    large: VecDeque<Large>,
    /// What the taker has kept of slots that are not begun.
    kept: BTreeMap<Slot, Position>,
    /// Of the slot at hand, only what is newer than this goes.
    newer_than: Version,
    sent: Sent,
}

/// What fills have sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sent {
    pub bytes: u64,
    pub items: u64,
    /// Keys that were to be taken away.
    pub gone: u64,
    /// Slots of which all was sent.
    pub whole_slots: u64,
    /// Slots of which only what had changed was sent.
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

enum Walk {
    NotBegun,
    /// At what is remembered of the slot, behind this key.
    Remembered(Option<Box<[u8]>>),
    At(ScanPosition),
    Over,
}

struct Large {
    key: Vec<u8>,
    version: Version,
    value: Arc<Vec<u8>>,
    sent: usize,
}

impl Source {
    pub fn new(fill: FillId, bucket: Hashmask, link: LinkId, reign: LogIndex) -> Source {
        Source {
            fill,
            bucket,
            link,
            reign,
            slots: bucket.slots(),
            walk: Walk::NotBegun,
            large: VecDeque::new(),
            kept: BTreeMap::new(),
            newer_than: Version::ZERO,
            sent: Sent::default(),
        }
    }

    /// Tells the taker that the bucket is coming. Before that every slot of the bucket needs a feed.
    /// With the acknowledgement of this frame the taker has told what it has kept.
    pub fn start(&self, outbox: &mut Outbox) -> FrameNumber {
        let (fill, bucket, reign) = (self.fill, self.bucket, self.reign);
        outbox.push(&Frame::FillStart { fill, bucket, reign })
    }

    /// The taker has kept a copy of a slot, which is at this position.
    pub fn note_kept(&mut self, slot: Slot, position: Position) {
        self.kept.insert(slot, position);
    }

    /// The slot whose lock is needed for the next chunk. `None` when all are sent.
    pub fn slot(&self) -> Option<Slot> {
        self.slots.clone().next().and_then(Slot::new)
    }

    /// How many slots are still to be sent.
    pub fn slots_left(&self) -> usize {
        self.slots.len()
    }

    pub fn sent(&self) -> Sent {
        self.sent
    }

    /// Sends the next piece of a large value; this needs no lock. False if there is none.
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

    /// Sends the next chunk of the slot at hand, whose lock is held.
    pub fn send_chunk(
        &mut self,
        table: &SlotTable,
        duty: &mut Duty,
        seed: &Seed,
        outbox: &mut Outbox,
    ) {
        let Some(slot) = self.slot() else { return };
        if duty.feed_mut(self.link).is_none() {
            return;
        }
        if matches!(self.walk, Walk::NotBegun) {
            self.begin_slot(slot, (table, duty), seed, outbox);
        }
        if let Walk::Remembered(after) = &self.walk {
            self.walk = send_remembered(table, (self.fill, slot), after.as_deref(), outbox);
        }
        let Some(feed) = duty.feed_mut(self.link) else { return };
        let Stage::Partly { begun_at } = feed.stage() else { return };
        self.conclude_large(table, seed, slot, outbox);
        self.walk_on(table, begun_at, slot, outbox);
        if matches!(self.walk, Walk::Over) && self.large.is_empty() {
            feed.complete();
            outbox.push(&Frame::FillSlotEnd { fill: self.fill, slot });
            self.slots.start += 1;
            self.walk = Walk::NotBegun;
        }
    }

    /// Tells the taker whether all of a slot comes, or only what has changed since it had it.
    fn begin_slot(
        &mut self,
        slot: Slot,
        (table, duty): (&SlotTable, &mut Duty),
        seed: &Seed,
        outbox: &mut Outbox,
    ) {
        let (fill, position) = (self.fill, duty.position(table));
        let kept = self.kept.remove(&slot).filter(|kept| duty.leads_from(*kept, table));
        self.walk = Walk::Remembered(None);
        if let Some(from) = kept {
            self.newer_than = from.version;
            self.sent.newer_slots += 1;
            outbox.push(&Frame::FillNewer { fill, slot, from, position });
            if let Some(past) = duty.past().filter(|_| from != position) {
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
        if let Some(feed) = duty.feed_mut(self.link) {
            feed.begin(position.version);
        }
    }

    /// The pieces of a large value are all sent: they count if it is still the same.
    fn conclude_large(&mut self, table: &SlotTable, seed: &Seed, slot: Slot, outbox: &mut Outbox) {
        if self.large.front().is_none_or(|large| large.sent < large.value.len()) {
            return;
        }
        let Some(large) = self.large.pop_front() else { return };
        let mut item = Vec::new();
        if let Some(found) = table.peek(&seed.key(&large.key))
            && found.item.version() == large.version
        {
            encode_item_without_value(&found, &mut item);
        }
        outbox.push(&Frame::FillWhole { fill: self.fill, slot, item: &item });
    }

    fn walk_on(&mut self, table: &SlotTable, begun_at: Version, slot: Slot, outbox: &mut Outbox) {
        let mut items = Vec::new();
        let sent_before = self.sent.bytes;
        while let Walk::At(from) = self.walk
            && items.len() < CHUNK_BYTES
            && self.sent.bytes == sent_before
            && self.large.is_empty()
        {
            let next = table.scan(from, STRIDE, |found| {
                // What was written since has travelled already.
                let version = found.item.version();
                if version > self.newer_than && version <= begun_at {
                    self.sent.items += 1;
                    if !self.set_aside(&found) {
                        encode_item(&found, &mut items);
                    }
                    // Keys may be long, too: of a whole stride they would be too much for a frame.
                    if items.len() >= CHUNK_BYTES {
                        self.send_items(slot, &mut items, outbox);
                    }
                }
            });
            self.walk = next.map_or(Walk::Over, Walk::At);
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

    /// A large value is not copied under the lock.
    fn set_aside(&mut self, found: &Found<'_>) -> bool {
        let Value::Shared(shared) = found.value() else { return false };
        if shared.bytes().len() <= CHUNK_BYTES {
            return false;
        }
        let (key, version) = (found.item.key().to_vec(), found.item.version());
        self.large.push_back(Large { key, version, value: shared.to_arc(), sent: 0 });
        true
    }

    /// The end. Before it every slot's feed must count (`Feed::count`).
    pub fn end(&self, epoch: Epoch, outbox: &mut Outbox) {
        outbox.push(&Frame::FillEnd { fill: self.fill, epoch });
    }

    pub fn cancel(&self, outbox: &mut Outbox) {
        outbox.push(&Frame::FillCancel { fill: self.fill });
    }
}

/// Sends what is remembered since the cluster parted from another side, before the items: a key that is
/// back by then is among those.
fn send_remembered(
    table: &SlotTable,
    (fill, slot): (FillId, Slot),
    after: Option<&[u8]>,
    outbox: &mut Outbox,
) -> Walk {
    let Some(parting) = table.parting() else { return Walk::At(ScanPosition::START) };
    let mut piece = Vec::new();
    let more = parting.encode(after, CHUNK_BYTES, &mut piece);
    outbox.push(&Frame::FillParting { fill, slot, piece: &piece });
    more.map_or(Walk::At(ScanPosition::START), |key| Walk::Remembered(Some(key)))
}
