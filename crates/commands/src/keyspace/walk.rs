//! Iterates over the occupied slots, for commands on the whole keyspace.

use placement::Slot;

use crate::keys::Keys;

/// A walk over the slots that hold keys, in ascending order.
pub(super) struct Walk {
    /// The first slot not visited yet; `None` after the last one.
    next: Option<Slot>,
}

impl Walk {
    pub(super) fn new() -> Walk {
        Walk { next: Slot::new(0) }
    }

    /// Creates a walk that continues at this slot, or starts at the first slot.
    pub(super) fn starting_at(slot: Option<Slot>) -> Walk {
        Walk { next: slot.or(Slot::new(0)) }
    }

    pub(super) fn next(&mut self, keys: &mut Keys<'_>) -> Option<Slot> {
        let slot = keys.occupied(self.next?)?;
        self.next = Slot::new(slot.number() + 1);
        Some(slot)
    }
}
