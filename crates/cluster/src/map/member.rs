//! A member of the map, and its load.

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::{Boot, NodeId, Peer};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    pub id: NodeId,
    pub boot: Boot,
    pub name: String,
    /// The part it should hold relative to the others. A member with weight 0 votes and holds nothing:
    /// a witness, or a node that is about to leave.
    pub weight: u32,
    /// Its location. Copies of a bucket are kept in different zones as far as shares allow.
    pub zone: Zone,
    pub at: Endpoints,
}

impl Member {
    /// Returns the process, distinct from all earlier and later ones of this node.
    pub fn peer(&self) -> Peer {
        Peer { id: self.id, boot: self.boot }
    }

    /// Returns whether the other member is this node after a return, possibly under a new id.
    pub fn is_succeeded_by(&self, other: &Member) -> bool {
        self.id == other.id || self.name == other.name
    }
}

/// A node's addresses: one host, one port for each kind of caller.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Endpoints {
    pub host: String,
    pub client: u16,
    pub peer: u16,
    /// 0 if it has no HTTP surface.
    pub http: u16,
    /// Port for reads from its backup copies; 0 if it has none.
    pub replica: u16,
}

/// A rack, a room, a data centre. Nodes without a configured zone are all in the unnamed one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Zone(pub String);

/// The number of buckets a node holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    pub primaries: u32,
    pub backups: u32,
    /// The bucket it received last, which it should not give away again. A promotion does not change
    /// it; a split clears it.
    pub last_received: Option<Hashmask>,
}

impl Load {
    pub fn total(&self) -> u32 {
        self.primaries + self.backups
    }
}
