//! A timer as it travels between nodes and into a snapshot: all that a new replica needs to know.
//!
//! A due time travels as time left, so that a slow network can make it only later. Kept in memory it
//! is an `Entry` of `table.rs`.

use serde::{Deserialize, Serialize};

use crate::ids::{Sequence, Span, TimerId, Version};
use crate::spec::Spec;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    pub id: TimerId,
    pub version: Version,
    /// The number of its next pop.
    pub sequence: Sequence,
    pub life: Life,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Life {
    Pending {
        spec: Spec,
        /// How many pops there are to come.
        left: u32,
        due_in: Span,
        /// A callback is under way, or is about to be: nobody else need call before that.
        quiet_for: Span,
    },
    /// Deleted, or popped for the last time. Remembered for a while, so that nobody who has missed it
    /// brings the timer back.
    Ended { forget_in: Span },
}

/// How far a timer has come. Of two states of one timer the greater is the later.
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
