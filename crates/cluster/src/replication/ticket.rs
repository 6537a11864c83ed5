//! What a reply waits for before it may leave: every backup that counts has what the reply tells of.

use placement::Slot;
use smallvec::SmallVec;

use super::{FrameNumber, LinkId};
use crate::map::LogIndex;

/// Made under the slot's lock when a command has run (`Duty::unsettled`), looked at again whenever
/// something was acknowledged or the map has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// What the command depended on.
    pub of: Subject,
    pub waits: SmallVec<[Wait; 1]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// One slot, in the reign in which the command ran.
    Slot(Slot, LogIndex),
    /// All the node's slots: a walk over them. It waits for every link there is.
    Everything,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    pub link: LinkId,
    pub number: FrameNumber,
}

/// What a node is to a slot now, as far as replies are concerned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// The reign in which it is primary, if it is.
    pub reign: Option<LogIndex>,
    /// Whose acknowledgement counts.
    pub wait_set: SmallVec<[LinkId; 4]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    Free,
    Waiting,
    /// The node was deposed before the write was safe. It may be lost or not: nothing may be said,
    /// and the connection is closed.
    Barred,
}

impl Ticket {
    /// Whether every wait is over by what was acknowledged. `acked` may know less of a slot of which
    /// something was refused.
    #[inline]
    pub fn is_acked(&self, acked: impl Fn(LinkId, Option<Slot>) -> FrameNumber) -> bool {
        let slot = self.slot();
        self.waits.iter().all(|wait| acked(wait.link, slot) >= wait.number)
    }

    pub fn slot(&self) -> Option<Slot> {
        match self.of {
            Subject::Slot(slot, _) => Some(slot),
            Subject::Everything => None,
        }
    }

    /// Whether the reply may leave, given what this node is to the slot by now. A backup that was
    /// dropped from the wait set need not be waited for, but only while this node is still the primary
    /// that ran the command.
    pub fn passage(
        &self,
        standing: &Standing,
        acked: impl Fn(LinkId, Option<Slot>) -> FrameNumber,
    ) -> Passage {
        if self.is_acked(&acked) {
            return Passage::Free;
        }
        if let Subject::Slot(_, reign) = self.of
            && standing.reign != Some(reign)
        {
            return Passage::Barred;
        }
        let counts = |wait: &Wait| standing.wait_set.contains(&wait.link);
        let missing = |wait: &Wait| acked(wait.link, self.slot()) < wait.number;
        if self.waits.iter().any(|wait| counts(wait) && missing(wait)) {
            Passage::Waiting
        } else {
            Passage::Free
        }
    }
}
