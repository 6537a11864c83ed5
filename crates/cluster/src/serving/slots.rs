//! The slots of one command: locked, checked by the gate, recorded. The only way to change a served slot.
//!
//! Workers, background expiry, eviction and merges all do the same: lock (`LockedSlots`), ask the gate
//! (`ServedSlots::open`), change (`ServedSlots::apply`), finish (`ServedSlots::finish`). The last step ships
//! the changes to the backups before the locks are released, and returns the tickets of the reply.

use core::ops::DerefMut;
use std::sync::Arc;

use placement::Slot;
use smallvec::SmallVec;
use store::{
    Applied, At, DueHashes, Effect, Expired, Found, Key, Seed, SlotTable, Touch, UnixMillis,
    Version,
};

use super::access::{Need, Obstacle, SlotAccess};
use super::effects::EffectLog;
use super::key_waiters::{KeyWaiters, WaitNumber, Waiter, Wanted};
use super::lines;
use super::ship::ship;
use super::ticket::{AckEpoch, Ticket};
use crate::replication::{Frame, FrameNumber, LinkId, LinkProgress, SlotReplica, SlotState};
use crate::rules::{Rule, is_enforced};

/// The locks, links and counters that serving depends on.
pub trait ServingPlane: LinkProgress {
    /// A slot whose lock is held.
    type Guard<'a>: DerefMut<Target = SlotState>
    where
        Self: 'a;

    fn lock_slot(&self, slot: Slot) -> Self::Guard<'_>;
    /// Returns the lock of a slot if it is free.
    fn try_lock_slot(&self, slot: Slot) -> Option<Self::Guard<'_>>;
    /// Waits for the lock of a slot. `None` if a script holds it that has run for too long.
    fn lock_unless_busy(&self, slot: Slot) -> Option<Self::Guard<'_>> {
        Some(self.lock_slot(slot))
    }
    fn seed(&self) -> &Seed;
    /// Appends a frame to a link. Called under a slot's lock.
    fn push_frame(&self, link: LinkId, frame: &Frame<'_>) -> FrameNumber;
    fn ack_epoch(&self) -> AckEpoch;

    /// Publishes the counts that may be read without the slot's lock. Called under the lock, after a change.
    fn publish_counts(&self, slot: Slot, state: &SlotState);
    /// Returns the first slot at or after `from` that holds keys, by the published counts.
    fn next_occupied(&self, from: Slot) -> Option<Slot>;
    /// Returns the first slot at or after `from` that holds keys of databases other than 0, by the published counts.
    fn next_with_databases(&self, from: Slot) -> Option<Slot>;
    fn key_count_of(&self, slot: Slot) -> usize;
    fn key_count(&self) -> usize;

    /// Returns whether any link has a backlog that is too long.
    fn has_congestion(&self) -> bool;
    fn is_congested(&self, link: LinkId) -> bool;

    /// Returns whether a slot's role may be ahead of the map by which commands are judged: it is about to be promoted
    /// here (`SlotReplica::awaits_promotion`), or has followed a map that is not published yet.
    fn roles_may_be_ahead(&self) -> bool;

    /// Runs `work` on the connections that wait for keys of a slot, and perhaps of others. Called under the slot's lock.
    fn with_waiters<R>(&self, slot: Slot, work: impl FnOnce(&mut KeyWaiters) -> R) -> R;
    /// Has a connection that waits for keys run its command again. Called under a slot's lock.
    fn wake(&self, waiter: Waiter);
}

/// The slots that a command needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockSet {
    None,
    One(Slot),
    /// In ascending order, each once.
    Several(Vec<Slot>),
    /// One after the other, in a walk over many.
    AsNeeded,
    /// Every slot: an EXEC with a command on the whole keyspace. `named` are the slots of its other commands.
    All {
        named: Vec<Slot>,
    },
}

/// Slots whose locks are held, before the gate is asked.
pub struct LockedSlots<'a, P: ServingPlane + 'a> {
    held: LockedSet<'a, P>,
    /// The slots that the command names, if it has locked more than those.
    named: Option<Vec<Slot>>,
}

