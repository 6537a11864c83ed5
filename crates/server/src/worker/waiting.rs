//! Connections that wait before a command can run: for a handover, for copies, for the timers of other nodes,
//! for CLIENT PAUSE to end, for backups (WAIT), for keys (BLPOP: `blocked.rs`).
//!
//! Waiting is a state, not a loop. The worker parks the parsed requests, and an event wakes the first of them
//! for a retry: roles have changed (`ack_epoch`), an answer has come (`Mail::Resume`), the pause is over, a
//! backup has acknowledged something. A parked connection costs nothing meanwhile. A request that waits for
//! a slot for too long does not run, and its client gets `-TRYAGAIN`; the other waits end by themselves.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use cluster::serving::{AckEpoch, Obstacle};
use commands::{Error, Flag, OwnedArgs, PauseScope, Request, Session, Spec};
use placement::Slot;
use resp::{Output, Reply};

use super::Worker;
use super::blocked::BlockedList;
use super::execute::EarlyLocks;
use super::timing::BatchTime;

/// Timeout of a request that waits for a slot: for a handover, for copies, or for a backlog.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Error of a FLUSHALL that timed out: it goes slot by slot, and some were emptied before it had to wait.
const FLUSHED_IN_PART: Error = Error::fixed(
    "TRYAGAIN the flush timed out waiting for a slot; some slots are flushed, try again",
);

/// Requests that wait, and the reason.
pub(crate) struct Waiting {
    pub reason: ParkReason,
    /// The requests in order of arrival; the first is the one that waits.
    pub(super) requests: VecDeque<OwnedArgs>,
    since: Instant,
    /// Time at which the request is retried once more, whatever has happened.
    deadline: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParkReason {
    /// The slot is between two primaries, lacks copies, or has a backup that is far behind.
    Slot(Slot, Obstacle),
    /// The timers of other nodes, or the cluster, have not answered (`Connection::question`).
    Answer,
    /// CLIENT PAUSE.
    Pause,
    /// WAIT: not enough backups have acknowledged.
    Backups,
    /// BLPOP and others: no key has what the command waits for.
    Keys,
}

impl ParkReason {
    /// Returns whether acknowledgements may end the wait.
    fn ends_with_acks(self) -> bool {
        matches!(self, ParkReason::Backups | ParkReason::Slot(_, Obstacle::Backlog(_)))
    }
}

/// The waiting connections of a worker.
#[derive(Default)]
pub(super) struct WaitList {
    /// Indices of waiting connections; one may have been closed since.
    places: Vec<usize>,
    /// The ack epoch at the last check of the slots.
    looked_at: AckEpoch,
    /// The earliest deadline.
    next_deadline: Option<Instant>,
    /// Connections whose answer has come.
    answered: Vec<usize>,
    /// True if a connection waits for acknowledgements (WAIT, or a long backlog).
    pub awaits_acks: bool,
    /// Connections that wait for keys.
    pub blocked: BlockedList,
}

/// A request's wait for a slot, since its first obstacle, and the last one.
#[derive(Clone, Copy)]
pub(crate) struct SlotWait {
    since: Instant,
    obstacle: Obstacle,
}

impl Waiting {
    fn new(reason: ParkReason, deadline: Option<Instant>) -> Waiting {
        Waiting { reason, requests: VecDeque::with_capacity(1), since: Instant::now(), deadline }
    }

    /// Returns the size of the parked requests.
    pub(crate) fn bytes(&self) -> usize {
        self.requests.iter().map(OwnedArgs::bytes).sum()
    }
}

impl Worker<'_> {
    /// Parks a request that cannot run now. `deadline` is that of WAIT; a wait for a slot has its own.
    #[cold]
    pub(super) fn park(
        &mut self,
        index: usize,
        request: &Request<'_>,
        reason: ParkReason,
        deadline: Option<Instant>,
    ) {
        let connection = &mut self.connections[index];
        let before = connection.slot_wait.take();
        let mut waiting = Waiting::new(reason, deadline);
        waiting.since = before.map_or(waiting.since, |wait| wait.since);
        if let ParkReason::Slot(..) = reason {
            waiting.deadline = Some(waiting.since + WAIT_MAX);
        }
        waiting.requests.push_back(OwnedArgs::new(request.args.iter()));
        self.waits.note_deadline(waiting.deadline);
        self.waits.awaits_acks |= reason.ends_with_acks();
        if reason != ParkReason::Keys {
            self.waits.places.push(index);
        }
        connection.waiting = Some(Box::new(waiting));
    }

    /// Queues a request behind one that waits.
    #[cold]
    pub(super) fn queue_behind(&mut self, index: usize, request: &Request<'_>) {
        if let Some(waiting) = &mut self.connections[index].waiting {
            waiting.requests.push_back(OwnedArgs::new(request.args.iter()));
        }
    }

