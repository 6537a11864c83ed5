//! The node, as a running command sees it: the answers to `commands::Host`, one file for each of its
//! traits. Made for one command by `worker/execute.rs`.
mod clients; //       The connections.
mod configuration; // The settings.
mod pubsub; //        Who listens to what.
mod memory; //        What the node takes.
mod debugging; //     What DEBUG asks for.
mod facts; //         The node's numbers.
mod history; //       What was slow.
mod control; //       The end of the node.
mod cluster; //       The other nodes.
mod timers; //        The timers of the cluster.

use ::cluster::serving::WrittenSlots;
use commands::Spec;
use commands::settings::NotifyClasses;
use store::UnixMillis;

use crate::clients::ClientCard;
use crate::pubsub::Branch;
use crate::shared::Shared;
use crate::timers::Question;
use crate::wait_until::WaitUntil;

pub(crate) struct NodeHost<'a> {
    pub shared: &'a Shared,
    /// Of the connection whose command runs.
    pub card: &'a ClientCard,
    /// The command that runs.
    pub spec: &'static Spec,
    pub now: UnixMillis,
    /// The worker's part of pub/sub.
    pub branch: &'a mut Branch,
    pub notify: NotifyClasses,
    /// What this connection has asked the timers, until it has the answer.
    pub question: &'a mut Option<Question>,
    /// Slots that it has written.
    pub written: &'a WrittenSlots,
    /// Until when its WAIT waits.
    pub wait_until: &'a mut Option<WaitUntil>,
    pub has_lease: bool,
}
