//! What the data plane stands on in a server: the locks of slots, links with sockets, the published
//! map. `cluster::data` does all that is decided, through this.

use core::ops::Range;
use core::sync::atomic::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cluster::data::{Outgoing, Plane, Report, SlotState};
use cluster::map::{Boot, Generation, Map, NodeId};
use cluster::replication::{FrameNumber, LinkId, Outbox};
use commands::cluster::View;
use placement::Slot;
use store::Seed;

use super::Notice;
use crate::shared::Shared;

impl Plane for Shared {
    fn me(&self) -> NodeId {
        self.data.me
    }

    fn boot(&self) -> Boot {
        self.data.boot
    }

    fn kept_in(&self) -> Option<Generation> {
        self.kept.generation()
    }

    fn map(&self) -> Arc<Map> {
        Shared::map(self)
    }

    fn publish(&self, map: &Arc<Map>) {
        self.cluster.store(Arc::new(View::new(Arc::clone(map), self.data.me)));
        self.data.map_number.fetch_add(1, Ordering::AcqRel);
    }

    fn seed(&self) -> &Seed {
        &self.seed
    }

    #[inline]
    fn with_slot<R>(&self, slot: Slot, work: impl FnOnce(&mut SlotState) -> R) -> R {
        work(&mut self.keyspace.lock_one(slot))
    }

    fn note(&self, slot: Slot, state: &SlotState) {
        self.keyspace.note(slot, state);
    }

    fn link_to(&self, node: NodeId) -> Option<LinkId> {
        self.data.links.to_node(node)
    }

    fn links(&self) -> Vec<(LinkId, NodeId)> {
        self.data.links.living().iter().map(|link| (link.id, link.peer.id)).collect()
    }

    fn is_gone(&self, link: LinkId) -> bool {
        self.data.links.get(link).is_none_or(|link| link.is_gone())
    }

    fn with_outbox<R>(&self, link: LinkId, work: impl FnOnce(&mut Outbox) -> R) -> R {
        match self.data.links.get(link) {
            Some(link) => link.with_outbox(work),
            None => work(&mut Outbox::default()), // Long gone: nobody gets it.
        }
    }

    fn last(&self, link: LinkId) -> FrameNumber {
        self.data.links.get(link).map_or(FrameNumber(0), |link| link.last())
    }

    fn acked(&self, link: LinkId) -> FrameNumber {
        self.data.links.get(link).map_or(FrameNumber(0), |link| link.acked())
    }

    fn acked_for(&self, link: LinkId, slot: Slot) -> FrameNumber {
        self.data.links.acked(link, Some(slot))
    }

    fn kept_bytes(&self, link: LinkId) -> usize {
        self.data.links.get(link).map_or(0, |link| link.kept_bytes())
    }

    fn is_stuck(&self, link: LinkId, long: Duration) -> bool {
        self.data.links.get(link).is_some_and(|link| link.is_stuck(long))
    }

    fn refused(&self, link: LinkId) -> Vec<Slot> {
        self.data.links.get(link).map_or_else(Vec::new, |link| link.refused())
    }

    fn forget_refusals(&self, slots: &Range<u16>) {
        for link in self.data.links.living() {
            link.forget_refusals(slots);
        }
    }

    fn flush(&self) {
        self.have_links_written();
        // Only the mover asks for it, piece after piece, and whoever serves clients goes first.
        thread::yield_now();
    }

    fn with_moves<R>(&self, work: impl FnOnce(&mut Option<Outgoing>) -> R) -> R {
        work(&mut self.data.outgoing.lock())
    }

    fn report(&self, report: Report) {
        self.data.notify(Notice::Moved(report));
    }

    fn heard(&self, primary: NodeId) -> Duration {
        self.data.heard.lock().get(&primary).copied().unwrap_or_default()
    }

    fn set_pending(&self, primaries: BTreeSet<NodeId>) {
        if **self.data.pending.load() != primaries {
            self.data.pending.store(Arc::new(primaries));
        }
    }
}
