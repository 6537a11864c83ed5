//! The dialogue between a node G of the losing side and a node T of the surviving side.
//!
//! ~~~text
//! G -> T  Since        from which version on do you lack our changes to these slots?
//! T -> G  Since        the versions, of as many of the slots as I serve
//! G -> T  Changes      a piece of the changes of one slot
//! T -> G  Merged       decided, written, and safe on all backups
//!         Elsewhere    that node serves the slot
//!         NotNow       not known, or being handed over: ask again; nothing was done
//! ~~~

use serde::{Deserialize, Serialize};

use super::ledger::Tally;
use crate::map::Endpoints;

/// Maximum number of slots per question.
pub(super) const SLOTS_MAX: u16 = 128;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MergeRequest {
    /// Asks for `count` slots from the first one on.
    Since { first: u16, count: u16 },
    /// Changes of a slot, to be read by `ChangeBatch`. `parted` is the version at which the giver's history of the
    /// slot diverged; the maximum if the giver has not recorded it.
    Changes { slot: u16, parted: u64, changes: Vec<u8> },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MergeReply {
    /// Versions for the first of the slots that were asked for; at least one.
    Since(Vec<u64>),
    Merged(Tally),
    Elsewhere(Endpoints),
    NotNow,
}
