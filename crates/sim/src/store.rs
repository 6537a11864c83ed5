//! The store's part of the simulator: a whole cluster in one thread under virtual time, with clients, a
//! network that breaks, machines that die, and clocks that differ.
//!
//! A node is the very code that a server runs: `cluster::control` decides, `cluster::data` replicates
//! and moves buckets, `store` holds the items. What is around it here (`node.rs`, `plane.rs`) is what
//! locks, sockets and threads are there. `run::run` is one history from one number; those who judge it
//! (`checkers.rs`, `linear.rs`) do not use the arithmetic of what they judge.

mod applying; //     The thread that applies decisions to the data plane.
mod asking; //       The world as clients use it.
mod checkers; //     What must hold at every step.
mod clients; //      Who asks for keys, and what they were told.
mod clock; //        A node's clock, fast or slow.
mod faults; //       What goes wrong, and when.
mod keeping; //      What is left on a disk.
mod linear; //       Whether a history of one key can be put into one order.
mod many; //         Many histories, on a few threads.
mod meeting; //      Two sides that went on apart become one again.
mod merging; //      How one hands over to the other.
mod network; //      Messages that get lost, and streams that break.
mod node; //         One process: what a server's threads do, one thing at a time.
mod plane; //        What the data plane stands on here.
mod run; //          One history from a seed.
mod sabotage; //     Rules to break on purpose.
mod serving; //      Clients' commands on one process.
mod steps; //        Steps of a control plane, and disks.
mod wires; //        Streams of bytes between nodes.
mod world; //        Nodes, events, time.
pub mod victim; //   One node that is lied to.
#[cfg(test)]
mod stories; //      Nodes that come back, told one by one.

pub use cluster::rules::CAN_BREAK;
pub use many::{Many, Sum};
pub use meeting::{Reunion, meet};
pub use run::{Failure, Report, Run, Sky, run};
pub use sabotage::Sabotage;
