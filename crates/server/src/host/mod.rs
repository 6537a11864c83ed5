//! The node, as a running command sees it: the implementation of `commands::Host`, one file for each of its
//! traits. `worker/execute.rs` makes one for each command.
mod clients; //       The connections.
mod configuration; // The settings.
mod pubsub; //        Subscriptions.
mod memory; //        Memory usage.
mod debugging; //     The operations of DEBUG.
mod facts; //         The node's figures.
mod history; //       Slow commands and events.
mod control; //       Stopping the node.
mod cluster; //       The other nodes.
mod timers; //        The timers of the cluster.

use ::cluster::serving::WrittenSlots;
use commands::Spec;
use settings::NotifyClasses;
use store::UnixMillis;

use crate::clients::ClientInfo;
use crate::pubsub::Branch;
use crate::shared::Shared;
use crate::timers::PendingAnswer;
use crate::wait_until::WaitUntil;

pub(crate) struct NodeHost<'a> {
    pub shared: &'a Shared,
    /// State of the connection whose command runs.
    pub card: &'a ClientInfo,
    /// The command that runs.
    pub spec: &'static Spec,
    pub now: UnixMillis,
    /// The worker's part of pub/sub.
    pub branch: &'a mut Branch,
    pub notify: NotifyClasses,
    /// This connection's pending request to the timers, until it has the answer.
    pub question: &'a mut Option<PendingAnswer>,
    /// Slots that this connection has written.
    pub written: &'a WrittenSlots,
    /// The deadline of this connection's WAIT.
    pub wait_until: &'a mut Option<WaitUntil>,
    pub has_lease: bool,
}
