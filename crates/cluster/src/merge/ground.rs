//! A served slot, as the ground of a merge: winning changes are written as a client's write would be.

use placement::Slot;
use store::{Applied, Effect, Key, SlotTable, Touch, UnixMillis, Version};

use super::ledger::Conflict;
use super::taker::Ground;
use crate::serving::{ChangeContext, ServedSlots, ServingPlane};

pub struct ServedGround<'g, 'a, 'e, P: ServingPlane> {
    slot: Slot,
    slots: &'g mut ServedSlots<'a, 'e, P>,
    /// Timestamp of the writes: later than the changes they come from, and no later than necessary.
    now: UnixMillis,
    pub applied: Vec<Applied>,
    pub conflicts: Vec<Conflict>,
}

impl<'g, 'a, 'e, P: ServingPlane> ServedGround<'g, 'a, 'e, P> {
    pub fn new(slot: Slot, slots: &'g mut ServedSlots<'a, 'e, P>, now: UnixMillis) -> Self {
        ServedGround { slot, slots, now, applied: Vec::new(), conflicts: Vec::new() }
    }
}

impl<P: ServingPlane> Ground for ServedGround<'_, '_, '_, P> {
    fn table(&mut self) -> &SlotTable {
        self.slots.table(self.slot)
    }

    fn apply(&mut self, effect: &Effect<'_>) {
        let change = ChangeContext { now: self.now, touch: Touch::Nothing };
        self.applied.push(self.slots.apply(self.slot, effect, change));
    }

    fn brought(&mut self, key: &Key<'_>, made: Version) {
        self.slots.note_brought(key, made);
    }

    fn conflict(&mut self, conflict: Conflict) {
        self.conflicts.push(conflict);
    }
}
