//! The side that stands: what another side had changed is judged here, on the slot's primary, and what wins
//! is written as a client's write would be: sent to the backups, and not answered before they have it.

use std::thread;
use std::time::{Duration, Instant};

use cluster::merge::{Batch, Conflict, Ground, Question, Reply, Taker, Tally, parted_at};
use cluster::replication::{Passage, Role, Ticket};
use commands::{Keys, Locks, Outcome, Slots, Surroundings};
use placement::Slot;
use store::{Effect, Key, SlotTable, UnixMillis, Version};

use super::report_conflicts;
use crate::data::{judge, ship, ticket_of};
use crate::keyspace::LockedSlots;
use crate::shared::Shared;
use crate::surroundings::surroundings;

/// How often it is looked whether the backups have it.
const LOOK: Duration = Duration::from_micros(300);
/// After so long the other side asks again: a backup that does not answer is dropped before that.
const SAFE_WITHIN: Duration = Duration::from_secs(15);

/// Answers a question of a node of the other side. `None` if it makes no sense.
pub(crate) fn answer(shared: &Shared, question: Question, taker: &mut Taker) -> Option<Reply> {
    if !shared.data.lease.is_valid() {
        return Some(Reply::NotNow);
    }
    match question {
        Question::Since { first, count } => {
            let first = Slot::new(first)?;
            let slots = (first.number()..first.number().saturating_add(count)).map_while(Slot::new);
            let since: Vec<u64> = slots.map_while(|slot| since(shared, slot)).collect();
            let known = !since.is_empty();
            Some(if known { Reply::Since(since) } else { elsewhere(shared, first) })
        }
        Question::Changes { slot, parted, changes } => {
            let batch = Batch::read(&changes).ok()?;
            Some(take(shared, Slot::new(slot)?, (Version(parted), batch), taker))
        }
    }
}

/// From where on this side knows nothing of the slot, if it is served here.
fn since(shared: &Shared, slot: Slot) -> Option<u64> {
    let state = shared.keyspace.lock_one(slot);
    (state.duty.role == Role::Serving).then(|| parted_at(&state.table).0)
}

/// Who serves the slot, if that is known and not this node.
fn elsewhere(shared: &Shared, slot: Slot) -> Reply {
    let map = shared.map();
    let primary = map.bucket_of(slot).primary().filter(|node| *node != shared.data.me);
    let member = primary.and_then(|node| map.member(node));
    member.map_or(Reply::NotNow, |member| Reply::Elsewhere(member.at.clone()))
}

fn take(
    shared: &Shared,
    slot: Slot,
    (parted, batch): (Version, Batch<'_>),
    taker: &mut Taker,
) -> Reply {
    let mut around = surroundings(shared);
    // What is written must be later than what it was made of: otherwise the same, handed over once more,
    // would win over what clients have written since. And no later than need be, whatever the time is now:
    // what a third side has changed in between is newer.
    around.now = UnixMillis(batch.latest().time().0 + 1);
    let mut outcome = Outcome::default();
    let mut slots = shared.keyspace.lock(Locks::One(slot));
    if !may_write(&mut slots) {
        drop(slots);
        return elsewhere(shared, slot);
    }
    outcome.effects.recording = !shared.data.links.is_empty();
    let mut chance = 0;
    let mut conflicts = Vec::new();
    let mut field = Field {
        slot,
        slots: &mut slots,
        around: &around,
        outcome: &mut outcome,
        chance: &mut chance,
        conflicts: &mut conflicts,
    };
    let tally = taker.take((parted, batch), &shared.seed, &mut field);
    slots.note_changes();
    ship(shared, &mut slots, &mut outcome);
    let ticket = ticket_of(shared, &mut slots);
    drop(slots);
    shared.have_links_written();
    shared.memory.grow(outcome.grown_bytes);
    outcome.garbage.drain(..).for_each(|garbage| shared.discard(garbage));
    note(shared, tally, conflicts);
    if wait_until_safe(shared, ticket.as_ref()) { Reply::Merged(tally) } else { Reply::NotNow }
}

/// Whether this node may write to the slot now: not while it is handed over. `min-copies` is not looked at:
/// the copy that is missing may be on the very node that hands over.
fn may_write(slots: &mut LockedSlots<'_>) -> bool {
    slots.one().is_some_and(|(_, state)| state.duty.role == Role::Serving)
}

fn note(shared: &Shared, tally: Tally, conflicts: Vec<Conflict>) {
    if tally.all() > 0 {
        report_conflicts(shared, &conflicts);
        shared.merging.ledger.lock().note(tally, conflicts);
    }
}

/// False if nobody can say that what was written stays. Then it is handed over again.
fn wait_until_safe(shared: &Shared, ticket: Option<&Ticket>) -> bool {
    let begun = Instant::now();
    while let Some(ticket) = ticket {
        match judge(shared, ticket, true) {
            Passage::Free => break,
            Passage::Barred => return false,
            Passage::Waiting if begun.elapsed() > SAFE_WITHIN || shared.is_stopping() => {
                return false;
            }
            Passage::Waiting => thread::sleep(LOOK),
        }
    }
    shared.data.lease.is_valid()
}

/// The slot, under its lock, with what a command would have at hand.
struct Field<'a, 's> {
    slot: Slot,
    slots: &'a mut LockedSlots<'s>,
    around: &'a Surroundings,
    outcome: &'a mut Outcome,
    chance: &'a mut u64,
    conflicts: &'a mut Vec<Conflict>,
}

impl Ground for Field<'_, '_> {
    fn table(&mut self) -> &SlotTable {
        self.slots.table(self.slot)
    }

    fn apply(&mut self, effect: &Effect<'_>) {
        Keys::new(self.slots, self.around, self.outcome, self.chance).apply(effect);
    }

    fn brought(&mut self, key: &Key<'_>, made: Version) {
        self.slots.table(self.slot).note_brought(key, made);
    }

    fn conflict(&mut self, conflict: Conflict) {
        self.conflicts.push(conflict);
    }
}
