//! A node's timers: one input in, actions out. Start reading here.
//!
//! The parts, in the order a timer meets them: `change.rs` creates and deletes it, `pop.rs` makes the callback
//! when it is due, `doubt.rs` asks the other nodes first if that is not certain, `resync.rs` hands it over when
//! members change, `follow.rs` tracks which epoch each member follows, `look.rs` answers queries, `turned.rs`
//! reports clients that come to a node without a lease.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::calls::Calls;
use crate::change::{Coordinated, Numbered};
use crate::dead::DeadLetters;
use crate::finished::FinishedRequests;
use crate::follow::Follower;
use crate::ids::{MembersEpoch, MonotonicMillis, Now, TimeSpan, TimerId, TimerPeer, TimerVersion};
use crate::input::{
    AGAIN_AFTER, CallId, TimerAction, TimerInput, TimerRequest, TimerRule, TimerSettings,
};
use crate::lease::NodeLease;
use crate::look::Looking;
use crate::members::Members;
use crate::message::{Propose, RequestId, Stage, TimerMessage};
use crate::pop::{InFlight, Pop};
use crate::record::{Record, TimerLife, TimerState};
use crate::resync::Resync;
use crate::stats::Stats;
use crate::table::{Era, ReplicaRank, STAGGER, TimerEntry, TimerTable, UpdateContext};

/// The timers of a node, and everything in progress with them.
pub struct Timers {
    pub(crate) me: TimerPeer,
    pub(crate) settings: TimerSettings,
    pub(crate) now: Now,
    pub(crate) lease: NodeLease,
    /// The last moment at which this node was certainly in the map, before its present stay in it.
    pub(crate) departed: MonotonicMillis,
    /// Time before the clock's zero that is to be added: a machine that was rebooted counts anew.
    pub(crate) departed_earlier: TimeSpan,
    /// The start of this process, if it came back from a crash: it may have missed how a timer ended before.
    pub(crate) restarted_at: Option<MonotonicMillis>,
    /// The last epoch that both sides of a split followed, if this node comes from the other side. A timer that
    /// was changed there under a later epoch cannot have been ended by anybody here.
    pub(crate) parted_at: Option<MembersEpoch>,
    pub(crate) members: Members,
    /// Counters of member lists and of this node's stays in the map. An entry's place and certainty are valid
    /// only for the counters it was set under.
    pub(crate) era: Era,
    pub(crate) table: TimerTable,
    /// Every other member, and its progress with the epoch.
    pub(crate) followers: BTreeMap<TimerPeer, Follower>,
    /// Clients' requests at this node that wait for a primary.
    pub(crate) coordinated: BTreeMap<RequestId, Coordinated>,
    /// Changes that this node has numbered as primary and that not all nodes have acknowledged.
    pub(crate) numbered: BTreeMap<(TimerId, TimerVersion), Numbered>,
    /// The requests behind the changes in `numbered` and `parked`.
    pub(crate) under_way: BTreeSet<(TimerPeer, RequestId)>,
    /// Results of answered requests whose coordinator may repeat its proposal.
    pub(crate) finished: FinishedRequests,
    /// Proposals that wait until every member has entered the epoch.
    pub(crate) parked: Vec<(TimerPeer, Propose)>,
    /// Timers whose pop is in progress.
    pub(crate) pops: BTreeMap<TimerId, Pop>,
    /// Timers that this node has popped recently.
    pub(crate) told_lately: VecDeque<(TimerId, MonotonicMillis)>,
    /// Timers that other nodes are calling for now: their progress, and until when they are left to those nodes.
    pub(crate) left_to_others: BTreeMap<TimerId, (TimerState, MonotonicMillis)>,
    pub(crate) calls: Calls,
    pub(crate) in_flight: BTreeMap<CallId, InFlight>,
    pub(crate) next_call: u64,
    pub(crate) resync: Resync,
    pub(crate) looking: BTreeMap<RequestId, Looking>,
    pub(crate) dead: DeadLetters,
    pub(crate) stats: Stats,
    /// The generator of new timers' ids: a seed, and the number of ids drawn.
    pub(crate) ids: (u64, u64),
    /// The time of the next retry to nodes that have not answered.
    pub(crate) again_at: MonotonicMillis,
    pub(crate) out: Vec<TimerAction>,
}

