//! The links of a node, by id: one to each other member, created and removed as the map says.
//!
//! The link of a process that is no longer a member stays, marked as gone, until the next map: by then no
//! slot's replica refers to it. Anything else that still does (a ticket, the mover) finds nothing under that id,
//! because ids are never reused.

use super::LinkId;
use crate::map::{NodeId, Peer};

#[derive(Clone)]
pub struct LinkTable<L> {
    /// Sorted by id.
    links: Vec<LinkEntry<L>>,
    next: LinkId,
}

#[derive(Clone)]
struct LinkEntry<L> {
    id: LinkId,
    peer: Peer,
    is_gone: bool,
    link: L,
}

impl<L> Default for LinkTable<L> {
    fn default() -> LinkTable<L> {
        LinkTable { links: Vec::new(), next: LinkId(0) }
    }
}

impl<L> LinkTable<L> {
    /// Applies the members of a map, and returns the ids of the links made for new ones. Links of former
    /// members are passed to `part`. Must be called before the slots' replicas follow the map, and only after
    /// they have followed the previous one.
    pub fn follow(
        &mut self,
        members: &[Peer],
        mut part: impl FnMut(&mut L),
        mut make: impl FnMut(LinkId, Peer) -> L,
    ) -> Vec<LinkId> {
        self.links.retain(|entry| !entry.is_gone);
        for entry in self.links.iter_mut().filter(|entry| !members.contains(&entry.peer)) {
            entry.is_gone = true;
            part(&mut entry.link);
        }
        let mut new = Vec::new();
        for peer in members {
            if self.living().any(|(_, known, _)| known == *peer) {
                continue;
            }
            let id = self.next;
            let next = id.0.checked_add(1).expect("fewer than 4 billion processes ever join");
            self.next = LinkId(next);
            let link = make(id, *peer);
            self.links.push(LinkEntry { id, peer: *peer, is_gone: false, link });
            new.push(id);
        }
        new
    }

    /// Returns the link, unless it was removed.
    #[inline]
    pub fn get(&self, id: LinkId) -> Option<&L> {
        self.place(id).map(|place| &self.links[place].link)
    }

    pub fn get_mut(&mut self, id: LinkId) -> Option<&mut L> {
        self.place(id).map(|place| &mut self.links[place].link)
    }

    /// Returns the index of the link: equal to its number as long as no link was removed.
    #[inline]
    fn place(&self, id: LinkId) -> Option<usize> {
        let first = id.0 as usize;
        if self.links.get(first).is_some_and(|entry| entry.id == id) {
            return Some(first);
        }
        self.links.binary_search_by_key(&id, |entry| entry.id).ok()
    }

    /// Returns whether the process at the other end is no longer a member.
    pub fn is_gone(&self, id: LinkId) -> bool {
        self.place(id).is_none_or(|place| self.links[place].is_gone)
    }

    /// Returns the links to members.
    pub fn living(&self) -> impl Iterator<Item = (LinkId, Peer, &L)> {
        let living = self.links.iter().filter(|entry| !entry.is_gone);
        living.map(|entry| (entry.id, entry.peer, &entry.link))
    }

    pub fn living_mut(&mut self) -> impl Iterator<Item = (LinkId, Peer, &mut L)> {
        let living = self.links.iter_mut().filter(|entry| !entry.is_gone);
        living.map(|entry| (entry.id, entry.peer, &mut entry.link))
    }

    /// Returns the link to a node.
    pub fn to_node(&self, node: NodeId) -> Option<LinkId> {
        self.living().find(|(_, peer, _)| peer.id == node).map(|(id, ..)| id)
    }

    /// Returns the link to a process.
    pub fn to(&self, peer: Peer) -> Option<&L> {
        self.living().find(|(_, known, _)| *known == peer).map(|(.., link)| link)
    }

    /// Returns the number of links, including those that are gone.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns whether there is or ever was a link.
    pub fn has_had_any(&self) -> bool {
        self.next > LinkId(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Boot;

    fn peer(id: u64, boot: u64) -> Peer {
        Peer { id: NodeId(id), boot: Boot(boot) }
    }

    #[test]
    fn a_member_that_joins_and_dies_again_and_again_leaves_nothing_behind() {
        let mut table: LinkTable<Peer> = LinkTable::default();
        let stays = peer(1, 1);
        let mut stale = Vec::new();
        for boot in 0..70_000 {
            let comes = peer(2, boot);
            let new = table.follow(&[stays, comes], |_| {}, |_, peer| peer);
            let id = *new.last().expect("one has joined");
            assert_eq!(table.get(id), Some(&comes));
            assert_eq!(table.to_node(NodeId(2)), Some(id));
            let mut parted = Vec::new();
            table.follow(&[stays], |link| parted.push(*link), |_, peer| peer);
            assert_eq!(parted, [comes]);
            assert!(table.is_gone(id) && table.get(id).is_some(), "duties may still name it");
            assert!(table.len() <= 2 && table.living().count() == 1);
            stale.push(id);
        }
        table.follow(&[stays, peer(3, 1)], |_| {}, |_, peer| peer);
        assert!(stale.iter().all(|id| table.is_gone(*id) && table.get(*id).is_none()));
        assert_eq!(table.get(LinkId(0)), Some(&stays), "who stays keeps its number");
        assert_eq!(table.to(stays), Some(&stays));
    }
}
