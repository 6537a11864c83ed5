//! All possible changes of the map. `apply.rs` defines the effect of each.

use std::collections::BTreeSet;
use std::time::Duration;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::{
    Boot, DocumentError, DocumentWrite, Epoch, Generation, LogIndex, Member, NodeId, Setting,
};

/// A change of the map. A change of a bucket names the bucket's epoch it expects; if that is no longer
/// its epoch, it does nothing. Giving a *primary* away is `AddBackup(to)`, `Promote(to)`,
/// `DropBackup(from)`; giving a *backup* away is `AddBackup(to)`, `DropBackup(from)`. Only the bucket's
/// primary proposes those.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// A node joins. With a known id and another boot, the old boot counts as dead; with a known id and
    /// the same boot, the node's name, weight and zone are changed.
    Join(Member),
    /// A node that serves nothing any more leaves. Only this process of it: an announcement may wait until
    /// the node runs again under another boot, which nobody has asked to leave.
    Leave {
        node: NodeId,
        boot: Boot,
        way: LeaveWay,
    },
    /// A node that serves nothing any more leaves, and wants to return within this time: its buckets
    /// are remembered.
    Away {
        node: NodeId,
        boot: Boot,
        absence: Duration,
        way: LeaveWay,
    },
    /// The node was away too long, or holds all it will get back: its places are no longer reserved.
    Forget(NodeId),
    /// These nodes are dead: the first surviving backup of each of their primaries is promoted.
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
    /// Removes one copy.
    DropBackup {
        bucket: Hashmask,
        node: NodeId,
        expected: Epoch,
        because: DropReason,
    },
    /// Splits each of these buckets into the smaller ones of the next mask.
    Split(Vec<(Hashmask, Epoch)>),
    /// Recreates a bucket without a holder on this node.
    Recreate {
        bucket: Hashmask,
        node: NodeId,
        from: RecreateSource,
        expected: Epoch,
    },
    Set(Setting),
    /// This generation ends in favour of a greater one.
    Yield(Generation),
    /// The node has handed over its copies of recreated buckets, or has none of them.
    KeptCopiesHandedOver {
        node: NodeId,
        buckets: Vec<Hashmask>,
    },
    /// Writes documents, all or none. Stale unless `expected` is the version of the documents: so a write
    /// that is in the log twice takes effect once.
    Write {
        documents: Vec<DocumentWrite>,
        expected: LogIndex,
    },
}

/// The condition on which a node leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LeaveWay {
    /// The nodes that stay have all the copies that the settings ask for, of every bucket it holds.
    Safe,
    /// It serves nothing. Its backups go with it: until they are filled elsewhere, their buckets have
    /// one copy fewer.
    Quick,
}

/// The reason a copy is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DropReason {
    /// Balancing: there are more copies than wanted, for instance because another node has taken this
    /// one. Void if there are not: a holder may have died since the proposal, or more copies may be
    /// wanted.
    Balance,
    /// The copy fell out of sync: all nodes must plan again, because a copy is missing now.
    OutOfSync,
}

/// The data a lost bucket is recreated from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RecreateSource {
    /// The data of one of its last in-sync holders, which came back.
    OwnData,
    /// An older copy.
    Snapshot,
    Empty,
}

/// The outcome of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ChangeOutcome {
    Applied,
    /// The expected epoch was right and has been raised, but there was nothing to do: the node was not
    /// there, or already was in the target state.
    Void,
    /// The bucket has changed or was split since the change was proposed, or an earlier change of the
    /// same entry had no effect on it. Nothing was done.
    Stale,
    /// Nothing was done.
    Refused(ChangeRefusal),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ChangeRefusal {
    UnknownNode(NodeId),
    /// The node that wants to leave still serves this bucket.
    StillServes(Hashmask),
    /// Without the node that wants to leave, this bucket has too few copies.
    StillNeeded(Hashmask),
    /// This generation has ended.
    Yielded(Generation),
    Document(DocumentError),
}
