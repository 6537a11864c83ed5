//! The slot of a command that needs just one: the same write path as `slots.rs`, as lean as possible. Nearly
//! all commands take it, and on a plain slot (`SlotState::is_plain`) clustering costs them nothing.

use std::sync::Arc;

use placement::Slot;
use store::{Applied, At, Effect, Found, Key, SlotTable, Touch};

use super::effects::EffectLog;
use super::key_waiters::{WaitNumber, Waiter, Wanted};
use super::lines;
use super::slots::{
    Access, ChangeContext, Denied, Finished, ServingPlane, check_backlog, check_slot, ship_unit,
};
use crate::replication::SlotState;

/// A locked slot that this node serves: the only way for a command on one slot to change it. `finish` ships the
/// changes and returns the reply's ticket.
pub struct ServedSlot<'a, 'e, P: ServingPlane + 'a> {
    plane: &'a P,
    slot: Slot,
    state: P::Guard<'a>,
    effects: &'e mut EffectLog,
    /// True if the slot's keys or expiry times have changed.
    reshaped: bool,
    /// True if connections wait for what has changed; `reshaped` is then set as well.
    wakes: bool,
}

impl<'a, 'e, P: ServingPlane> ServedSlot<'a, 'e, P> {
    /// Opens the slot for a command, if the gate allows it. Only for commands that the primary alone may run: a
    /// copy is read through `ServedSlots`.
    #[inline]
    pub fn open(
        plane: &'a P,
        slot: Slot,
        state: P::Guard<'a>,
        access: &Access,
        effects: &'e mut EffectLog,
    ) -> Result<ServedSlot<'a, 'e, P>, Denied> {
        debug_assert!(!access.need.reads_copy, "a copy is not read this way");
        if !state.is_plain() || access.need.copies > 1 {
            check_backlog(plane, slot, &state, access)?;
            check_slot(slot, &state, access.need)?;
        }
        Ok(ServedSlot { plane, slot, state, effects, reshaped: false, wakes: false })
    }

    #[inline]
    pub fn table(&self, slot: Slot) -> &SlotTable {
        self.check(slot);
        &self.state.table
    }

    /// Records the use of an item, for eviction, and returns the item.
    #[inline]
    pub fn touch(&mut self, slot: Slot, at: At, touch: Touch) -> Found<'_> {
        self.check(slot);
        self.state.table.touch(at, touch)
    }

    /// Carries out an effect and records it for the backups.
    #[inline]
    pub fn apply(&mut self, slot: Slot, effect: &Effect<'_>, change: ChangeContext) -> Applied {
        self.check(slot);
        let SlotState { table, .. } = &mut *self.state;
        let (previous, version) = (table.version(), table.next_version(change.now));
        let applied = table.apply(effect, version, change.touch, self.plane.seed());
        if !self.state.is_plain() && self.state.replica.wants_effects() {
            self.effects.record(slot, previous, version, effect);
        }
        self.reshaped |= applied.reshaped;
        if self.state.has_waiters {
            self.wakes |= lines::note_effect(self.plane, slot, effect);
            self.reshaped |= self.wakes;
        }
        applied
    }

    /// Returns whether another connection has waited for longer for such a value of this key.
    pub fn is_behind(&self, key: &Key<'_>, wanted: Wanted, number: Option<WaitNumber>) -> bool {
        self.check(key.slot());
        lines::is_behind(self.plane, &self.state, key, wanted, number)
    }

    /// Puts a connection in the line of a key, or lets it stay there.
    pub fn enter_line(
        &mut self,
        slot: Slot,
        key: &Arc<[u8]>,
        wanted: Wanted,
        place: (WaitNumber, Waiter),
    ) {
        self.check(slot);
        lines::enter_line(self.plane, &mut self.state, slot, key, wanted, place);
    }

    /// Ships the changes, releases the lock, and returns the acknowledgements that the reply must wait for.
    /// `None` if nothing was recorded for backups and no earlier write is unacknowledged; always on a plain slot.
    #[inline(always)]
    pub fn finish(mut self, waits_for_backups: bool) -> Option<Finished> {
        if self.state.is_plain() || self.effects.is_empty() && !self.must_wait(waits_for_backups) {
            return None; // Dropping it publishes the counts.
        }
        self.finish_recorded(waits_for_backups)
    }

    #[inline]
    fn must_wait(&mut self, waits_for_backups: bool) -> bool {
        let plane = self.plane;
        waits_for_backups && self.state.replica.has_unacknowledged(|link| plane.acked(link))
    }

    fn finish_recorded(&mut self, waits_for_backups: bool) -> Option<Finished> {
        let plane = self.plane;
        let mut finished = Finished::default();
        if self.ship() {
            finished.written.push(self.slot);
        }
        if waits_for_backups {
            let acked = |link| plane.acked(link);
            let ticket = self.state.replica.ticket(self.slot, plane.ack_epoch(), acked);
            finished.tickets.extend(ticket);
        }
        Some(finished)
    }

    /// Ships the recorded effects. Returns whether there were any.
    fn ship(&mut self) -> bool {
        if self.effects.is_empty() {
            return false;
        }
        for (_, unit) in self.effects.units() {
            ship_unit(self.plane, &mut self.state, unit);
        }
        self.effects.clear();
        true
    }

    #[inline]
    fn check(&self, slot: Slot) {
        assert_eq!(self.slot, slot, "a command accesses only the slot of the key it named");
    }
}

/// Ships the changes even if the command breaks off.
impl<'a, P: ServingPlane + 'a> Drop for ServedSlot<'a, '_, P> {
    #[inline]
    fn drop(&mut self) {
        if !self.state.is_plain() {
            self.ship();
        }
        if self.reshaped {
            self.plane.publish_counts(self.slot, &self.state);
            if self.wakes {
                lines::wake(self.plane, self.slot, &self.state);
            }
        }
    }
}
