//! The cluster around a node, as far as the map does not say it.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::control::Ask;
use cluster::map::NodeId;
use cluster::status::Status;

/// Whoever speaks with the other nodes.
pub trait Cluster {
    /// All there is to tell about the cluster.
    fn status(&self) -> Status;

    /// Asks for something that the nodes then do together, in their own time. `Err` says in one line
    /// why it will not be done.
    fn ask(&mut self, ask: Ask) -> Result<(), String>;

    /// Primaries that have fallen silent: what this node backs up for them may be old.
    fn pending(&self) -> BTreeSet<NodeId>;

    /// The connections to other nodes.
    fn links(&self) -> Vec<LinkFacts>;

    /// Keys that two sides of the cluster had changed before they became one again, as JSON, the latest
    /// last.
    fn conflicts(&self) -> Vec<String>;

    /// Counts the backups that have acknowledged everything this connection has written. If they are fewer than
    /// wanted, and `block` says for how long to wait at most, the command is run again when more have.
    fn acknowledged(&mut self, wanted: i64, block: Block) -> Acknowledged;

    /// Commands that had to wait because their bucket was being handed over.
    fn stalls(&self) -> StallFacts;
}

/// How long a command may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block {
    Not,
    For(Duration),
    ForEver,
}

/// The answer to [`Cluster::acknowledged`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acknowledged {
    By(usize),
    /// Nothing is replied; the command is run again.
    Waiting,
}

/// How often and how long commands waited for a handover.
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
    /// The other end's id.
    pub node: NodeId,
    /// What was sent and not yet acknowledged, or waits to be sent.
    pub unsent_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDirection {
    To,
    From,
}
