//! The fleet's proxy and migrator: sockets around the pure crate `fleet`.
//!
//! Plain Redis servers are behind it. `fleet` decides what a command means for a fleet and how a key moves
//! between two servers; this crate carries it out. Start at [`Proxy::start`].

mod proxy; //    Start here: starts and stops the threads of a proxy.
mod start; //    Checks the servers before the first client is accepted.
mod options; //  Options of a proxy.
mod shared; //   State shared by its threads.
mod watcher; //  The thread that follows the map.
mod worker; //   The threads that serve clients.
mod http; //     The HTTP interface.
mod stream; //   A socket to a server, with or without TLS.
pub mod admin; //   The operator's commands: status, check.
pub mod migrate; // Migrates from one map to the next.
pub mod servers; // Blocking connections to the servers.

pub use options::{Limits, Options};
pub use proxy::Proxy;
pub use servers::{Access, AccessError, Control, Credentials, Runner, TlsFiles};
pub use start::StartError;
