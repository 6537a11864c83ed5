//! Data that a process leaves on its disk when it ends in good order, for the next one to find; and data that
//! a process keeps in memory when it was declared dead (`server/src/keep.rs`).

use cluster::control::{Freshness, Gone, Input, KeptCopy};
use cluster::data::{Plane, SlotState};
use cluster::map::{Generation, NodeId};
use placement::{Hashmask, Slot};

use super::node::Node;
use super::world::{EndedProcess, Event, World, ms};

/// Copies of whole buckets.
pub(super) struct Copies {
    generation: Generation,
    buckets: Vec<Hashmask>,
    slots: Vec<(Slot, SlotState)>,
}

impl Copies {
    fn of(node: &Node) -> Option<Copies> {
        let map = node.map()?;
        let is_whole = |bucket: &Hashmask| {
            let mut slots = bucket.slots().filter_map(Slot::new);
            slots.all(|slot| node.plane.with_slot(slot, |state| state.replica().has_copy()))
        };
        let buckets = map.buckets().map(|bucket| bucket.hashmask).filter(is_whole).collect();
        Some(Copies { generation: map.generation(), buckets, slots: node.plane.take_copies() })
    }

    /// Gives the copies to another process. Returns the input for its control plane.
    pub(super) fn give_to(self, node: &mut Node) -> Input {
        node.plane.kept_in = Some(self.generation);
        node.plane.keep(self.slots);
        let position = |slot: Slot| {
            let at = node.plane.with_slot(slot, |state| state.position());
            (at.reign, at.version.0)
        };
        let offer = |bucket: Hashmask| {
            let slots = bucket.slots().filter_map(Slot::new);
            let position = slots.map(position).max().unwrap_or_default();
            KeptCopy { bucket, kept: Freshness::AsItWas, position }
        };
        Input::Found(self.buckets.into_iter().map(offer).collect())
    }
}

impl World {
    /// Ends the process, which saves its data if that may be of use. A process that was declared dead keeps
    /// it in memory, with its log and its vote, and comes back soon (`server/src/life.rs`).
    pub(super) fn end(&mut self, id: NodeId, gone: &Gone) {
        let is_of_use = matches!(gone, Gone::LeftFor(_) | Gone::Removed);
        let Some(node) = self.nodes.get(&id) else { return };
        let copies = Some(node).filter(|_| is_of_use).and_then(Copies::of);
        let saved = node.control.to_saved();
        self.kept.extend(copies.map(|copies| (id, copies)));
        let ended = self.kill(id).filter(|_| is_of_use);
        let Some(ended) = ended else { return };
        if *gone == Gone::Removed && saved.is_blank() {
            // It was admitted but never received anything: it has nothing to come back with.
        } else if *gone == Gone::Removed {
            self.returning.insert(id, EndedProcess { disk: saved, ..ended });
            let after = ms(20 + self.rng.below(300));
            self.push(after, Event::Return { node: id });
        } else {
            self.ended.push(ended);
        }
    }
}
