//! The replicated log of map changes, the same on every node; the map is that log applied.
//!
//! `Consensus` (in `node.rs`) is one node's part in it: ticks, messages and proposals go in, and
//! `ready` returns the work to do, in this order: persist, send, act on committed entries. Raft itself
//! is the crate `raft`; everything that crosses the network or reaches a disk is one of our own types,
//! so the library never parses foreign bytes, and messages that would make it panic are dropped before
//! they reach it (`check.rs`). Its one source of randomness, the election timeout, is replaced by a
//! function of seed, node and term.
//!
//! Called by `control`. Read in this order:

mod node; //    Start here: one node's part.
mod ready; //   All effects it can request.
mod entry; //   The entries of the log.
mod saved; //   The state that survives a restart.
mod message; // Messages between nodes.
mod check; //   Messages that the library must not see.
mod log; //     The log in memory, in the form the library reads.
#[cfg(test)]
mod tests;

pub use entry::{Entry, LogEntry, Payload, Reconfiguration};
pub use message::{Ballot, LogPlace, MessageBody, RaftMessage};
pub use node::{Begin, Consensus, Delivery, ProposeError, TICK};
pub use ready::{AppliedEntry, Committed, Ready};
pub use saved::{Configuration, HardState, Inconsistent, Persist, Saved, SnapshotData, Term};
