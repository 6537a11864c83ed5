//! Load levels: what a node tells another about itself when asked.

use crate::map::{Epoch, Load};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Vitals {
    pub bytes: u64,
    pub ops_per_second: u64,
    pub condition: Condition,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Condition {
    #[default]
    Well,
    /// Out of memory, out of disk, or stalling: it should get nothing more.
    Sick,
}

impl LoadLevels {
    /// Whether it could take part in a move now.
    pub fn is_available(&self) -> bool {
        !self.busy && self.vitals.condition == Condition::Well
    }

    pub(super) fn new(epoch: Epoch, load: Load, vitals: Vitals, busy: bool) -> LoadLevels {
        LoadLevels { epoch, primaries: load.primaries, backups: load.backups, vitals, busy }
    }
}
