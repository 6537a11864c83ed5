//! Merges the two sides of a cluster after a split brain: the losing side (the one that yields) hands over its
//! changes since the split, and the primaries of the surviving side write the changes that win.
//!
//! It is a dialogue (`message.rs`). The giver (`giver.rs`) asks a primary of the surviving side from which
//! version on it lacks the giver's changes, sends them piece by piece, and waits until each piece is safe
//! there. The taker (`taker.rs`) decides key by key under the slot's lock, and writes the winners as ordinary
//! writes. Every step is idempotent, so whatever breaks is retried from its start. Nothing here locks or sends:
//! `server` and `sim` do.

mod message; // The messages of the dialogue.
mod change; //  Encoding of a slot's changes.
mod giver; //   The losing side.
mod taker; //   The surviving side.
mod ground; //  A served slot, as the taker works on it.
mod ledger; //  Counts and conflicts, for `status` and metrics.
#[cfg(test)]
mod tests;

pub use change::ChangeBatch;
pub use giver::{Course, Giver, Holdings};
pub use ground::ServedGround;
pub use ledger::{Conflict, Ledger, Side, Tally, Winner};
pub use message::{MergeReply, MergeRequest};
pub use taker::{Ground, MergeTaker, diverged_at};
