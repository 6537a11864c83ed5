//! A due timer: the callback, telling the other replicas, and handling a failure.
//!
//! The primary's turn comes when the timer is due, each backup's `STAGGER` later. The calling node tells the
//! others when it starts and how the call ended; the others then wait, take over, or move on to the next pop.
//! `doubt.rs` asks first if this node may have missed something. While a pop is in progress, the wheel holds
//! the moment at which its phase is over.

use crate::core::Timers;
use crate::dead::DeadLetter;
use crate::doubt::DoubtRound;
use crate::ids::{MonotonicMillis, TimeSpan, TimerId, TimerPeer};
use crate::input::{Call, CallId, LATE, TimerAction, TimerRule};
use crate::message::{Calling, Failed, Fill, Popped, TimerMessage, Want};
use crate::record::{Record, TimerLife, TimerState};
use crate::spec::{Callback, TimerSpec};
use crate::table::{ReplicaRank, STAGGER, TimerEntry};

/// Maximum number of timers popped per input, so that other inputs get their turn.
const POPS_AT_ONCE: usize = 1000;
/// Interval between checks whether all members have entered the epoch, after a turn has come.
const ENTERED_AGAIN: TimeSpan = TimeSpan(20);
/// Age after which a sent message has either arrived or been lost.
const TOLD_LATELY: TimeSpan = STAGGER;
/// Time after its timeout at which a call without a result is considered failed.
const CALL_OVERDUE: TimeSpan = TimeSpan::from_secs(5);

/// A pop in progress on this node.
pub(crate) struct Pop {
    pub(crate) progress: TimerState,
    pub(crate) phase: PopPhase,
    /// The time at which the last call began. That call covers everything that was due by then.
    started: MonotonicMillis,
    /// Number of retries since every replica's callback failed. `None` before that.
    retries: Option<u32>,
    /// The error of the last attempt.
    why: String,
}

pub(crate) enum PopPhase {
    /// The other nodes are being asked whether the timer must still be popped.
    Asking(DoubtRound),
    /// The other nodes will be asked again at the scheduled moment.
    HeldBack,
    /// Queued until the limits allow the call.
    Waiting,
    Calling(CallId),
    /// This node's callback has failed; the next replica tries.
    OthersTry,
    /// All replicas have failed; this node tries again at the scheduled moment.
    Backoff,
}

/// A call in flight: the data needed when it ends.
pub(crate) struct InFlight {
    id: TimerId,
    destination: Box<str>,
}

impl Pop {
    pub(crate) fn new(progress: TimerState, phase: PopPhase) -> Pop {
        Pop { progress, phase, started: MonotonicMillis(0), retries: None, why: String::new() }
    }

    pub(crate) fn is_calling(&self) -> bool {
        matches!(self.phase, PopPhase::Calling(_))
    }
}

// The callback.
impl Timers {
    pub(crate) fn pop_due(&mut self) {
        for _ in 0..POPS_AT_ONCE {
            let Some((id, at)) = self.table.pop(self.now.moment) else { return };
            self.come_due(id, at);
        }
    }

    fn come_due(&mut self, id: TimerId, at: MonotonicMillis) {
        if !self.table.get(id).is_some_and(|entry| entry.is_pending()) {
            return self.forget(id);
        }
        match self.pops.get(&id).map(|pop| &pop.phase) {
            None => self.turn_has_come(id, at),
            Some(PopPhase::Asking(_)) => self.doubt_over(id),
            Some(PopPhase::HeldBack) => self.doubt(id),
            Some(PopPhase::Waiting) => {}
            Some(PopPhase::Calling(_)) => {
                self.call_failed(id, "no result from the callback".to_owned());
            }
            Some(PopPhase::OthersTry) => self.retry_or_give_up(id),
            Some(PopPhase::Backoff) => self.call(id),
        }
    }

    fn turn_has_come(&mut self, id: TimerId, at: MonotonicMillis) {
        if !self.members.contains(self.me) {
            // Other nodes keep it now; this node hears from them, or asks, when it is back in the map.
            return self.table.postpone(id, self.moment() + LATE);
        }
        let entry = self.table.get(id).expect("the caller saw it");
        if entry.era.listing != self.era.listing {
            return self.rank(id); // It comes due again at its turn by the present list.
        }
        if !self.all_entered() && self.moment() < entry.turn() + STAGGER {
            // A node that does not know this list yet may be popping the timer by the previous one. It reports
            // its pops before it reports that it has entered this epoch.
            return self.table.postpone(id, self.moment() + ENTERED_AGAIN);
        }
        let is_late = self.moment() - at > LATE;
        let is_former = matches!(entry.place, ReplicaRank::Former(_));
        let is_unsure = entry.era.stay != self.era.stay;
        let in_doubt = is_late || is_former || is_unsure || !self.has_lease();
        if in_doubt && self.keeps(TimerRule::AskWhenInDoubt) {
            self.doubt(id);
        } else {
            self.call(id);
        }
    }

