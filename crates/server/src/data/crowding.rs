//! Other nodes whose memory is full, and what this node does about it: it evicts keys of the buckets that have
//! a copy there, so that all copies fit, or refuses writes to them. The janitor evicts; workers refuse.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use cluster::balance::MAKE_ROOM_FOR;
use cluster::map::NodeId;
use parking_lot::Mutex;
use placement::Slot;

use super::Data;

const WORDS: usize = Slot::COUNT as usize / 64;

/// A set of slots.
pub(crate) struct SlotSet(Box<[u64; WORDS]>);

impl Default for SlotSet {
    fn default() -> SlotSet {
        SlotSet(Box::new([0; WORDS]))
    }
}

impl SlotSet {
    pub(crate) fn insert(&mut self, slot: Slot) {
        self.0[slot.index() / 64] |= 1 << (slot.index() % 64);
    }

    pub(crate) fn contains(&self, slot: Slot) -> bool {
        self.0[slot.index() / 64] & (1 << (slot.index() % 64)) != 0
    }
}

/// The requests of full nodes to make room.
#[derive(Default)]
pub(crate) struct Crowding {
    owed: Mutex<BTreeMap<NodeId, Owed>>,
    /// Slots to which writes that need memory are refused; `None` most of the time.
    pub full_slots: ArcSwapOption<SlotSet>,
}

struct Owed {
    bytes: u64,
    until: Instant,
}

impl Crowding {
    /// Records that a node is full and wants so many bytes evicted.
    pub(crate) fn note(&self, node: NodeId, bytes: u64, now: Instant) {
        self.owed.lock().insert(node, Owed { bytes, until: now + MAKE_ROOM_FOR });
    }

    /// Returns the full nodes, each with the bytes that are still to be evicted for it.
    pub(crate) fn owed(&self, now: Instant) -> Vec<(NodeId, u64)> {
        let mut owed = self.owed.lock();
        owed.retain(|_, it| now < it.until);
        owed.iter().map(|(node, it)| (*node, it.bytes)).collect()
    }

    pub(crate) fn pay(&self, node: NodeId, freed: u64) {
        if let Some(owed) = self.owed.lock().get_mut(&node) {
            owed.bytes = owed.bytes.saturating_sub(freed);
        }
    }

    pub(crate) fn refuse(&self, slots: Option<SlotSet>) {
        if slots.is_some() || self.full_slots.load().is_some() {
            self.full_slots.store(slots.map(Arc::new));
        }
    }
}

impl Data {
    /// Returns the slots that this node serves and of which this node has a copy.
    pub(crate) fn slots_backed_by(&self, node: NodeId) -> Vec<Slot> {
        let map = self.map();
        let mine = map.buckets().filter(|bucket| bucket.primary() == Some(self.me));
        let there = mine.filter(|bucket| bucket.backups().contains(&node));
        there.flat_map(|bucket| bucket.hashmask.slots().filter_map(Slot::new)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_full_node_is_remembered_until_it_says_so_no_more() {
        let (crowding, now) = (Crowding::default(), Instant::now());
        crowding.note(NodeId(2), 100, now);
        crowding.note(NodeId(3), 0, now);
        crowding.pay(NodeId(2), 70);
        assert_eq!(crowding.owed(now), [(NodeId(2), 30), (NodeId(3), 0)]);
        crowding.pay(NodeId(2), 70);
        let later = now + MAKE_ROOM_FOR - Duration::from_millis(1);
        crowding.note(NodeId(3), 5, later);
        assert_eq!(crowding.owed(later), [(NodeId(2), 0), (NodeId(3), 5)]);
        assert_eq!(crowding.owed(now + MAKE_ROOM_FOR), [(NodeId(3), 5)]);
    }

    #[test]
    fn a_set_of_slots_contains_what_was_put_in() {
        let mut set = SlotSet::default();
        let slots = [0, 63, 64, 16_383].map(|number| Slot::new(number).unwrap());
        slots.iter().for_each(|slot| set.insert(*slot));
        let count = Slot::all().filter(|slot| set.contains(*slot)).count();
        assert!(count == 4 && slots.iter().all(|slot| set.contains(*slot)));
    }
}
