//! The state of the cluster beyond the map.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::control::OperatorRequest;
use cluster::map::NodeId;
use cluster::status::Status;

/// Access to the other nodes and the cluster's state.
pub trait Cluster {
    /// Returns the complete status of the cluster.
    fn status(&self) -> Status;

    /// Requests an operation that the nodes then perform together, asynchronously. `Err` gives the reason for a
    /// refusal in one line.
    fn ask(&mut self, ask: OperatorRequest) -> Result<(), String>;

    /// Returns the primaries that are unreachable: this node's backup copies of their slots may be stale.
    fn pending(&self) -> BTreeSet<NodeId>;

    /// Returns the connections to other nodes.
    fn links(&self) -> Vec<LinkFacts>;

    /// Returns the keys that both sides of a split had changed before they merged, as JSON, the latest last.
    fn conflicts(&self) -> Vec<String>;

    /// Counts the backups that have acknowledged everything this connection has written. If they are fewer than
    /// wanted, and `block` allows waiting, the command runs again when more have acknowledged.
    fn acknowledged(&mut self, wanted: i64, block: Block) -> Acknowledged;

    /// Returns statistics about commands that had to wait for a handover of their bucket.
    fn stalls(&self) -> StallFacts;
}

/// The maximum time a command may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block {
    Not,
    For(Duration),
    ForEver,
}

/// The result of [`Cluster::acknowledged`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acknowledged {
    By(usize),
    /// Nothing is replied; the command runs again.
    Waiting,
}

/// Number and duration of the waits of commands for a handover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StallFacts {
    pub count: u64,
    pub longest_micros: u64,
    pub total_micros: u64,
}

/// A connection to another node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkFacts {
    pub direction: LinkDirection,
    /// The id of the node at the other end.
    pub node: NodeId,
    /// Bytes sent but not yet acknowledged, or waiting to be sent.
    pub unsent_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDirection {
    To,
    From,
}
