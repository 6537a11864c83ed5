//! Tests the gate and the write path on one node with scripted links: acknowledgements, refusals, depositions.

mod lines; // Connections that wait for keys.

use core::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;

use placement::{Hashmask, Mask, Slot};
use store::{Cause, Effect, NewValue, Seed, Touch, UnixMillis};

use super::*;
use crate::map::{Bucket, Epoch, LogIndex, NodeId};
use crate::replication::{Frame, FrameNumber, LinkId, LinkProgress, Role, SlotState};

const ME: NodeId = NodeId(1);
const FIRST: NodeId = NodeId(2);
const SECOND: NodeId = NodeId(3);
const REIGN: LogIndex = LogIndex(5);

/// A node whose links the test acknowledges by hand. Node n is at the other end of link n.
struct Desk {
    seed: Seed,
    slots: RefCell<BTreeMap<Slot, &'static RefCell<SlotState>>>,
    links: RefCell<BTreeMap<LinkId, (u64, u64)>>,
    epoch: Cell<u64>,
    congested: Cell<Option<LinkId>>,
    waiters: RefCell<KeyWaiters>,
    /// The connections that were woken.
    woken: RefCell<Vec<u64>>,
    /// Number of times that a link was looked up for its acknowledgement.
    lookups: Cell<u32>,
}

impl LinkProgress for Desk {
    fn link_to(&self, node: NodeId) -> Option<LinkId> {
        Some(link(node))
    }

    fn last(&self, link: LinkId) -> FrameNumber {
        FrameNumber(self.links.borrow().get(&link).map_or(0, |(last, _)| *last))
    }

    fn acked(&self, link: LinkId) -> FrameNumber {
        self.lookups.set(self.lookups.get() + 1);
        FrameNumber(self.links.borrow().get(&link).map_or(0, |(_, acked)| *acked))
    }
}

impl ServingPlane for Desk {
    type Guard<'a> = RefMut<'a, SlotState>;

    fn try_lock_slot(&self, slot: Slot) -> Option<RefMut<'_, SlotState>> {
        Some(self.lock_slot(slot))
    }

    fn lock_slot(&self, slot: Slot) -> RefMut<'_, SlotState> {
        let new = || &*Box::leak(Box::default());
        let cell: &'static RefCell<SlotState> =
            self.slots.borrow_mut().entry(slot).or_insert_with(new);
        cell.borrow_mut()
    }

    /// A slot that the test has locked is held by a script that has run for too long.
    fn lock_unless_busy(&self, slot: Slot) -> Option<RefMut<'_, SlotState>> {
        let state = self.slots.borrow().get(&slot).copied()?;
        state.try_borrow_mut().ok()
    }

    fn seed(&self) -> &Seed {
        &self.seed
    }

    fn push_frame(&self, link: LinkId, _frame: &Frame<'_>) -> FrameNumber {
        let mut links = self.links.borrow_mut();
        let (last, _) = links.entry(link).or_default();
        *last += 1;
        FrameNumber(*last)
    }

    fn ack_epoch(&self) -> AckEpoch {
        AckEpoch(self.epoch.get())
    }

    fn publish_counts(&self, _slot: Slot, _state: &SlotState) {}

    fn next_occupied(&self, from: Slot) -> Option<Slot> {
        let slots = self.slots.borrow();
        let mut behind = slots.range(from..);
        behind.find(|(_, state)| !state.borrow().table.is_empty()).map(|(slot, _)| *slot)
    }

    fn next_with_databases(&self, from: Slot) -> Option<Slot> {
        let slots = self.slots.borrow();
        let mut behind = slots.range(from..);
        behind.find(|(_, state)| state.borrow().table.has_other_databases()).map(|(slot, _)| *slot)
    }

    fn key_count_of(&self, slot: Slot) -> usize {
        self.slots.borrow().get(&slot).map_or(0, |state| state.borrow().table.len())
    }

    fn key_count(&self) -> usize {
        self.slots.borrow().values().map(|state| state.borrow().table.len()).sum()
    }

    fn has_congestion(&self) -> bool {
        self.congested.get().is_some()
    }

    fn is_congested(&self, link: LinkId) -> bool {
        self.congested.get() == Some(link)
    }

    fn roles_may_be_ahead(&self) -> bool {
        true
    }

    fn with_waiters<R>(&self, _: Slot, work: impl FnOnce(&mut KeyWaiters) -> R) -> R {
        work(&mut self.waiters.borrow_mut())
    }

    fn wake(&self, waiter: Waiter) {
        self.woken.borrow_mut().push(waiter.client);
    }
}

