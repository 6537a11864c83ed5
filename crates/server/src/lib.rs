//! A node: listeners, I/O threads, slot locks and HTTP; the I/O shell around the pure crates.
//!
//! Start at `node.rs` (the threads of a node), then `worker/mod.rs` (the loop of one I/O thread),
//! `worker/serve.rs` (one turn of a connection) and `worker/execute.rs` (one command under its slot locks).
mod node; //       A running node: starts and stops its threads.
mod enter; //      Founds a cluster, joins one, or returns to one.
mod keep; //       Keeps a node's items over a stop, or after it was declared dead.
mod life; //       State that a process declared dead carries into its next life.
mod shared; //     State shared by all threads of a node.
mod health_log; //  Logs the beginnings and ends of problems.
mod stall_watch; // Detects threads and disks that stall.
mod counters; //   Counters of the threads' traffic.
mod keyspace; //   The slots and their locks.
mod worker; //     An I/O thread: read, parse, run, reply.
mod accept; //     New connections on their way to a worker.
mod clients; //    Client connections, as other threads see them.
mod host; //       The node, as a running command sees it.
mod cluster_view; //       The node's knowledge of its cluster beyond the map.
mod config; //     Settings that change at run time.
mod cluster_settings; // Settings of the whole cluster, as documents of the map.
mod question; //   A question whose answer a command waits for.
mod pause; //      CLIENT PAUSE.
mod peer; //       Connections to the other nodes.
mod disk; //       The data directory.
mod watching; //   Statistics, the slow log, monitors.
mod system; //     Facts from the operating system.
mod descriptors; // Shares the limit of open files among the ports.
mod runtime; //    The runtimes of the asynchronous threads.
mod prompt; //     Scheduling priority for threads that serve clients.
mod mailbox; //    Messages from other threads to a worker.
mod published; //  A published message, encoded once for all receivers.
mod pubsub; //     Subscriptions and message delivery.
mod timers; //     Callbacks at a given time.
mod any_port; //   A listener for clients without cluster support.
mod home; //       The node, as the any-port sees it.
mod data; //       The data plane: replication traffic to and from other nodes.
mod data_plane; // The node, as the control thread sees it.
mod wait_until; // The deadline of a WAIT.
mod janitor; //     The thread that expires keys, frees garbage and watches memory.
mod evictor; //    Evicts keys when memory is short.
mod memory; //     Memory usage.
mod merge; //      Merges two sides of a split cluster.
mod command_env; // Values that hold for all commands of one worker round.
mod metrics; //    The node's metrics, for HTTP.
mod console; //    The node, as its console sees it.
mod clock; //      The time of day, read in one place.
pub mod log; //    Log lines on standard error.
pub mod http; //   Health checks, metrics and the console.
#[doc(hidden)]
pub mod measure; // A node and its client in one process, for counting instructions.

pub use cluster::control::Gone;
pub use life::Life;
pub use memory::MemoryProbe;
pub use node::{Node, NodeOptions, StartError};
pub use peer::stranger;
pub use system::default_name;
