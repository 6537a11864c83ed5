//! A feed: another node that gets what is written to a slot, and how far it has come on its way to being a
//! backup.

use store::Version;

use super::{FrameNumber, LinkId, Wait};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feed {
    link: LinkId,
    stage: Stage,
    /// The last frame on the link before this feed began: refusals of that one and of earlier ones are
    /// about an earlier time.
    since: FrameNumber,
    /// The first frame of the slot that the other end has refused: it has nothing from there on.
    refused: Option<FrameNumber>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The fill has not come to this slot: nothing of it is sent.
    NotBegun,
    /// Some of the slot is sent; its first chunk was taken at this version. Writes follow as whole items.
    Partly { begun_at: Version },
    /// All of the slot is sent, and every effect follows; no reply waits for it yet.
    Whole,
    /// It counts: no reply leaves before it has acknowledged `last`, the last frame of this slot.
    Backup { last: FrameNumber },
}

impl Feed {
    /// A node that is in sync; `last` is the last frame on the link so far.
    pub(crate) fn backup(link: LinkId, last: FrameNumber) -> Feed {
        let stage = Stage::Backup { last: FrameNumber::default() };
        Feed { link, stage, since: last, refused: None }
    }

    /// The taker of a fill that begins.
    pub(crate) fn not_begun(link: LinkId, last: FrameNumber) -> Feed {
        Feed { link, stage: Stage::NotBegun, since: last, refused: None }
    }

    #[inline]
    pub fn link(&self) -> LinkId {
        self.link
    }

    #[inline]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    pub fn refused(&self) -> Option<FrameNumber> {
        self.refused
    }

    /// True if replies wait for it.
    #[inline]
    pub fn counts(&self) -> bool {
        matches!(self.stage, Stage::Backup { .. })
    }

    /// A frame with something of this slot was sent.
    #[inline]
    pub(crate) fn sent(&mut self, number: FrameNumber) {
        if let Stage::Backup { last } = &mut self.stage {
            *last = number;
        }
    }

    /// The slot's first chunk is taken at this version.
    pub(crate) fn begin(&mut self, version: Version) {
        self.stage = Stage::Partly { begun_at: version };
    }

    /// All of the slot is sent.
    pub(crate) fn complete(&mut self) {
        self.stage = Stage::Whole;
    }

    /// Replies wait for it from here on; all up to this frame it must acknowledge first.
    pub(crate) fn count(&mut self, last: FrameNumber) {
        self.stage = Stage::Backup { last };
    }

    /// Takes note of a refusal; false if it is about an earlier time.
    pub(crate) fn refuse(&mut self, frame: FrameNumber) -> bool {
        let concerns = frame > self.since;
        if concerns {
            self.refused = Some(self.refused.map_or(frame, |known| known.min(frame)));
        }
        concerns
    }

    /// The slot is sent again, behind this frame: what was refused before does not matter.
    pub(crate) fn forgive(&mut self, last: FrameNumber) {
        (self.since, self.refused) = (last, None);
    }

    /// How far the other end has this slot, if it has acknowledged the link up to `acked`.
    #[inline]
    pub(crate) fn acked(&self, acked: FrameNumber) -> FrameNumber {
        match self.refused {
            None => acked,
            Some(refused) => acked.min(FrameNumber(refused.0 - 1)),
        }
    }

    /// True if replies wait for it and it has not acknowledged all of the slot.
    #[inline]
    pub(crate) fn lags(&self, acked: FrameNumber) -> bool {
        self.wait(acked).is_some()
    }

    /// What a reply that depends on the slot has to wait for.
    #[inline]
    pub(crate) fn wait(&self, acked: FrameNumber) -> Option<Wait> {
        match self.stage {
            Stage::Backup { last } if self.acked(acked) < last => {
                Some(Wait { link: self.link, number: last })
            }
            Stage::Backup { .. } | Stage::NotBegun | Stage::Partly { .. } | Stage::Whole => None,
        }
    }
}
