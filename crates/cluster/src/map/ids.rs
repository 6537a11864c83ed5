//! Ids, epochs and the like: distinct small types that cannot be confused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node, for as long as it keeps its id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct NodeId(pub u64);

/// The lifetime of one process. A member is (id, boot): a restarted process is another boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Boot(pub u64);

/// One process of one node: the owner of leases, acknowledgements and fills.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Peer {
    pub id: NodeId,
    pub boot: Boot,
}

/// A cluster, drawn at random by its founder: nodes of different clusters do not talk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ClusterId(pub u64);

/// The number of changes of the map, or of one bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Epoch(pub u64);

impl Epoch {
    pub const FIRST: Epoch = Epoch(1);

    #[must_use]
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

/// A position in the log of map changes. 0 is before the first entry.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct LogIndex(pub u64);

impl LogIndex {
    pub const FIRST: LogIndex = LogIndex(1);
}

/// One history of a cluster. When two meet, the greater one survives.
///
/// A takeover begins a history with an even counter; the first `Join` after it makes the counter odd:
/// so a history that has grown is greater than one that has stayed alone since the same moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Generation {
    pub counter: u64,
    pub founder: NodeId,
}

impl Generation {
    /// Returns the generation that begins when this node takes over.
    #[must_use]
    pub fn taken_over_by(self, founder: NodeId) -> Generation {
        Generation { counter: (self.counter | 1) + 1, founder }
    }

    /// Returns the generation after a node has joined.
    #[must_use]
    pub fn joined(self) -> Generation {
        Generation { counter: self.counter | 1, ..self }
    }

    /// Returns whether both belong to one history, and so to one log.
    pub fn is_one_with(self, other: Generation) -> bool {
        self.joined() == other.joined()
    }
}

macro_rules! displayed_as_number {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
displayed_as_number!(NodeId Boot Epoch LogIndex);
