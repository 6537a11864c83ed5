//! A node's timers: one input in, actions out. Start reading here.
//!
//! The parts, in the order a timer meets them: `change.rs` makes and deletes it, `pop.rs` calls back
//! when it is due, `doubt.rs` asks first where that is not certain, `resync.rs` hands it over when
//! members change, `follow.rs` knows who follows which epoch, `look.rs` shows what is there, `turned.rs`
//! says so when clients come to a node that may not serve.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::calls::Calls;
use crate::change::{Coordinated, Numbered};
use crate::dead::DeadLetters;
use crate::finished::Finished;
use crate::follow::Follower;
use crate::ids::{Epoch, Moment, NodeId, Now, Span, TimerId, Version};
use crate::input::{AGAIN_AFTER, Action, CallId, Input, Rule, Settings, Wish};
use crate::lease::Lease;
use crate::look::Looking;
use crate::members::Members;
use crate::message::{Message, Propose, RequestId, Stage};
use crate::pop::{InFlight, Pop};
use crate::record::{Life, Progress, Record};
use crate::resync::Resync;
use crate::stats::Stats;
use crate::table::{Clock, Entry, Era, Place, STAGGER, Table};

/// What a node keeps of timers, and what it is doing with them.
pub struct Timers {
    pub(crate) me: NodeId,
    pub(crate) settings: Settings,
    pub(crate) now: Now,
    pub(crate) lease: Lease,
    /// When we were last sure to be in the map, before the present stay in it.
    pub(crate) departed: Moment,
    /// What this node brought from the other side of a split and was changed there under a later epoch:
    /// nobody here can have ended it.
    pub(crate) parted_at: Option<Epoch>,
    pub(crate) members: Members,
    /// Counts lists of members, and stays among them: whose entries' places and truth are current.
    pub(crate) era: Era,
    pub(crate) table: Table,
    /// Every other member, and how far it follows.
    pub(crate) followers: BTreeMap<NodeId, Follower>,
    /// Requests of clients of this node that wait for a primary.
    pub(crate) coordinated: BTreeMap<RequestId, Coordinated>,
    /// Changes that this node has numbered as primary and that not all have acknowledged.
    pub(crate) numbered: BTreeMap<(TimerId, Version), Numbered>,
    /// Whose they are, and those of `parked`.
    pub(crate) under_way: BTreeSet<(NodeId, RequestId)>,
    /// Changes that it has answered and may be asked for again.
    pub(crate) finished: Finished,
    /// Proposals that wait until every member has entered the epoch.
    pub(crate) parked: Vec<(NodeId, Propose)>,
    /// Timers in the middle of a pop.
    pub(crate) pops: BTreeMap<TimerId, Pop>,
    /// What we have popped in the last moments.
    pub(crate) told_lately: VecDeque<(TimerId, Moment)>,
    /// Timers that others call for now: how far they had come, and until when it is theirs.
    pub(crate) left_to_others: BTreeMap<TimerId, (Progress, Moment)>,
    pub(crate) calls: Calls,
    pub(crate) in_flight: BTreeMap<CallId, InFlight>,
    pub(crate) next_call: u64,
    pub(crate) resync: Resync,
    pub(crate) looking: BTreeMap<RequestId, Looking>,
    pub(crate) dead: DeadLetters,
    pub(crate) stats: Stats,
    /// Where ids of new timers come from: a seed, and how many were drawn.
    pub(crate) ids: (u64, u64),
    /// When those who have not answered are asked again.
    pub(crate) again_at: Moment,
    pub(crate) out: Vec<Action>,
}

impl Timers {
    /// `seed` must differ from node to node and from boot to boot: ids are drawn from it.
    pub fn new(me: NodeId, seed: u64, now: Now, settings: Settings) -> Timers {
        Timers {
            me,
            settings,
            now,
            lease: Lease::default(),
            departed: now.moment,
            parted_at: None,
            members: Members::nobody(),
            era: Era::default(),
            table: Table::new(now.moment),
            followers: BTreeMap::new(),
            coordinated: BTreeMap::new(),
            numbered: BTreeMap::new(),
            under_way: BTreeSet::new(),
            finished: Finished::default(),
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
            again_at: Moment(0),
            out: Vec::new(),
        }
    }

