//! The fleet's proxy and migrator: sockets around the pure crate `fleet`.
//!
//! Plain Redis servers stand behind it; what a command means for a fleet and how a key moves between
//! two servers is decided in `fleet`, and done here.

pub mod servers; // Start here: where the servers are, and how to talk to one of them.

pub use servers::{Access, Address, AddressError, Control, Credentials};
