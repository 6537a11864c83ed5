//! Slots that a connection has written, and the number of backups that have all of it: the answer to WAIT.

use placement::Slot;

use super::slots::ServingPlane;

/// Maximum number of slots tracked one by one; beyond it every slot of the node counts.
const SLOTS_MAX: usize = 256;

#[derive(Default)]
pub struct WrittenSlots {
    /// Sorted.
    slots: Vec<Slot>,
    too_many: bool,
}

impl WrittenSlots {
    pub fn note(&mut self, slots: &[Slot]) {
        for slot in slots {
            if self.too_many {
                return;
            }
            if let Err(place) = self.slots.binary_search(slot) {
                self.slots.insert(place, *slot);
            }
            self.too_many = self.slots.len() > SLOTS_MAX;
        }
    }

    /// Returns the number of backups that have everything this connection has written to slots that this node
    /// still serves; writes to other slots were acknowledged when those were handed over. For a connection that
    /// has written nothing, it is the smallest number of backups of any slot served here. Without a lease the
    /// number is unknown: 0.
    pub fn backups(&self, plane: &impl ServingPlane, has_lease: bool) -> usize {
        if !has_lease {
            return 0;
        }
        let known = self.slots.iter().filter_map(|slot| backups_of(plane, *slot)).min();
        let all = || Slot::all().filter_map(|slot| backups_of(plane, slot)).min();
        known.filter(|_| !self.too_many).or_else(all).unwrap_or(0)
    }
}

/// Returns the number of backups that have all of a slot, if it is served here: 0 while a slow script holds its lock.
fn backups_of(plane: &impl ServingPlane, slot: Slot) -> Option<usize> {
    let Some(state) = plane.lock_unless_busy(slot) else { return Some(0) };
    state.replica.is_primary().then(|| state.replica.backups_in_sync(|link| plane.acked(link)))
}
