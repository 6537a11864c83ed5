//! What comes from one other node: its frames, applied in their order, each under its slot's lock.
//! A worker reads the bytes (`worker/links.rs`) and calls `Intake::take`.

use cluster::fill::{Kept, Taker};
use cluster::map::{LogIndex, Map, NodeId};
use cluster::replication::{
    BackFrame, FillId, Frame, FrameNumber, Inbox, Received, Receiver, Role, receive_effects,
    receive_images, slot_of_unit,
};
use commands::{Outcome, Surroundings};
use placement::{Hashmask, Slot};
use store::{Access, DecodeError, Touch, Version};

use crate::keyspace::SlotState;
use crate::shared::Shared;

/// From one boot of another node. It outlives a connection.
#[derive(Default)]
pub(crate) struct Intake {
    pub inbox: Inbox,
    /// Counts the connections: only the latest is read.
    pub connection: u64,
    /// The fill that is coming, if one is.
    taker: Option<Taker>,
}

/// What became of a frame.
pub(crate) enum Taken {
    Done,
    /// The map here is behind; try again when it has changed.
    NotYet,
    /// It makes no sense: the connection is closed.
    Garbled,
    /// Published elsewhere: for those who listen here.
    News(Vec<u8>),
}

/// What taking frames in works with.
pub(crate) struct Surface<'a> {
    pub shared: &'a Shared,
    pub around: &'a Surroundings,
    pub outcome: &'a mut Outcome,
    /// Answers for the other end.
    pub back: &'a mut Vec<u8>,
}

impl Surface<'_> {
    fn answer(&mut self, answer: BackFrame) {
        answer.write(self.back);
    }

    fn touch(&self) -> Touch {
        Touch::at(self.around.now, self.around.access, 0)
    }

    /// Lets `work` do something to a slot under its lock.
    fn on_slot<R>(
        &mut self,
        slot: Slot,
        work: impl FnOnce(&mut Receiver<'_>, &mut Outcome) -> R,
    ) -> R {
        let touch = if self.around.access == Access::Lru { self.touch() } else { Touch::Nothing };
        let mut state = self.shared.keyspace.lock_one(slot);
        let SlotState { table, duty } = &mut *state;
        let mut receiver = Receiver { table, duty, seed: &self.around.seed, touch };
        work(&mut receiver, self.outcome)
    }
}

impl Intake {
    pub(crate) fn take(
        &mut self,
        number: FrameNumber,
        frame: &Frame<'_>,
        surface: &mut Surface<'_>,
    ) -> Taken {
        let taken = match *frame {
            Frame::Effects { reign, written_in, unit } => {
                let Some(slot) = slot_of_unit(unit) else { return Taken::Garbled };
                let received = surface.on_slot(slot, |to, outcome| {
                    receive_effects(to, (reign, written_in), unit, |done| outcome.applied(done))
                });
                return judged(received, (number, slot), surface);
            }
            Frame::Images { reign, slot, from, to: version, images } => {
                let received = surface.on_slot(slot, |to, outcome| {
                    let applied = |done| outcome.applied(done);
                    receive_images(to, reign, (from, version), images, applied)
                });
                return judged(received, (number, slot), surface);
            }
            Frame::FillStart { fill, bucket, reign } => {
                return self.start(fill, (bucket, reign), surface);
            }
            Frame::FillCancel { fill } => {
                self.cancel(fill, surface);
                Ok(())
            }
            Frame::News { bytes } => return Taken::News(bytes.to_vec()),
            Frame::FillSlot { fill, .. }
            | Frame::FillItems { fill, .. }
            | Frame::FillPart { fill, .. }
            | Frame::FillWhole { fill, .. }
            | Frame::FillSlotEnd { fill, .. }
            | Frame::FillEnd { fill, .. } => self.go_on(fill, frame, surface),
        };
        if taken.is_ok() { Taken::Done } else { Taken::Garbled }
    }