fn link(node: NodeId) -> LinkId {
    LinkId(u32::try_from(node.0).unwrap())
}

fn bucket(key: &str, reign: LogIndex, holders: &[NodeId]) -> Bucket {
    let hashmask = Hashmask::of_slot(Mask::M3FFF, Slot::of(key.as_bytes()));
    Bucket { hashmask, epoch: Epoch(reign.0), reign, holders: holders.iter().copied().collect() }
}

impl Desk {
    fn new() -> Desk {
        let (slots, links) = (RefCell::default(), RefCell::default());
        let (congested, lookups) = (Cell::new(None), Cell::new(0));
        let (waiters, woken) = (RefCell::default(), RefCell::default());
        let (seed, epoch) = (Seed::new(3), Cell::new(1));
        Desk { seed, slots, links, epoch, congested, waiters, woken, lookups }
    }

    /// Applies a map in which `holders` hold the key's bucket; the first of them is primary.
    fn map_says(&self, key: &str, reign: LogIndex, holders: &[NodeId]) {
        let bucket = bucket(key, reign, holders);
        self.lock_slot(Slot::of(key.as_bytes())).replica.follow(&bucket, ME, None, false, self);
        self.epoch.set(self.epoch.get() + 1);
    }

    fn serves(&self, keys: &[(&str, NodeId)]) {
        keys.iter().for_each(|(key, backup)| self.map_says(key, REIGN, &[ME, *backup]));
    }

    /// Writes to all keys as one command.
    fn write(&self, keys: &[&str]) -> Tickets {
        let mut slots: Vec<Slot> = keys.iter().map(|key| Slot::of(key.as_bytes())).collect();
        slots.sort_unstable();
        self.run(LockSet::Several(slots), |served| {
            for key in keys.iter().map(|key| self.seed.key(key.as_bytes())) {
                let put = Effect::Put { key, value: NewValue::Plain(b"1"), expires_at: None };
                let _ = served.apply(key.slot(), &put, change());
            }
        })
    }

    /// Reads a key as a command of one slot does, and returns whether the reply waits for a backup.
    fn read_waits(&self, key: &str) -> bool {
        let (slot, mut effects) = (Slot::of(key.as_bytes()), EffectLog::default());
        let state = self.lock_slot(slot);
        let served = ServedSlot::open(self, slot, state, &access(true), &mut effects).unwrap();
        served.finish(true).is_some_and(|finished| !finished.tickets.is_empty())
    }

    fn run(&self, locks: LockSet, work: impl FnOnce(&mut ServedSlots<'_, '_, Desk>)) -> Tickets {
        let mut effects = EffectLog::default();
        let locked = LockedSlots::lock(self, locks);
        let mut served = ServedSlots::open(self, locked, access(false), &mut effects).unwrap();
        work(&mut served);
        served.finish().tickets
    }

    fn ack(&self, node: NodeId, number: u64) {
        self.links.borrow_mut().entry(link(node)).or_default().1 = number;
    }

    /// Makes the other end refuse a frame, and acknowledge it nevertheless.
    fn refuse(&self, node: NodeId, key: &str, number: u64) {
        self.lock_slot(Slot::of(key.as_bytes()))
            .replica
            .note_refused(link(node), FrameNumber(number));
        self.epoch.set(self.epoch.get() + 1);
        self.ack(node, number);
    }

    fn judge(&self, ticket: &mut Ticket) -> ReplyVerdict {
        ticket.judge_on(self)
    }

    fn release(&self, tickets: &Tickets) -> Result<bool, Aborted> {
        let mut gate = ReplyGate::default();
        gate.withhold(0, tickets.iter().cloned());
        gate.release(|ticket| self.judge(ticket))?;
        Ok(gate.is_open())
    }
}

fn change() -> ChangeContext {
    ChangeContext { now: UnixMillis(1_000), touch: Touch::Nothing }
}

fn access(only_reads: bool) -> Access {
    Access { only_reads, heeds_backlog: true, ..Access::WRITE }
}

