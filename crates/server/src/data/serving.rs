//! Implements what `cluster::serving` needs on this node: the locks of slots, the published counts, the links.

use cluster::data::SlotState;
use cluster::map::NodeId;
use cluster::replication::{Frame, FrameNumber, LinkId, LinkProgress};
use cluster::serving::{AckEpoch, KeyWaiters, ReplyVerdict, ServingPlane, Ticket, Waiter};
use core::sync::atomic::Ordering::Relaxed;
use placement::Slot;
use store::Seed;

use super::Data;
use crate::keyspace::SlotGuard;
use crate::mailbox::Mail;

impl LinkProgress for Data {
    fn link_to(&self, node: NodeId) -> Option<LinkId> {
        self.links.to_node(node)
    }

    fn last(&self, link: LinkId) -> FrameNumber {
        self.links.get(link).map_or(FrameNumber(0), |link| link.last())
    }

    #[inline]
    fn acked(&self, link: LinkId) -> FrameNumber {
        self.links.acked(link)
    }
}

impl ServingPlane for Data {
    type Guard<'a> = SlotGuard<'a>;

    #[inline]
    fn lock_slot(&self, slot: Slot) -> SlotGuard<'_> {
        self.keyspace.lock_one(slot)
    }

    #[inline]
    fn try_lock_slot(&self, slot: Slot) -> Option<SlotGuard<'_>> {
        self.keyspace.try_lock(slot)
    }

    fn lock_unless_busy(&self, slot: Slot) -> Option<SlotGuard<'_>> {
        self.keyspace.lock_unless(slot, || self.scripts.is_busy(slot.number()))
    }

    #[inline]
    fn seed(&self) -> &Seed {
        &self.keyspace.seed
    }

    #[inline]
    fn push_frame(&self, link: LinkId, frame: &Frame<'_>) -> FrameNumber {
        self.links.push(link, frame)
    }

    #[inline]
    fn ack_epoch(&self) -> AckEpoch {
        Data::ack_epoch(self)
    }

    #[inline]
    fn publish_counts(&self, slot: Slot, state: &SlotState) {
        self.keyspace.note(slot, state);
    }

    fn next_occupied(&self, from: Slot) -> Option<Slot> {
        self.keyspace.next_occupied(from)
    }

    fn next_with_databases(&self, from: Slot) -> Option<Slot> {
        self.keyspace.next_with_databases(from)
    }

    fn key_count_of(&self, slot: Slot) -> usize {
        self.keyspace.len_of(slot)
    }

    fn key_count(&self) -> usize {
        usize::try_from(self.keyspace.population().keys).unwrap_or(usize::MAX)
    }

    #[inline]
    fn has_congestion(&self) -> bool {
        self.links.has_congestion()
    }

    fn is_congested(&self, link: LinkId) -> bool {
        self.links.is_congested(link)
    }

    fn roles_may_be_ahead(&self) -> bool {
        self.roles_ahead.load(Relaxed) > 0
    }

    fn with_waiters<R>(&self, slot: Slot, work: impl FnOnce(&mut KeyWaiters) -> R) -> R {
        self.key_lines.with(slot, work)
    }

    fn wake(&self, waiter: Waiter) {
        let Waiter { client, worker, index } = waiter;
        self.mailboxes[worker as usize].send(Mail::Resume { id: client, index: index as usize });
    }
}

/// Judges a reply that waits with this ticket.
pub(crate) fn judge(data: &Data, ticket: &mut Ticket) -> ReplyVerdict {
    ticket.judge_on(data)
}
