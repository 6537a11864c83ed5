//! All links of a node. A slot's duty names them by their place here.

use std::sync::Arc;

use arc_swap::ArcSwap;
use cluster::data::SlotState;
use cluster::fill::ship;
use cluster::map::{NodeId, Peer};
use cluster::replication::{FrameNumber, LinkId};
use commands::{EffectLog, Outcome};
use placement::Slot;
use store::Seed;

use super::Link;
use crate::keyspace::LockedSlots;
use crate::shared::Shared;

/// Sends on what was done to the slots that are locked, and forgets it.
#[inline]
pub(crate) fn ship_effects(shared: &Shared, slots: &mut LockedSlots<'_>, outcome: &mut Outcome) {
    if outcome.effects.is_empty() {
        return;
    }
    for (slot, state) in slots.states() {
        shared.data.links.ship(slot, state, &outcome.effects);
    }
    outcome.effects.clear();
}

pub(crate) struct Links {
    /// A link keeps its place; a process that is no member any more keeps it as gone.
    all: ArcSwap<Vec<Arc<Link>>>,
    seed: Seed,
}

impl Links {
    pub(crate) fn new(seed: Seed) -> Links {
        Links { all: ArcSwap::default(), seed }
    }

    pub(crate) fn all(&self) -> Arc<Vec<Arc<Link>>> {
        self.all.load_full()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.load().is_empty()
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

    /// How far a link is acknowledged as far as a slot is concerned, or any.
    #[inline]
    pub(crate) fn acked(&self, id: LinkId, slot: Option<Slot>) -> FrameNumber {
        self.all.load()[usize::from(id.0)].acked_for(slot)
    }

    /// The links to members.
    pub(crate) fn living(&self) -> Vec<Arc<Link>> {
        self.all.load().iter().filter(|link| !link.is_gone()).cloned().collect()
    }

    /// Sends what was done to a slot to those who want it. Called under the slot's lock.
    #[inline]
    pub(crate) fn ship(&self, slot: Slot, state: &mut SlotState, effects: &EffectLog) {
        let all = self.all.load();
        for (_, unit) in effects.units().filter(|(about, _)| *about == slot) {
            ship(&state.table, &mut state.duty, unit, &self.seed, |link, frame| {
                all[usize::from(link.0)].push(frame)
            });
        }
    }

    /// Writes out what was appended.
    #[inline]
    /// Whether something was appended that nobody has written since.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.all.load().iter().any(|link| link.is_unwritten())
    }

    pub(crate) fn flush(&self) {
        for link in self.all.load().iter() {
            link.flush();
        }
    }
}