#[test]
fn a_reply_waits_for_the_backup_and_not_for_one_that_was_dropped() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    let tickets = desk.write(&["a"]);
    assert_eq!(desk.release(&tickets), Ok(false));
    desk.ack(FIRST, 1);
    assert_eq!(desk.release(&tickets), Ok(true));
    let tickets = desk.write(&["a"]);
    assert_eq!(desk.release(&tickets), Ok(false));
    desk.map_says("a", REIGN, &[ME]);
    assert_eq!(desk.release(&tickets), Ok(true), "the backup is out of the map");
}

/// A thread that waited for the slot would keep its other clients waiting, and SCRIPT KILL.
#[test]
fn a_reply_and_wait_do_not_wait_for_the_lock_that_a_slow_script_holds() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    let tickets = desk.write(&["a"]);
    desk.ack(FIRST, 1);
    desk.map_says("b", REIGN, &[ME]);
    let mut written = WrittenSlots::default();
    written.note(&[Slot::of(b"a")]);
    let script = desk.lock_slot(Slot::of(b"a"));
    assert_eq!(desk.release(&tickets), Ok(false), "the slot must be checked");
    assert_eq!(written.backups(&desk, true), 0, "as many as are known");
    drop(script);
    assert_eq!(desk.release(&tickets), Ok(true));
    assert_eq!(written.backups(&desk, true), 1);
}

#[test]
fn a_read_waits_for_the_writes_before_it_and_once_they_are_acknowledged_asks_no_link() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    for number in 1..=2 {
        desk.write(&["a"]);
        assert!(desk.read_waits("a"));
        desk.ack(FIRST, number);
        assert!(!desk.read_waits("a"));
        desk.lookups.set(0);
        assert!(!desk.read_waits("a"));
        assert_eq!(desk.lookups.get(), 0);
    }
    desk.refuse(FIRST, "a", 2);
    assert!(desk.read_waits("a"), "the backup lacks what the read has seen");
}

/// Finding 1: a deposed primary must not take the acknowledgement of a refused frame for one of the write.
#[test]
fn an_acknowledged_refusal_never_releases_a_reply_of_a_deposed_primary() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    let tickets = desk.write(&["a"]);
    desk.refuse(FIRST, "a", 1);
    desk.ack(FIRST, 9);
    assert_eq!(desk.release(&tickets), Ok(false), "the new primary has refused it");
    desk.map_says("a", LogIndex(9), &[FIRST]);
    assert_eq!(desk.release(&tickets), Err(Aborted));
    desk.map_says("a", LogIndex(12), &[ME, FIRST]);
    assert_eq!(desk.release(&tickets), Err(Aborted), "primary again, later");
}

#[test]
fn what_is_acknowledged_after_the_reign_has_ended_does_not_count() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    let safe = desk.write(&["a"]);
    desk.ack(FIRST, 1);
    let late = desk.write(&["a"]);
    desk.map_says("a", LogIndex(9), &[FIRST, ME]);
    desk.refuse(FIRST, "a", 2);
    assert_eq!(desk.release(&safe), Ok(true), "every copy had it");
    assert_eq!(desk.release(&late), Err(Aborted));
}

/// Finding 1, second variant: another change of the bucket does not clear a refusal.
#[test]
fn a_refusal_counts_until_the_backup_is_dropped() {
    let desk = Desk::new();
    desk.map_says("a", REIGN, &[ME, FIRST]);
    let tickets = desk.write(&["a"]);
    desk.refuse(FIRST, "a", 1);
    desk.map_says("a", REIGN, &[ME, FIRST, SECOND]);
    assert_eq!(desk.release(&tickets), Ok(false), "it still counts, and has a hole");
    assert!(desk.lock_slot(Slot::of(b"a")).replica.is_refused(link(FIRST)));
    desk.map_says("a", REIGN, &[ME, SECOND]);
    assert_eq!(desk.release(&tickets), Ok(true));
}

