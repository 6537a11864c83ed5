//! Access to one slot: a command may run now, must wait, or is redirected to another node.

use crate::replication::{LinkId, Role, SlotReplica, SyncState};
use crate::rules::{Rule, is_enforced};

/// A command's requirements on a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// True if any in-sync copy will do: a read on a READONLY connection.
    pub reads_copy: bool,
    /// Number of nodes that must have a copy (`min-copies`); 1 for a read.
    pub copies: usize,
}

/// The decision whether a command may run on a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotAccess {
    Run,
    /// Park the command; an event wakes it to try again.
    Park(Obstacle),
    /// Another node serves the slot.
    Redirect,
}

/// The obstacle that a parked command waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// The bucket is changing its primary.
    Handover,
    /// The bucket has fewer copies than `min-copies`.
    Copies,
    /// A backup is so far behind that nobody may add to its backlog (backpressure).
    Backlog(LinkId),
}

impl Need {
    /// The needs of a command that only the primary may run.
    pub const PRIMARY: Need = Need { reads_copy: false, copies: 1 };
}

impl SlotReplica {
    /// Decides by this node's role whether a command may run on the slot.
    #[inline]
    pub fn access(&self, need: Need) -> SlotAccess {
        match self.role() {
            Role::Serving if need.copies > 1 && self.lacks_copies(need.copies) => {
                SlotAccess::Park(Obstacle::Copies)
            }
            Role::Serving => SlotAccess::Run,
            Role::Paused if !is_enforced(Rule::HandoverWait) => SlotAccess::Run,
            Role::Paused | Role::Reconciling | Role::PromotionPending => {
                SlotAccess::Park(Obstacle::Handover)
            }
            Role::Backup if need.reads_copy => SlotAccess::Run,
            Role::Backup | Role::Absent | Role::Filling | Role::Stale => SlotAccess::Redirect,
        }
    }

    /// Returns a congested link that is a downstream of this slot.
    #[cold]
    pub(super) fn congested_link(&self, is_congested: impl Fn(LinkId) -> bool) -> Option<LinkId> {
        let fed = self
            .downstreams()
            .iter()
            .filter(|downstream| downstream.sync_state() != SyncState::NotBegun);
        fed.map(|downstream| downstream.link()).find(|link| is_congested(*link))
    }

    fn lacks_copies(&self, wanted: usize) -> bool {
        1 + self.wait_set().count() < wanted && is_enforced(Rule::CopiesWait)
    }
}
