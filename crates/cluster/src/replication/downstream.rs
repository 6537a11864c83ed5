//! A downstream: another node that receives the writes to a slot, and its progress towards becoming a backup.

use store::{Effect, ScanPosition, Version};

use super::list_copy::{ListCopies, NeededPart};
use super::{FrameNumber, LinkId, Wait};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Downstream {
    link: LinkId,
    sync_state: SyncState,
    /// The last frame on the link before this downstream began. Refusals of that frame or earlier ones belong to an
    /// earlier downstream.
    since: FrameNumber,
    /// The first frame of the slot that the other end has refused: it has nothing from there on. Zero, which no frame
    /// has, if it has refused none; an `Option` would need 8 bytes more in every slot (`slot_state::THREE_LINES`).
    refused: FrameNumber,
    /// Large lists of which a part is sent.
    list_copies: Option<Box<ListCopies>>,
}

const NO_FRAME: FrameNumber = FrameNumber(0);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncState {
    /// The fill has not reached this slot: nothing of it is sent.
    NotBegun,
    /// Some of the slot is sent; its first chunk was taken at `begun_at`, and the walk has reached `reached`. Writes
    /// follow as whole items, or as effects on a large container (`serving/ship.rs`).
    Partly { begun_at: Version, reached: ScanPosition },
    /// All of the slot is sent, and every effect follows. Replies do not wait for it yet.
    Whole,
    /// In the wait set: no reply leaves before it has acknowledged `last`, the last frame of this slot; zero if that
    /// is known to be acknowledged.
    Awaited { last: FrameNumber },
}

impl Downstream {
    /// Creates a downstream to a node that is in sync; `last` is the last frame on the link so far.
    pub(crate) fn backup(link: LinkId, last: FrameNumber) -> Downstream {
        let sync_state = SyncState::Awaited { last: NO_FRAME };
        Downstream { link, sync_state, since: last, refused: NO_FRAME, list_copies: None }
    }

    /// Creates a downstream to the taker of a fill that begins.
    pub(crate) fn not_begun(link: LinkId, last: FrameNumber) -> Downstream {
        let sync_state = SyncState::NotBegun;
        Downstream { link, sync_state, since: last, refused: NO_FRAME, list_copies: None }
    }

    #[inline]
    pub fn link(&self) -> LinkId {
        self.link
    }

    #[inline]
    pub fn sync_state(&self) -> SyncState {
        self.sync_state
    }

    #[inline]
    pub fn refused(&self) -> Option<FrameNumber> {
        (self.refused != NO_FRAME).then_some(self.refused)
    }

    /// Returns whether replies wait for this downstream.
    #[inline]
    pub fn is_in_wait_set(&self) -> bool {
        matches!(self.sync_state, SyncState::Awaited { .. })
    }

    /// Records that a frame of this slot was sent.
    #[inline]
    pub(crate) fn sent(&mut self, number: FrameNumber) {
        if let SyncState::Awaited { last } = &mut self.sync_state {
            *last = number;
        }
    }

    /// Records that the slot's first chunk is taken at this version.
    pub(crate) fn begin(&mut self, version: Version) {
        self.sync_state = SyncState::Partly { begun_at: version, reached: ScanPosition::START };
        self.list_copies = None;
    }

    /// Records that the walk has passed all items before this position.
    pub(crate) fn reach(&mut self, position: ScanPosition) {
        if let SyncState::Partly { reached, .. } = &mut self.sync_state {
            *reached = position;
        }
    }

    /// Records that all of the slot is sent.
    pub(crate) fn complete(&mut self) {
        self.sync_state = SyncState::Whole;
        self.list_copies = None;
    }

    /// Records that the walk has passed a large list, which is sent in parts from now on.
    pub(crate) fn begin_list(&mut self, key: &[u8]) {
        self.list_copies.get_or_insert_default().begin(key);
    }

    /// Returns the index from which on a large list is still to be sent.
    pub(crate) fn list_sent(&self, key: &[u8]) -> Option<usize> {
        self.list_copies.as_ref()?.sent(key)
    }

    /// Records that a large list is sent up to this index.
    pub(crate) fn advance_list(&mut self, key: &[u8], sent: usize) {
        if let Some(copies) = &mut self.list_copies {
            copies.advance(key, sent);
        }
    }

    /// Records that all of this key is sent.
    pub(crate) fn end_list(&mut self, key: &[u8]) {
        if let Some(copies) = &mut self.list_copies {
            copies.end(key);
        }
    }

    /// Records that the slot's whole content is sent, with the effect that emptied it.
    pub(crate) fn end_lists(&mut self) {
        self.list_copies = None;
    }

    /// Returns the part of an effect on a large container that the other end needs.
    pub(crate) fn needed_part(&mut self, key: &[u8], effect: &Effect<'_>) -> NeededPart {
        self.list_copies.as_mut().map_or(NeededPart::All, |copies| copies.needed_part(key, effect))
    }

    /// Puts the downstream in the wait set: replies wait until it has acknowledged all frames up to this one.
    pub(crate) fn join_wait_set(&mut self, last: FrameNumber) {
        self.sync_state = SyncState::Awaited { last };
    }

    /// Records a refusal. Returns false if it belongs to an earlier downstream.
    pub(crate) fn refuse(&mut self, frame: FrameNumber) -> bool {
        let concerns = frame > self.since;
        if concerns {
            self.refused = self.refused().map_or(frame, |known| known.min(frame));
            if let SyncState::Awaited { last } = &mut self.sync_state {
                *last = frame.max(*last);
            }
        }
        concerns
    }

    /// Clears a refusal: the slot is sent again, after this frame.
    pub(crate) fn clear_refusal(&mut self, last: FrameNumber) {
        (self.since, self.refused) = (last, NO_FRAME);
    }

    /// Returns how far the other end has this slot, if it has acknowledged the link up to `acked`.
    #[inline]
    pub(crate) fn acked(&self, acked: FrameNumber) -> FrameNumber {
        match self.refused() {
            None => acked,
            Some(refused) => acked.min(FrameNumber(refused.0 - 1)),
        }
    }

    /// Returns whether replies wait for this downstream and it has not acknowledged all of the slot.
    #[inline]
    pub(crate) fn lags(&self, acked: FrameNumber) -> bool {
        self.wait(acked).is_some()
    }

    /// Returns whether replies wait for this downstream. Remembers that it has acknowledged everything, so that reads
    /// of a slot at rest need not look up its link, which is a tenth of their cost.
    #[inline]
    pub(crate) fn is_awaited(&mut self, acked: impl FnOnce(LinkId) -> FrameNumber) -> bool {
        let SyncState::Awaited { last } = &self.sync_state else { return false };
        if *last == NO_FRAME {
            return false;
        }
        let lags = self.lags(acked(self.link));
        if !lags {
            self.sync_state = SyncState::Awaited { last: NO_FRAME };
        }
        lags
    }

    /// Returns the acknowledgement that a reply depending on the slot has to wait for.
    #[inline]
    pub(crate) fn wait(&self, acked: FrameNumber) -> Option<Wait> {
        match self.sync_state {
            SyncState::Awaited { last } if self.acked(acked) < last => {
                Some(Wait { link: self.link, number: last })
            }
            SyncState::Awaited { .. }
            | SyncState::NotBegun
            | SyncState::Partly { .. }
            | SyncState::Whole => None,
        }
    }
}
