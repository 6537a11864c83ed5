//! Load levels: a node's report about itself, sent on request.

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::memory::MemoryLevel;
use crate::map::{Epoch, Load};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoadLevels {
    /// Epoch of the map these numbers were taken from.
    pub epoch: Epoch,
    pub primaries: u32,
    pub backups: u32,
    pub vitals: Vitals,
    /// True if the node takes part in a move.
    pub busy: bool,
}

/// A node's report about its process and machine. Decisions use `condition` and `memory`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Vitals {
    pub bytes: u64,
    pub ops_per_second: u64,
    pub condition: Condition,
    pub memory: MemoryLevel,
    /// Bytes sent to backups and not acknowledged yet.
    pub lag_bytes: u64,
    /// The bucket that is being copied from this node, if any.
    pub fill: Option<FillProgress>,
}

/// Progress of copying a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FillProgress {
    pub bucket: Hashmask,
    pub sent_bytes: u64,
    /// Percentage of the bucket's slots.
    pub percent: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Condition {
    #[default]
    Well,
    /// Its threads stall, its disk does not sync, or it is cut off: the node should get nothing more.
    Sick,
}

/// A node's ability to take part in a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveReadiness {
    Free,
    /// The node takes part in another move.
    Busy,
    /// The node can take part, but is near its limit of memory: it takes no copy.
    Full,
    /// The node is sick, or does not answer.
    Unfit,
}

impl LoadLevels {
    pub fn readiness(&self) -> MoveReadiness {
        match self.vitals.condition {
            Condition::Sick => MoveReadiness::Unfit,
            Condition::Well if self.vitals.memory.is_crowded() => MoveReadiness::Full,
            Condition::Well if self.busy => MoveReadiness::Busy,
            Condition::Well => MoveReadiness::Free,
        }
    }

    pub(super) fn new(epoch: Epoch, load: Load, vitals: Vitals, busy: bool) -> LoadLevels {
        LoadLevels { epoch, primaries: load.primaries, backups: load.backups, vitals, busy }
    }
}
