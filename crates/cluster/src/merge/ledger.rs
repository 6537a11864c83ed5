//! The outcome of merges: counts, and every conflict with the versions of both sides. Each node keeps one, for
//! `status`, metrics and the list of conflicts.

use std::collections::VecDeque;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use store::Database;

/// Maximum number of conflicts kept; beyond that the oldest are dropped.
const REMEMBERED_MAX: usize = 10_000;

/// Counts of keys that another side had changed, by outcome.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// Written here, because nobody here had changed them.
    pub taken: u64,
    /// Same value on both sides.
    pub same: u64,
    /// Changed on both sides; the other side's newer change replaced the one here.
    pub lost_here: u64,
    /// Changed on both sides; the change here won.
    pub lost_there: u64,
    /// Missing here, and it is unknown whether they were removed: only reported.
    pub unsure: u64,
}

impl Tally {
    /// Returns the number of keys of which a change was lost.
    pub fn conflicts(&self) -> u64 {
        self.lost_here + self.lost_there + self.unsure
    }

    pub fn all(&self) -> u64 {
        self.taken + self.same + self.conflicts()
    }

    pub(super) fn count_conflict(&mut self, winner: Winner) {
        *match winner {
            Winner::Ours => &mut self.lost_there,
            Winner::Theirs => &mut self.lost_here,
            Winner::Unsure => &mut self.unsure,
        } += 1;
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Tally) {
        self.taken += more.taken;
        self.same += more.same;
        self.lost_here += more.lost_here;
        self.lost_there += more.lost_there;
        self.unsure += more.unsure;
    }
}

/// A key that both sides had changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    pub database: Database,
    pub key: Vec<u8>,
    pub ours: Side,
    pub theirs: Side,
    pub winner: Winner,
}

/// The state of a key on one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    pub version: u64,
    /// Length of the value; `None` if the key was removed.
    pub bytes: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Winner {
    Ours,
    Theirs,
    /// The key is missing here for an unknown reason: it stays missing, which may be wrong.
    Unsure,
}

impl Winner {
    pub fn name(self) -> &'static str {
        match self {
            Winner::Ours => "the surviving side",
            Winner::Theirs => "the losing side",
            Winner::Unsure => "the surviving side (unsure: tombstones were discarded)",
        }
    }
}

#[derive(Default, Debug)]
pub struct Ledger {
    pub tally: Tally,
    conflicts: VecDeque<Conflict>,
    /// Number of conflicts that are no longer kept.
    forgotten: u64,
}

impl Ledger {
    pub fn note(&mut self, tally: Tally, conflicts: Vec<Conflict>) {
        self.tally += tally;
        self.conflicts.extend(conflicts);
        while self.conflicts.len() > REMEMBERED_MAX {
            self.conflicts.pop_front();
            self.forgotten += 1;
        }
    }

    /// Returns the conflicts, the oldest first.
    pub fn conflicts(&self) -> impl Iterator<Item = &Conflict> {
        self.conflicts.iter()
    }

    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