enum LockedSet<'a, P: ServingPlane + 'a> {
    None,
    One(Slot, P::Guard<'a>),
    /// In ascending order.
    Several(Vec<(Slot, P::Guard<'a>)>),
    /// The current slot of a walk over many.
    AsNeeded(Option<(Slot, P::Guard<'a>)>),
}

/// The requirements and properties of a command's access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub need: Need,
    /// True if it changes nothing, and so may walk over slots that are being handed over.
    pub only_reads: bool,
    /// True if replies wait for backups (`ack = "backup"`).
    pub waits_for_backups: bool,
    /// True if it waits while a backup of its slot is far behind.
    pub heeds_backlog: bool,
    /// The copies that a walk over many slots visits.
    pub walks: WalkedCopies,
}

/// The copies that a walk over many slots visits; all other slots appear empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WalkedCopies {
    /// The slots that this node serves.
    Primaries,
    /// This node's backup copies: a walk that only reads, on the replica port.
    Backups,
}

impl Access {
    /// Access for the node's own changes: expiry, eviction, a merge.
    pub const WRITE: Access = Access {
        need: Need::PRIMARY,
        only_reads: false,
        waits_for_backups: true,
        heeds_backlog: false,
        walks: WalkedCopies::Primaries,
    };
}

impl WalkedCopies {
    fn includes(self, replica: &SlotReplica) -> bool {
        match self {
            WalkedCopies::Primaries => replica.is_primary(),
            WalkedCopies::Backups => replica.is_backup(),
        }
    }
}

/// The gate's refusal to run a command. Nothing was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    Park(Slot, Obstacle),
    /// Another node serves this slot.
    Redirect(Slot),
}

/// The time and LRU/LFU update of a change.
#[derive(Clone, Copy)]
pub struct ChangeContext {
    pub now: UnixMillis,
    pub touch: Touch,
}

pub type Tickets = SmallVec<[Ticket; 1]>;

/// The result of a command when its locks are released.
#[derive(Default)]
pub struct Finished {
    /// The acknowledgements that the reply must wait for.
    pub tickets: Tickets,
    /// Slots of which changes were shipped.
    pub written: SmallVec<[Slot; 2]>,
}

/// A walk's treatment of slots that are being handed over, which must not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandoverPolicy {
    /// The walk only reads, and includes them.
    Reads,
    /// The walk changes slots, and has met none that is being handed over.
    Changes,
    /// The walk has skipped this slot.
    LeftOut(Slot, Obstacle),
}

/// Several locked slots that this node serves, as one command needs them; see `ServedSlot`.
pub struct ServedSlots<'a, 'e, P: ServingPlane + 'a> {
    plane: &'a P,
    held: LockedSet<'a, P>,
    effects: &'e mut EffectLog,
    handover_policy: HandoverPolicy,
    walked_copies: WalkedCopies,
    /// Requirements on a slot that is to be changed.
    need: Need,
    waits_for_backups: bool,
    /// True if a slot's keys or expiry times have changed.
    reshaped: bool,
    /// True if connections wait for what has changed.
    wakes: bool,
    /// An empty table, shown in place of a slot that another node serves.
    nothing: Option<Box<SlotTable>>,
    /// Tickets of the slots that a walk has passed.
    tickets: Tickets,
    written: SmallVec<[Slot; 2]>,
}

