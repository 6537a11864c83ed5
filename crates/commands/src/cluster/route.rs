//! May a command run on these slots here? Called by `admit.rs`; whoever holds the slots' locks has the
//! last word, since the map may have changed meanwhile.

use placement::Slot;

use super::{Held, Route, View};
use crate::{Error, Locks};

/// What a command needs a slot for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Its primary, and no other node.
    Primary,
    /// Any in-sync copy: a read on a connection that has said READONLY.
    Copy,
}

/// Fails with what the client is to be told if one of the slots is not served here.
#[inline]
pub fn route(view: &View, locks: &Locks, need: Need) -> Result<(), Error> {
    if view.serves_all() {
        return Ok(());
    }
    match locks {
        Locks::One(slot) => route_one(view, *slot, need),
        Locks::Several(slots) => slots.iter().try_for_each(|slot| route_one(view, *slot, need)),
        // Commands on the whole keyspace do what they do to the slots of this node alone.
        Locks::None | Locks::AsNeeded | Locks::All { .. } => Ok(()),
    }
}

#[inline]
fn route_one(view: &View, slot: Slot, need: Need) -> Result<(), Error> {
    if view.is_mine(slot) || need == Need::Copy && has_copy(view, slot) {
        return Ok(());
    }
    Err(view.redirection(slot))
}

fn has_copy(view: &View, slot: Slot) -> bool {
    matches!(view.route(slot), Route::Elsewhere { held: Held::AsBackup, .. })
}
