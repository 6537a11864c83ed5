//! The store's part of the simulator: a whole cluster in one thread under virtual time, with clients, a
//! network that breaks, machines that die, and clocks that differ.
//!
//! A node is the very code that a server runs: `cluster::control` decides, `cluster::data` replicates and
//! moves buckets, `store` holds the items. `node.rs` and `plane.rs` stand in for a server's locks, sockets
//! and threads. `run::run` is one history from one seed; the checkers (`checkers.rs`, `linear.rs`) do not use
//! the arithmetic of the code they check.

mod applying; //     The thread that applies decisions to the data plane.
mod asking; //       Requests of clients, and their answers.
mod checkers; //     Invariants at every step.
mod clients; //      Clients: their requests, and the answers they received.
mod clock; //        A node's clock, fast or slow.
mod faults; //       Faults, and their times.
mod keeping; //      Data left on a disk.
mod leaving; //      Planned leaves, checked.
mod linear; //       Linearizability of the history of one key.
mod many; //         Many histories, on a few threads.
mod meeting; //      Two sides of a split brain become one again.
mod merging; //      Handover from one side to the other.
mod node; //         One process: the work of a server's threads, one step at a time.
mod plane; //        The simulated surroundings of the data plane.
mod run; //          One history from a seed.
mod sabotage; //     Rules to break on purpose.
mod serving; //      Clients' commands on one process.
mod steps; //        Steps of a control plane, and disks.
mod wires; //        Streams of bytes between nodes.
mod world; //        Nodes, events, time.
pub mod victim; //   One node that receives false messages.
#[cfg(test)]
mod stories; //      Scenarios of nodes that come back, one by one.

pub use cluster::rules::CAN_BREAK;
pub use many::{Many, Sum};
pub use meeting::{Reunion, meet};
pub use run::{Failure, Report, Run, Sky, run};
pub use sabotage::Sabotage;
