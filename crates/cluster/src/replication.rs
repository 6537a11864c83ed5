//! Replication: ships a primary's changes to its backups, and tracks when they are acknowledged.
//!
//! A primary has one *link* to every other node: numbered frames that survive a broken connection (`outbox.rs`,
//! `inbox.rs`, `frame.rs`). For every slot it keeps its *replica* (`replica.rs`): its role in the slot, and the nodes
//! it feeds. A backup checks each effect against its own position before applying it (`receive.rs`). `serving`
//! holds replies until they are acknowledged.
//!
//! Nothing here locks or sends. `server` calls it under a slot's lock, `sim` just calls it; `fill.rs` copies a
//! whole bucket over the same links.

mod replica; //    A node's role in a slot, and its transitions.
mod downstream; //    A node that receives the writes to a slot.
mod list_copy; //     Large lists that are copied while they are written to.
mod links; //   The links of a node, by id.
mod frame; //   Wire format of a link, in both directions.
mod backlog; // Detects a stuck peer, and applies backpressure to writers.
mod inbox; //   The receiving end of a link: decodes and counts frames.
mod outbox; //  The sending end: frames kept until they are acknowledged.
mod parts; //   Collects the parts of a long frame.
mod past; //    Removals and reigns of a slot while a copy is away.
mod slot_state; // A slot's table and this node's replica of it.
mod receive; // Applies effects on a backup.
#[cfg(test)]
mod tests;

pub use backlog::{BACKLOG_BYTES_MAX, Backlog};
pub use downstream::{Downstream, SyncState};
pub use frame::{BackFrame, BadFrame, FRAME_BYTES_MAX, FillSize, Frame, PART_BYTES, Position};
pub use inbox::{Inbox, first_answer};
pub use links::LinkTable;
pub(crate) use list_copy::NeededPart;
pub use outbox::{BadAck, Forgotten, Outbox, SlotLag};
pub use parts::{FrameParts, GATHERED_BYTES_MAX};
pub use past::Past;
pub use receive::{
    Received, ReceivingSlot, RecordedUnit, receive_effects, receive_gone, receive_images,
    slot_of_unit, write_change, write_gone, write_image,
};
pub use replica::{Role, SlotReplica};
pub use slot_state::SlotState;

use crate::map::NodeId;

/// Progress of a node's links.
pub trait LinkProgress {
    /// Returns the link to a member.
    fn link_to(&self, node: NodeId) -> Option<LinkId>;
    /// Returns the frame appended last.
    fn last(&self, link: LinkId) -> FrameNumber;
    /// Returns the last frame that the other end has acknowledged. The other end also acknowledges frames it
    /// has refused; `Downstream::acked` takes that into account.
    fn acked(&self, link: LinkId) -> FrameNumber;
}

/// A link of this node, by its number. No number is reused in the life of a process, so the id of a removed
/// link never refers to another one ([`LinkTable`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// The number of a frame on its link. The first is 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FrameNumber(pub u64);

/// A frame that the other end of a link must have acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    pub link: LinkId,
    pub number: FrameNumber,
}

impl FrameNumber {
    #[must_use]
    pub fn next(self) -> FrameNumber {
        FrameNumber(self.0 + 1)
    }
}
