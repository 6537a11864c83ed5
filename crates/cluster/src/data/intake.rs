//! Incoming frames of one other node, applied in order. The reader of the connection finds the frames in the
//! bytes (`Inbox::peek`) and calls `Intake::take`.

use core::ops::Range;
use std::collections::BTreeMap;

use placement::{Hashmask, Slot};
use store::{Applied, DecodeError, Touch, Version};

use super::replace::SlotReplacement;
use super::{Plane, SlotState, me_in, slots_of};
use crate::balance::MoveId;
use crate::fill::{FillOutcome, FillReceived, FillTaker};
use crate::map::{Epoch, LogIndex, Map, NodeId, Peer};
use crate::replication::{
    BackFrame, Frame, FrameNumber, FrameParts, Inbox, Received, ReceivingSlot, RecordedUnit, Role,
    receive_effects, receive_images, slot_of_unit,
};

/// The intake from one boot of another node. It outlives a connection.
#[derive(Default)]
pub struct Intake {
    pub inbox: Inbox,
    /// Number of the latest connection; only that one is read.
    pub connection: u64,
    /// True if a map has shown the process as a member.
    was_member: bool,
    /// The incoming fill, or the last one that has ended.
    taker: Option<FillTaker>,
    /// Earlier fills that have ended. The sender already knows the map's decision on them; they stay here until
    /// this node knows it, too.
    undecided: Vec<FillTaker>,
    /// The slot that is being resent whole, if there is one.
    replacement: Option<SlotReplacement>,
    /// Parts received of a long frame.
    parts: FrameParts,
    refused: StandingRefusals,
    /// Refusals and reports of stale copies that have not been sent yet.
    unsent: Vec<BackFrame>,
}

/// Refusals that still stand. An answer may be lost with its connection, and the other end does not ask again:
/// so a new connection begins with all of them.
#[derive(Default)]
struct StandingRefusals {
    slots: BTreeMap<Slot, (FrameNumber, LogIndex)>,
    fill: Option<MoveId>,
}

impl StandingRefusals {
    fn answers(&self) -> impl Iterator<Item = BackFrame> {
        let slots = self.slots.iter();
        let slots = slots.map(|(slot, (frame, reign))| BackFrame::Refused {
            frame: *frame,
            slot: *slot,
            reign: *reign,
        });
        slots.chain(self.fill.map(|fill| BackFrame::FillRefused { fill }))
    }

    /// Drops the refusals of these slots, which are sent again from the start.
    fn forget(&mut self, slots: &Range<u16>) {
        self.slots.retain(|slot, _| !slots.contains(&slot.number()));
    }
}

/// The outcome of taking in a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    Done,
    /// The map here is behind; retry after the next map change.
    NotYet,
    /// The frame is invalid: the connection is closed.
    Garbled,
    /// A message published on another node, for subscribers here.
    Pubsub(Vec<u8>),
    /// This node is about to become primary of this bucket: its slots await the promotion.
    AnnouncePromotion {
        bucket: Hashmask,
        epoch: Epoch,
    },
}

/// The environment for taking in frames.
pub struct ApplyContext<'a, P, A> {
    pub plane: &'a P,
    /// The LRU/LFU update that an applied effect makes to its key.
    pub touch: Touch,
    /// Called for every change of a table.
    pub applied: A,
}

impl<P: Plane, A: FnMut(Applied)> ApplyContext<'_, P, A> {
    fn on_slot<R>(
        &mut self,
        slot: Slot,
        work: impl FnOnce(&mut ReceivingSlot<'_>, &mut A) -> R,
    ) -> R {
        let ApplyContext { plane, touch, applied } = self;
        plane.with_slot(slot, |state| {
            let SlotState { table, replica, .. } = state;
            let mut receiver = ReceivingSlot { table, replica, seed: plane.seed(), touch: *touch };
            work(&mut receiver, applied)
        })
    }
}

impl Intake {
    /// Starts a new connection of the process, and returns its number.
    pub fn connect(&mut self) -> u64 {
        self.connection += 1;
        self.inbox.acknowledge_anew();
        self.unsent = self.refused.answers().collect();
        self.connection
    }

    /// Writes the answers for the other end: refusals and stale copies first, then the acknowledgement.
    pub fn answer(&mut self, back: &mut Vec<u8>) {
        let ack = self.inbox.ack();
        self.unsent.drain(..).chain(ack).for_each(|answer| answer.write(back));
    }

    fn refuse_fill(&mut self, fill: MoveId) {
        self.refused.fill = Some(fill);
        self.unsent.push(BackFrame::FillRefused { fill });
    }