    /// Records that a connection's answer has come.
    pub(super) fn on_answer(&mut self, id: u64, index: usize) {
        let connection = self.connections.get(index).filter(|it| it.session.id == id);
        if let Some(connection) = connection {
            if connection.session.key_wait.is_some() {
                self.waits.blocked.woken.push(index);
            } else {
                self.waits.answered.push(index);
            }
        }
    }

    /// Retries the requests that need not wait any longer. Called once a round, before new requests are read.
    pub(super) fn resume_waiting(&mut self) {
        let before = core::mem::replace(&mut self.paused, self.shared.pauses.scope(self.env.now));
        self.resume_blocked();
        if self.waits.places.is_empty() {
            return;
        }
        let epoch = self.shared.data.ack_epoch();
        let is_late = self.waits.next_deadline.is_some_and(|deadline| deadline <= Instant::now());
        let disturbed = core::mem::replace(&mut self.waits.looked_at, epoch) != epoch;
        let unpaused = self.paused != before;
        if !is_late && !disturbed && !unpaused && self.waits.answered.is_empty() {
            return;
        }
        self.resume_if(|worker, index| worker.may_go_on(index, is_late));
    }

    /// Retries the requests that wait for acknowledgements, which may have come: WAIT, and long backlogs.
    pub(super) fn resume_waits(&mut self) {
        if self.waits.awaits_acks {
            self.resume_if(|worker, index| worker.may_go_on_with_acks(index));
        }
    }

    fn may_go_on_with_acks(&self, index: usize) -> bool {
        let waiting = self.connections[index].waiting.as_ref();
        match waiting.map(|waiting| waiting.reason) {
            Some(ParkReason::Backups) => true,
            Some(ParkReason::Slot(slot, obstacle @ Obstacle::Backlog(_))) => {
                self.is_passable(slot, obstacle)
            }
            Some(
                ParkReason::Slot(..) | ParkReason::Answer | ParkReason::Pause | ParkReason::Keys,
            )
            | None => false,
        }
    }

