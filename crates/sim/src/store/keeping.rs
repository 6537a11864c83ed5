//! What a process that ends in good order leaves on its disk, and the next one finds there
//! (`server/src/keep.rs`).

use cluster::control::{Gone, Input, Kept, Offer};
use cluster::data::{Plane, SlotState};
use cluster::map::{Generation, NodeId};
use placement::{Hashmask, Slot};

use super::node::Node;
use super::world::World;

/// The copies on a disk.
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
            slots.all(|slot| node.plane.with_slot(slot, |state| state.duty().has_copy()))
        };
        let buckets = map.buckets().map(|bucket| bucket.hashmask).filter(is_whole).collect();
        Some(Copies { generation: map.generation(), buckets, slots: node.plane.take_copies() })
    }

    /// Another process reads them; what its control plane is told.
    pub(super) fn give_to(self, node: &mut Node) -> Input {
        node.plane.kept_in = Some(self.generation);
        node.plane.keep(self.slots);
        let offer = |bucket| Offer { bucket, kept: Kept::AsItWas };
        Input::Found(self.buckets.into_iter().map(offer).collect())
    }
}

impl World {
    /// The process ends, and writes down what it held if that may be of use.
    pub(super) fn end(&mut self, id: NodeId, gone: &Gone) {
        let is_of_use = matches!(gone, Gone::LeftFor(_) | Gone::Outcast);
        let copies = self.nodes.get(&id).filter(|_| is_of_use).and_then(Copies::of);
        self.kept.extend(copies.map(|copies| (id, copies)));
        let ended = self.kill(id);
        self.ended.extend(ended.filter(|_| is_of_use));
    }
}