    fn judge(&mut self, received: &Received, frame: FrameNumber, slot: Slot) -> FrameOutcome {
        match *received {
            Received::Applied if self.refused.slots.is_empty() => FrameOutcome::Done,
            Received::Applied => {
                self.refused.slots.remove(&slot);
                FrameOutcome::Done
            }
            Received::Known => FrameOutcome::Done,
            Received::Early => FrameOutcome::NotYet,
            Received::Refused(reign) => {
                self.refused.slots.entry(slot).or_insert((frame, reign));
                self.unsent.push(BackFrame::Refused { frame, slot, reign });
                FrameOutcome::Done
            }
            Received::Garbled(_) => FrameOutcome::Garbled,
        }
    }

    /// Applies one frame. The caller counts it (`Inbox::done`) unless the outcome is `NotYet`.
    pub fn take(
        &mut self,
        number: FrameNumber,
        frame: &Frame<'_>,
        apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>,
    ) -> FrameOutcome {
        let taken = match *frame {
            Frame::Effects { reign, written_in, unit } => {
                let Some(slot) = slot_of_unit(unit) else { return FrameOutcome::Garbled };
                let received = apply_context.on_slot(slot, |to, applied| {
                    receive_effects(to, RecordedUnit { reign, written_in, effects: unit }, applied)
                });
                return self.judge(&received, number, slot);
            }
            Frame::Images { reign, slot, from, to: version, images } => {
                let received = apply_context.on_slot(slot, |to, applied| {
                    receive_images(to, reign, from, version, images, applied)
                });
                return self.judge(&received, number, slot);
            }
            Frame::FillStart { fill, bucket, reign, size } => {
                return self.start(FillTaker::new(fill, bucket, reign, size), apply_context);
            }
            Frame::FillCancel { fill } => {
                self.cancel(fill, apply_context);
                Ok(())
            }
            Frame::AnnouncePromotion { bucket, epoch } => {
                return on_promotion_announced(bucket, epoch, apply_context.plane);
            }
            Frame::Pubsub { bytes } => return FrameOutcome::Pubsub(bytes.to_vec()),
            Frame::Compare { reign, slot, position } => {
                let received = apply_context.on_slot(slot, |to, _| to.compare(reign, position));
                return self.judge(&received, number, slot);
            }
            Frame::Replace { reign, slot, position } => {
                self.replacement = Some(SlotReplacement::new(slot, reign, position));
                Ok(())
            }
            Frame::ReplaceItems { slot, items } => {
                let seed = apply_context.plane.seed();
                let coming = self.replacement.as_mut().filter(|coming| coming.slot == slot);
                coming.map_or(Ok(()), |coming| coming.take_items(items, seed))
            }
            Frame::ReplaceEnd { slot } => {
                if let Some(whole) = self.replacement.take_if(|coming| coming.slot == slot) {
                    self.refused.slots.remove(&slot);
                    apply_context.on_slot(slot, |to, applied| {
                        whole.swap_in(to).into_iter().for_each(applied);
                    });
                }
                Ok(())
            }
            Frame::Part { bytes } => {
                let added = self.parts.add(bytes);
                return if added.is_ok() { FrameOutcome::Done } else { FrameOutcome::Garbled };
            }
            Frame::LastPart { bytes } => return self.take_long(number, bytes, apply_context),
            Frame::FillSlot { fill, .. }
            | Frame::FillTombstones { fill, .. }
            | Frame::FillNewer { fill, .. }
            | Frame::FillGone { fill, .. }
            | Frame::FillItems { fill, .. }
            | Frame::FillPart { fill, .. }
            | Frame::FillWhole { fill, .. }
            | Frame::FillSlotEnd { fill, .. }
            | Frame::FillEnd { fill, .. } => self.go_on(fill, frame, apply_context),
        };
        if taken.is_ok() { FrameOutcome::Done } else { FrameOutcome::Garbled }
    }

    /// Takes in a long frame whose last part has arrived.
    fn take_long(
        &mut self,
        number: FrameNumber,
        last: &[u8],
        apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>,
    ) -> FrameOutcome {
        let Ok(whole) = self.parts.finish(last) else { return FrameOutcome::Garbled };
        let taken = match Frame::read(&whole) {
            Ok(frame) if !frame.is_part() => self.take(number, &frame, apply_context),
            Ok(_) | Err(_) => FrameOutcome::Garbled,
        };
        if taken == FrameOutcome::NotYet {
            self.parts.put_back(whole, last);
        }
        taken
    }

    /// Returns the progress of the incoming fill, if there is one that has not ended.
    pub fn filling(&self) -> Option<FillReceived> {
        self.taker.as_ref().filter(|taker| !taker.has_ended()).map(FillTaker::progress)
    }

    /// Returns the number of bytes received so far of a long frame.
    pub fn gathered_bytes(&self) -> usize {
        self.parts.bytes()
    }

