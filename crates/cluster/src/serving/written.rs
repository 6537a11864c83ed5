//! Slots that a connection has written, and how many backups have all of it: the answer to WAIT.

use placement::Slot;

use super::slots::ServingPlane;

/// More slots than these are not told apart: every slot of the node counts then.
const SLOTS_MAX: usize = 256;

#[derive(Default)]
pub struct WrittenSlots {
    /// In ascending order.
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

    /// The number of backups that have everything this connection has written to slots that this node still
    /// serves; what it wrote to others was acknowledged when they were handed over. For a connection that has
    /// written nothing, the fewest backups of any slot served here. Without a lease nobody can say.
    pub fn backups(&self, plane: &impl ServingPlane, has_lease: bool) -> usize {
        if !has_lease {
            return 0;
        }
        let known = self.slots.iter().filter_map(|slot| backups_of(plane, *slot)).min();
        let all = || Slot::all().filter_map(|slot| backups_of(plane, slot)).min();
        known.filter(|_| !self.too_many).or_else(all).unwrap_or(0)
    }
}

/// The number of backups that have all of a slot, if it is served here.
fn backups_of(plane: &impl ServingPlane, slot: Slot) -> Option<usize> {
    let state = plane.lock_slot(slot);
    state.duty.is_primary().then(|| state.duty.backups_in_sync(|link| plane.acked(link)))
}
