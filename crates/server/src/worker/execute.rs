//! One command: admitted, its slots locked, run, its locks let go.

use core::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use cluster::replication::Role;
use commands::{
    Context, Ending, Flag, Keys, Locks, Request, Spec, Verdict, admit, needs_memory, run,
};
use resp::{Mark, Output, Reply};
use smallvec::SmallVec;

use super::Worker;
use super::connection::Connection;
use super::hold::{Fate, fate_of};
use super::serve::BATCH_MAX;
use super::timing::BatchTime;
use crate::data::Links;
use crate::evictor::Room;
use crate::host::NodeHost;
use crate::keyspace::{Keyspace, LockedSlots, SlotGuard};
use crate::watching::LATENCY_EVENTS;

/// Locks that a batch took early, by the place of their command in it. Only ever taken where nobody had
/// them: who holds some must not wait for another.
pub(super) type Held<'s> = SmallVec<[Option<SlotGuard<'s>>; BATCH_MAX]>;

impl<'s> Worker<'s> {
    /// Runs one connection's requests, the first of which is at `place` in its batch.
    pub(super) fn run_for(
        &mut self,
        index: usize,
        (place, requests): (usize, &[Request<'_>]),
        held: &mut Held<'s>,
        time: &mut BatchTime,
    ) {
        let mut output = core::mem::take(&mut self.connections[index].output);
        if output.capacity() == 0 {
            output = self.spares.pop().unwrap_or_default();
        }
        for (step, request) in requests.iter().enumerate() {
            if !self.connections[index].parked.is_empty() {
                self.park(index, request); // Behind one that waits.
                continue;
            }
            let alone = request.is_timed_alone();
            if alone {
                time.begin_alone();
            }
            self.execute(index, (place + step, request), held, &mut output);
            if alone {
                let took = time.end_alone();
                // What waits is counted when it is done.
                if self.connections[index].parked.is_empty() {
                    self.note_alone(index, request, took);
                }
            }
            if self.connections[index].session.closing {
                break;
            }
        }
        let connection = &mut self.connections[index];
        connection.output = output;
        if let Some(last) = requests.last() {
            connection.last_command = last.command;
        }
    }

    /// Runs the request at `place` in its batch.
    fn execute(
        &mut self,
        index: usize,
        (place, request): (usize, &Request<'_>),
        held: &mut Held<'s>,
        output: &mut Output,
    ) {
        if self.settings.maxmemory != 0 {
            self.make_room(index, request, held);
        }
        if self.fence.is_up() {
            self.note_question(index, request);
        }
        if self.shared.data.heirs.load(Relaxed) && self.is_inherited(place, request, held) {
            return self.park(index, request);
        }
        let start = output.mark();
        let muted = self.connections[index].session.begin_muted(output);
        self.admit_and_run(index, (place, request), held, (output, start));
        if let Some(start) = muted {
            self.connections[index].session.end_muted(output, start);
        }
        if !self.outcome.events.is_empty() || !self.branch.outbox.is_empty() {
            self.speak(index, output, start);
        }
    }

    /// Whether the command is for a bucket that this node will serve in a moment. By the map it still is
    /// another's, who would send the client back here.
    #[cold]
    fn is_inherited(&self, place: usize, request: &Request<'_>, held: &Held<'s>) -> bool {
        let Some(key) = &request.key else { return false };
        if let Some(Some(state)) = held.get(place) {
            return state.duty.role == Role::Heir;
        }
        let state = self.shared.keyspace.try_lock(key.slot());
        state.is_some_and(|state| state.duty.role == Role::Heir)
    }

    #[inline]
    fn admit_and_run(
        &mut self,
        index: usize,
        (place, request): (usize, &Request<'_>),
        held: &mut Held<'s>,
        (output, start): (&mut Output, Mark),
    ) {
        let Connection { session, card, question, .. } = &mut self.connections[index];
        let mut reply = Reply::new(output, session.protocol);
        let stats = &self.shared.watching.commands[self.number];
        let (spec, locks) = match admit(request, session, &self.around, &mut reply) {
            Verdict::Run(spec, locks) => (spec, locks),
            Verdict::Queued => return stats.queued(request.command),
            Verdict::Refused(error) => return self.note_refusal(index, request, error),
        };
        let reshaped = self.outcome.reshaped;
        if self.fence.is_up() && locks != Locks::None {
            return self.refuse_fenced(index, request, output);
        }
        let mut slots = lock(&self.shared.keyspace, locks, place, held);
        match fate_of(self.shared, &mut slots, (spec, session), self.min_copies) {
            Fate::Run => {}
            Fate::Wait => {
                drop(slots);
                return self.park(index, request);
            }
            Fate::Congested(link) => {
                drop(slots);
                return self.park_behind(index, request, link);
            }
            Fate::Elsewhere(slot) => {
                drop(slots);
                return self.send_elsewhere(index, request, slot, output);
            }
        }
        self.outcome.effects.recording = prepare(&mut slots, spec, &self.shared.data.links);
        let keys = Keys::new(&mut slots, &self.around, &mut self.outcome, &mut self.chance);
        let mut host = NodeHost {
            shared: self.shared,
            card,
            spec,
            now: self.around.now,
            branch: &mut self.branch,
            notify: self.around.notify,
            question: &mut *question,
        };
        let mut context = Context {
            args: request.args,
            keys,
            reply,
            session,
            host: &mut host,
            spec,
            first_key: request.key,
        };
        if run(&mut context) == Ending::Failed {
            stats.failed(request.command);
        }
        if question.is_some() {
            drop(slots);
            return self.park_for_answer(index, request);
        }
        if self.outcome.reshaped != reshaped {
            slots.note_changes();
        }
        if slots.passed_by() {
            drop(slots);
            return self.run_again(index, request, (output, start));
        }
        self.conclude(index, spec, slots, start);
    }

    /// FLUSHALL runs until it has left nothing out.
    #[cold]
    fn run_again(
        &mut self,
        index: usize,
        request: &Request<'_>,
        (output, start): (&mut Output, Mark),
    ) {
        output.truncate(start);
        self.park(index, request);
    }

    /// What the command did goes to the backups before its slots are let go; its reply, which began at
    /// `start`, may have to wait for them.
    #[inline]
    fn conclude(
        &mut self,
        index: usize,
        spec: &'static Spec,
        mut slots: LockedSlots<'_>,
        start: Mark,
    ) {
        let ticket = self.ship(&mut slots, spec);
        let touched_slots = !slots.is_free();
        drop(slots);
        if touched_slots {
            self.connections[index].relies_on_lease = true;
            self.note_stall(index);
        }
        if let Some(ticket) = ticket {
            self.put_off_events(&ticket);
            self.hold(index, start, ticket);
        }
        if spec.has(Flag::Admin) {
            self.look_around(); // It may have changed a setting; the next in this batch heeds it.
        }
    }

    /// Evicts, if the command may need memory that is not there.
    fn make_room(&mut self, index: usize, request: &Request<'_>, held: &mut Held<'s>) {
        let session = &self.connections[index].session;
        if !request.spec.is_some_and(|spec| needs_memory(spec, session)) {
            return;
        }
        let mut room = Room {
            shared: self.shared,
            around: &self.around,
            outcome: &mut self.outcome,
            chance: &mut self.chance,
        };
        if room.is_enough(&self.settings) {
            self.around.out_of_memory = false;
            return;
        }
        held.clear(); // Any slot may have to give something up, those we hold among them.
        let begun = Instant::now();
        self.around.out_of_memory = !self.evictor.evict(&self.settings, &mut room);
        let event = LATENCY_EVENTS.eviction_cycle;
        self.shared.watching.latency.note(event, begun.elapsed(), &self.settings);
    }
}

/// Says whether what the command does is to be recorded for others, and tells the slots what it is about
/// to do.
#[inline]
fn prepare<'s>(slots: &mut LockedSlots<'s>, spec: &Spec, links: &'s Links) -> bool {
    slots.send_on(links);
    if slots.is_walk() && !spec.has(Flag::Write) {
        slots.only_look();
    }
    wants_effects(slots, links)
}

#[inline]
fn wants_effects(slots: &mut LockedSlots<'_>, links: &Links) -> bool {
    match slots.one() {
        Some((_, state)) => state.duty.wants_effects(),
        None => !slots.is_free() && !links.is_empty(),
    }
}

/// The slots of the command at `place`, by the lock that the batch holds for it if it does.
#[inline]
fn lock<'s>(
    keyspace: &'s Keyspace,
    locks: Locks,
    place: usize,
    held: &mut Held<'s>,
) -> LockedSlots<'s> {
    let early = held.get_mut(place).and_then(Option::take);
    match (&locks, early) {
        // It may take its time (DEBUG SLEEP, INFO): nobody shall wait for our locks meanwhile.
        (Locks::None, _) => held.clear(),
        (Locks::One(slot), Some(guard)) => return keyspace.locked(*slot, guard),
        (Locks::One(slot), None) => {
            if let Some(guard) = keyspace.try_lock(*slot) {
                return keyspace.locked(*slot, guard);
            }
            held.clear(); // We are going to wait.
        }
        (Locks::Several(_) | Locks::AsNeeded | Locks::All { .. }, early) => {
            drop(early);
            held.clear();
        }
    }
    keyspace.lock(locks)
}
