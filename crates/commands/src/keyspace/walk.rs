//! Iterates over the occupied slots, for commands on the whole keyspace.

use placement::Slot;

use crate::keys::Keys;

/// A walk over the slots that hold keys, in ascending order.
pub(crate) struct Walk {
    /// The first slot not visited yet; `None` after the last one.
    next: Option<Slot>,
    /// True if keys of any database count, not only those of the selected one.
    anywhere: bool,
}

impl Walk {
    pub(crate) fn new() -> Walk {
        Walk { next: Slot::new(0), anywhere: false }
    }

    /// Creates a walk that continues at this slot, or starts at the first slot.
    pub(crate) fn starting_at(slot: Option<Slot>) -> Walk {
        Walk { next: slot.or(Slot::new(0)), anywhere: false }
    }

    /// Returns the same walk over the slots that hold keys of any database.
    pub(crate) fn anywhere(self) -> Walk {
        Walk { anywhere: true, ..self }
    }

    pub(crate) fn next(&mut self, keys: &mut Keys<'_>) -> Option<Slot> {
        let from = self.next?;
        let slot = if self.anywhere { keys.occupied_anywhere(from) } else { keys.occupied(from) }?;
        self.next = Slot::new(slot.number() + 1);
        Some(slot)
    }
}