impl<'a, P: ServingPlane> LockedSlots<'a, P> {
    /// Takes locks. Of several, it waits for one only while it holds none, so that commands cannot deadlock, not
    /// even with a script that takes further locks while it runs.
    #[inline]
    pub fn lock(plane: &'a P, locks: LockSet) -> LockedSlots<'a, P> {
        let wait = |slot| Some(plane.lock_slot(slot));
        LockedSlots::lock_with(plane, locks, wait).expect("it has waited for all locks")
    }

    /// Takes locks like `lock`, but not if a script holds one of them that has run for too long.
    #[inline]
    pub fn lock_unless_busy(plane: &'a P, locks: LockSet) -> Option<LockedSlots<'a, P>> {
        LockedSlots::lock_with(plane, locks, |slot| plane.lock_unless_busy(slot))
    }

    fn lock_with(
        plane: &'a P,
        locks: LockSet,
        wait: impl Fn(Slot) -> Option<P::Guard<'a>>,
    ) -> Option<LockedSlots<'a, P>> {
        let mut all_named = None;
        let held = match locks {
            LockSet::None => LockedSet::None,
            LockSet::One(slot) => LockedSet::One(slot, wait(slot)?),
            LockSet::Several(slots) => LockedSet::Several(lock_several(plane, &slots, wait)?),
            LockSet::AsNeeded => LockedSet::AsNeeded(None),
            LockSet::All { named } => {
                all_named = Some(named);
                let all: Vec<Slot> = Slot::all().collect();
                LockedSet::Several(lock_several(plane, &all, wait)?)
            }
        };
        Some(LockedSlots { held, named: all_named })
    }

    /// Wraps a slot whose lock is already held.
    #[inline]
    pub fn one(slot: Slot, guard: P::Guard<'a>) -> LockedSlots<'a, P> {
        LockedSlots { held: LockedSet::One(slot, guard), named: None }
    }

    /// Returns the slot and its lock, if it is just one.
    #[inline]
    pub fn into_one(self) -> Result<(Slot, P::Guard<'a>), LockedSlots<'a, P>> {
        match self.held {
            LockedSet::One(slot, guard) => Ok((slot, guard)),
            held @ (LockedSet::None | LockedSet::Several(_) | LockedSet::AsNeeded(_)) => {
                Err(LockedSlots { held, named: self.named })
            }
        }
    }

    /// Finds a slot among those that the command names.
    pub fn find_named(&self, is_wanted: impl Fn(Slot, &SlotState) -> bool) -> Option<Slot> {
        let named = self.states().filter(|(slot, _)| self.names(*slot));
        let mut wanted = named.filter(|(slot, state)| is_wanted(*slot, state));
        wanted.next().map(|(slot, _)| slot)
    }

    fn names(&self, slot: Slot) -> bool {
        self.named.as_ref().is_none_or(|named| named.contains(&slot))
    }

    fn states(&self) -> impl Iterator<Item = (Slot, &SlotState)> {
        let (one, several): (_, &[(Slot, P::Guard<'a>)]) = match &self.held {
            LockedSet::None | LockedSet::AsNeeded(_) => (None, &[]),
            LockedSet::One(slot, state) => (Some((*slot, &**state)), &[]),
            LockedSet::Several(states) => (None, states),
        };
        one.into_iter().chain(several.iter().map(|(slot, state)| (*slot, &**state)))
    }

    /// Asks the gate: all slots that the command names must be served here. A command that has locked every
    /// slot also waits while any of them is being handed over.
    #[inline]
    fn check(&self, plane: &P, access: &Access) -> Result<(), Denied> {
        if let LockedSet::One(slot, state) = &self.held {
            check_backlog(plane, *slot, state, access)?;
            return check_slot(*slot, state, access.need);
        }
        if access.heeds_backlog && plane.has_congestion() {
            self.states()
                .try_for_each(|(slot, state)| check_backlog(plane, slot, state, access))?;
        }
        if self.named.is_some() {
            self.check_all(access.need)?;
        }
        let mut named = self.states().filter(|(slot, _)| self.names(*slot));
        named.try_for_each(|(slot, state)| check_slot(slot, state, access.need))
    }

    fn check_all(&self, need: Need) -> Result<(), Denied> {
        let is_awaited = |state: &SlotState| state.replica.awaits_promotion();
        let mut mine = self.states().filter(|(_, state)| !is_awaited(state));
        mine.try_for_each(|(slot, state)| check_served(slot, state, need))
    }
}

/// Takes several locks: those that are free, and if one is not, releases all, waits for that one, and begins again.
fn lock_several<'a, P: ServingPlane>(
    plane: &'a P,
    slots: &[Slot],
    wait: impl Fn(Slot) -> Option<P::Guard<'a>>,
) -> Option<Vec<(Slot, P::Guard<'a>)>> {
    let mut awaited: Option<(Slot, P::Guard<'a>)> = None;
    loop {
        let mut held = Vec::with_capacity(slots.len());
        let mut missing = None;
        for slot in slots {
            let guard = match awaited.take_if(|(awaited, _)| awaited == slot) {
                Some((_, guard)) => Some(guard),
                None => plane.try_lock_slot(*slot),
            };
            let Some(guard) = guard else {
                missing = Some(*slot);
                break;
            };
            held.push((*slot, guard));
        }
        let Some(slot) = missing else { return Some(held) };
        drop(held);
        drop(awaited.take()); // Nothing is held while it waits.
        awaited = Some((slot, wait(slot)?));
    }
}

/// Parks a write while a backup of its slot is far behind.
#[inline]
pub(super) fn check_backlog<P: ServingPlane>(
    plane: &P,
    slot: Slot,
    state: &SlotState,
    access: &Access,
) -> Result<(), Denied> {
    if !access.heeds_backlog || state.is_plain() || !plane.has_congestion() {
        return Ok(());
    }
    let congested = state.replica.congested_link(|link| plane.is_congested(link));
    congested.map_or(Ok(()), |link| Err(Denied::Park(slot, Obstacle::Backlog(link))))
}

/// Checks a slot, but ignores one that another node serves, as a walk does.
fn check_served(slot: Slot, state: &SlotState, need: Need) -> Result<(), Denied> {
    let checked = check_slot(slot, state, need);
    if let Err(Denied::Redirect(_)) = checked { Ok(()) } else { checked }
}

#[inline]
pub(super) fn check_slot(slot: Slot, state: &SlotState, need: Need) -> Result<(), Denied> {
    match state.replica.access(need) {
        SlotAccess::Run => Ok(()),
        SlotAccess::Park(obstacle) => Err(Denied::Park(slot, obstacle)),
        SlotAccess::Redirect => Err(Denied::Redirect(slot)),
    }
}

impl<'a, 'e, P: ServingPlane> ServedSlots<'a, 'e, P> {
    /// Opens the slots for a command, if the gate allows it. `effects` must be empty.
    #[inline]
    pub fn open(
        plane: &'a P,
        locked: LockedSlots<'a, P>,
        access: Access,
        effects: &'e mut EffectLog,
    ) -> Result<ServedSlots<'a, 'e, P>, Denied> {
        debug_assert!(effects.is_empty(), "what was done before is shipped");
        locked.check(plane, &access)?;
        Ok(ServedSlots {
            plane,
            held: locked.held,
            effects,
            handover_policy: if access.only_reads {
                HandoverPolicy::Reads
            } else {
                HandoverPolicy::Changes
            },
            walked_copies: access.walks,
            need: Need { reads_copy: false, ..access.need },
            waits_for_backups: access.waits_for_backups,
            reshaped: false,
            wakes: false,
            nothing: None,
            tickets: Tickets::new(),
            written: SmallVec::new(),
        })
    }

    /// Returns whether the command needs no slot.
    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self.held, LockedSet::None)
    }

    /// Returns the first slot that a walk had to skip: its work is incomplete.
    pub fn left_out(&self) -> Option<(Slot, Obstacle)> {
        match self.handover_policy {
            HandoverPolicy::Reads | HandoverPolicy::Changes => None,
            HandoverPolicy::LeftOut(slot, obstacle) => Some((slot, obstacle)),
        }
    }

    /// Returns the table of a slot, for reading. A walk takes the lock here and releases the previous one. A slot
    /// that another node serves appears empty; for a walk that makes changes, so does one that is being handed over.
    #[inline]
    pub fn table(&mut self, slot: Slot) -> &SlotTable {
        self.walk_to(slot);
        let is_visible = matches!(self.held, LockedSet::One(..)) || self.is_visible(slot);
        let ServedSlots { held, nothing, .. } = self;
        if is_visible { &state_in(held, slot).table } else { nothing.get_or_insert_default() }
    }

    fn is_visible(&mut self, slot: Slot) -> bool {
        match self.handover_policy {
            HandoverPolicy::Reads => {
                self.walked_copies.includes(&state_in(&mut self.held, slot).replica)
            }
            HandoverPolicy::Changes | HandoverPolicy::LeftOut(..) => self.may_change(slot),
        }
    }

    /// Records the use of an item that this node serves, for eviction, and returns the item.
    #[inline]
    pub fn touch(&mut self, slot: Slot, at: At, touch: Touch) -> Found<'_> {
        let state = state_in(&mut self.held, slot);
        let touch = if state.replica.is_serving() { touch } else { Touch::Nothing };
        state.table.touch(at, touch)
    }

    /// Returns whether the slot may be changed now: this node serves it, it has enough copies, and it is not
    /// being handed over.
    #[inline]
    pub fn may_change(&mut self, slot: Slot) -> bool {
        self.walk_to(slot);
        match state_in(&mut self.held, slot).replica.access(self.need) {
            SlotAccess::Run => true,
            SlotAccess::Redirect => {
                !is_enforced(Rule::PrimaryExpires)
                    && state_in(&mut self.held, slot).replica.is_backup()
            }
            SlotAccess::Park(obstacle) => {
                if self.handover_policy == HandoverPolicy::Changes
                    && matches!(self.held, LockedSet::AsNeeded(_))
                {
                    self.handover_policy = HandoverPolicy::LeftOut(slot, obstacle);
                }
                false
            }
        }
    }

    /// Carries out an effect and records it for the backups. A slot that may not be changed stays as it is.
    #[inline]
    pub fn apply(&mut self, slot: Slot, effect: &Effect<'_>, change: ChangeContext) -> Applied {
        if !self.may_change(slot) {
            return Applied::default();
        }
        let state = state_in(&mut self.held, slot);
        let table = &mut state.table;
        let (previous, version) = (table.version(), table.next_version(change.now));
        let applied = table.apply(effect, version, change.touch, self.plane.seed());
        if state.replica.wants_effects() {
            self.effects.record(slot, previous, version, effect);
        }
        self.reshaped |= applied.reshaped;
        if state.has_waiters {
            self.wakes |= lines::note_effect(self.plane, slot, effect);
        }
        applied
    }

    /// Returns whether another connection has waited for longer for such a value of this key.
    pub fn is_behind(&mut self, key: &Key<'_>, wanted: Wanted, number: Option<WaitNumber>) -> bool {
        let state = state_in(&mut self.held, key.slot());
        lines::is_behind(self.plane, state, key, wanted, number)
    }

    /// Puts a connection in the line of a key, or lets it stay there.
    pub fn enter_line(
        &mut self,
        slot: Slot,
        key: &Arc<[u8]>,
        wanted: Wanted,
        place: (WaitNumber, Waiter),
    ) {
        let state = state_in(&mut self.held, slot);
        lines::enter_line(self.plane, state, slot, key, wanted, place);
    }

    /// Returns whether this node alone has the slot: no other node has a copy, may come back with one, or may have served
    /// the slot since a split brain.
    pub fn is_alone(&mut self, slot: Slot) -> bool {
        self.walk_to(slot);
        let SlotState { table, replica, .. } = state_in(&mut self.held, slot);
        replica.is_alone() && table.divergence().is_none()
    }

    /// Takes the lock of a further slot for a script, which may then change it. The caller makes sure that only one
    /// script of the node waits here, since it holds other locks. Returns false if the slot is not served here now,
    /// if a slow script holds it, or if these are not several slots.
    pub fn grow(&mut self, slot: Slot) -> bool {
        let LockedSet::Several(states) = &mut self.held else { return false };
        let Err(place) = states.binary_search_by_key(&slot, |(held, _)| *held) else { return true };
        let Some(state) = self.plane.lock_unless_busy(slot) else { return false };
        if state.replica.access(self.need) != SlotAccess::Run {
            return false;
        }
        states.insert(place, (slot, state));
        true
    }

    /// Returns at most `max` keys of the slot that have expired.
    pub fn due(&mut self, slot: Slot, now: UnixMillis, max: usize) -> Expired {
        state_in(&mut self.held, slot).table.due(now, max)
    }

    /// Returns the names of at most `max` hashes of the slot with fields that have expired.
    pub fn due_hashes(
        &mut self,
        slot: Slot,
        now: UnixMillis,
        max: usize,
        seed: &Seed,
    ) -> DueHashes {
        state_in(&mut self.held, slot).table.due_hashes(now, max, seed)
    }

    /// Forces the counts to be published at the end even if no key has changed.
    pub fn force_publish_counts(&mut self) {
        self.reshaped = true;
    }

    /// Records that a key was written by a merge, and the version at which the other side made it.
    pub fn note_brought(&mut self, key: &Key<'_>, made: Version) {
        state_in(&mut self.held, key.slot()).table.note_brought(key, made);
    }

    /// Returns the first slot at or after `from` that holds keys.
    pub fn occupied(&mut self, from: Slot) -> Option<Slot> {
        if let LockedSet::Several(states) = &self.held {
            // The changes of this very command (an EXEC) are not published yet.
            let behind = &states[states.partition_point(|(slot, _)| *slot < from)..];
            let occupied = |state: &SlotState| {
                self.walked_copies.includes(&state.replica) && !state.table.is_empty()
            };
            return behind.iter().find(|(_, state)| occupied(state)).map(|(slot, _)| *slot);
        }
        self.publish_counts();
        self.plane.next_occupied(from)
    }

    /// Returns the first slot at or after `from` that holds keys of databases other than 0.
    pub fn with_databases(&mut self, from: Slot) -> Option<Slot> {
        if let LockedSet::Several(states) = &self.held {
            let behind = &states[states.partition_point(|(slot, _)| *slot < from)..];
            let is_wanted = |state: &SlotState| {
                self.walked_copies.includes(&state.replica) && state.table.has_other_databases()
            };
            return behind.iter().find(|(_, state)| is_wanted(state)).map(|(slot, _)| *slot);
        }
        self.publish_counts();
        self.plane.next_with_databases(from)
    }

    /// Returns the number of keys in a slot.
    pub fn len(&mut self, slot: Slot) -> usize {
        let is_published = self.walked_copies == WalkedCopies::Primaries;
        if !is_published || matches!(self.held, LockedSet::Several(_)) {
            return self.table(slot).len();
        }
        self.publish_counts();
        self.plane.key_count_of(slot)
    }

    /// Returns the number of keys that this node serves.
    pub fn key_count(&mut self) -> usize {
        if let LockedSet::Several(states) = &self.held {
            let mine =
                states.iter().filter(|(_, state)| self.walked_copies.includes(&state.replica));
            return mine.map(|(_, state)| state.table.len()).sum();
        }
        self.publish_counts();
        self.plane.key_count()
    }

    /// Ships the changes, releases the locks, and returns the acknowledgements that the reply must wait for.
    #[inline]
    pub fn finish(mut self) -> Finished {
        self.publish_changes();
        if self.waits_for_backups {
            self.collect_tickets();
        }
        let tickets = core::mem::take(&mut self.tickets);
        Finished { tickets, written: core::mem::take(&mut self.written) }
    }

    /// Moves a walk from its current slot to another one.
    #[inline]
    fn walk_to(&mut self, slot: Slot) {
        if let LockedSet::AsNeeded(current) = &self.held
            && current.as_ref().is_none_or(|(held, _)| *held != slot)
        {
            self.change_slot(slot);
        }
    }

    fn change_slot(&mut self, slot: Slot) {
        self.publish_changes();
        if self.waits_for_backups {
            self.collect_tickets();
        }
        self.held = LockedSet::AsNeeded(None); // Released before waiting for the next lock.
        self.held = LockedSet::AsNeeded(Some((slot, self.plane.lock_slot(slot))));
    }

    #[inline]
    fn publish_changes(&mut self) {
        if !self.effects.is_empty() {
            self.ship();
        }
        if self.reshaped {
            self.publish_counts();
        }
        if core::mem::take(&mut self.wakes) {
            self.wake();
        }
    }

    /// Wakes the connections that wait for what has changed.
    #[cold]
    fn wake(&mut self) {
        let plane = self.plane;
        match &self.held {
            LockedSet::None | LockedSet::AsNeeded(None) => {}
            LockedSet::One(slot, state) | LockedSet::AsNeeded(Some((slot, state))) => {
                lines::wake(plane, *slot, state);
            }
            LockedSet::Several(states) => {
                states.iter().for_each(|(slot, state)| lines::wake(plane, *slot, state));
            }
        }
    }

    fn ship(&mut self) {
        let ServedSlots { plane, held, effects, written, .. } = self;
        let mut ship = |slot, unit: &[u8]| {
            ship_unit(*plane, state_in(held, slot), unit);
            written.push(slot);
        };
        if effects.is_of_one_slot() {
            effects.units().for_each(|(slot, unit)| ship(slot, unit));
        } else {
            effects.units_by_slot().iter().for_each(|(slot, unit)| ship(*slot, unit));
        }
        effects.clear();
    }

    fn publish_counts(&mut self) {
        self.reshaped = false;
        match &self.held {
            LockedSet::None | LockedSet::AsNeeded(None) => {}
            LockedSet::One(slot, state) | LockedSet::AsNeeded(Some((slot, state))) => {
                self.plane.publish_counts(*slot, state);
            }
            LockedSet::Several(states) => {
                states.iter().for_each(|(slot, state)| self.plane.publish_counts(*slot, state));
            }
        }
    }

    #[inline]
    fn collect_tickets(&mut self) {
        let plane = self.plane;
        let ticket = |slot: Slot, state: &SlotState| {
            state.replica.ticket(slot, plane.ack_epoch(), |link| plane.acked(link))
        };
        match &self.held {
            LockedSet::None | LockedSet::AsNeeded(None) => {}
            LockedSet::One(slot, state) | LockedSet::AsNeeded(Some((slot, state))) => {
                self.tickets.extend(ticket(*slot, state));
            }
            LockedSet::Several(states) => {
                self.tickets.extend(states.iter().filter_map(|(slot, state)| ticket(*slot, state)));
            }
        }
    }
}

/// Ships the changes even if the command breaks off.
impl<'a, P: ServingPlane + 'a> Drop for ServedSlots<'a, '_, P> {
    #[inline]
    fn drop(&mut self) {
        self.publish_changes();
    }
}

#[inline]
fn state_in<'s, 'a, P: ServingPlane>(
    held: &'s mut LockedSet<'a, P>,
    slot: Slot,
) -> &'s mut SlotState {
    match held {
        LockedSet::One(held, state) => {
            assert_eq!(*held, slot, "a command accesses only slots of the keys it named");
            state
        }
        LockedSet::Several(states) => {
            let at = states.binary_search_by_key(&slot, |(held, _)| *held);
            &mut states[at.expect("a command accesses only slots of its keys")].1
        }
        LockedSet::AsNeeded(Some((held, state))) => {
            assert_eq!(*held, slot, "a walk changes the slot that it is at");
            state
        }
        LockedSet::None | LockedSet::AsNeeded(None) => {
            unreachable!("a command without slots accessed a slot")
        }
    }
}

pub(super) fn ship_unit<P: ServingPlane>(plane: &P, state: &mut SlotState, unit: &[u8]) {
    let SlotState { table, replica, .. } = state;
    ship(table, replica, unit, plane.seed(), |link, frame| plane.push_frame(link, frame));
    state.refresh();
}