impl Timers {
    /// Creates a node's timers. `seed` must differ between nodes and between boots: ids are drawn from it.
    pub fn new(me: TimerPeer, seed: u64, now: Now, settings: TimerSettings) -> Timers {
        Timers {
            me,
            settings,
            now,
            lease: NodeLease::default(),
            departed: now.moment,
            departed_earlier: TimeSpan::ZERO,
            restarted_at: None,
            parted_at: None,
            members: Members::nobody(),
            era: Era::default(),
            table: TimerTable::new(now.moment),
            followers: BTreeMap::new(),
            coordinated: BTreeMap::new(),
            numbered: BTreeMap::new(),
            under_way: BTreeSet::new(),
            finished: FinishedRequests::default(),
            parked: Vec::new(),
            pops: BTreeMap::new(),
            told_lately: VecDeque::new(),
            left_to_others: BTreeMap::new(),
            calls: Calls::new(settings.calls),
            in_flight: BTreeMap::new(),
            next_call: 0,
            resync: Resync::default(),
            looking: BTreeMap::new(),
            dead: DeadLetters::default(),
            stats: Stats::default(),
            ids: (seed, 0),
            again_at: MonotonicMillis(0),
            out: Vec::new(),
        }
    }

    /// Handles one input. Appends the actions for the outside world to `out`.
    pub fn handle(&mut self, now: Now, input: TimerInput, out: &mut Vec<TimerAction>) {
        std::mem::swap(&mut self.out, out);
        self.set_time(now);
        match input {
            TimerInput::Members { epoch, members } => {
                self.on_members(Members::new(epoch, &members));
            }
            TimerInput::Lease { until } => self.on_lease(until),
            TimerInput::Request { request, wish } => self.on_request(request, wish),
            TimerInput::Peer { from, message } => self.on_message(from, message),
            TimerInput::CallEnded { call, result } => self.on_call_ended(call, result),
            TimerInput::Tick => {}
        }
        self.pop_due();
        self.resync_go_on();
        self.ask_again();
        self.start_calls();
        std::mem::swap(&mut self.out, out);
    }

    /// Returns the memory of this node's timers, copies and tombstones.
    pub fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// Changes the limit of that memory. What is stored stays.
    pub fn set_bytes_max(&mut self, bytes_max: u64) {
        self.settings.bytes_max = bytes_max;
    }

    /// Returns when `Tick` should be sent if no other input arrives.
    pub fn next_wake(&self) -> Option<MonotonicMillis> {
        let again = self.awaits_anybody().then_some(self.again_at);
        let at_once = self.resync.can_go_on().then_some(self.now.moment);
        [self.table.next_moment(), again, at_once].into_iter().flatten().min()
    }

    /// Returns whether this node holds nothing that others lack, and nobody waits for its answer: then it may
    /// leave. It must hand over tombstones, too: a timer set again under the same id continues its sequence
    /// from there. If all nodes leave at once, there is nobody to hand anything over to.
    pub fn is_empty_handed(&self) -> bool {
        let keeps_none = self.table.len() == 0 || self.members.nobody_keeps_any();
        let awaits_none = self.coordinated.is_empty() && self.looking.is_empty();
        keeps_none && awaits_none && self.in_flight.is_empty() && self.numbered.is_empty()
    }

    /// Returns whether this node holds exactly the timers it keeps by the present list of members.
    pub fn is_settled(&self) -> bool {
        self.resync.stage() == Stage::Settled
    }

