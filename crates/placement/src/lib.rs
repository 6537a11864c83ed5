//! Where a thing lives: slots, hashmasks, rendezvous ranking, weighted server maps. Pure functions.
//!
//! Called by everything that has to find a key, a bucket or a timer. Knows nobody.

mod slot; // A key's slot, exactly as Redis Cluster computes it.

pub use slot::{Slot, hash_tag};
