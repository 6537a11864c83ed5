//! Publish and subscribe across threads.
//!
//! Two levels keep publishing off other threads' connections. The [`Exchange`] knows, for the whole
//! node, how many connections of which worker listen to a name; a worker's [`Branch`] knows which of
//! its own connections those are. A publisher asks the exchange, counts the receivers, and leaves one
//! encoded message in the mailbox of each worker concerned (`outbox.rs`); that worker copies it to its
//! connections (`worker/hear.rs`). Commands come in through `host/pubsub.rs`, key events through
//! `worker/publish.rs`.
//!
//! The order: what one connection publishes is heard in that order, and a mailbox keeps the order in
//! which publishers were answered, so nobody hears a message before one it was caused by.
mod exchange; // For the whole node: how many listen to a name, on which workers.
mod branch; //   One worker's part: which of its connections listen.
mod message; //  A message, encoded once for all who get it.
mod afar; //     Listeners on other nodes.
mod outbox; //   Messages on their way to the workers.

pub(crate) use afar::{Afar, News, announce, introduce};
pub(crate) use branch::Branch;
pub(crate) use exchange::Exchange;
pub(crate) use message::{Author, Message};
pub(crate) use outbox::Outbox;
