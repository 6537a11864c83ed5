//! Where a thing lives: slots, hashmasks, rendezvous ranking, weighted server maps. Pure functions.
//!
//! Called by everything that has to find a key, a bucket or a timer. Knows nobody.

mod slot; //       A key's slot, exactly as Redis Cluster computes it.
mod hashmask; //   Slots grouped into buckets, and how a bucket splits.
mod rendezvous; // Which servers keep a timer.
mod murmur3; //    The hash behind that ranking.
mod server_map; // Which plain Redis server keeps a key, by weight.

pub use hashmask::{Hash, Hashmask, HashmaskError, Mask};
pub use murmur3::murmur3;
pub use rendezvous::Ranking;
pub use server_map::{SERVERS_MAX, ServerMap, ServerMapChange, ServerMapError};
pub use slot::{Slot, hash_tag};
