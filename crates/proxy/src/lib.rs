//! The fleet's proxy and migrator: sockets around the pure crate `fleet`.
//!
//! Plain Redis servers stand behind it; what a command means for a fleet, and how a key moves between
//! two servers, is decided in `fleet` and done here. [`Proxy::start`] begins.

mod proxy; //    Start here: the threads of a proxy, begun and ended.
mod start; //    What is asked of the servers before the first client is let in.
mod options; //  What a proxy is told when it starts.
mod shared; //   What its threads share.
mod watcher; //  The thread that knows the map.
mod worker; //   The threads that serve clients.
mod http; //     The small HTTP face.
mod stream; //   A socket to a server, with or without TLS.
pub mod admin; //   What an operator asks: status, check.
pub mod migrate; // From one map to the next.
pub mod servers; // Plain ways to talk to the servers.

pub use options::{Limits, Options};
pub use proxy::Proxy;
pub use servers::{Access, AccessError, Control, Credentials, Runner, TlsFiles};
pub use start::StartError;