    /// Updates this node's place by the present list. A pop in progress keeps its scheduled moment, and so does
    /// a timer that was postponed because another node is calling.
    pub(crate) fn rank(&mut self, id: TimerId) {
        let Some(entry) = self.table.get(id) else { return };
        let (place, turn) = (self.place(id, Some(entry.place)), entry.turn());
        let moment = self.table.moment_of(id);
        let listing = self.era.listing;
        self.change_entry(id, |entry| {
            entry.place = place;
            entry.era.listing = listing;
        });
        match moment {
            Some(moment) if self.pops.contains_key(&id) => self.table.postpone(id, moment),
            Some(moment) if moment > turn => {
                let own = self.table.moment_of(id).unwrap_or(moment);
                self.table.postpone(id, moment.max(own));
            }
            None if self.pops.contains_key(&id) => self.table.unschedule(id),
            Some(_) | None => {}
        }
    }

    /// Queues the call until the limits allow it.
    pub(crate) fn call(&mut self, id: TimerId) {
        let entry = self.table.get(id).expect("only what is here is called");
        let (progress, destination) = (entry.progress(), destination(&entry.spec()).to_owned());
        let pop = self.pops.entry(id).or_insert_with(|| Pop::new(progress, PopPhase::Waiting));
        pop.phase = PopPhase::Waiting;
        self.calls.enqueue(&destination, id);
    }

    pub(crate) fn start_calls(&mut self) {
        while let Some((destination, id)) = self.calls.start() {
            let is_wanted =
                self.pops.get(&id).is_some_and(|pop| matches!(pop.phase, PopPhase::Waiting));
            if is_wanted {
                self.start_call(id, destination);
            } else {
                self.calls.ended(&destination);
            }
        }
    }

    fn start_call(&mut self, id: TimerId, destination: Box<str>) {
        let entry = self.table.get(id).expect("a pop under way has its entry");
        let TimerSpec { callback, .. } = entry.spec();
        let (sequence, due) = (entry.sequence, entry.due);
        let call = CallId(self.next_call);
        self.next_call += 1;
        let pop = self.pops.get_mut(&id).expect("the caller saw it");
        pop.phase = PopPhase::Calling(call);
        pop.started = self.now.moment;
        self.in_flight.insert(call, InFlight { id, destination });
        self.stats.lateness.add(self.now.moment - due);
        let timeout = callback.timeout();
        self.table.postpone(id, self.moment() + timeout + CALL_OVERDUE);
        self.out.push(TimerAction::Call(Call { call, id, sequence, callback }));
        self.tell_calling(id, timeout);
    }

    pub(crate) fn on_call_ended(&mut self, call: CallId, result: Result<(), String>) {
        let Some(InFlight { id, destination }) = self.in_flight.remove(&call) else { return };
        self.calls.ended(&destination);
        match &result {
            Ok(()) => self.stats.popped += 1,
            Err(_) => self.stats.failed += 1,
        }
        let phase = self.pops.get(&id).map(|pop| &pop.phase);
        if !matches!(phase, Some(PopPhase::Calling(own)) if *own == call) {
            // The timer was changed, deleted or popped elsewhere during the call.
            return self.let_go_if_handed(id);
        }
        match result {
            Ok(()) => self.next_pop(id),
            Err(why) => self.call_failed(id, why),
        }
    }

    /// Finishes this pop and moves on to the next one, here and at the other replicas.
    fn next_pop(&mut self, id: TimerId) {
        let pop = self.pops.remove(&id).expect("only what was called goes on");
        self.change_entry(id, |entry| entry.advance(pop.started));
        self.tell_popped(id);
        let now = self.moment();
        while self.told_lately.front().is_some_and(|(_, at)| now - *at > TOLD_LATELY) {
            self.told_lately.pop_front();
        }
        self.told_lately.push_back((id, now));
        self.let_go_if_handed(id);
    }

    fn call_failed(&mut self, id: TimerId, why: String) {
        let timeout = self.table.get(id).expect("it was called").spec().callback.timeout();
        let (place, last) = self.place_of_last(id);
        let pop = self.pops.get_mut(&id).expect("it was called");
        pop.why = why;
        if pop.retries.is_some() || place >= last {
            return self.retry_or_give_up(id);
        }
        pop.phase = PopPhase::OthersTry;
        let progress = pop.progress;
        // Each replica after us may take its turn and its timeout. If none of them reports, this node continues.
        let turns = u64::from(last - place);
        let until = self.moment() + (STAGGER + timeout).times(turns) + STAGGER;
        self.table.postpone(id, until);
        self.tell(id, &TimerMessage::Failed(Failed { id, progress, place }));
    }

