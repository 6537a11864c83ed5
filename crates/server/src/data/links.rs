//! All links of a node. A slot's replica names them by their id (`cluster::replication::LinkTable`).

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use arc_swap::ArcSwap;
use cluster::map::{NodeId, Peer};
use cluster::replication::{Frame, FrameNumber, LinkId, LinkTable};

use super::Link;

#[derive(Default)]
pub(crate) struct Links {
    all: ArcSwap<LinkTable<Arc<Link>>>,
    /// The number of congested links.
    congestion: Arc<AtomicUsize>,
}

/// The number of a frame for a link that does not exist: it is never acknowledged.
const NOWHERE: FrameNumber = FrameNumber(u64::MAX);

impl Links {
    /// Returns the link, unless it is long gone.
    pub(crate) fn get(&self, id: LinkId) -> Option<Arc<Link>> {
        self.all.load().get(id).cloned()
    }

    /// Returns the link to a process, if it is a member.
    pub(crate) fn to(&self, peer: Peer) -> Option<Arc<Link>> {
        self.all.load().to(peer).cloned()
    }

    /// Returns the link to a node.
    pub(crate) fn to_node(&self, node: NodeId) -> Option<LinkId> {
        self.all.load().to_node(node)
    }

    /// Creates links to new members and returns them, and drops links to former members. Only the
    /// applier calls it.
    pub(crate) fn follow(&self, members: &[Peer]) -> Vec<Arc<Link>> {
        let mut all = LinkTable::clone(&self.all.load());
        let make = |id, peer| Arc::new(Link::new(id, peer, Arc::clone(&self.congestion)));
        let new = all.follow(members, |link| link.mark_gone(), make);
        let new = new.into_iter().filter_map(|id| all.get(id).cloned()).collect();
        self.all.store(Arc::new(all));
        new
    }

    /// Returns whether any link is congested; [`Links::is_congested`] tells which one.
    #[inline]
    pub(crate) fn has_congestion(&self) -> bool {
        self.congestion.load(Ordering::Acquire) > 0
    }

    /// Returns whether a link has so many unacknowledged bytes that nobody should add to them.
    pub(crate) fn is_congested(&self, id: LinkId) -> bool {
        self.all.load().get(id).is_some_and(|link| link.is_congested())
    }

    /// Returns the memory that unacknowledged frames take up on all links.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.all.load().living().map(|(.., link)| link.allocated_bytes() as u64).sum()
    }

    /// Returns the last frame that the other end has acknowledged.
    #[inline]
    pub(crate) fn acked(&self, id: LinkId) -> FrameNumber {
        self.all.load().get(id).map_or(FrameNumber(0), |link| link.acked())
    }

    /// Appends a frame to a link.
    #[inline]
    pub(crate) fn push(&self, id: LinkId, frame: &Frame<'_>) -> FrameNumber {
        self.all.load().get(id).map_or(NOWHERE, |link| link.push(frame))
    }

    /// Returns the links to members.
    pub(crate) fn living(&self) -> Vec<Arc<Link>> {
        self.all.load().living().map(|(.., link)| Arc::clone(link)).collect()
    }

    /// Returns whether frames were appended that no worker has written since.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.all.load().living().any(|(.., link)| link.is_unwritten())
    }

    /// Writes the appended frames to their sockets.
    #[inline]
    pub(crate) fn flush(&self) {
        for (.., link) in self.all.load().living() {
            link.flush();
        }
    }
}
