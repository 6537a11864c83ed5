//! A fill: copying a bucket to a node that does not hold it yet, while the primary keeps serving it.
//!
//! The primary walks over the bucket's slots and takes chunks of them under their locks (`source.rs`). Writes
//! made meanwhile follow on the same link, in order (`serving/ship.rs`), so one pass is enough however busy the
//! bucket is. The other end assembles the bucket (`taker.rs`).

mod source; // The sending side.
mod taker; //  The receiving side.
#[cfg(test)]
mod tests;

pub use source::{CHUNK_BYTES, FillSource, Sent};
pub use taker::{FillOutcome, FillReceived, FillTaker};
