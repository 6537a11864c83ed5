//! Serving commands: whether a command may run on its slots, how it changes them, which acknowledgements its
//! reply waits for, and when the reply may leave.
//!
//! `access.rs` decides by the slot's replica whether a command may run. `slots.rs` is the write path: a served
//! slot is changed only through [`ServedSlot`] (one slot: nearly all commands) or [`ServedSlots`], which records the changes, ships them to the backups under the
//! lock and returns tickets. `ticket.rs` and `gate.rs` hold a reply until its tickets allow it to leave.
//!
//! The server's workers and the simulator call the same functions; locks and sockets are behind
//! [`ServingPlane`].

mod access; //  Decides whether a command may run on a slot.
mod effects; // Effects of a command, until they are shipped.
mod gate; //    Holds replies until they may leave.
mod key_waiters; // Connections that wait for keys of a slot.
mod lines; //   Entering, waking and leaving their lines.
mod ship; //    Sends a write to the nodes that are fed.
mod one; //     The slot of a command that needs just one.
mod slots; //   The slots of one command, locked and recorded.
mod ticket; //  Acknowledgements that a reply waits for.
mod written; // Slots that a connection has written.
#[cfg(test)]
mod tests;

pub use access::{Need, Obstacle, SlotAccess};
pub use effects::EffectLog;
pub use gate::{Aborted, ReplyGate};
pub use key_waiters::{KeyWaiters, WaitNumber, Waiter, Wanted};
pub use lines::leave_line;
pub(crate) use lines::wake_all_if_moved;
pub use one::ServedSlot;
pub use ship::ship;
pub use slots::{
    Access, ChangeContext, Denied, Finished, LockSet, LockedSlots, ServedSlots, ServingPlane,
    Tickets, WalkedCopies,
};
pub use ticket::{AckEpoch, ReplyVerdict, Ticket};
pub use written::WrittenSlots;
