//! What one node's part in the log asks for.

use super::{Configuration, LogEntry, Persist, RaftMessage};
use crate::map::{LogIndex, Map, NodeId, Outcome};

/// What is to be done, in this order: `persist` and sync, send `messages`, then act on the rest.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ready {
    pub persist: Persist,
    pub messages: Vec<(NodeId, RaftMessage)>,
    /// The map begins anew: the node has just started, or has been too far behind for single entries.
    pub snapshot: Option<(LogIndex, Map)>,
    /// What was decided, after the snapshot if there is one.
    pub committed: Vec<(LogIndex, Committed)>,
    /// Read indexes that were asked for, by their contexts: at some moment after the question this
    /// node was the leader, and everything decided by then is at or before the index.
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
    Entry(Applied),
    Configuration(Configuration),
    /// A new leader's first entry.
    Nothing,
}

/// An entry that was decided, and what it did to the map.
#[derive(Clone, PartialEq, Debug)]
pub struct Applied {
    pub entry: LogEntry,
    pub outcomes: Vec<Outcome>,
    /// The map after it.
    pub map: Map,
}
