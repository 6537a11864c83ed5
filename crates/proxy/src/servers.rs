//! Credentials for the fleet's servers, and blocking connections to them.
//!
//! [`Control`] is a blocking connection for everything that is not an application's command: the
//! watcher of the map, the migrator, `fleet status`; [`Runner`] runs the jobs of `fleet` over such
//! connections. The proxy's own data path is in `worker`.

mod access;
mod control;
mod runner;

pub use access::{Access, AccessError, Credentials, TlsFiles};
pub use control::Control;
pub use runner::Runner;

pub(crate) use access::Learnt;
pub(crate) use control::{resolve, tls_connection};
