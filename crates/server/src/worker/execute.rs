//! Executes one command of a connection (`commands::execute`), and acts on its outcome.

use std::time::Instant;

use cluster::serving::{Finished, LockedSlots, Obstacle, ServingPlane};
use commands::{
    BUSY, CommandResources, Ending, Error, Executed, Flag, LockSet, OwnHost, ReplyMode, Request,
    ServingRules, Spec, TakeLocks, execute, needs_memory,
};
use placement::Slot;
use resp::{Mark, Output};
use smallvec::SmallVec;

use super::Worker;
use super::connection::Connection;
use super::serve::BATCH_MAX;
use super::timing::BatchTime;
use super::waiting::ParkReason;
use crate::data::{Data, SlotSet};
use crate::evictor::EvictionContext;
use crate::host::NodeHost;
use crate::keyspace::SlotGuard;
use crate::watching::LATENCY_EVENTS;

/// Locks that a batch took early, by the place of their command in it. Only free locks are taken early: a
/// thread that holds some must not wait for another. So code that runs with them takes a slot's lock with
/// `try_lock`, or releases all of them (`clear`) before it waits for a lock or for anything else.
pub(super) type EarlyLocks<'s> = SmallVec<[Option<SlotGuard<'s>>; BATCH_MAX]>;

impl<'s> Worker<'s> {
    /// Runs one connection's requests, the first of which is at `place` in its batch.
    pub(super) fn run_for(
        &mut self,
        index: usize,
        place: usize,
        requests: &[Request<'_>],
        held: &mut EarlyLocks<'s>,
        time: &mut BatchTime,
    ) {
        let mut output = core::mem::take(&mut self.connections[index].output);
        if output.capacity() == 0 {
            output = self.spares.pop().unwrap_or_default();
        }
        for (step, request) in requests.iter().enumerate() {
            if self.connections[index].waiting.is_some() {
                self.queue_behind(index, request);
                continue;
            }
            let place = place + step;
            if request.is_timed_alone() {
                self.execute_timed(index, place, request, held, &mut output, time);
            } else if self.is_restricted(index) {
                self.execute_restricted(index, place, request, held, &mut output);
            } else {
                let start = output.mark();
                let executed = self.execute_on_slots(index, place, request, held, &mut output);
                let is_plain = matches!(executed, Executed::RanWithoutTicket(Ending::Done));
                if is_plain {
                    self.conclude_plainly(index);
                } else {
                    self.conclude(index, request, executed, &mut output, start);
                }
                if self.has_events() {
                    self.publish_events(index, &mut output, start);
                }
                if is_plain {
                    continue; // It cannot have closed the connection.
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

    /// Returns whether a request may have to wait or be refused for want of memory or by CLIENT PAUSE, or may get no reply.
    #[inline]
    fn is_restricted(&self, index: usize) -> bool {
        self.settings.maxmemory != 0
            || self.full_slots.is_some()
            || self.paused.is_some()
            || self.connections[index].session.replies != ReplyMode::Sent
    }

    #[inline]
    fn has_events(&self) -> bool {
        !self.outcome.events.is_empty() || !self.branch.outbox.is_empty()
    }

    fn execute_timed(
        &mut self,
        index: usize,
        place: usize,
        request: &Request<'_>,
        held: &mut EarlyLocks<'s>,
        output: &mut Output,
        time: &mut BatchTime,
    ) {
        if request.spec.is_some_and(may_run_script) {
            held.clear(); // It may take long.
        }
        time.begin_alone();
        self.execute_restricted(index, place, request, held, output);
        let took = time.end_alone();
        // A parked command is recorded when it is done.
        if self.connections[index].waiting.is_none() {
            self.note_alone(index, request, took);
        }
    }

    /// Runs the request at `place` in its batch, under whatever restrictions there are.
    fn execute_restricted(
        &mut self,
        index: usize,
        place: usize,
        request: &Request<'_>,
        held: &mut EarlyLocks<'s>,
        output: &mut Output,
    ) {
        if self.settings.maxmemory != 0 || self.full_slots.is_some() {
            self.make_room(index, request, held);
        }
        if self.paused.is_some() && self.must_pause(index, request) {
            return self.park(index, request, ParkReason::Pause, None);
        }
        let start = output.mark();
        let replies = self.connections[index].session.replies;
        let muted = self.connections[index].session.begin_muted(output);
        let executed = self.execute_on_slots(index, place, request, held, output);
        self.conclude(index, request, executed, output, start);
        let session = &mut self.connections[index].session;
        if let Some(start) = muted {
            session.end_muted(output, start);
        }
        if self.connections[index].waiting.is_some() {
            self.connections[index].session.replies = replies; // The command has not run.
        }
        if self.has_events() {
            self.publish_events(index, output, start);
        }
    }

    #[inline(always)]
    fn execute_on_slots(
        &mut self,
        index: usize,
        place: usize,
        request: &Request<'_>,
        held: &mut EarlyLocks<'s>,
        output: &mut Output,
    ) -> Executed {
        let shared = self.shared;
        let Connection { session, client, question, written, wait_until, .. } =
            &mut self.connections[index];
        let rules = ServingRules {
            has_lease: !self.fence.is_up(),
            min_copies: self.min_copies,
            waits_for_backups: self.waits_for_backups,
            pending: &self.pending,
        };
        let has_lease = rules.has_lease;
        let resources = CommandResources {
            env: &self.env,
            rules,
            outcome: &mut self.outcome,
            effects: &mut self.effects,
            rng: &mut self.rng,
        };
        let (branch, now) = (&mut self.branch, self.env.now);
        let locks = BatchLocks { data: &shared.data, place, held };
        let executed =
            execute(request, session, output, &shared.data, resources, locks, move |spec| {
                OwnHost(NodeHost {
                    shared,
                    client,
                    spec,
                    now,
                    branch,
                    question,
                    written,
                    wait_until,
                    has_lease,
                })
            });
        if let Executed::Park(slot, Obstacle::Handover) = executed
            && !self.env.cluster.is_mine(slot)
        {
            return self.execute_by_newest_map(index, place, request, held, output, slot);
        }
        executed
    }

    /// Executes a request again that was judged by a map older than the role of its slot, if the map that gave the slot
    /// this role is published by now. Otherwise the request waits for it.
    #[cold]
    fn execute_by_newest_map(
        &mut self,
        index: usize,
        place: usize,
        request: &Request<'_>,
        held: &mut EarlyLocks<'s>,
        output: &mut Output,
        slot: Slot,
    ) -> Executed {
        self.refresh_copies();
        if !self.env.cluster.is_mine(slot) {
            return Executed::Park(slot, Obstacle::Handover);
        }
        held.clear(); // The early lock of this request is gone, and it may have to wait for another.
        self.execute_on_slots(index, place, request, held, output)
    }

    /// Acts on a command that ran on one slot and needs no acknowledgement.
    #[inline]
    fn conclude_plainly(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.gate.rely_on_lease();
        if connection.slot_wait.is_some() {
            self.note_handover_wait(index);
        }
    }

    /// Acts on the outcome of a request whose reply began at `start`.
    fn conclude(
        &mut self,
        index: usize,
        request: &Request<'_>,
        executed: Executed,
        output: &mut Output,
        start: Mark,
    ) {
        match executed {
            Executed::RanWithoutTicket(Ending::Waiting)
            | Executed::Ran { ending: Ending::Waiting, .. } => self.block(index, request),
            Executed::RanWithoutTicket(ending) => {
                self.conclude_plainly(index);
                if ending == Ending::Failed {
                    self.shared.watching.commands[self.number].failed(request.command);
                }
            }
            Executed::Ran { ending, finished, relies_on_lease } => {
                if relies_on_lease {
                    self.connections[index].gate.rely_on_lease();
                    self.note_handover_wait(index);
                    self.await_backups(index, finished, start);
                } else {
                    return self.conclude_without_slots(index, request, ending);
                }
                if ending == Ending::Failed {
                    self.shared.watching.commands[self.number].failed(request.command);
                }
            }
            Executed::Again => {
                // With other locks: the script has found out which ones it needs.
                let mut held = EarlyLocks::new();
                let again = self.execute_on_slots(index, 0, request, &mut held, output);
                self.conclude(index, request, again, output, start);
            }
            Executed::Busy => {
                self.refuse(index, request, BUSY, output);
            }
            Executed::Queued => {
                self.shared.watching.commands[self.number].queued(request.command);
            }
            Executed::Refused(error) => self.conclude_refused(index, request, error),
            Executed::Fenced => self.refuse_fenced(index, request, output),
            Executed::Park(slot, obstacle) => {
                self.park(index, request, ParkReason::Slot(slot, obstacle), None);
            }
            Executed::LeftOut(slot, obstacle) => {
                output.truncate(start);
                self.park(index, request, ParkReason::Slot(slot, obstacle), None);
            }
            Executed::Redirect(slot) => self.send_elsewhere(index, request, slot, output),
        }
    }

    /// Makes the reply wait for the unacknowledged writes that it depends on.
    #[inline]
    fn await_backups(&mut self, index: usize, finished: Finished, start: Mark) {
        let Finished { tickets, written } = finished;
        if !written.is_empty() {
            self.connections[index].written.note(&written);
        }
        if !tickets.is_empty() {
            self.put_off_events(&tickets);
            self.withhold(index, start, tickets);
        }
    }

    /// Acts on the outcome of a command that needs no slot: it may wait for an answer, or have changed a setting.
    fn conclude_without_slots(&mut self, index: usize, request: &Request<'_>, ending: Ending) {
        let connection = &self.connections[index];
        if connection.question.is_some() {
            return self.park(index, request, ParkReason::Answer, None);
        }
        if let Some(until) = connection.wait_until {
            return self.park(index, request, ParkReason::Backups, until.at());
        }
        if self.fence.is_up() {
            self.note_topology_question(index, request);
        }
        if ending == Ending::Failed {
            self.shared.watching.commands[self.number].failed(request.command);
        }
        if request.spec.is_some_and(|spec| spec.has(Flag::Admin)) {
            self.refresh_copies(); // It may have changed a setting that applies to the next command of the batch.
        }
    }

    #[cold]
    fn conclude_refused(&mut self, index: usize, request: &Request<'_>, error: Error) {
        if self.fence.is_up() && error.is_redirection() {
            self.note_demand(request);
        }
        self.note_refusal(index, request, error);
    }

    /// Redirects the client to the node that serves the slot. A new map first changes the roles of this node's
    /// slots, and is published after that: in between the primary is unknown, and the request is parked.
    #[cold]
    fn send_elsewhere(
        &mut self,
        index: usize,
        request: &Request<'_>,
        slot: Slot,
        output: &mut Output,
    ) {
        self.refresh_copies(); // The map is newer than the one this round began with.
        if self.env.cluster.is_mine(slot) {
            return self.park(index, request, ParkReason::Slot(slot, Obstacle::Handover), None);
        }
        let error = self.env.cluster.redirection(slot);
        self.refuse(index, request, error, output);
    }

    /// Records that a command was refused with an error.
    pub(super) fn note_refusal(&mut self, index: usize, request: &Request<'_>, error: Error) {
        self.shared.watching.commands[self.number].rejected(request.command);
        self.outcome.errors.push(error);
        self.note_handover_wait(index);
    }

    /// Evicts keys if the command may need memory that is not available.
    fn make_room(&mut self, index: usize, request: &Request<'_>, held: &mut EarlyLocks<'s>) {
        let session = &self.connections[index].session;
        if !request.spec.is_some_and(|spec| needs_memory(spec, session)) {
            return;
        }
        // A copy of the slot is on a node that is full: what is written here would not fit there.
        let slot = request.key.as_ref().map(|key| key.slot());
        let is_full = |full: &SlotSet| slot.is_some_and(|slot| full.contains(slot));
        self.env.out_of_memory = self.full_slots.as_deref().is_some_and(is_full);
        if self.env.out_of_memory || self.settings.maxmemory == 0 {
            return;
        }
        let mut room = EvictionContext {
            data: &self.shared.data,
            env: &self.env,
            outcome: &mut self.outcome,
            effects: &mut self.effects,
            rng: &mut self.rng,
            later: &mut self.later,
            slots: None,
        };
        if room.is_enough(&self.settings) {
            self.env.out_of_memory = false;
            return;
        }
        held.clear(); // Eviction may lock any slot, those held here among them.
        let begun = Instant::now();
        self.env.out_of_memory = !self.evictor.evict(&self.settings, &mut room);
        let event = LATENCY_EVENTS.eviction_cycle;
        self.shared.watching.latency.note(event, begun.elapsed(), &self.settings);
    }
}

/// Returns whether a command may run a script: also EXEC does, of those that were queued.
fn may_run_script(spec: &Spec) -> bool {
    spec.has(Flag::RunsScript) || spec.full_name == "exec"
}

/// Takes the locks of the command at `place`: the lock that the batch holds for it if there is one.
struct BatchLocks<'a, 's> {
    data: &'s Data,
    place: usize,
    held: &'a mut EarlyLocks<'s>,
}

impl<'s> BatchLocks<'_, 's> {
    #[inline]
    fn early(&mut self) -> Option<SlotGuard<'s>> {
        self.held.get_mut(self.place).and_then(Option::take)
    }
}

impl<'s> TakeLocks<'s, Data> for BatchLocks<'_, 's> {
    #[inline]
    fn take_one(&mut self, slot: Slot) -> Option<SlotGuard<'s>> {
        let keyspace = &self.data.keyspace;
        if let Some(guard) = self.early().or_else(|| keyspace.try_lock(slot)) {
            return Some(guard);
        }
        self.held.clear(); // This thread is about to wait.
        self.data.lock_unless_busy(slot)
    }

    fn take(&mut self, locks: LockSet) -> Option<LockedSlots<'s, Data>> {
        if let LockSet::One(slot) = locks {
            return Some(LockedSlots::one(slot, self.take_one(slot)?));
        }
        // A command without slots may take long (DEBUG SLEEP, INFO): no other thread shall wait for our locks meanwhile.
        self.held.clear();
        LockedSlots::lock_unless_busy(self.data, locks)
    }
}