/// Finding 2: a refusal by a node that is no longer fed does not matter.
#[test]
fn a_refusal_that_comes_too_late_changes_nothing() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    desk.write(&["a"]);
    desk.map_says("a", REIGN, &[ME]);
    desk.refuse(FIRST, "a", 1);
    let slot = Slot::of(b"a");
    assert!(!desk.lock_slot(slot).replica.is_refused(link(FIRST)));
    // Nor does it if a new fill has begun meanwhile.
    desk.lock_slot(slot).replica.add_downstream(link(FIRST), FrameNumber(4));
    desk.refuse(FIRST, "a", 3);
    assert!(!desk.lock_slot(slot).replica.is_refused(link(FIRST)));
    desk.refuse(FIRST, "a", 5);
    assert!(desk.lock_slot(slot).replica.is_refused(link(FIRST)));
}

/// Finding 7: each slot is judged by its own backups and its own reign.
#[test]
fn a_reply_that_depends_on_two_slots_waits_for_the_backups_of_both() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST), ("b", SECOND)]);
    let tickets = desk.write(&["a", "b"]);
    assert_eq!(tickets.len(), 2);
    for (done, other) in [(FIRST, SECOND), (SECOND, FIRST)] {
        desk.ack(done, 1);
        desk.ack(other, 0);
        assert_eq!(desk.release(&tickets), Ok(false));
        desk.map_says("c", REIGN, &[ME]);
        assert_eq!(desk.release(&tickets), Ok(false), "any change of the map");
    }
    desk.ack(FIRST, 1);
    desk.ack(SECOND, 0);
    desk.map_says("b", LogIndex(9), &[SECOND]);
    assert_eq!(desk.release(&tickets), Err(Aborted), "deposed of one of them");
}

#[test]
fn a_reply_that_was_held_is_not_sent_when_the_lease_has_run_out_meanwhile() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    let tickets = desk.write(&["a"]);
    let mut gate = ReplyGate::default();
    gate.rely_on_lease();
    gate.withhold(0, tickets);
    assert_eq!(gate.check_lease(true), Ok(()), "it ran under a lease");
    desk.ack(FIRST, 1);
    gate.release(|ticket| desk.judge(ticket)).unwrap();
    assert!(gate.is_open());
    assert_eq!(gate.check_lease(false), Err(Aborted));
    assert_eq!(gate.check_lease(true), Ok(()));
    assert_eq!(gate.check_lease(false), Ok(()), "what was sent is sent");
}

#[test]
fn a_walk_waits_only_for_the_slots_it_has_seen() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST), ("b", SECOND)]);
    desk.write(&["a", "b"]);
    let tickets = desk.run(LockSet::AsNeeded, |served| {
        assert_eq!(served.table(Slot::of(b"a")).len(), 1);
    });
    assert_eq!(tickets.iter().map(Ticket::slot).collect::<Vec<_>>(), [Slot::of(b"a")]);
    desk.ack(FIRST, 1);
    assert_eq!(desk.release(&tickets), Ok(true), "whatever the other link does");
}

#[test]
fn a_walk_that_changes_leaves_out_what_is_handed_over_and_says_so() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    desk.write(&["a"]);
    let slot = Slot::of(b"a");
    desk.lock_slot(slot).replica.pause();
    desk.run(LockSet::AsNeeded, |served| {
        assert!(served.table(slot).is_empty());
        let _ = served.apply(slot, &Effect::Clear, change());
        assert_eq!(served.left_out(), Some((slot, Obstacle::Handover)));
    });
    assert_eq!(desk.lock_slot(slot).table.len(), 1);
    let mut effects = EffectLog::default();
    let locked = LockedSlots::lock(&desk, LockSet::AsNeeded);
    let mut reads = ServedSlots::open(&desk, locked, access(true), &mut effects).unwrap();
    assert_eq!(reads.table(slot).len(), 1, "who only reads sees it");
}

#[test]
fn who_has_locked_all_slots_waits_while_one_is_handed_over() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    desk.lock_slot(Slot::of(b"a")).replica.pause();
    let mut effects = EffectLog::default();
    let locked = LockedSlots::lock(&desk, LockSet::All { named: Vec::new() });
    let denied = ServedSlots::open(&desk, locked, access(false), &mut effects).err();
    assert_eq!(denied, Some(Denied::Park(Slot::of(b"a"), Obstacle::Handover)));
}

