//! The state of a node that survives a restart, and the writes that keep it.

use std::collections::BTreeSet;
use std::fmt;

use raft::eraftpb;
use serde::{Deserialize, Serialize};

use super::{Entry, LogPlace};
use crate::map::{LogIndex, Map, NodeId};

/// The number of an election. Each has at most one leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Term(pub u64);

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A node's promises: losing them could elect two leaders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HardState {
    pub term: Term,
    pub vote: Option<NodeId>,
    /// May lag behind without harm.
    pub commit: LogIndex,
}

/// The voters and learners. While voters are replaced, both the old and the new ones must agree.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Configuration {
    pub voters: BTreeSet<NodeId>,
    pub learners: BTreeSet<NodeId>,
    /// The previous voters, while the configuration is joint; else empty.
    pub voters_before: BTreeSet<NodeId>,
    /// Previous voters that will become learners.
    pub learners_next: BTreeSet<NodeId>,
}

/// The map at one position of the log: it replaces all entries up to there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SnapshotData {
    pub at: LogPlace,
    pub configuration: Configuration,
    pub map: Map,
}

/// The writes that must be on disk, synced, before anything else of the same `Ready` is done; in this
/// order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Persist {
    /// Entries up to the position of the snapshot are not needed any more.
    pub snapshot: Option<SnapshotData>,
    /// Entries from here on are removed; then `entries` follow.
    pub truncate_from: Option<LogIndex>,
    pub entries: Vec<Entry>,
    pub hard_state: Option<HardState>,
}

/// The state a node finds when it restarts: a snapshot, and the entries after it without a gap.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Saved {
    pub(super) hard_state: HardState,
    pub(super) snapshot: Option<SnapshotData>,
    pub(super) entries: Vec<Entry>,
}

/// The reason a saved state is inconsistent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inconsistent {
    /// Entries without the snapshot they follow.
    NoSnapshot,
    /// The entry at this index is missing or older than the one before it.
    Gap(LogIndex),
    BadConfiguration,
}

impl fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inconsistent::NoSnapshot => {
                f.write_str("the log has entries, but no snapshot they follow")
            }
            Inconsistent::Gap(index) => write!(f, "entry {index} of the log is missing"),
            Inconsistent::BadConfiguration => f.write_str("the configuration of voters is invalid"),
        }
    }
}

impl std::error::Error for Inconsistent {}

impl Persist {
    pub fn is_empty(&self) -> bool {
        let Persist { snapshot, truncate_from, entries, hard_state } = self;
        let none = snapshot.is_none() && truncate_from.is_none() && hard_state.is_none();
        none && entries.is_empty()
    }

    /// Returns whether losing this write would break a promise. The commit index alone is no promise:
    /// the leader announces it again.
    pub fn is_promise(&self, saved: &Saved) -> bool {
        let Persist { snapshot, truncate_from, entries, hard_state } = self;
        let promised = |state: &HardState| (state.term, state.vote);
        let before = promised(&saved.hard_state);
        let news = hard_state.as_ref().is_some_and(|state| promised(state) != before);
        news || snapshot.is_some() || truncate_from.is_some() || !entries.is_empty()
    }

    pub(super) fn append(&mut self, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            let from = self.truncate_from.map_or(entry.index, |from| from.min(entry.index));
            self.truncate_from = Some(from);
            let place = self.entries.partition_point(|known| known.index < entry.index);
            self.entries.truncate(place);
            self.entries.push(entry);
        }
    }

    /// Replaces the whole log by a snapshot from the leader.
    pub(super) fn install(&mut self, snapshot: SnapshotData) {
        self.snapshot = Some(snapshot);
        self.truncate_from = Some(LogIndex(0));
        self.entries.clear();
    }
}

