//! A bucket: its hashmask and its holders.

use placement::Hashmask;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{Epoch, LogIndex, NodeId};

/// The nodes with an in-sync copy of a bucket. The first is the primary; of the backups, the first is
/// promoted first.
pub type Holders = SmallVec<[NodeId; 3]>;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bucket {
    pub hashmask: Hashmask,
    /// Raised by every change of this bucket whose expected epoch was right, so that of two changes
    /// that expect the same epoch only the first takes effect.
    pub epoch: Epoch,
    /// The log index of the change that made the present primary primary: it fences off messages of
    /// earlier primaries. A split keeps it.
    pub reign: LogIndex,
    /// Empty if the bucket is lost.
    pub holders: Holders,
}

impl Bucket {
    /// Returns the node that serves the bucket, or `None` if the bucket is lost.
    pub fn primary(&self) -> Option<NodeId> {
        self.holders.first().copied()
    }

    pub fn backups(&self) -> &[NodeId] {
        self.holders.get(1..).unwrap_or_default()
    }

    pub fn is_held_by(&self, node: NodeId) -> bool {
        self.holders.contains(&node)
    }
}
