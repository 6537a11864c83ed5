//! Checks whether a command may run on these slots on this node. Called by `admit.rs`. The final decision is made
//! under the slots' locks, since the map may have changed in the meantime.

use placement::Slot;

use super::View;
use crate::{Error, LockSet};

/// The kind of access a command needs to a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeededCopy {
    /// The slot's primary, and no other node.
    Primary,
    /// Any in-sync copy: a read on a connection after READONLY.
    Copy,
}

/// Fails with the client's error reply if one of the slots is not served here.
#[inline]
pub fn route(view: &View, locks: &LockSet, need: NeededCopy) -> Result<(), Error> {
    if view.serves_all() {
        return Ok(());
    }
    match locks {
        LockSet::One(slot) => route_one(view, *slot, need),
        LockSet::Several(slots) => slots.iter().try_for_each(|slot| route_one(view, *slot, need)),
        // Commands on the whole keyspace work only on the slots of this node.
        LockSet::None | LockSet::AsNeeded | LockSet::All { .. } => Ok(()),
    }
}

#[inline]
fn route_one(view: &View, slot: Slot, need: NeededCopy) -> Result<(), Error> {
    if view.is_mine(slot) || need == NeededCopy::Copy && view.is_backed_up_here(slot) {
        return Ok(());
    }
    Err(view.redirection(slot))
}
