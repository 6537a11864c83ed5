//! Cluster logic of one node: the map and its changes, consensus, balance, replication. Pure state
//! machines: (event, now) -> actions.
//!
//! No clock, no socket, no thread, no randomness: time, messages and seeds come in as values, and the
//! actions to perform come out as values. `server` feeds it real events, `sim` simulated ones.

#[cfg(test)]
mod spread; // Keys for tests, spread over several databases.
mod moment; // A point in time on a node's monotonic clock.
pub mod map; // Members, buckets and their holders, and every possible change to them.
pub mod consensus; // The replicated log of map changes, the same on every node.
pub mod balance; // Rebalancing after membership changes: which buckets move, and which node moves them.
pub mod control; // One node's control plane: leases, failures, joins, handovers, all through the log.
pub mod replication; // Replication from a primary to its backups, and acknowledging replicated writes.
pub mod fill; // Copying a bucket from one node to another.
pub mod serving; // Admission of commands, changes to a slot, and the release of replies.
pub mod data; // One node's data plane, built from `replication` and `fill`.
pub mod merge; // Merging the two sides of a cluster after a split brain.
pub mod rules; // Safety rules that tests break on purpose.
pub mod status; // The status of a cluster, for people.

pub use moment::Moment;
