//! A node as the map knows it, and what it holds.

use placement::Hashmask;

use super::{Boot, NodeId};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub id: NodeId,
    pub boot: Boot,
    pub name: String,
    /// How much it should hold beside the others. A member with 0 votes and holds nothing: a witness,
    /// or a node that is about to leave.
    pub weight: u32,
    /// Where it stands. Copies of a bucket are kept in different zones as far as shares allow.
    pub zone: Zone,
}

/// A rack, a room, a data centre. Nodes that were told nothing are all in one, the unnamed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Zone(pub String);

/// What a node holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