/// Finding 15: reading a copy never changes it.
#[test]
fn a_copy_stays_as_it_is_whoever_reads_it() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST)]);
    desk.write(&["a"]);
    desk.map_says("a", LogIndex(9), &[FIRST, ME]);
    let slot = Slot::of(b"a");
    let before = desk.lock_slot(slot).position();
    let mut effects = EffectLog::default();
    let need = Need { reads_copy: true, copies: 1 };
    let reading = Access { need, only_reads: true, ..Access::WRITE };
    let locked = LockedSlots::lock(&desk, LockSet::One(slot));
    let mut served = ServedSlots::open(&desk, locked, reading, &mut effects).unwrap();
    let key = desk.seed.key(b"a");
    assert!(!served.may_change(slot));
    let _ = served.apply(slot, &Effect::Remove { key, cause: Cause::Expired }, change());
    drop(served);
    assert_eq!(desk.lock_slot(slot).position(), before);
    assert_eq!(desk.lock_slot(slot).table.len(), 1);
}

#[test]
fn a_script_takes_further_slots_while_it_runs() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST), ("b", FIRST)]);
    let tickets = desk.run(LockSet::Several(Vec::new()), |served| {
        for key in ["b", "a", "b"].map(|key| desk.seed.key(key.as_bytes())) {
            assert!(served.grow(key.slot()));
            let put = Effect::Put { key, value: NewValue::Plain(b"1"), expires_at: None };
            let _ = served.apply(key.slot(), &put, change());
        }
    });
    assert_eq!(tickets.len(), 2);
    assert!(["a", "b"].iter().all(|key| desk.lock_slot(Slot::of(key.as_bytes())).table.len() == 1));
}

#[test]
fn all_that_one_command_does_to_a_slot_is_one_unit() {
    let mut log = EffectLog::default();
    let seed = Seed::new(1);
    for key in ["a", "b", "a"] {
        let key = seed.key(key.as_bytes());
        let put = Effect::Put { key, value: NewValue::Plain(b"1"), expires_at: None };
        log.record(key.slot(), store::Version(1), store::Version(2), &put);
    }
    assert_eq!(log.units().count(), 3);
    assert_eq!(log.units_by_slot().len(), 2);
}

#[test]
fn access_follows_the_role() {
    let copy = Need { reads_copy: true, copies: 1 };
    let handover = SlotAccess::Park(Obstacle::Handover);
    for (role, primary, reads_copy) in [
        (Role::Serving, SlotAccess::Run, SlotAccess::Run),
        (Role::Paused, handover, handover),
        (Role::Reconciling, handover, handover),
        (Role::PromotionPending, handover, handover),
        (Role::Backup, SlotAccess::Redirect, SlotAccess::Run),
        (Role::Absent, SlotAccess::Redirect, SlotAccess::Redirect),
        (Role::Filling, SlotAccess::Redirect, SlotAccess::Redirect),
        (Role::Stale, SlotAccess::Redirect, SlotAccess::Redirect),
    ] {
        let state = SlotState::with_role(role);
        assert_eq!(state.replica.access(Need::PRIMARY), primary, "{role:?}");
        assert_eq!(state.replica.access(copy), reads_copy, "{role:?}");
    }
    let alone = SlotState::with_role(Role::Serving);
    let two_copies = Need { reads_copy: false, copies: 2 };
    assert_eq!(alone.replica.access(two_copies), SlotAccess::Park(Obstacle::Copies));
}

/// Finding 9: a backlog is backpressure, for writers that would add to it.
#[test]
fn who_would_add_to_a_long_backlog_waits_and_nobody_else() {
    let desk = Desk::new();
    desk.serves(&[("a", FIRST), ("b", SECOND)]);
    desk.congested.set(Some(link(FIRST)));
    let denied = |key: &str, access: Access| {
        let mut effects = EffectLog::default();
        let locked = LockedSlots::lock(&desk, LockSet::One(Slot::of(key.as_bytes())));
        ServedSlots::open(&desk, locked, access, &mut effects).err()
    };
    let backlog = Denied::Park(Slot::of(b"a"), Obstacle::Backlog(link(FIRST)));
    assert_eq!(denied("a", access(false)), Some(backlog));
    assert_eq!(denied("b", access(false)), None, "its backup follows");
    assert_eq!(denied("a", Access::WRITE), None, "expiry goes on");
    desk.congested.set(None);
    assert_eq!(denied("a", access(false)), None);
}
