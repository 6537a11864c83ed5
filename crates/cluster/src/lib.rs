//! What a node decides: the map and its changes, balance. Pure state machines: (event, now) -> actions.
//!
//! No clock, no socket, no thread, no chance: time, messages and seeds come in as values, and what is
//! to be done in the world comes out as values. `server` feeds it real events, `sim` invented ones.

pub mod map; // Members, buckets, who holds them; and every change there is.
pub mod consensus; // One log of map changes, the same on every node.
pub mod balance; // What moves when the machines change, and who moves it.
pub mod control; // One node's part in deciding: leases, deaths, joins, handovers, all through the log.
pub mod replication; // How what a primary writes comes to its backups, and when it may say so.
pub mod fill; // A bucket's way from one node to another.
pub mod serving; // Whether a command may run, how a slot is changed, when the reply leaves.
pub mod data; // One node's data plane, put together from these two.
pub mod merge; // Two sides of a cluster that went on apart become one again.
pub mod rules; // Safety rules that tests break on purpose.
pub mod status; // A cluster as people look at it.
