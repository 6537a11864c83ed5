//! A fill: copying a bucket onto a node that does not hold it yet, while it goes on being served.
//!
//! The primary walks over the bucket's slots and takes chunks of them under their locks (`source.rs`);
//! what is written meanwhile follows on the same link, in order (`serving/ship.rs`). One pass, however busy the
//! bucket is. The other end puts it together (`taker.rs`).

mod source; // The bucket as it leaves.
mod taker; //  The bucket as it comes.
#[cfg(test)]
mod tests;

pub use source::{CHUNK_BYTES, Sent, Source};
pub use taker::{Kept, Taker};