    fn resume_if(&mut self, may_go_on: impl Fn(&Worker<'_>, usize) -> bool) {
        let places = core::mem::take(&mut self.waits.places);
        let answered = core::mem::take(&mut self.waits.answered);
        (self.waits.next_deadline, self.waits.awaits_acks) = (None, false);
        for index in places {
            let waiting = self.connections.get(index).and_then(|it| it.waiting.as_ref());
            let Some(waiting) = waiting else { continue }; // Closed since.
            let (reason, deadline) = (waiting.reason, waiting.deadline);
            let has_answer = reason == ParkReason::Answer && answered.contains(&index);
            if has_answer || may_go_on(self, index) {
                self.resume(index);
            } else {
                self.waits.note_deadline(deadline);
                self.waits.awaits_acks |= reason.ends_with_acks();
                self.waits.places.push(index);
            }
        }
    }

    /// Returns whether the obstacle is gone, or the deadline has passed.
    fn may_go_on(&self, index: usize, is_late: bool) -> bool {
        let Some(waiting) = &self.connections[index].waiting else { return false };
        let is_over = is_late && waiting.deadline.is_some_and(|until| until <= Instant::now());
        is_over
            || match waiting.reason {
                ParkReason::Answer | ParkReason::Backups | ParkReason::Keys => false,
                ParkReason::Pause => !self.is_paused(index, &waiting.requests),
                ParkReason::Slot(slot, obstacle) => self.is_passable(slot, obstacle),
            }
    }

    /// Returns whether a slot's obstacle is gone. True for a slot that is locked: it is worth a try.
    fn is_passable(&self, slot: Slot, obstacle: Obstacle) -> bool {
        let Some(state) = self.shared.data.keyspace.try_lock(slot) else { return true };
        match obstacle {
            Obstacle::Handover => {
                !state.replica().is_paused_or_reconciling() && !state.replica().awaits_promotion()
                    || state.replica().is_serving()
            }
            Obstacle::Backlog(link) => {
                let is_fed = state.replica().downstream(link).is_some();
                !is_fed || !self.shared.data.links.is_congested(link)
            }
            Obstacle::Copies => {
                !state.replica().is_serving()
                    || 1 + state.replica().wait_set().count() >= self.min_copies
            }
        }
    }

    fn is_paused(&self, index: usize, requests: &VecDeque<OwnedArgs>) -> bool {
        let Some(first) = requests.front() else { return false };
        let request =
            Request::prepare(first.args(), &self.shared.table, &self.shared.data.keyspace.seed);
        self.must_pause(index, &request)
    }

    /// Returns whether CLIENT PAUSE stops this request.
    pub(super) fn must_pause(&self, index: usize, request: &Request<'_>) -> bool {
        let session = &self.connections[index].session;
        match self.paused {
            None => false,
            Some(PauseScope::All) => true,
            Some(PauseScope::Writes) => request.spec.is_some_and(|spec| may_write(spec, session)),
        }
    }

    /// Runs the requests of a connection that waited, until one has to wait again.
    pub(super) fn resume(&mut self, index: usize) {
        let Some(waiting) = self.connections[index].waiting.take() else { return };
        let Waiting { reason, mut requests, since, deadline } = *waiting;
        let is_late = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if let ParkReason::Slot(_, obstacle) = reason {
            if is_late {
                self.give_up(index, requests.pop_front(), obstacle);
                self.end_key_wait(index);
            } else {
                self.connections[index].slot_wait = Some(SlotWait { since, obstacle });
            }
        }
        self.run_parked(index, &requests);
    }

    /// Runs requests that were parked, until one has to wait again.
    pub(super) fn run_parked(&mut self, index: usize, requests: &VecDeque<OwnedArgs>) {
        let (table, seed) = (&self.shared.table, &self.shared.data.keyspace.seed);
        let requests: Vec<Request<'_>> =
            requests.iter().map(|args| Request::prepare(args.args(), table, seed)).collect();
        let mut time = BatchTime::start();
        // The wait for keys that the first one has behind it must not be taken for that of the next.
        let first = if self.connections[index].session.key_wait.is_some() { 1 } else { 0 };
        let (first, rest) = requests.split_at(first.min(requests.len()));
        self.run_for(index, 0, first, &mut EarlyLocks::new(), &mut time);
        if self.connections[index].waiting.is_none() {
            self.end_key_wait(index);
        }
        if !self.connections[index].session.closing {
            self.run_for(index, 0, rest, &mut EarlyLocks::new(), &mut time);
        }
        self.post();
        self.to_send.push(index);
        let connection = &mut self.connections[index];
        connection.readiness.readable |= connection.waiting.is_none();
    }

    /// Replies with an error to a request that has waited for too long. It has not run.
    fn give_up(&mut self, index: usize, args: Option<OwnedArgs>, obstacle: Obstacle) {
        let error = Error::fixed(match obstacle {
            Obstacle::Handover => {
                "TRYAGAIN timed out waiting for the handover of the slot; nothing was done, try again"
            }
            Obstacle::Backlog(_) => {
                "TRYAGAIN a backup of the slot is far behind; nothing was done, try again"
            }
            Obstacle::Copies => {
                "TRYAGAIN the slot has fewer copies than min-copies requires; nothing was done, try again"
            }
        });
        let was_flushing = self.connections[index].session.flush_from.take().is_some();
        let error = if was_flushing { FLUSHED_IN_PART } else { error };
        let Some(args) = args else { return };
        let request =
            Request::prepare(args.args(), &self.shared.table, &self.shared.data.keyspace.seed);
        let mut output = core::mem::take(&mut self.connections[index].output);
        self.refuse(index, &request, error, &mut output);
        self.connections[index].output = output;
    }

    /// Replies with an error to a request that has not run.
    pub(super) fn refuse(
        &mut self,
        index: usize,
        request: &Request<'_>,
        error: Error,
        output: &mut Output,
    ) {
        let session = &mut self.connections[index].session;
        Reply::new(output, session.protocol).error(error.text());
        session.refused();
        self.note_refusal(index, request, error);
    }

    /// Records how long a handover held up this connection's request, which is now answered or redirected.
    #[inline]
    pub(super) fn note_handover_wait(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if let Some(SlotWait { since, obstacle: Obstacle::Handover }) = connection.slot_wait.take()
        {
            self.shared.data.handover_waits.note(since.elapsed());
        }
    }

    /// Returns the time until the earliest deadline of a waiting connection.
    pub(super) fn until_deadline(&self) -> Option<Duration> {
        let deadlines = [self.waits.next_deadline, self.waits.blocked.next_deadline()];
        let deadline = deadlines.into_iter().flatten().min()?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }
}

impl WaitList {
    fn note_deadline(&mut self, deadline: Option<Instant>) {
        let earliest = [self.next_deadline, deadline].into_iter().flatten().min();
        self.next_deadline = earliest;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.blocked.is_empty()
    }

    pub(super) fn has_answers(&self) -> bool {
        !self.answered.is_empty()
    }
}

/// Returns whether a command may change anything, itself, by a script or by running queued commands (EXEC).
fn may_write(spec: &Spec, session: &Session) -> bool {
    let writes = |spec: &Spec| spec.may_write() || spec.has(Flag::MayReplicate);
    let queue = session.queue.as_ref().filter(|_| spec.name == "exec");
    writes(spec)
        || queue.is_some_and(|queue| queue.commands.iter().any(|queued| writes(queued.spec)))
}
