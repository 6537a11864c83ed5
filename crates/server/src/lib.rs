//! A node: listeners, I/O threads, slot locks, HTTP; the shell around the thinking crates.
//!
//! Start at `node.rs` (what runs), then `worker/mod.rs` (one I/O thread's loop), `worker/serve.rs` (a
//! connection's turn) and `worker/execute.rs` (one command under its locks).
mod node; //       A running node: starts the threads, stops them.
mod enter; //      How it comes into a cluster.
mod keep; //       What a node keeps of its items when it stops, or is counted as dead.
mod life; //       What a process that was counted as dead takes along.
mod shared; //     What all threads of a node share.
mod keyspace; //   The slots and their locks.
mod worker; //     An I/O thread: read, parse, run, reply.
mod accept; //     Listening, and new connections.
mod clients; //    The connections, as other threads see them.
mod host; //       The node, as a running command sees it.
mod news; //       What it knows of its cluster beyond the map.
mod config; //     Settings that change while the node runs.
mod pause; //      CLIENT PAUSE.
mod peer; //       The other nodes.
mod disk; //       The data directory.
mod watching; //   Statistics, the slow log, monitors.
mod system; //     What the operating system says.
mod prompt; //     Threads that serve clients come first.
mod mailbox; //    How threads talk to a worker.
mod pubsub; //     Who listens to what, and how messages get there.
mod timers; //     Callbacks at a given time.
mod any_port; //   A listener for clients that know nothing of clusters.
mod data; //       The data plane: what goes to other nodes and comes from them.
mod wait_until; // The end of a WAIT.
mod keeper; //     The thread that expires keys, frees garbage and watches memory.
mod evictor; //    Making room when memory is short.
mod memory; //     How much memory is in use.
mod merge; //      Two sides of the cluster become one again.
mod surroundings; // What is true for all commands of a round.
mod metrics; //    The node's numbers, for HTTP.
mod console; //    The node, as its console sees it.
mod clock; //      The time of day, read in one place.
pub mod log; //    What it says of itself on standard error.
pub mod http; //   Health checks, metrics and the console.
#[doc(hidden)]
pub mod measure; // A node and its client in one process, for counting instructions.

pub use cluster::control::Gone;
pub use life::Life;
pub use memory::MemoryProbe;
pub use node::{Node, NodeOptions, StartError};
pub use peer::stranger;
pub use system::default_name;
