//! Publish and subscribe across threads.
//!
//! Two levels keep publishers off other threads' connections. The [`Exchange`] knows, for the whole node, the
//! number of connections by worker that subscribe to a name; a worker's [`Branch`] knows which of its own
//! connections those are. A publisher asks the exchange, counts the receivers, and puts one encoded message
//! into the mailbox of each worker concerned (`outbox.rs`); that worker copies it to its connections
//! (`worker/deliver.rs`). `published.rs` is the message. Commands come in through `host.rs`, key events through
//! `worker/publish.rs`.
//!
//! Ordering: messages of one connection arrive in the order it published them, and a mailbox keeps the order in
//! which publishers got their replies. So no subscriber receives a message before the one that caused it.
mod exchange; // For the whole node: subscription counts by name and worker.
mod branch; //   One worker's part: its connections' subscriptions.
mod listen; //   Beginning and end of a subscription.
mod message; //  Messages between nodes.
mod remote; //     Subscribers on other nodes.
mod outbox; //   Messages in flight to the workers.

pub(crate) use branch::Branch;
pub(crate) use exchange::Exchange;
pub(crate) use listen::{listen, stop_listening};
pub(crate) use message::PubsubMessage;
pub(crate) use outbox::{EventRules, PubsubOutbox};
pub(crate) use remote::{RemoteSubscribers, introduce};