    fn retry_or_give_up(&mut self, id: TimerId) {
        let spec = self.table.get(id).expect("it was called").spec();
        let pop = self.pops.get_mut(&id).expect("it was called");
        let made = pop.retries.unwrap_or(0);
        if made >= spec.retry.attempts {
            return self.give_up(id, &spec);
        }
        pop.retries = Some(made + 1);
        pop.phase = PopPhase::Backoff;
        let wait = spec.retry.wait(made);
        self.table.postpone(id, self.moment() + wait);
        self.tell_calling(id, wait + spec.callback.timeout());
    }

    fn give_up(&mut self, id: TimerId, spec: &TimerSpec) {
        let pop = self.pops.get_mut(&id).expect("it was called");
        self.stats.given_up += 1;
        self.dead.add(DeadLetter {
            id,
            sequence: pop.progress.sequence,
            destination: destination(spec).to_owned(),
            why: std::mem::take(&mut pop.why),
            at: self.now.wall,
        });
        self.next_pop(id);
    }

    /// Returns this node's place, and that of the last replica; a former holder comes one after it.
    fn place_of_last(&self, id: TimerId) -> (u8, u8) {
        let replicas = self.members.replicas(id);
        let count = u8::try_from(replicas.len()).expect("a factor is a byte");
        let place = replicas.iter().position(|node| *node == self.me);
        let place = place.and_then(|place| u8::try_from(place).ok()).unwrap_or(count);
        (place, count.saturating_sub(1))
    }
}

// Messages to and from the other replicas.
impl Timers {
    fn tell(&mut self, id: TimerId, message: &TimerMessage) {
        for node in self.others(id) {
            self.send(node, message.clone());
        }
    }

    fn tell_calling(&mut self, id: TimerId, within: TimeSpan) {
        if !self.keeps(TimerRule::TellCalling) {
            return;
        }
        let (place, _) = self.place_of_last(id);
        let progress = self.table.get(id).expect("it is called").progress();
        self.tell(id, &TimerMessage::Calling(Calling { id, progress, place, within }));
    }

    fn tell_popped(&mut self, id: TimerId) {
        let Some(entry) = self.table.get(id).filter(|_| self.keeps(TimerRule::TellPopped)) else {
            return;
        };
        let (progress, left) = (entry.progress(), entry.left);
        let due_in = self.moment().until(entry.due);
        self.tell(id, &TimerMessage::Popped(Popped { id, progress, left, due_in }));
    }

    /// Repeats recent messages after a new list of members: the nodes that keep our timers now must know our
    /// pops and calls under the previous list.
    pub(crate) fn tell_anew(&mut self) {
        let now = self.moment();
        for (id, at) in std::mem::take(&mut self.told_lately) {
            if now - at <= TOLD_LATELY {
                self.tell_popped(id);
            }
        }
        let calling = self.pops.iter().filter(|(_, pop)| pop.is_calling());
        let calling: Vec<TimerId> = calling.map(|(id, _)| *id).collect();
        for id in calling {
            let until = self.table.moment_of(id).map_or(TimeSpan::ZERO, |moment| now.until(moment));
            self.tell_calling(id, until);
        }
    }

    pub(crate) fn on_calling(&mut self, from: TimerPeer, calling: &Calling) {
        let id = calling.id;
        self.leave_to_others(id, calling.progress, self.moment() + calling.within + STAGGER);
        let known = self.table.get(id).map(TimerEntry::progress);
        match known {
            Some(known) if known == calling.progress => {}
            Some(known) if known > calling.progress => return, // The caller was told of the later state.
            Some(_) | None => return self.want(from, id),
        }
        let (place, _) = self.place_of_last(id);
        let places = u64::from(place.saturating_sub(calling.place)).max(1);
        let until = self.moment() + calling.within + STAGGER.times(places);
        match self.pops.get(&id).map(|pop| &pop.phase) {
            // Both nodes call: one of them learned of the other too late. The receiver recognizes the duplicate
            // by its number.
            Some(PopPhase::Calling(_) | PopPhase::Backoff) => {}
            Some(PopPhase::OthersTry) => self.table.postpone(id, until),
            Some(PopPhase::Asking(_) | PopPhase::HeldBack | PopPhase::Waiting) | None => {
                self.pops.remove(&id);
                self.table.postpone(id, until);
            }
        }
    }

