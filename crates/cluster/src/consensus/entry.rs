//! The entries of the log, and their form inside the library.
//!
//! A configuration change travels in the entry's context in our own encoding; only the leader that
//! proposed it reads the library's encoding.

use std::collections::BTreeSet;

use raft::eraftpb::{self, ConfChangeSingle, ConfChangeType, ConfChangeV2, EntryType};
use serde::{Deserialize, Serialize};

use super::Term;
use crate::map::{Change, Epoch, LogIndex, NodeId};

/// Changes that are applied in one step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogEntry {
    /// For a step of balancing, the basis of the plan it belongs to.
    pub planned_at: Option<Epoch>,
    pub changes: Vec<Change>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub index: LogIndex,
    pub term: Term,
    pub payload: Payload,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Payload {
    /// A new leader's first entry.
    Nothing,
    Changes(LogEntry),
    Reconfigure(Reconfiguration),
}

/// Nodes added to and removed from the voters and learners. If empty: the end of a joint configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reconfiguration {
    pub voters: BTreeSet<NodeId>,
    pub learners: BTreeSet<NodeId>,
    pub removed: BTreeSet<NodeId>,
}

impl Reconfiguration {
    pub(super) fn is_empty(&self) -> bool {
        self.voters.is_empty() && self.learners.is_empty() && self.removed.is_empty()
    }

    /// Returns the library's form. With more than one change at once the library goes through a joint
    /// configuration, and leaves it by itself.
    pub(super) fn to_raft(&self) -> ConfChangeV2 {
        let kinds = [
            (&self.removed, ConfChangeType::RemoveNode),
            (&self.voters, ConfChangeType::AddNode),
            (&self.learners, ConfChangeType::AddLearnerNode),
        ];
        let change = |node: &NodeId, kind| {
            let mut change = ConfChangeSingle { node_id: node.0, ..ConfChangeSingle::default() };
            change.set_change_type(kind);
            change
        };
        let changes = kinds.into_iter().flat_map(|(nodes, kind)| {
            nodes.iter().map(move |node| change(node, kind)).collect::<Vec<_>>()
        });
        let mut raft = ConfChangeV2::default();
        raft.set_changes(changes.collect::<Vec<_>>().into());
        raft
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("sets of numbers can be written")
    }
}

impl LogEntry {
    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("changes can be written")
    }
}

impl Entry {
    pub(super) fn to_raft(&self) -> eraftpb::Entry {
        let (index, term) = (self.index.0, self.term.0);
        let mut entry = eraftpb::Entry { index, term, ..eraftpb::Entry::default() };
        match &self.payload {
            Payload::Nothing => {}
            Payload::Changes(changes) => entry.data = changes.encode().into(),
            Payload::Reconfigure(change) => {
                entry.set_entry_type(EntryType::EntryConfChangeV2);
                entry.context = change.encode().into();
            }
        }
        entry
    }

    pub(super) fn of_raft(entry: &eraftpb::Entry) -> Entry {
        let payload = match entry.get_entry_type() {
            EntryType::EntryNormal if entry.data.is_empty() => Payload::Nothing,
            EntryType::EntryNormal => {
                let changes = postcard::from_bytes(&entry.data);
                Payload::Changes(changes.expect("only `LogEntry::encode` makes such entries"))
            }
            // The library itself proposes to leave a joint configuration, without a context.
            EntryType::EntryConfChange | EntryType::EntryConfChangeV2
                if entry.context.is_empty() =>
            {
                Payload::Reconfigure(Reconfiguration::default())
            }
            EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
                let change = postcard::from_bytes(&entry.context);
                let change = change.expect("only `Reconfiguration::encode` makes such contexts");
                Payload::Reconfigure(change)
            }
        };
        Entry { index: LogIndex(entry.index), term: Term(entry.term), payload }
    }
}
