//! All links of a node. A slot's duty names them by their place here.

use std::sync::Arc;

use arc_swap::ArcSwap;
use cluster::map::{NodeId, Peer};
use cluster::replication::{Frame, FrameNumber, LinkId};

use super::Link;

#[derive(Default)]
pub(crate) struct Links {
    /// A link keeps its place; a process that is no member any more keeps it as gone.
    all: ArcSwap<Vec<Arc<Link>>>,
}

impl Links {
    pub(crate) fn all(&self) -> Arc<Vec<Arc<Link>>> {
        self.all.load_full()
    }

    pub(crate) fn get(&self, id: LinkId) -> Arc<Link> {
        Arc::clone(&self.all.load()[usize::from(id.0)])
    }

    /// The link to a process, if it is a member.
    pub(crate) fn to(&self, peer: Peer) -> Option<Arc<Link>> {
        self.all.load().iter().find(|link| link.peer == peer && !link.is_gone()).cloned()
    }

    /// The link to a node.
    pub(crate) fn to_node(&self, node: NodeId) -> Option<LinkId> {
        let all = self.all.load();
        all.iter().find(|link| link.peer.id == node && !link.is_gone()).map(|link| link.id)
    }

    /// Makes links to new members and says which, and lets go of those who are none any more. Only
    /// the control thread calls it.
    pub(super) fn follow(&self, members: &[Peer]) -> Vec<Arc<Link>> {
        let mut all = Vec::clone(&self.all.load());
        let known = all.len();
        for link in &all {
            if !members.contains(&link.peer) && !link.is_gone() {
                link.mark_gone();
            }
        }
        for peer in members {
            if !all.iter().any(|link| link.peer == *peer && !link.is_gone()) {
                let id = LinkId(u16::try_from(all.len()).expect("fewer than 65,536 links"));
                all.push(Arc::new(Link::new(id, *peer)));
            }
        }
        let new = all[known..].to_vec();
        self.all.store(Arc::new(all));
        new
    }

    /// The last frame that the other end has acknowledged.
    #[inline]
    pub(crate) fn acked(&self, id: LinkId) -> FrameNumber {
        self.all.load()[usize::from(id.0)].acked()
    }

    /// Appends a frame to a link.
    #[inline]
    pub(crate) fn push(&self, id: LinkId, frame: &Frame<'_>) -> FrameNumber {
        self.all.load()[usize::from(id.0)].push(frame)
    }

    /// The links to members.
    pub(crate) fn living(&self) -> Vec<Arc<Link>> {
        self.all.load().iter().filter(|link| !link.is_gone()).cloned().collect()
    }

    /// True if something was appended that nobody has written since.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.all.load().iter().any(|link| link.is_unwritten())
    }

    /// Writes out what was appended.
    #[inline]
    pub(crate) fn flush(&self) {
        for link in self.all.load().iter() {
            link.flush();
        }
    }
}
