//! Waiting for keys of a slot under the slot's lock: enter a line, be woken by a change, leave the line. The lines
//! themselves are in `key_waiters.rs`.

use std::sync::Arc;

use placement::Slot;
use store::{Effect, Key};

use super::key_waiters::{WaitNumber, Waiter, Wanted};
use super::slots::ServingPlane;
use crate::replication::SlotState;

/// Returns whether another connection has waited for longer for such a value of this key.
pub(super) fn is_behind<P: ServingPlane>(
    plane: &P,
    state: &SlotState,
    key: &Key<'_>,
    wanted: Wanted,
    number: Option<WaitNumber>,
) -> bool {
    state.has_waiters
        && plane.with_waiters(key.slot(), |waiters| waiters.is_behind(key, wanted, number))
}

/// Puts a connection in line, or lets it stay there.
pub(super) fn enter_line<P: ServingPlane>(
    plane: &P,
    state: &mut SlotState,
    slot: Slot,
    key: &Arc<[u8]>,
    wanted: Wanted,
    place: (WaitNumber, Waiter),
) {
    state.has_waiters = true;
    plane.with_waiters(slot, |waiters| waiters.enter(slot, key, wanted, place));
}

/// Records what an effect has brought to a slot with waiting connections. Returns whether somebody waits for it.
#[cold]
pub(super) fn note_effect<P: ServingPlane>(plane: &P, slot: Slot, effect: &Effect<'_>) -> bool {
    if let Effect::Clear = effect {
        return plane.with_waiters(slot, |waiters| waiters.note_emptied(slot));
    }
    if let Effect::SwapDatabases { .. } = effect {
        return plane.with_waiters(slot, |waiters| waiters.note_all(slot));
    }
    let Some((key, wanted)) = Wanted::brought_by(effect) else { return false };
    plane.with_waiters(slot, |waiters| waiters.note_value(key, wanted))
}

/// Wakes the connections that wait for what a command has brought.
#[cold]
pub(super) fn wake<P: ServingPlane>(plane: &P, slot: Slot, state: &SlotState) {
    if state.has_waiters {
        let woken = plane.with_waiters(slot, |waiters| waiters.take_woken(slot));
        woken.into_iter().for_each(|waiter| plane.wake(waiter));
    }
}

/// Wakes all connections that wait for keys of a slot, if it is no longer served here: their commands run again, and
/// are redirected.
pub(crate) fn wake_all_if_moved<P: ServingPlane>(plane: &P, slot: Slot, state: &SlotState) {
    if state.has_waiters && !state.replica.is_primary() {
        let all = plane.with_waiters(slot, |waiters| waiters.take_all(slot));
        all.into_iter().for_each(|waiter| plane.wake(waiter));
    }
}

/// Takes a connection out of the line of the key with this name. If the key has such a value, the next in line is woken: this
/// connection may have been woken for it and not have taken it.
pub fn leave_line<P: ServingPlane>(plane: &P, key: &Arc<[u8]>, wanted: Wanted, number: WaitNumber) {
    let hashed = plane.seed().named(key);
    let slot = hashed.slot();
    let mut state = plane.lock_slot(slot);
    let found = state.table.peek(&hashed);
    let goes_on = wanted.may_go_on(found.map(|found| found.value()).as_ref());
    let is_empty = plane.with_waiters(slot, |waiters| {
        waiters.leave(slot, key, wanted, number);
        if goes_on {
            waiters.note_value(&hashed, wanted);
        }
        waiters.is_empty(slot)
    });
    state.has_waiters = !is_empty;
    wake(plane, slot, &state);
}
