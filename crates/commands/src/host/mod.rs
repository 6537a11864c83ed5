//! The node's interface for commands: everything besides the keys and the command's own connection. One small trait
//! per topic; the server implements them all (`server/src/host/`), tests have their own implementation
//! (`testing/host.rs`).
mod clients; //       The connections: list, close, pause.
mod configuration; // The settings: read, change, write to the file.
mod pubsub; //        Subscriptions and delivery of messages.
mod memory; //        Memory use of the node.
mod debugging; //     Support for DEBUG.
mod facts; //         The numbers of the node.
mod histogram; //     Durations of commands.
mod history; //       The slow log and the latency monitor.
mod control; //       Shutdown of the node.
mod cluster; //       The other nodes.
mod timers; //        The timers of the cluster.

pub use self::cluster::{Acknowledged, Block, Cluster, LinkDirection, LinkFacts, StallFacts};
pub use self::timers::{Asked, TimerKeeper};
pub use clients::{ClientFacts, Clients, Pause, PauseScope, Unblock};
pub use configuration::Configuration;
pub use control::Control;
pub use debugging::{ActiveExpiry, Debugging};
pub use facts::{
    ClientNumbers, CommandCounts, CpuTimes, Facts, Identity, KeyspaceNumbers, NodeFacts, Traffic,
};
pub use histogram::Histogram;
pub use history::{History, LatencyEvent, LatencySample, SlowCommand};
pub use memory::{Memory, MemoryFigures};
pub use pubsub::{Post, PubSub};

/// The node, as commands see it.
pub trait Host:
    Clients
    + Configuration
    + PubSub
    + Memory
    + Debugging
    + Facts
    + History
    + Control
    + Cluster
    + TimerKeeper
{
}

impl<Node> Host for Node where
    Node: Clients
        + Configuration
        + PubSub
        + Memory
        + Debugging
        + Facts
        + History
        + Control
        + Cluster
        + TimerKeeper
{
}
