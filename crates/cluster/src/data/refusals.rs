//! Slots of which the other end of a link has refused something. This is only an index: the refused frame, and
//! whether the refusal still matters, is in the slot's `replication::Downstream`, under the slot's lock.

use std::collections::BTreeSet;

use placement::Slot;

use super::Plane;
use crate::replication::LinkId;

#[derive(Default)]
pub struct Refusals(BTreeSet<Slot>);

impl Refusals {
    pub fn note(&mut self, slot: Slot) {
        self.0.insert(slot);
    }

    pub fn forget(&mut self, slot: Slot) {
        self.0.remove(&slot);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().copied()
    }
}

/// Returns the slots of which the other end has refused something that still matters, and forgets the others.
pub(super) fn refused_slots(plane: &impl Plane, link: LinkId) -> Vec<Slot> {
    let mut known = plane.refused_slots(link);
    known.retain(|slot| {
        plane.with_slot(*slot, |state| {
            let matters = state.replica.is_refused(link);
            if !matters {
                plane.forget_refusal(link, *slot);
            }
            matters
        })
    });
    known
}
