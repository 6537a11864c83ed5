//! Implements what `cluster::data` needs in a server: the locks of slots, links with sockets, the published map.
//! `cluster::data` makes all decisions, and carries them out through this.

use core::sync::atomic::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cluster::Moment;
use cluster::data::{Outgoing, Plane, Report};
use cluster::map::{Boot, Generation, Map, NodeId};
use cluster::replication::{LinkId, Outbox};
use commands::cluster::View;
use placement::Slot;

use super::{Data, Notice};

impl Plane for Data {
    fn me(&self) -> NodeId {
        self.me
    }

    fn boot(&self) -> Boot {
        self.boot
    }

    fn kept_in(&self) -> Option<Generation> {
        self.kept.generation()
    }

    fn map(&self) -> Arc<Map> {
        Data::map(self)
    }

    fn publish(&self, map: &Arc<Map>) {
        self.view.store(Arc::new(View::new(Arc::clone(map), self.me)));
        self.map_number.fetch_add(1, Ordering::AcqRel);
    }

    fn links(&self) -> Vec<(LinkId, NodeId)> {
        self.links.living().iter().map(|link| (link.id, link.peer.id)).collect()
    }

    fn is_gone(&self, link: LinkId) -> bool {
        self.links.get(link).is_none_or(|link| link.is_gone())
    }

    fn with_outbox<R>(&self, link: LinkId, work: impl FnOnce(&mut Outbox) -> R) -> R {
        match self.links.get(link) {
            Some(link) => link.with_outbox(work),
            None => work(&mut Outbox::default()), // The link is long gone: the frames are dropped.
        }
    }

    fn unacknowledged_bytes(&self, link: LinkId) -> usize {
        self.links.get(link).map_or(0, |link| link.unacknowledged_bytes())
    }

    fn is_stuck(&self, link: LinkId, timeout: Duration) -> bool {
        self.links.get(link).is_some_and(|link| link.is_stuck(timeout))
    }

    fn refused_slots(&self, link: LinkId) -> Vec<Slot> {
        self.links.get(link).map_or_else(Vec::new, |link| link.refused_slots())
    }

    fn forget_refusal(&self, link: LinkId, slot: Slot) {
        if let Some(link) = self.links.get(link) {
            link.forget_refusal(slot);
        }
    }

    fn recheck_waiting(&self) {
        self.next_ack_epoch();
        self.mailboxes.wake_all();
    }

    fn flush(&self) {
        self.have_links_written();
    }

    fn yield_cpu(&self) {
        thread::yield_now();
    }

    fn with_moves<R>(&self, work: impl FnOnce(&mut Vec<Outgoing>) -> R) -> R {
        work(&mut self.outgoing.lock())
    }

    fn report(&self, report: Report) {
        self.notify(Notice::Report(report));
    }

    fn heard(&self, primary: NodeId) -> Moment {
        self.heard.lock().get(&primary).copied().unwrap_or_default()
    }

    fn set_pending(&self, primaries: BTreeSet<NodeId>) {
        if **self.pending.load() != primaries {
            self.pending.store(Arc::new(primaries));
        }
    }
}