    /// A bucket is coming: it is made room for, or refused.
    fn start(
        &mut self,
        fill: FillId,
        (hashmask, reign): (Hashmask, LogIndex),
        surface: &mut Surface<'_>,
    ) -> Taken {
        let map = surface.shared.map();
        let Some(bucket) = map.bucket(hashmask) else {
            surface.answer(BackFrame::FillRefused { fill });
            return Taken::Done;
        };
        if bucket.reign < reign {
            return Taken::NotYet;
        }
        if let Some(old) = &self.taker {
            self.cancel(old.fill, surface);
        }
        if bucket.reign > reign || bucket.is_held_by(surface.shared.data.me) {
            surface.answer(BackFrame::FillRefused { fill });
            return Taken::Done;
        }
        for slot in hashmask.slots().filter_map(Slot::new) {
            surface.on_slot(slot, |to, outcome| {
                outcome.applied(to.table.begin_copy(Version::ZERO, to.seed));
                (to.duty.role, to.duty.reign) = (Role::Taking, reign);
            });
        }
        self.taker = Some(Taker::new(fill, hashmask, reign));
        Taken::Done
    }

    fn go_on(
        &mut self,
        fill: FillId,
        frame: &Frame<'_>,
        surface: &mut Surface<'_>,
    ) -> Result<(), DecodeError> {
        // What is left of a fill that was refused or cancelled means nothing.
        let Some(taker) = self.taker.as_mut().filter(|taker| taker.fill == fill) else {
            return Ok(());
        };
        match *frame {
            Frame::FillSlot { slot, position, .. } => surface.on_slot(slot, |to, outcome| {
                outcome.applied(taker.begin_slot(to, position));
                Ok(())
            }),
            Frame::FillItems { slot, items, .. } => surface.on_slot(slot, |to, outcome| {
                taker.take_items(to, items, |done| outcome.applied(done))
            }),
            Frame::FillPart { bytes, .. } => {
                taker.take_piece(bytes);
                Ok(())
            }
            Frame::FillWhole { slot, item, .. } => surface.on_slot(slot, |to, outcome| {
                let done = taker.take_whole(to, item)?;
                done.into_iter().for_each(|done| outcome.applied(done));
                Ok(())
            }),
            Frame::FillEnd { epoch, .. } => {
                taker.end(epoch);
                Ok(())
            }
            Frame::FillSlotEnd { .. }
            | Frame::Effects { .. }
            | Frame::Images { .. }
            | Frame::FillStart { .. }
            | Frame::FillCancel { .. }
            | Frame::News { .. } => Ok(()),
        }
    }

    fn cancel(&mut self, fill: FillId, surface: &mut Surface<'_>) {
        let ours = self.taker.as_ref().is_some_and(|taker| taker.fill == fill);
        if let Some(taker) = self.taker.take_if(|_| ours) {
            free(&taker, surface);
        }
    }

    /// The map has changed: what a fill has brought is a backup now, or is freed, or waits on.
    pub(crate) fn follow(&mut self, map: &Map, me: NodeId, surface: &mut Surface<'_>) {
        let Some(taker) = &self.taker else { return };
        match taker.kept(map, me) {
            Kept::Yes => {}
            Kept::AsBackup => self.taker = None,
            Kept::No => {
                if !taker.has_ended() {
                    surface.answer(BackFrame::FillRefused { fill: taker.fill });
                }
                free(taker, surface);
                self.taker = None;
            }
        }
    }

    /// The process at the other end is gone: an unfinished fill comes to nothing.
    pub(crate) fn end(&mut self, surface: &mut Surface<'_>) {
        if let Some(taker) = self.taker.take_if(|taker| !taker.has_ended()) {
            free(&taker, surface);
        }
    }
}

fn judged(received: Received, about: (FrameNumber, Slot), surface: &mut Surface<'_>) -> Taken {
    match received {
        Received::Applied | Received::Known => Taken::Done,
        Received::Early => Taken::NotYet,
        Received::Refused(reign) => {
            let (frame, slot) = about;
            surface.answer(BackFrame::Refused { frame, slot, reign });
            Taken::Done
        }
        Received::Garbled(_) => Taken::Garbled,
    }
}

fn free(taker: &Taker, surface: &mut Surface<'_>) {
    for slot in taker.bucket.slots().filter_map(Slot::new) {
        surface.on_slot(slot, |to, outcome| {
            if to.duty.role == Role::Taking {
                outcome.applied(to.table.begin_copy(Version::ZERO, to.seed));
                to.duty.role = Role::Absent;
                to.duty.written_in = LogIndex(0);
            }
        });
    }
}
