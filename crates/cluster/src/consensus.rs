//! One log of map changes, the same on every node; the map is that log applied.
//!
//! `Consensus` (in `node.rs`) is one node's part in it: ticks, messages and proposals go in, and `ready`
//! says what is to be done, in this order: persist, send, act on what was committed. Raft itself is
//! the crate `raft`; everything that crosses the network or reaches a disk is a type of ours, so no
//! bytes of a stranger are ever parsed by the library, and what it would fall over is refused
//! before it gets there (`check.rs`). Its one source of chance, the election timeout, is replaced by
//! a function of seed, node and term.
//!
//! Called by `control`. To be read in this order:

mod node; //    Start here: one node's part.
mod ready; //   All it can ask for.
mod entry; //   What stands in the log.
mod saved; //   What is kept over a restart.
mod message; // What nodes tell each other.
mod check; //   Messages that the library must not see.
mod log; //     The log in memory, as the library wants to read it.
#[cfg(test)]
mod tests;

pub use entry::{Entry, LogEntry, Payload, Reconfiguration};
pub use message::{Ballot, Body, LogPlace, RaftMessage};
pub use node::{Begin, Consensus, Delivery, ProposeError, TICK};
pub use ready::{Applied, Committed, Ready};
pub use saved::{Configuration, HardState, Inconsistent, Persist, Saved, SnapshotData, Term};