    /// Prepares the slots of an incoming bucket, or refuses the fill.
    fn start(
        &mut self,
        coming: FillTaker,
        apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>,
    ) -> FrameOutcome {
        let (fill, hashmask, reign) = (coming.fill, coming.bucket, coming.reign);
        let map = apply_context.plane.map();
        let Some(bucket) = map.bucket(hashmask) else {
            self.refuse_fill(fill);
            return FrameOutcome::Done;
        };
        if bucket.reign < reign {
            return FrameOutcome::NotYet;
        }
        // A `FillEnd` may have arrived after the map that decides on it.
        self.follow_fills(&map, apply_context);
        if self.is_undecided(hashmask) {
            return FrameOutcome::NotYet;
        }
        self.refused.forget(&hashmask.slots());
        match self.taker.take() {
            Some(old) if old.has_ended() => self.undecided.push(old),
            Some(old) => free(&old, apply_context),
            None => {}
        }
        // A process that is not a member yet in its own map takes nothing until it has caught up.
        let Some(me) = me_in(&map, apply_context.plane) else { return FrameOutcome::NotYet };
        if bucket.reign > reign || bucket.is_held_by(me) {
            self.refuse_fill(fill);
            return FrameOutcome::Done;
        }
        let is_held = |slot| apply_context.plane.with_slot(slot, |state| state.replica.holds());
        if slots_of(hashmask).any(is_held) {
            self.refuse_fill(fill); // Roles are briefly ahead of the published map.
            return FrameOutcome::Done;
        }
        let kept_in = apply_context.plane.kept_in();
        let is_of_use = kept_in.is_some_and(|kept_in| kept_in.is_one_with(map.generation()));
        for slot in slots_of(hashmask) {
            let kept = apply_context.on_slot(slot, |to, applied| {
                if is_of_use && to.replica.role() == Role::Stale {
                    return Some(to.replica.position(to.table));
                }
                to.replica.begin_filling(reign, LogIndex(0));
                applied(to.table.begin_copy(Version::ZERO, to.seed));
                None
            });
            if let Some(position) = kept {
                self.unsent.push(BackFrame::StaleCopy { fill, slot, position });
            }
        }
        self.taker = Some(coming);
        FrameOutcome::Done
    }

    fn go_on(
        &mut self,
        fill: MoveId,
        frame: &Frame<'_>,
        apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>,
    ) -> Result<(), DecodeError> {
        // Remaining frames of a refused or cancelled fill are ignored.
        let Some(taker) = self.taker.as_mut().filter(|taker| taker.fill == fill) else {
            return Ok(());
        };
        if slot_of_fill(frame).is_some_and(|slot| !taker.bucket.slots().contains(&slot.number())) {
            return Err(DecodeError::BadNumber); // A slot of another bucket may be served here.
        }
        match *frame {
            Frame::FillSlot { slot, position, .. } => apply_context.on_slot(slot, |to, applied| {
                applied(taker.begin_slot(to, position));
                Ok(())
            }),
            Frame::FillTombstones { slot, piece, .. } => {
                apply_context.on_slot(slot, |to, applied| {
                    applied(to.table.take_divergence(piece)?);
                    Ok(())
                })
            }
            Frame::FillNewer { slot, from, position, .. } => {
                let fits =
                    apply_context.on_slot(slot, |to, _| taker.begin_newer(to, from, position));
                if !fits {
                    self.cancel(fill, apply_context);
                    self.refuse_fill(fill);
                }
                Ok(())
            }
            Frame::FillGone { slot, keys, .. } => {
                apply_context.on_slot(slot, |to, applied| taker.take_gone(to, keys, applied))
            }
            Frame::FillItems { slot, items, .. } => {
                apply_context.on_slot(slot, |to, applied| taker.take_items(to, items, applied))
            }
            Frame::FillPart { bytes, .. } => {
                taker.take_piece(bytes);
                Ok(())
            }
            Frame::FillWhole { slot, item, .. } => apply_context.on_slot(slot, |to, applied| {
                let done = taker.take_whole(to, item)?;
                done.into_iter().for_each(applied);
                Ok(())
            }),
            Frame::FillEnd { epoch, .. } => {
                taker.end(epoch);
                Ok(())
            }
            Frame::FillSlotEnd { slot, .. } => {
                taker.end_slot(apply_context.on_slot(slot, |to, _| to.table.len()));
                Ok(())
            }
            Frame::Effects { .. }
            | Frame::Images { .. }
            | Frame::FillStart { .. }
            | Frame::FillCancel { .. }
            | Frame::Compare { .. }
            | Frame::Replace { .. }
            | Frame::ReplaceItems { .. }
            | Frame::ReplaceEnd { .. }
            | Frame::AnnouncePromotion { .. }
            | Frame::Pubsub { .. }
            | Frame::Part { .. }
            | Frame::LastPart { .. } => Ok(()),
        }
    }