    /// Returns the timers this node keeps, and its place for each. Those it is about to hand over are not included.
    pub fn kept(&self) -> impl Iterator<Item = (TimerId, u8)> {
        let pending = self.table.after(None).filter(|entry| entry.is_pending());
        pending.filter_map(|entry| match entry.place {
            ReplicaRank::Replica(place) => Some((entry.id(), place)),
            ReplicaRank::Former(_) => None,
        })
    }

    pub fn pending(&self) -> usize {
        self.table.pending()
    }

    /// Returns whether there is anything to hand over: timers, or tombstones.
    pub fn holds_any(&self) -> bool {
        self.table.len() > 0
    }

    /// Returns this node's own statistics.
    pub fn stats(&self) -> Stats {
        Stats {
            held: self.table.pending() as u64,
            due: self.pops.len() as u64,
            tombstones: self.table.tombstones() as u64,
            calls_in_flight: self.calls.in_flight() as u64,
            calls_waiting: self.calls.waiting() as u64,
            ..self.stats.clone()
        }
    }

    fn on_request(&mut self, request: RequestId, wish: TimerRequest) {
        match wish {
            TimerRequest::Create { spec, factor } => self.create(request, spec, factor),
            TimerRequest::Put { id, spec } => self.put(request, id, spec),
            TimerRequest::Delete(id) => self.delete(request, id),
            TimerRequest::See(sight) => self.look(request, sight),
        }
    }

    fn on_message(&mut self, from: TimerPeer, message: TimerMessage) {
        match message {
            TimerMessage::Hello(m) => self.on_hello(from, &m),
            TimerMessage::Propose(m) => self.on_propose(from, m),
            TimerMessage::LookAgain(m) => self.on_look_again(&m),
            TimerMessage::Done(m) => self.on_done(&m),
            TimerMessage::Store(m) => self.on_store(from, &m),
            TimerMessage::Stored(m) => self.on_stored(from, &m),
            TimerMessage::Calling(m) => self.on_calling(from, &m),
            TimerMessage::Popped(m) => self.on_popped(from, &m),
            TimerMessage::Failed(m) => self.on_failed(&m),
            TimerMessage::Want(m) => self.on_want(from, &m),
            TimerMessage::Ask(m) => self.on_ask(from, &m),
            TimerMessage::Answered(m) => self.on_answered(from, m),
            TimerMessage::Offer(m) => self.on_offer(from, &m),
            TimerMessage::Wanted(m) => self.on_wanted(from, m),
            TimerMessage::Fill(m) => self.on_fill(from, m),
            TimerMessage::Filled(m) => self.on_filled(from, &m),
            TimerMessage::Look(m) => self.on_look(from, &m),
            TimerMessage::LookReply(m) => self.on_seen(from, m),
        }
    }

    fn on_lease(&mut self, until: MonotonicMillis) {
        self.lease.set(until, self.now.moment);
        self.finish_numbered();
    }

    /// Sets the time. The monotonic clock never goes back: an earlier moment is ignored.
    fn set_time(&mut self, now: Now) {
        self.now = self.now.max_with(now);
    }

    /// Asks silent nodes again: a link may have broken in either direction.
    fn ask_again(&mut self) {
        if !self.awaits_anybody() {
            self.again_at = self.now.moment + AGAIN_AFTER;
            return;
        }
        if self.again_at <= self.now.moment {
            self.again_at = self.now.moment + AGAIN_AFTER;
            self.follow_again();
            self.coordinate_again();
            self.number_again();
            self.resync_again();
            self.resolve_doubts();
            self.look_again();
            self.tell_of_client();
        }
    }

    fn awaits_anybody(&self) -> bool {
        !self.coordinated.is_empty()
            || !self.numbered.is_empty()
            || !self.looking.is_empty()
            || !self.is_settled()
            || self.followers.values().any(|follower| !follower.is_done(self.members.epoch()))
    }

