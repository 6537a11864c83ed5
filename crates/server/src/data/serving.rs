//! Implements what `cluster::serving` needs on this node: the locks of slots, the published counts, the links.

use cluster::data::SlotState;
use cluster::map::NodeId;
use cluster::replication::{Frame, FrameNumber, LinkId, LinkProgress, Role};
use cluster::serving::{AckEpoch, Passage, ServingPlane, Ticket};
use core::sync::atomic::Ordering::Relaxed;
use placement::Slot;
use store::Seed;

use crate::keyspace::SlotGuard;
use crate::shared::Shared;

impl LinkProgress for Shared {
    fn link_to(&self, node: NodeId) -> Option<LinkId> {
        self.data.links.to_node(node)
    }

    fn last(&self, link: LinkId) -> FrameNumber {
        self.data.links.get(link).map_or(FrameNumber(0), |link| link.last())
    }

    #[inline]
    fn acked(&self, link: LinkId) -> FrameNumber {
        self.data.links.acked(link)
    }
}

impl ServingPlane for Shared {
    type Guard<'a> = SlotGuard<'a>;

    #[inline]
    fn lock_slot(&self, slot: Slot) -> SlotGuard<'_> {
        self.data.keyspace.lock_one(slot)
    }

    #[inline]
    fn seed(&self) -> &Seed {
        &self.data.keyspace.seed
    }

    #[inline]
    fn push_frame(&self, link: LinkId, frame: &Frame<'_>) -> FrameNumber {
        self.data.links.push(link, frame)
    }

    #[inline]
    fn ack_epoch(&self) -> AckEpoch {
        self.data.ack_epoch()
    }

    #[inline]
    fn publish_counts(&self, slot: Slot, state: &SlotState) {
        self.data.keyspace.note(slot, state);
    }

    fn next_occupied(&self, from: Slot) -> Option<Slot> {
        self.data.keyspace.next_occupied(from)
    }

    fn key_count_of(&self, slot: Slot) -> usize {
        self.data.keyspace.len_of(slot)
    }

    fn key_count(&self) -> usize {
        usize::try_from(self.data.keyspace.population().keys).unwrap_or(usize::MAX)
    }

    #[inline]
    fn has_congestion(&self) -> bool {
        self.data.links.has_congestion()
    }

    fn is_congested(&self, link: LinkId) -> bool {
        self.data.links.is_congested(link)
    }

    /// Returns true also for a slot that is locked: a command that waits in vain is woken by the next map.
    fn awaits_promotion(&self, slot: Slot) -> bool {
        let is_awaited =
            || self.data.keyspace.try_lock(slot).is_none_or(|state| is_promotion_pending(&state));
        self.data.pending_promotions.load(Relaxed) > 0 && is_awaited()
    }
}

fn is_promotion_pending(state: &SlotState) -> bool {
    state.replica().role() == Role::PromotionPending
}

/// Judges a reply that waits with this ticket.
pub(crate) fn judge(shared: &Shared, ticket: &mut Ticket) -> Passage {
    ticket.judge_on(shared)
}
