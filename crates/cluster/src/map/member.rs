//! A node as the map knows it, and what it holds.

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::{Boot, NodeId, Peer};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    pub id: NodeId,
    pub boot: Boot,
    pub name: String,
    /// How much it should hold beside the others. A member with 0 votes and holds nothing: a witness,
    /// or a node that is about to leave.
    pub weight: u32,
    /// Where it stands. Copies of a bucket are kept in different zones as far as shares allow.
    pub zone: Zone,
    pub at: Endpoints,
}

impl Member {
    /// The process, apart from all earlier and later ones of this node.
    pub fn peer(&self) -> Peer {
        Peer { id: self.id, boot: self.boot }
    }

    /// Whether the other is this node come back, be it under a new id.
    pub fn is_succeeded_by(&self, other: &Member) -> bool {
        self.id == other.id || self.name == other.name
    }
}

/// Where a node is reached: one host, a port for each kind of caller.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Endpoints {
    pub host: String,
    pub client: u16,
    pub peer: u16,
    /// 0 if it has no HTTP surface.
    pub http: u16,
}

/// A rack, a room, a data centre. Nodes that were told nothing are all in one, the unnamed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Zone(pub String);

/// What a node holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    pub primaries: u32,
    pub backups: u32,
    /// The bucket it received last, which it should not give away again. A promotion does not change
    /// it; a split forgets it.
    pub last_received: Option<Hashmask>,
}

impl Load {
    pub fn total(&self) -> u32 {
        self.primaries + self.backups
    }
}