    /// Takes one input. What is to be done in the world is left in `out`.
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Action>) {
        std::mem::swap(&mut self.out, out);
        self.set_time(now);
        match input {
            Input::Members { epoch, members } => self.on_members(Members::new(epoch, &members)),
            Input::Lease { until } => self.on_lease(until),
            Input::Request { request, wish } => self.on_request(request, wish),
            Input::Peer { from, message } => self.on_message(from, message),
            Input::CallEnded { call, result } => self.on_call_ended(call, result),
            Input::Tick => {}
        }
        self.pop_due();
        self.resync_go_on();
        self.ask_again();
        self.start_calls();
        std::mem::swap(&mut self.out, out);
    }

    /// When `Tick` should come if nothing else does.
    pub fn next_wake(&self) -> Option<Moment> {
        let again = self.awaits_anybody().then_some(self.again_at);
        let at_once = self.resync.can_go_on().then_some(self.now.moment);
        [self.table.next_moment(), again, at_once].into_iter().flatten().min()
    }

    /// Whether this node holds nothing that others do not, and nobody waits for its answer: it may
    /// leave without being missed. Tombstones would be: a timer set again under its id goes on counting
    /// from there. Where all leave at once there is nobody to hand anything to.
    pub fn is_empty_handed(&self) -> bool {
        let keeps_none = self.table.len() == 0 || self.members.nobody_keeps_any();
        let awaits_none = self.coordinated.is_empty() && self.looking.is_empty();
        keeps_none && awaits_none && self.in_flight.is_empty() && self.numbered.is_empty()
    }

    /// Whether it holds what it keeps by the present list, and nothing else.
    pub fn is_settled(&self) -> bool {
        self.resync.stage() == Stage::Settled
    }

    /// The timers this node keeps, and at which place. What it is about to hand over is not among them.
    pub fn kept(&self) -> impl Iterator<Item = (TimerId, u8)> {
        let pending = self.table.after(None).filter(|entry| entry.is_pending());
        pending.filter_map(|entry| match entry.place {
            Place::Replica(place) => Some((entry.id(), place)),
            Place::Former(_) => None,
        })
    }

    pub fn pending(&self) -> usize {
        self.table.pending()
    }

    /// Whether there is anything to hand over: timers, or tombstones.
    pub fn holds_any(&self) -> bool {
        self.table.len() > 0
    }

    /// This node's own numbers.
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

    fn on_request(&mut self, request: RequestId, wish: Wish) {
        match wish {
            Wish::Create { spec, factor } => self.create(request, spec, factor),
            Wish::Put { id, spec } => self.put(request, id, spec),
            Wish::Delete(id) => self.delete(request, id),
            Wish::See(sight) => self.look(request, sight),
        }
    }

    fn on_message(&mut self, from: NodeId, message: Message) {
        match message {
            Message::Hello(m) => self.on_hello(from, &m),
            Message::Propose(m) => self.on_propose(from, m),
            Message::LookAgain(m) => self.on_look_again(&m),
            Message::Done(m) => self.on_done(&m),
            Message::Store(m) => self.on_store(from, &m),
            Message::Stored(m) => self.on_stored(from, &m),
            Message::Calling(m) => self.on_calling(from, &m),
            Message::Popped(m) => self.on_popped(from, &m),
            Message::Failed(m) => self.on_failed(&m),
            Message::Want(m) => self.on_want(from, &m),
            Message::Ask(m) => self.on_ask(from, &m),
            Message::Answered(m) => self.on_answered(from, m),
            Message::Offer(m) => self.on_offer(from, &m),
            Message::Wanted(m) => self.on_wanted(from, m),
            Message::Fill(m) => self.on_fill(from, m),
            Message::Filled(m) => self.on_filled(from, &m),
            Message::Look(m) => self.on_look(from, &m),
            Message::Seen(m) => self.on_seen(from, m),
        }
    }

    fn on_lease(&mut self, until: Moment) {
        self.lease.set(until, self.now.moment);
        self.finish_numbered();
    }

    /// A moment that lies before one we were told already changes nothing.
    fn set_time(&mut self, now: Now) {
        self.now = Now { moment: self.now.moment.max(now.moment), wall: now.wall };
    }

    /// Asks those again who have not answered: a link may have broken on the way there or back.
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

    pub(crate) fn moment(&self) -> Moment {
        self.now.moment
    }

    pub(crate) fn has_lease(&self) -> bool {
        self.lease.is_valid(self.now.moment)
    }

    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        !cfg!(debug_assertions) || self.settings.broken != Some(rule)
    }

    pub(crate) fn send(&mut self, to: NodeId, message: Message) {
        self.out.push(Action::Send { to, message });
    }

    /// The other nodes that keep a timer.
    pub(crate) fn others(&self, id: TimerId) -> Vec<NodeId> {
        let mut replicas = self.members.replicas(id);
        replicas.retain(|node| *node != self.me);
        replicas
    }

    /// Where this node stands for a timer by the present list; it keeps in mind where it stood.
    pub(crate) fn place(&self, id: TimerId, before: Option<Place>) -> Place {
        let place = self.members.replicas(id).iter().position(|node| *node == self.me);
        match (place, before) {
            (Some(place), _) => Place::Replica(u8::try_from(place).expect("a factor is a byte")),
            (None, Some(Place::Replica(place) | Place::Former(place))) => Place::Former(place),
            (None, None) => Place::Former(0),
        }
    }

    /// Takes a record in if it is further than what there is.
    pub(crate) fn adopt(&mut self, record: &Record) {
        let known = self.table.get(record.id);
        if known.is_none() && !self.members.replicas(record.id).contains(&self.me) {
            return; // Let go of, and others have it.
        }
        if known.is_some_and(|entry| entry.progress() >= record.progress()) {
            return;
        }
        if matches!(record.life, Life::Ended { .. }) && !self.keeps(Rule::Tombstones) {
            return self.forget(record.id);
        }
        let place = self.place(record.id, known.map(|entry| entry.place));
        self.pops.remove(&record.id);
        let mut clock = Clock { now: self.now.moment, stats: &mut self.stats };
        self.table.put(record, place, self.era, &mut clock);
        self.keep_quiet(record);
    }

    /// Somebody calls for a timer that we were just given: we wait longer than our turn.
    fn keep_quiet(&mut self, record: &Record) {
        let Life::Pending { quiet_for, .. } = record.life else { return };
        let now = self.now.moment;
        let left = self.left_to_others.get(&record.id);
        let left = left.filter(|(progress, _)| *progress == record.progress());
        let until = [
            self.table.moment_of(record.id),
            left.map(|(_, until)| *until),
            (quiet_for > Span::ZERO).then(|| now + quiet_for + STAGGER),
        ];
        if let Some(until) = until.into_iter().flatten().max() {
            self.table.postpone(record.id, until);
        }
    }

    pub(crate) fn change_entry(&mut self, id: TimerId, change: impl FnOnce(&mut Entry)) {
        let mut clock = Clock { now: self.now.moment, stats: &mut self.stats };
        self.table.change(id, &mut clock, change);
    }

    pub(crate) fn forget(&mut self, id: TimerId) {
        self.pops.remove(&id);
        self.table.remove(id, &mut self.stats);
    }
}

#[cfg(test)]
mod tests;
