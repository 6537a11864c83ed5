//! A timer as it is sent between nodes and written to a snapshot: everything that a new replica needs.
//!
//! A due time is sent as remaining time, so that a slow network can only delay it. In memory a timer is an
//! `TimerEntry` of `table.rs`.

use serde::{Deserialize, Serialize};

use crate::ids::{Sequence, TimeSpan, TimerId, TimerVersion};
use crate::spec::TimerSpec;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    pub id: TimerId,
    pub version: TimerVersion,
    /// The sequence number of its next pop.
    pub sequence: Sequence,
    pub life: TimerLife,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TimerLife {
    Pending {
        spec: TimerSpec,
        /// Number of remaining pops.
        left: u32,
        due_in: TimeSpan,
        /// Time during which no other node needs to call: a callback is in progress or about to start.
        quiet_for: TimeSpan,
    },
    /// Deleted, or popped for the last time. Remembered for a while (tombstone), so that a node that has missed
    /// it does not bring the timer back.
    Ended { forget_in: TimeSpan },
}

/// The progress of a timer. Of two states of one timer the greater is the later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct TimerState {
    pub version: TimerVersion,
    pub sequence: Sequence,
}

impl Record {
    pub fn progress(&self) -> TimerState {
        TimerState { version: self.version, sequence: self.sequence }
    }
}
