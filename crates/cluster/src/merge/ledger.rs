//! What became of what another side had changed: counts, and every conflict with what lost in it. A node
//! keeps one; `status`, metrics and whoever asks for the conflicts read it.

use std::collections::VecDeque;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Conflicts beyond this many push the oldest out.
const REMEMBERED_MAX: usize = 10_000;

/// Keys that another side had changed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Tally {
    /// Written here, for nobody here had touched them.
    pub taken: u64,
    /// Both sides had come to the same.
    pub same: u64,
    /// Both sides had changed them, and what was here was older.
    pub lost_here: u64,
    /// Both sides had changed them, and what was here stands.
    pub lost_there: u64,
    /// Not here, and nobody remembers whether they were taken away: only reported.
    pub unsure: u64,
}

impl Tally {
    /// Keys of which something was lost.
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
    pub key: Vec<u8>,
    pub ours: Side,
    pub theirs: Side,
    pub winner: Winner,
}

/// What one side had made of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    pub version: u64,
    /// Of its value; none if it was taken away.
    pub bytes: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Winner {
    Ours,
    Theirs,
    /// The key is not here and nobody remembers why: what is here stands, and may be wrong.
    Unsure,
}

impl Winner {
    pub fn name(self) -> &'static str {
        match self {
            Winner::Ours => "the side that stands",
            Winner::Theirs => "the side that yielded",
            Winner::Unsure => "the side that stands, for want of memory",
        }
    }
}

#[derive(Default, Debug)]
pub struct Ledger {
    pub tally: Tally,
    conflicts: VecDeque<Conflict>,
    /// Conflicts that are not remembered any more.
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

    /// The oldest first.
    pub fn conflicts(&self) -> impl Iterator<Item = &Conflict> {
        self.conflicts.iter()
    }

    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