    pub(crate) fn on_popped(&mut self, from: TimerPeer, popped: &Popped) {
        let id = popped.id;
        let Some(entry) = self.table.get(id) else { return self.on_popped_unknown(from, popped) };
        if entry.progress() >= popped.progress {
            return; // Popped by this node too, or changed since.
        }
        // Our state differs from the sender's: it has a later version; or each side of a split went on alone and
        // fewer pops were missed there, so that the timer has ended here and continues there.
        let has_ended_here = !entry.is_pending() && popped.left > 0;
        if entry.version < popped.progress.version || has_ended_here {
            return self.want(from, id);
        }
        let (due, stay) = (self.now.rounded_up + popped.due_in, self.era.stay);
        self.pops.remove(&id);
        self.change_entry(id, |entry| {
            entry.sequence = popped.progress.sequence;
            entry.left = popped.left;
            entry.due = due;
            entry.era.stay = stay;
        });
    }

    /// Handles the pop of a timer that this node keeps but has not received yet.
    fn on_popped_unknown(&mut self, from: TimerPeer, popped: &Popped) {
        let Popped { id, progress: TimerState { version, sequence }, left, due_in } = *popped;
        if left > 0 {
            return self.want(from, id);
        }
        // The node that hands it over may not know that this was its last pop.
        let life = TimerLife::Ended { forget_in: due_in };
        self.adopt(&Record { id, version, sequence, life });
    }

    pub(crate) fn on_failed(&mut self, failed: &Failed) {
        let id = failed.id;
        let Some(entry) = self.table.get(id) else { return };
        let (place, _) = self.place_of_last(id);
        let is_mine = entry.progress() == failed.progress && place > failed.place;
        if is_mine && !self.pops.contains_key(&id) {
            let places = u64::from(place - failed.place - 1);
            let turn = entry.turn().max(self.moment() + STAGGER.times(places));
            self.table.postpone(id, turn);
        }
    }

    /// Asks for a timer that this node keeps and does not know, or not in the sender's state.
    fn want(&mut self, from: TimerPeer, id: TimerId) {
        if self.members.replicas(id).contains(&self.me) {
            self.send(from, TimerMessage::Want(Want { id }));
        }
    }

    pub(crate) fn on_want(&mut self, from: TimerPeer, want: &Want) {
        let Some(record) = self.record(want.id) else { return };
        let records = vec![record];
        let epoch = self.members.epoch();
        self.send(from, TimerMessage::Fill(Fill { epoch, page: None, records }));
    }
}

// State of a pop in progress that other nodes need.
impl Timers {
    /// Returns whether this node is calling for a timer now, or another node that has reported it.
    pub(crate) fn is_called(&self, id: TimerId) -> bool {
        let Some(entry) = self.table.get(id) else { return false };
        let by_us = |pop: &Pop| pop.is_calling() || pop.retries.is_some();
        let by_others = |(progress, until): &(TimerState, MonotonicMillis)| {
            *progress == entry.progress() && *until > self.now.moment
        };
        self.pops.get(&id).is_some_and(by_us) || self.left_to_others.get(&id).is_some_and(by_others)
    }

    /// Returns a timer as another node should take it over. If a node is calling, the receiver must not call
    /// for that long.
    pub(crate) fn record(&self, id: TimerId) -> Option<Record> {
        let entry = self.table.get(id)?;
        let mut record = entry.record(self.moment());
        if let TimerLife::Pending { quiet_for, .. } = &mut record.life {
            let waits = self.table.moment_of(id).map(|moment| self.moment().until(moment));
            let is_put_off = self.table.moment_of(id).is_some_and(|moment| moment > entry.turn());
            *quiet_for = match self.pops.get(&id).map(|pop| &pop.phase) {
                Some(PopPhase::Calling(_) | PopPhase::Backoff | PopPhase::OthersTry) => {
                    waits.unwrap_or(TimeSpan::ZERO)
                }
                // If it is postponed for any other reason than a call, it is the receiver's to pop.
                None if is_put_off && self.is_called(id) => waits.unwrap_or(TimeSpan::ZERO),
                Some(PopPhase::Asking(_) | PopPhase::HeldBack | PopPhase::Waiting) | None => {
                    TimeSpan::ZERO
                }
            };
        }
        Some(record)
    }
}

/// Returns the key by which calls are limited: each host has its own limit, and so do local callbacks.
fn destination(spec: &TimerSpec) -> &str {
    match &spec.callback {
        Callback::Http { target, .. } => target.authority(),
        Callback::Publish { .. } => "publish",
        Callback::Command(_) => "command",
    }
}
