//! A timer as it is sent between nodes and written to a snapshot: everything that a new replica needs.
//!
//! A due time is sent as remaining time, so that a slow network can only delay it. In memory a timer is an
//! `Entry` of `table.rs`.

use serde::{Deserialize, Serialize};

use crate::ids::{Sequence, Span, TimerId, Version};
use crate::spec::Spec;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    pub id: TimerId,
    pub version: Version,
    /// The sequence number of its next pop.
    pub sequence: Sequence,
    pub life: Life,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Life {
    Pending {
        spec: Spec,
        /// Number of remaining pops.
        left: u32,
        due_in: Span,
        /// Time during which no other node needs to call: a callback is in progress or about to start.
        quiet_for: Span,
    },
    /// Deleted, or popped for the last time. Remembered for a while (tombstone), so that a node that has missed
    /// it does not bring the timer back.
    Ended { forget_in: Span },
}

/// The progress of a timer. Of two states of one timer the greater is the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    pub version: Version,
    pub sequence: Sequence,
}

impl Record {
    pub fn progress(&self) -> Progress {
        Progress { version: self.version, sequence: self.sequence }
    }
}
