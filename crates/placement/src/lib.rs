//! Placement of keys, buckets and timers: slots, hashmasks, rendezvous ranking, weighted server maps. Pure
//! functions.
//!
//! Called by every crate that has to find a key, a bucket or a timer. Depends on no other crate of the workspace.

mod slot; //       A key's slot, exactly as Redis Cluster computes it.
mod hashmask; //   Slots grouped into buckets, and how a bucket splits.
mod rendezvous; // The servers that keep a timer.
mod murmur3; //    The hash behind that ranking.
mod server_map; // The plain Redis server that keeps a key, by weight.
mod split_mix; //  Pseudo-random numbers from a seed.

pub use hashmask::{Hash, Hashmask, HashmaskError, Mask};
pub use murmur3::murmur3;
pub use rendezvous::Ranking;
pub use server_map::{SERVERS_MAX, ServerMap, ServerMapChange, ServerMapError};
pub use slot::{Slot, hash_tag};
pub use split_mix::SplitMix64;
