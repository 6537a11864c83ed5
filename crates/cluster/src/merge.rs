//! Two sides of a cluster that went on apart are made one again: the side that yields hands over what it
//! changed since they parted, and the primaries of the one that stands write what wins.
//!
//! It is a dialogue (`message.rs`): the giver (`giver.rs`) asks from where on a primary of the other side
//! knows nothing of it, sends pieces, and waits for each to be safe there. The taker (`taker.rs`) judges
//! key by key under the slot's lock; what it writes are ordinary writes. Repeating any of it does no harm,
//! so whatever breaks begins again. Nothing here locks or sends: `server` and `sim` do.

mod message; // What the two say.
mod change; //  What was changed, as bytes.
mod giver; //   The side that yields.
mod taker; //   The side that stands.
mod ground; //  A served slot, as the taker works on it.
mod ledger; //  What became of it, for those who want to know.
#[cfg(test)]
mod tests;

pub use change::Batch;
pub use giver::{Course, Giver, Holdings};
pub use ground::ServedGround;
pub use ledger::{Conflict, Ledger, Side, Tally, Winner};
pub use message::{Question, Reply};
pub use taker::{Ground, Taker, parted_at};
