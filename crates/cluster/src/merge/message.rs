//! What a node G of the side that yields says to a node T of the side that stands.
//!
//! ~~~text
//! G -> T  Since        from where on do you know nothing of these slots?
//! T -> G  Since        from there on, of as many as I serve
//! G -> T  Changes      of one slot, a piece
//! T -> G  Merged       judged, written, and safe on all backups
//!         Elsewhere    that node serves it
//!         NotNow       nobody can say, or it is being handed over: ask again; nothing was done
//! ~~~

use serde::{Deserialize, Serialize};

use super::ledger::Tally;
use crate::map::Endpoints;

/// How many slots are asked for at once.
pub(super) const SLOTS_MAX: u16 = 128;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Question {
    /// So many slots from the first one on.
    Since { first: u16, count: u16 },
    /// Read by `Batch`. The giver's history of the slot parted at this version; the greatest there is if
    /// it has not noted that.
    Changes { slot: u16, parted: u64, changes: Vec<u8> },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// Versions, of the first of the slots that were asked for; at least one.
    Since(Vec<u64>),
    Merged(Tally),
    Elsewhere(Endpoints),
    NotNow,
}
