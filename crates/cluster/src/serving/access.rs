//! Access to one slot: may a command run on it now, must it wait, or is it another node's to run.

use crate::replication::{Duty, LinkId, Role, Stage};
use crate::rules::{Rule, holds};

/// What a command needs of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// Any in-sync copy will do: a read on a READONLY connection.
    pub reads_copy: bool,
    /// So many nodes must have a copy (`min-copies`); 1 for a read.
    pub copies: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotAccess {
    Run,
    /// Not now; an event will tell when to try again.
    Park(Obstacle),
    /// Another node serves the slot.
    Redirect,
}

/// The obstacle that a parked command waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// The bucket is between two primaries.
    Handover,
    /// The bucket has fewer copies than `min-copies`.
    Copies,
    /// A backup is so far behind that nobody adds to what it has to acknowledge (backpressure).
    Backlog(LinkId),
}

impl Need {
    /// The needs of a command that only the primary may run.
    pub const PRIMARY: Need = Need { reads_copy: false, copies: 1 };
}

impl Duty {
    /// Decides by this node's role whether a command may run on the slot.
    #[inline]
    pub fn access(&self, need: Need) -> SlotAccess {
        match self.role() {
            Role::Serving if need.copies > 1 && self.lacks_copies(need.copies) => {
                SlotAccess::Park(Obstacle::Copies)
            }
            Role::Serving => SlotAccess::Run,
            Role::Paused if !holds(Rule::HandoverWait) => SlotAccess::Run,
            Role::Paused | Role::Settling | Role::Heir => SlotAccess::Park(Obstacle::Handover),
            Role::Backup if need.reads_copy => SlotAccess::Run,
            Role::Backup | Role::Absent | Role::Taking | Role::Kept => SlotAccess::Redirect,
        }
    }

    /// A link that is fed and congested.
    #[cold]
    pub(super) fn congested_link(&self, is_congested: impl Fn(LinkId) -> bool) -> Option<LinkId> {
        let fed = self.feeds().iter().filter(|feed| feed.stage() != Stage::NotBegun);
        fed.map(|feed| feed.link()).find(|link| is_congested(*link))
    }

    fn lacks_copies(&self, wanted: usize) -> bool {
        1 + self.wait_set().count() < wanted && holds(Rule::CopiesWait)
    }
}