    pub(crate) fn moment(&self) -> MonotonicMillis {
        self.now.moment
    }

    pub(crate) fn has_lease(&self) -> bool {
        self.lease.is_valid(self.now.moment)
    }

    /// Returns the time since this node was last certainly in the map, before its present stay.
    pub(crate) fn absent_for(&self) -> TimeSpan {
        self.now.moment - self.departed + self.departed_earlier
    }

    pub(crate) fn set_absent_for(&mut self, away: TimeSpan) {
        let now = self.now.moment;
        self.departed = MonotonicMillis(now.0.saturating_sub(away.0));
        self.departed_earlier = TimeSpan(away.0 - (now - self.departed).0);
    }

    pub(crate) fn keeps(&self, rule: TimerRule) -> bool {
        !cfg!(debug_assertions) || self.settings.broken != Some(rule)
    }

    pub(crate) fn send(&mut self, to: TimerPeer, message: TimerMessage) {
        self.out.push(TimerAction::Send { to, message });
    }

    /// Returns the other nodes that keep a timer.
    pub(crate) fn others(&self, id: TimerId) -> Vec<TimerPeer> {
        let mut replicas = self.members.replicas(id);
        replicas.retain(|node| *node != self.me);
        replicas
    }

    /// Returns this node's place for a timer by the present list of members; a former holder keeps its old place.
    pub(crate) fn place(&self, id: TimerId, before: Option<ReplicaRank>) -> ReplicaRank {
        let place = self.members.replicas(id).iter().position(|node| *node == self.me);
        match (place, before) {
            (Some(place), _) => {
                ReplicaRank::Replica(u8::try_from(place).expect("a factor is a byte"))
            }
            (None, Some(ReplicaRank::Replica(place) | ReplicaRank::Former(place))) => {
                ReplicaRank::Former(place)
            }
            (None, None) => ReplicaRank::Former(0),
        }
    }

    /// Stores a record if it has more progress than the present entry.
    pub(crate) fn adopt(&mut self, record: &Record) {
        let known = self.table.get(record.id);
        if known.is_none() && !self.members.replicas(record.id).contains(&self.me) {
            return; // Already released; other nodes have it.
        }
        if known.is_some_and(|entry| entry.progress() >= record.progress()) {
            return;
        }
        if matches!(record.life, TimerLife::Ended { .. }) && !self.keeps(TimerRule::Tombstones) {
            return self.forget(record.id);
        }
        let place = self.place(record.id, known.map(|entry| entry.place));
        self.pops.remove(&record.id);
        let mut clock = UpdateContext { now: self.now.rounded_up, stats: &mut self.stats };
        self.table.put(record, place, self.era, &mut clock);
        self.keep_quiet(record);
    }

    /// Postpones this node's turn for a timer just received, if another node is calling for it.
    fn keep_quiet(&mut self, record: &Record) {
        let TimerLife::Pending { quiet_for, .. } = record.life else { return };
        let now = self.now.moment;
        let left = self.left_to_others.get(&record.id);
        let left = left.filter(|(progress, _)| *progress == record.progress());
        let until = [
            self.table.moment_of(record.id),
            left.map(|(_, until)| *until),
            (quiet_for > TimeSpan::ZERO).then(|| now + quiet_for + STAGGER),
        ];
        if let Some(until) = until.into_iter().flatten().max() {
            self.table.postpone(record.id, until);
        }
    }

    pub(crate) fn change_entry(&mut self, id: TimerId, change: impl FnOnce(&mut TimerEntry)) {
        let mut clock = UpdateContext { now: self.now.rounded_up, stats: &mut self.stats };
        self.table.change(id, &mut clock, change);
    }

    pub(crate) fn forget(&mut self, id: TimerId) {
        self.pops.remove(&id);
        self.table.remove(id, &mut self.stats);
    }
}

#[cfg(test)]
mod tests;
