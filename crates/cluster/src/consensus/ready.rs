//! The work that one node's part in the log requests.

use super::{Configuration, LogEntry, Persist, RaftMessage};
use crate::map::{ChangeOutcome, LogIndex, Map, NodeId};

/// The work to do, in this order: write and sync `persist`, send `messages`, then act on the rest.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ready {
    pub persist: Persist,
    pub messages: Vec<(NodeId, RaftMessage)>,
    /// The map as a whole: the node has just started, or was too far behind for single entries.
    pub snapshot: Option<(LogIndex, Map)>,
    /// The committed entries, after the snapshot if there is one.
    pub committed: Vec<(LogIndex, Committed)>,
    /// Requested read indexes, by their contexts: at some moment after the request this node was the
    /// leader, and everything committed by then is at or before the index.
    pub reads: Vec<(u64, LogIndex)>,
}

impl Ready {
    pub fn is_empty(&self) -> bool {
        let Ready { persist, messages, snapshot, committed, reads } = self;
        let quiet = messages.is_empty() && committed.is_empty() && reads.is_empty();
        quiet && persist.is_empty() && snapshot.is_none()
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Committed {
    Entry(AppliedEntry),
    Configuration(Configuration),
    /// A new leader's first entry.
    Nothing,
}

/// A committed entry, and its effect on the map.
#[derive(Clone, PartialEq, Debug)]
pub struct AppliedEntry {
    pub entry: LogEntry,
    pub outcomes: Vec<ChangeOutcome>,
    /// The map after the entry.
    pub map: Map,
}
