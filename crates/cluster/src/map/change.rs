//! Every change of the map there is. `apply.rs` says what each does.

use std::collections::BTreeSet;
use std::time::Duration;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::{Epoch, Generation, Member, NodeId, Setting};

/// A change of a bucket names the bucket's epoch it expects; if that is no longer its epoch, it does
/// nothing. Giving a *primary* away is `AddBackup(to)`, `Promote(to)`, `DropBackup(from)`; giving a
/// *backup* away is `AddBackup(to)`, `DropBackup(from)`. Only the bucket's primary proposes those.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// A node comes in. With a known id and another boot, the old boot is dead by that; with a known
    /// id and the same boot, the node's name, weight and zone are changed.
    Join(Member),
    /// A node that serves nothing any more goes.
    Leave(NodeId),
    /// A node that serves nothing any more goes, and wants to be back in so long: what it held is
    /// remembered.
    Away {
        node: NodeId,
        long: Duration,
    },
    /// It was away too long, or has got back all it gets: its places are no longer kept.
    Forget(NodeId),
    /// These nodes are gone: the first surviving backup of each of their primaries is promoted.
    Dead(BTreeSet<NodeId>),
    /// A fill is complete: the node is in sync from here on.
    AddBackup {
        bucket: Hashmask,
        node: NodeId,
        expected: Epoch,
    },
    /// An in-sync backup becomes primary, the old primary its backup.
    Promote {
        bucket: Hashmask,
        node: NodeId,
        expected: Epoch,
    },
    /// One copy fewer.
    DropBackup {
        bucket: Hashmask,
        node: NodeId,
        expected: Epoch,
        because: DropReason,
    },
    /// Each of these buckets becomes the smaller ones of the next mask.
    Split(Vec<(Hashmask, Epoch)>),
    /// A bucket without a holder begins again on this node.
    Recreate {
        bucket: Hashmask,
        node: NodeId,
        from: Source,
        expected: Epoch,
    },
    Set(Setting),
    /// This generation ends in favour of a greater one.
    Yield(Generation),
    /// The node has brought what it had of buckets that began again, or has nothing of them.
    Settled {
        node: NodeId,
        buckets: Vec<Hashmask>,
    },
}

/// Why a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DropReason {
    /// Balancing: there are more copies than wanted, be it because another node has taken this one.
    /// Void if there are not: since it was proposed a holder may have died, or more be wanted.
    Balance,
    /// It fell out of sync: all must plan anew, for a copy is missing now.
    OutOfSync,
}

/// What a lost bucket is recreated from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Source {
    /// The data of one of its last in-sync holders, which came back.
    OwnData,
    /// An older copy.
    Snapshot,
    Empty,
}

/// What became of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    Applied,
    /// The expected epoch was right and has been raised, but there was nothing to do: the node was
    /// not there, or already was what it should become.
    Void,
    /// The bucket has changed or was split since the change was proposed. Nothing was done.
    Stale,
    /// Nothing was done.
    Refused(Refusal),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Refusal {
    UnknownNode(NodeId),
    /// The node that wants to leave still serves this bucket.
    StillServes(Hashmask),
    /// This generation has ended.
    Yielded(Generation),
}