impl Saved {
    /// Returns the state found on a disk, if it is consistent. A torn end of the entries is not an
    /// error.
    pub fn new(
        hard_state: HardState,
        snapshot: Option<SnapshotData>,
        mut entries: Vec<Entry>,
    ) -> Result<Saved, Inconsistent> {
        let Some(found) = &snapshot else {
            let saved = Saved { hard_state, snapshot: None, entries: Vec::new() };
            return if entries.is_empty() { Ok(saved) } else { Err(Inconsistent::NoSnapshot) };
        };
        if !found.configuration.is_valid() {
            return Err(Inconsistent::BadConfiguration);
        }
        entries.retain(|entry| entry.index > found.at.index);
        let mut last = found.at;
        for entry in &entries {
            if entry.index.0 != last.index.0 + 1 || entry.term < last.term {
                return Err(Inconsistent::Gap(LogIndex(last.index.0 + 1)));
            }
            last = LogPlace { index: entry.index, term: entry.term };
        }
        let term = hard_state.term.max(last.term);
        let vote = if term == hard_state.term { hard_state.vote } else { None };
        let commit = hard_state.commit.clamp(found.at.index, last.index);
        Ok(Saved { hard_state: HardState { term, vote, commit }, snapshot, entries })
    }

    /// Returns whether this node has never been part of a cluster.
    pub fn is_blank(&self) -> bool {
        self.snapshot.is_none()
    }

    pub fn hard_state(&self) -> HardState {
        self.hard_state
    }

    pub fn snapshot(&self) -> Option<&SnapshotData> {
        self.snapshot.as_ref()
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Applies a write in memory: the result is the state a node would find after a restart.
    pub fn write(&mut self, persist: Persist) {
        if let Some(from) = persist.truncate_from {
            self.entries.retain(|entry| entry.index < from);
        }
        if let Some(snapshot) = persist.snapshot {
            self.entries.retain(|entry| entry.index > snapshot.at.index);
            self.snapshot = Some(snapshot);
        }
        let first = self.snapshot.as_ref().map_or(LogIndex(0), |snapshot| snapshot.at.index);
        self.entries.extend(persist.entries.into_iter().filter(|entry| entry.index > first));
        self.hard_state = persist.hard_state.unwrap_or(self.hard_state);
    }
}

impl HardState {
    pub(super) fn to_raft(self) -> eraftpb::HardState {
        eraftpb::HardState {
            term: self.term.0,
            vote: self.vote.map_or(raft::INVALID_ID, |node| node.0),
            commit: self.commit.0,
            ..eraftpb::HardState::default()
        }
    }

    pub(super) fn of_raft(raft: &eraftpb::HardState) -> HardState {
        let vote = (raft.vote != raft::INVALID_ID).then_some(NodeId(raft.vote));
        HardState { term: Term(raft.term), vote, commit: LogIndex(raft.commit) }
    }
}

impl Configuration {
    pub(super) fn of_voter(node: NodeId) -> Configuration {
        Configuration { voters: BTreeSet::from([node]), ..Configuration::default() }
    }

    pub fn is_joint(&self) -> bool {
        !self.voters_before.is_empty()
    }

    /// Returns whether a node has a vote, possibly only until the configuration is joint no longer.
    pub fn is_voter(&self, node: NodeId) -> bool {
        self.voters.contains(&node) || self.voters_before.contains(&node)
    }

    pub fn contains(&self, node: NodeId) -> bool {
        self.is_voter(node) || self.learners.contains(&node)
    }

    /// Returns whether the library accepts the configuration.
    pub(super) fn is_valid(&self) -> bool {
        let ids = [&self.voters, &self.learners, &self.voters_before, &self.learners_next];
        !self.voters.is_empty()
            && ids.iter().all(|ids| !ids.contains(&NodeId(raft::INVALID_ID)))
            && self.learners.is_disjoint(&self.voters)
            && self.learners.is_disjoint(&self.voters_before)
            && self.learners_next.is_subset(&self.voters_before)
            && self.learners_next.is_disjoint(&self.voters)
    }

    pub(super) fn to_raft(&self) -> eraftpb::ConfState {
        let ids = |nodes: &BTreeSet<NodeId>| nodes.iter().map(|node| node.0).collect();
        eraftpb::ConfState {
            voters: ids(&self.voters),
            learners: ids(&self.learners),
            voters_outgoing: ids(&self.voters_before),
            learners_next: ids(&self.learners_next),
            auto_leave: self.is_joint(),
            ..eraftpb::ConfState::default()
        }
    }

    pub(super) fn of_raft(raft: &eraftpb::ConfState) -> Configuration {
        let nodes = |ids: &[u64]| ids.iter().map(|id| NodeId(*id)).collect();
        Configuration {
            voters: nodes(&raft.voters),
            learners: nodes(&raft.learners),
            voters_before: nodes(&raft.voters_outgoing),
            learners_next: nodes(&raft.learners_next),
        }
    }
}
