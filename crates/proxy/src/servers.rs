//! Where the fleet's servers are, what they want to know of us, and a plain way to talk to one.
//!
//! [`Control`] is a blocking connection for everything that is not an application's command: the
//! watcher of the map, the migrator, `fleet status`. The proxy's own data path is in `link`.

mod access;
mod address;
mod control;

pub use access::{Access, AccessError, Credentials, TlsFiles};
pub use address::{Address, AddressError};
pub use control::Control;
