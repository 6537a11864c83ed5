//! Load levels: what a node tells another about itself when asked.

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use crate::map::{Epoch, Load};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoadLevels {
    /// The map these numbers were taken from.
    pub epoch: Epoch,
    pub primaries: u32,
    pub backups: u32,
    pub vitals: Vitals,
    /// It takes part in a move.
    pub busy: bool,
}

/// What the world around a node says about it. The decisions of today use only `condition`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Vitals {
    pub bytes: u64,
    pub ops_per_second: u64,
    pub condition: Condition,
    /// Sent to backups and not acknowledged yet.
    pub lag_bytes: u64,
    /// The bucket that is being copied from here, if one is.
    pub fill: Option<FillProgress>,
}

/// How far the copying of a bucket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FillProgress {
    pub bucket: Hashmask,
    pub sent_bytes: u64,
    /// By slots.
    pub percent: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Condition {
    #[default]
    Well,
    /// Out of memory, out of disk, or stalling: it should get nothing more.
    Sick,
}

/// Whether a node could take part in a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    Free,
    /// Not now.
    Busy,
    /// It is sick, or does not answer.
    Unfit,
}

impl LoadLevels {
    pub fn readiness(&self) -> Readiness {
        match self.vitals.condition {
            Condition::Sick => Readiness::Unfit,
            Condition::Well if self.busy => Readiness::Busy,
            Condition::Well => Readiness::Free,
        }
    }

    pub(super) fn new(epoch: Epoch, load: Load, vitals: Vitals, busy: bool) -> LoadLevels {
        LoadLevels { epoch, primaries: load.primaries, backups: load.backups, vitals, busy }
    }
}