    /// Returns whether a fill of this bucket has ended and this node does not know the map's decision on it yet.
    fn is_undecided(&self, bucket: Hashmask) -> bool {
        let ended = self.taker.iter().filter(|taker| taker.has_ended());
        ended.chain(&self.undecided).any(|taker| taker.bucket == bucket)
    }

    /// Cancels a fill, unless it has ended: then only the map can cancel it.
    fn cancel(
        &mut self,
        fill: MoveId,
        apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>,
    ) {
        let is_open = |taker: &mut FillTaker| taker.fill == fill && !taker.has_ended();
        if let Some(taker) = self.taker.take_if(is_open) {
            free(&taker, apply_context);
        }
    }

    /// Applies a map change to the fills: each copy becomes a backup, is freed, or stays undecided.
    ///
    /// `from` is the sender. Refusals of slots that it still serves without a copy here no longer matter: the
    /// sender feeds the backups itself.
    pub fn follow(
        &mut self,
        from: NodeId,
        map: &Map,
        apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>,
    ) {
        let me = apply_context.plane.me();
        self.refused.slots.retain(|slot, _| {
            let bucket = map.bucket_of(*slot);
            bucket.primary() != Some(from) || bucket.is_held_by(me)
        });
        self.follow_fills(map, apply_context);
    }

    fn follow_fills(
        &mut self,
        map: &Map,
        apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>,
    ) {
        let me = apply_context.plane.me();
        self.undecided.retain(|taker| {
            let outcome = taker.outcome(map, me);
            if outcome == FillOutcome::Dropped {
                free(taker, apply_context);
            }
            outcome == FillOutcome::Undecided
        });
        let Some(taker) = &self.taker else { return };
        match taker.outcome(map, me) {
            FillOutcome::Undecided => {}
            FillOutcome::AsBackup => self.taker = None,
            FillOutcome::Dropped => {
                free(taker, apply_context);
                let open = self.taker.take().filter(|taker| !taker.has_ended());
                if let Some(taker) = open {
                    self.refuse_fill(taker.fill);
                }
            }
        }
    }

    /// Returns whether the process was a member and the new map no longer has it. A process that is not a
    /// member yet may already have sent frames: their numbering goes on.
    pub fn is_over(&mut self, member: Option<Peer>) -> bool {
        let is_over = self.was_member && member.is_none();
        self.was_member |= member.is_some();
        is_over
    }

    /// Drops an unfinished fill: the process at the other end is gone.
    pub fn end(&mut self, apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>) {
        if let Some(taker) = self.taker.take_if(|taker| !taker.has_ended()) {
            free(&taker, apply_context);
        }
    }
}

/// Lets commands for a bucket wait that this node is about to serve. Waits for the map that the sender goes by.
fn on_promotion_announced(bucket: Hashmask, epoch: Epoch, plane: &impl Plane) -> FrameOutcome {
    let map = plane.map();
    match map.bucket(bucket) {
        Some(known) if known.epoch < epoch => FrameOutcome::NotYet,
        Some(known) if known.epoch == epoch => {
            for slot in slots_of(bucket) {
                plane.with_slot(slot, |state| state.replica.await_promotion());
            }
            FrameOutcome::AnnouncePromotion { bucket, epoch }
        }
        Some(_) | None => FrameOutcome::Done, // The handover is over.
    }
}

fn free(taker: &FillTaker, apply_context: &mut ApplyContext<'_, impl Plane, impl FnMut(Applied)>) {
    for slot in slots_of(taker.bucket) {
        apply_context.on_slot(slot, |to, applied| {
            if to.replica.abandon_filling() {
                applied(to.table.begin_copy(Version::ZERO, to.seed));
            }
        });
    }
}

/// Returns the slot that a frame of a fill is about.
fn slot_of_fill(frame: &Frame<'_>) -> Option<Slot> {
    match *frame {
        Frame::FillSlot { slot, .. }
        | Frame::FillTombstones { slot, .. }
        | Frame::FillNewer { slot, .. }
        | Frame::FillGone { slot, .. }
        | Frame::FillItems { slot, .. }
        | Frame::FillPart { slot, .. }
        | Frame::FillWhole { slot, .. }
        | Frame::FillSlotEnd { slot, .. } => Some(slot),
        Frame::Effects { .. }
        | Frame::Images { .. }
        | Frame::FillStart { .. }
        | Frame::FillEnd { .. }
        | Frame::FillCancel { .. }
        | Frame::Compare { .. }
        | Frame::Replace { .. }
        | Frame::ReplaceItems { .. }
        | Frame::ReplaceEnd { .. }
        | Frame::AnnouncePromotion { .. }
        | Frame::Part { .. }
        | Frame::LastPart { .. }
        | Frame::Pubsub { .. } => None,
    }
}
