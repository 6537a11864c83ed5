//! Serving commands: may a command run on these slots, how is a slot changed, what does the reply wait for,
//! and may it leave now.
//!
//! `access.rs` answers the first question from the slot's duty. `slots.rs` is the write path: a served slot
//! is changed only through [`ServedSlots`], which records what was done, ships it to the backups under the
//! lock and yields tickets. `ticket.rs` and `gate.rs` hold a reply until its tickets allow it to leave.
//!
//! The server's workers and the simulator call the same functions; locks and sockets are behind
//! [`ServingPlane`].

mod access; //  Whether a command may run on a slot.
mod effects; // What a command did, until it is shipped.
mod gate; //    Replies that wait to leave.
mod ship; //    What a primary sends of a write, and to whom.
mod one; //     The slot of a command that needs just one.
mod slots; //   The slots of one command, locked and recorded.
mod ticket; //  What a reply waits for.
mod written; // Slots that a connection has written.
#[cfg(test)]
mod tests;

pub use access::{Need, Obstacle, SlotAccess};
pub use effects::EffectLog;
pub use gate::{Aborted, ReplyGate};
pub use one::ServedSlot;
pub use ship::ship;
pub use slots::{
    Access, Change, Denied, Finished, LockSet, LockedSlots, ServedSlots, ServingPlane, Tickets,
};
pub use ticket::{AckEpoch, Passage, Ticket, Wait};
pub use written::WrittenSlots;
