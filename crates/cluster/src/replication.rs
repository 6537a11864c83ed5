//! Replication: how what a primary does to a slot comes to its backups, and when it may say so.
//!
//! A primary has one *link* to every other node: numbered frames that survive a broken connection
//! (`outbox.rs`, `inbox.rs`, `frame.rs`). For every slot it keeps its *duty* (`duty.rs`): what it is to
//! the slot, and whom it feeds. A backup checks each effect against its own position before applying
//! it (`receive.rs`). What a reply waits for is in
//! `serving`.
//!
//! Nothing here locks or sends. `server` calls it under a slot's lock, `sim` just calls it; `fill.rs`
//! next door copies a whole bucket over the same links.

mod duty; //    A node's role in a slot, and its transitions.
mod feed; //    A node that gets what is written to a slot.
mod links; //   The links of a node, by id.
mod frame; //   What travels on a link, as bytes; and what comes back.
mod backlog; // When the other end of a link is stuck, and when writers wait for it.
mod inbox; //   The receiving end of a link: frames from bytes, counted.
mod outbox; //  The sending end: frames kept until they are acknowledged.
mod parts; //   Parts of a long frame, until the last one has come.
mod past; //    What a slot has been through while a copy is away.
mod receive; // What a backup does with an effect.
#[cfg(test)]
mod tests;

pub use backlog::{BACKLOG_BYTES_MAX, Backlog};
pub use duty::{Duty, Role};
pub use feed::{Feed, Stage};
pub use frame::{BackFrame, BadFrame, FRAME_BYTES_MAX, FillId, Frame, PART_BYTES, Position};
pub use inbox::{Inbox, first_answer};
pub use links::LinkTable;
pub use outbox::{BadAck, Forgotten, Outbox};
pub use parts::{GATHERED_BYTES_MAX, Parts};
pub use past::Past;
pub use receive::{
    Received, Receiver, receive_effects, receive_gone, receive_images, slot_of_unit, write_gone,
    write_image,
};

use crate::map::NodeId;
use crate::serving::Wait;

/// The links of a node: how far each has come.
pub trait LinkProgress {
    /// The link to a member.
    fn link_to(&self, node: NodeId) -> Option<LinkId>;
    /// The frame appended last.
    fn last(&self, link: LinkId) -> FrameNumber;
    /// The last frame that the other end has acknowledged. What it has refused of a slot it has acknowledged
    /// as well: `Feed::acked` knows.
    fn acked(&self, link: LinkId) -> FrameNumber;
}

/// A link of this node, by its number. No number is given twice in the life of a process, so one that
/// names a link that is gone never means another ([`LinkTable`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// The number of a frame on its link. The first is 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FrameNumber(pub u64);

impl FrameNumber {
    #[must_use]
    pub fn next(self) -> FrameNumber {
        FrameNumber(self.0 + 1)
    }
}
