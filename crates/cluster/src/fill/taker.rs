//! The taker of a fill: assembles the bucket, and keeps it until the map decides on it.

use placement::{Hashmask, Slot};
use store::{Applied, DecodeError, NewValue, decode_item};

use crate::balance::MoveId;
use crate::map::{Epoch, LogIndex, Map, NodeId};
use crate::replication::{FillSize, Position, ReceivingSlot, Role, receive_gone};

pub struct FillTaker {
    pub fill: MoveId,
    pub bucket: Hashmask,
    pub reign: LogIndex,
    /// The bucket's size at its primary when the fill began.
    size: FillSize,
    /// Number of slots that are complete, and of their items.
    slots_done: usize,
    items_done: u64,
    /// Pieces received of a large value.
    pieces: Vec<u8>,
    /// The bucket's epoch named in `FillEnd`; set when that has arrived.
    ended_at: Option<Epoch>,
}

/// The part of a bucket that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FillReceived {
    pub bucket: Hashmask,
    /// Percentage of slots that are complete.
    pub percent: u8,
    pub items_behind: u64,
    pub bytes_behind: u64,
}

/// The effect of a map change on a copy that a fill has brought or is bringing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FillOutcome {
    /// Undecided: the copy is kept.
    Undecided,
    /// The copy is a backup now.
    AsBackup,
    /// The fill has failed: the copy must be freed.
    Dropped,
}

impl FillTaker {
    pub fn new(fill: MoveId, bucket: Hashmask, reign: LogIndex, size: FillSize) -> FillTaker {
        let (slots_done, items_done, pieces) = (0, 0, Vec::new());
        FillTaker { fill, bucket, reign, size, slots_done, items_done, pieces, ended_at: None }
    }

    /// Records that a slot is complete, with so many items.
    pub fn end_slot(&mut self, items: usize) {
        self.slots_done += 1;
        self.items_done += items as u64;
    }

    /// Returns how far the copy is from complete. The bytes are those of the missing items, by the average size.
    pub fn progress(&self) -> FillReceived {
        let (all, done) = (self.bucket.slots().len(), self.slots_done);
        let items_behind = match self.ended_at {
            None if done < all => self.size.items.saturating_sub(self.items_done),
            None | Some(_) => 0,
        };
        let bytes = u128::from(self.size.bytes) * u128::from(items_behind);
        let bytes_behind = bytes.checked_div(u128::from(self.size.items)).unwrap_or(0);
        FillReceived {
            bucket: self.bucket,
            percent: u8::try_from(done * 100 / all).unwrap_or(100).min(100),
            items_behind,
            bytes_behind: u64::try_from(bytes_behind).unwrap_or(u64::MAX),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Begins a slot, and drops its previous content.
    pub fn begin_slot(&mut self, receiver: &mut ReceivingSlot<'_>, position: Position) -> Applied {
        receiver.replica.begin_filling(self.reign, position.reign);
        receiver.table.begin_copy(position.version, receiver.seed)
    }

    /// Begins a slot of which a copy was kept at `from`: only its changes up to `position` follow. Returns false if
    /// the copy is no longer there as it was.
    pub fn begin_newer(
        &mut self,
        receiver: &mut ReceivingSlot<'_>,
        from: Position,
        position: Position,
    ) -> bool {
        let ReceivingSlot { table, replica, .. } = receiver;
        if replica.role() != Role::Stale || replica.position(table) != from {
            return false;
        }
        replica.begin_filling(self.reign, position.reign);
        table.advance_to(position.version);
        true
    }

    pub fn take_gone(
        &mut self,
        receiver: &mut ReceivingSlot<'_>,
        keys: &[u8],
        applied: impl FnMut(Applied),
    ) -> Result<(), DecodeError> {
        receive_gone(receiver, keys, applied)
    }

    pub fn take_items(
        &mut self,
        receiver: &mut ReceivingSlot<'_>,
        items: &[u8],
        mut applied: impl FnMut(Applied),
    ) -> Result<(), DecodeError> {
        let mut rest = items;
        while !rest.is_empty() {
            let (item, behind) = decode_item(rest)?;
            applied(receiver.table.copy_item(&item, receiver.seed));
            rest = behind;
        }
        Ok(())
    }

    pub fn take_piece(&mut self, bytes: &[u8]) {
        self.pieces.extend_from_slice(bytes);
    }

    /// Completes an item: the received pieces are its value. Drops the pieces if the item has changed meanwhile.
    pub fn take_whole(
        &mut self,
        receiver: &mut ReceivingSlot<'_>,
        item: &[u8],
    ) -> Result<Option<Applied>, DecodeError> {
        let pieces = core::mem::take(&mut self.pieces);
        if item.is_empty() {
            return Ok(None);
        }
        let (mut item, _) = decode_item(item)?;
        item.value = NewValue::Shared(std::sync::Arc::new(pieces));
        Ok(Some(receiver.table.copy_item(&item, receiver.seed)))
    }

    pub fn end(&mut self, epoch: Epoch) {
        self.ended_at = Some(epoch);
    }

    /// Decides about the copy under this map. Until its end was acknowledged, any change of the bucket's
    /// primary or shape frees it; afterwards it is kept until the bucket's next change.
    pub fn outcome(&self, map: &Map, me: NodeId) -> FillOutcome {
        let Some(bucket) = map.bucket(self.bucket) else {
            return self.outcome_after_split(map, me);
        };
        match self.ended_at {
            _ if bucket.is_held_by(me) => FillOutcome::AsBackup,
            Some(epoch) if bucket.epoch <= epoch => FillOutcome::Undecided,
            None if bucket.reign == self.reign => FillOutcome::Undecided,
            Some(_) | None => FillOutcome::Dropped,
        }
    }

    fn outcome_after_split(&self, map: &Map, me: NodeId) -> FillOutcome {
        let first = Slot::new(self.bucket.slots().start).expect("a bucket has slots");
        if map.bucket_of(first).is_held_by(me) {
            FillOutcome::AsBackup
        } else {
            FillOutcome::Dropped
        }
    }
}
