//! What a command may ask of the node around it: everything that is not keys and not its own
//! connection. One small trait a noun; the server answers them all (`server/src/host/`), tests have a
//! host of their own (`testing/host.rs`).
mod clients; //       The connections: list, close, pause.
mod configuration; // The settings: read, change, write to the file.
mod pubsub; //        Who listens to what.
mod memory; //        What the node takes.
mod debugging; //     What DEBUG asks for.
mod facts; //         The numbers of the node.
mod histogram; //     How long commands took.
mod history; //       What was slow.
mod control; //       The end of the node.
mod cluster; //       The other nodes.
mod timers; //        The timers of the cluster.

pub use self::cluster::{Acknowledged, Block, Cluster, LinkDirection, LinkFacts, StallFacts};
pub use self::timers::{Asked, TimerKeeper};
pub use clients::{ClientFacts, Clients, Pause, PauseScope, Unblock};
pub use configuration::{ChangeError, Configuration, changed_settings};
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
