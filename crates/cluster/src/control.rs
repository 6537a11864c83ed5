//! One node's part in the control plane: the log of map changes and all that is decided through it.
//!
//! `Control::handle` takes one input and the time and leaves effects; it touches nothing else. The
//! server runs it on a thread of its own, the simulator runs hundreds side by side. Time is the
//! node's own clock since some moment, never going back, and going on while the machine sleeps.

mod input; //      Everything that can move it, and everything it can ask for.
mod message; //    What two nodes say to each other.
mod lease; //      The right to serve: asked for and granted.
mod deaths; //     When silence is death.
mod leader; //     What a node knows only while it leads.
mod join; //       Who may come in.
mod membership; // Coming in and going.
mod votes; //      Who votes, and when a vote is taken away.
mod proposals; //  What this node wants in the log, until it is decided.
mod handover; //   A bucket gets another primary.
mod balancing; //  The balancer, its timers and its wishes.
mod takeover; //   Going on alone, in a new generation.
mod generations; // Two generations meet.
mod recreate; //   Buckets whose holders are all gone.
mod returning; //  One of them comes back too late.
mod listening; //  Up to when everything that came has been heard.
mod health; //     Sick but alive.
mod skew; //       Wall clocks that differ.
mod sights; //     How the others are, for whoever looks.
mod operator; //   Leave, split, set.
mod history; //    What has happened lately, and why.
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use store::UnixMillis;

pub use history::{History, PastChange};
pub use input::{Answer, Ask, Effect, Gone, Input, MapChanged};
pub use message::{JoinAnswer, JoinRequest, Message, PROTOCOL_VERSION, Welcome};
pub use operator::objection;
pub use recreate::{Kept, Offer};
pub use sights::Sight;
pub use skew::{SKEW_MAX, Skew};

use crate::balance;
use crate::consensus::{Applied, Begin, Committed, Configuration, Consensus, Ready, Saved, TICK};
use crate::map::{ClusterId, LogIndex, Map, Member, NodeId, Peer};
use crate::rules::{Rule, holds};
use balancing::Balancing;
use generations::Yielding;
use handover::Handovers;
use health::Health;
use leader::Leader;
use lease::Holder;
use listening::Listening;
use membership::{Asker, Leaving, PassedOn};
use proposals::Proposals;
use recreate::Offers;
use sights::Sights;
use skew::Clocks;
use takeover::Hearing;

/// A node that was stopped for longer makes up for the last moments only.
const MISSED_TICKS_MAX: u32 = 3;

/// A process that was welcomed and has heard nothing more by then has been forgotten.
const ARRIVAL_WAIT: Duration = Duration::from_secs(15);

/// How a node's control plane begins.
pub struct Start {
    pub me: Member,
    pub cluster: ClusterId,
    /// For chance. The same on all nodes, or not: only election timeouts and paces depend on it.
    pub seed: u64,
    pub begin: Begin,
    /// What a node that joins was told.
    pub welcome: Option<Welcome>,
}

pub struct Control {
    me: Member,
    cluster: ClusterId,
    began: Duration,
    now: Duration,
    out: Vec<Effect>,
    consensus: Consensus,
    next_tick: Duration,
    /// None until a node that joins has received it.
    map: Option<Arc<Map>>,
    applied: LogIndex,
    /// What it was told when it joined: whom to ask until there is a map.
    welcome: Option<Welcome>,
    /// Where the log made this very process a member, once the map has shown it.
    since: Option<LogIndex>,
    is_gone: bool,
    leader: Option<Leader>,
    holder: Holder,
    proposals: Proposals,
    handovers: Handovers,
    balancing: Balancing,
    passed_on: PassedOn,
    leaving: Option<Leaving>,
    hearing: Hearing,
    listening: Listening,
    health: Health,
    /// Set once this process ends in favour of another generation: it never serves again, hands over
    /// what the other side lacks, and goes.
    yielding: Option<Yielding>,
    sights: Sights,
    clocks: Clocks,
    offers: Offers,
    history: History,
}

impl Control {
    pub fn new(now: Duration, start: Start) -> Control {
        let Start { me, cluster, seed, begin, welcome } = start;
        Control {
            cluster,
            began: now,
            now,
            out: Vec::new(),
            consensus: Consensus::new(me.id, seed, begin),
            next_tick: now + TICK,
            map: None,
            applied: LogIndex(0),
            welcome,
            since: None,
            is_gone: false,
            leader: None,
            holder: Holder::default(),
            proposals: Proposals::default(),
            handovers: Handovers::default(),
            balancing: Balancing::new(me.id, seed ^ me.id.0 ^ me.boot.0),
            passed_on: PassedOn::default(),
            leaving: None,
            hearing: Hearing::default(),
            listening: Listening::default(),
            health: Health::default(),
            yielding: None,
            sights: Sights::default(),
            clocks: Clocks::default(),
            offers: Offers::default(),
            history: History::default(),
            me,
        }
    }

    /// Takes one input. Whatever should be done in the world is left in `out`, to be done in order.
    pub fn handle(&mut self, now: Duration, input: Input, out: &mut Vec<Effect>) {
        if self.is_gone {
            return;
        }
        let now = now.max(self.now);
        let was_stopped = self.notice_stall(now);
        self.now = now;
        self.note_silence(was_stopped);
        self.dispatch(input);
        self.pass_time();
        self.settle();
        out.append(&mut self.out);
    }

    fn dispatch(&mut self, input: Input) {
        match input {
            Input::Message { from, message } => self.on_message(from, message),
            Input::Tick => {}
            Input::FillDone { attempt, epoch } => self.on_fill_done(attempt, epoch),
            Input::FillFailed { attempt } => self.on_fill_failed(attempt),
            Input::Drained { bucket, epoch } => self.on_drained(bucket, epoch),
            Input::OutOfSync { bucket, node, epoch } => self.on_out_of_sync(bucket, node, epoch),
            Input::Stuck { node } => self.feed_balancer(balance::Input::Stuck { node }),
            Input::Beat { to, left } => self.send(to, Message::Beat { left }),
            Input::Reigned { slot, reign } => self.on_reigned(slot, reign),
            Input::ClientTurned => self.on_client_turned(),
            Input::Met(generation) => self.on_met(generation),
            Input::Merged => self.on_merged(),
            Input::Brought(buckets) => self.on_brought(buckets),
            Input::Found(offers) => self.on_found(offers),
            Input::Vitals(vitals) => self.on_vitals(vitals),
            Input::HandsFull(full) => self.balancing.hands_full = full,
            Input::Sizes(sizes) => self.on_sizes(sizes),
            Input::Unreachable(node) => self.on_unreachable(node),
            Input::HungUp(node) => self.on_hung_up(node),
            Input::LookAround => self.on_look_around(),
            Input::Clock(wall) => self.on_clock(wall),
            Input::Ask { id, ask } => self.on_ask(id, ask),
        }
    }

    fn on_message(&mut self, from: Peer, message: Message) {
        self.note_heard();
        self.note_reached(from.id);
        self.note_spoken(from.id);
        match message {
            Message::Raft { generation, message } => self.on_raft(from.id, generation, &message),
            Message::LeaseAsk { number, applied, is_cut_off } => {
                self.on_lease_ask(from, lease::Ask { number, applied, is_cut_off });
            }
            Message::LeaseGrant { number, index, lease } => {
                self.on_lease_grant(number, index, lease);
            }
            Message::LeaseRefused { generation, index } => {
                self.on_lease_refused(generation, index);
            }
            Message::Propose(entry) => self.on_propose(from, entry),
            Message::Balance(message) => self.on_balance(from.id, message),
            Message::Engaged { attempt } => self.on_engaged(from.id, attempt),
            Message::TakeOver { bucket, epoch } => self.on_take_over(from.id, bucket, epoch),
            Message::Serving { bucket, reign } => self.on_serving(bucket, reign),
            Message::JoinAsk { number, request } => {
                self.on_join_ask(*request, Asker::There(from.id, number));
            }
            Message::JoinAnswer { number, answer } => self.on_join_answer(number, answer),
            Message::Sizes(sizes) => self.on_sizes_of(sizes),
            Message::Sick => self.on_sick(from.id),
            Message::Look => self.on_look(from.id),
            Message::Sight(sight) => self.on_sight(from.id, *sight),
            Message::Beat { left } => self.on_beat(from, left),
            Message::Offer(offers) => self.on_offer(from, offers),
            Message::Clock { unix_millis } => self.on_clock_of(from, UnixMillis(unix_millis)),
            Message::Yielding(handed) => self.on_yielding(from.id, handed),
            Message::Farewell => {
                if self.leaving.is_some() {
                    self.go(self.gone_by_leaving());
                }
            }
        }
    }

    /// A later reign than this node knows of: its map is behind. The next lease brings it up to date,
    /// and shows whether it is still a member.
    fn on_reigned(&mut self, slot: placement::Slot, reign: LogIndex) {
        let known = self.map.as_ref().map(|map| map.bucket_of(slot).reign);
        if known.is_some_and(|known| known < reign) {
            self.ask_for_lease_soon();
        }
    }

    /// A primary tells how much is left; a process of an earlier time does not count.
    fn on_beat(&mut self, from: Peer, left: u64) {
        let known = self.map.as_ref().and_then(|map| map.member(from.id));
        if known.is_some_and(|member| member.peer() == from) {
            self.out.push(Effect::Beat { from: from.id, left });
        }
    }

    /// Everything that happens because time has passed.
    fn pass_time(&mut self) {
        for _ in 0..MISSED_TICKS_MAX {
            if self.now < self.next_tick {
                break;
            }
            self.next_tick += TICK;
            self.consensus.tick();
        }
        if self.now >= self.next_tick {
            self.next_tick = self.now + TICK;
        }
        if self.now >= self.holder.next_ask() {
            self.ask_for_lease();
        }
        self.run_balancer();
        self.give_up_handovers();
        self.give_up_questions();
        self.offer_copies();
        self.bring_what_is_awaited();
        self.probe_unreachable();
        self.shed_if_sick();
        self.go_on_leaving();
        self.go_on_yielding();
        if self.map.is_none() && self.now >= self.began + ARRIVAL_WAIT {
            self.go(Gone::Outcast);
        }
    }

    /// When `Input::Tick` is wanted at the latest.
    pub fn wake_at(&self) -> Duration {
        if self.is_gone {
            return Duration::MAX;
        }
        let leader = self.leader.as_ref().and_then(|leader| leader.granter.round_due());
        let due = [
            self.proposals.next_due(),
            self.handovers.next_due(),
            self.balancing.next_due(),
            leader,
            Some(self.holder.next_ask()),
        ];
        due.into_iter().flatten().fold(self.next_tick, Duration::min)
    }

    /// Follows up on everything until nothing more follows.
    fn settle(&mut self) {
        loop {
            self.follow_election();
            self.send_proposals();
            self.lead();
            let ready = self.consensus.ready();
            if ready.is_empty() || self.is_gone {
                return;
            }
            self.act_on(ready);
        }
    }

    fn act_on(&mut self, ready: Ready) {
        let Ready { persist, messages, snapshot, committed, reads } = ready;
        if !persist.is_empty() {
            self.out.push(Effect::Persist(Box::new(persist)));
        }
        for (to, message) in messages {
            self.send_raft(to, message);
        }
        let has_moved = snapshot.is_some() || !committed.is_empty();
        if let Some((index, map)) = snapshot {
            self.applied = index;
            self.change_map(&Arc::new(map), None);
        }
        for (index, committed) in committed {
            self.applied = index;
            match committed {
                Committed::Entry(applied) => self.apply(applied),
                Committed::Configuration(_) | Committed::Nothing => {}
            }
        }
        for (context, index) in reads {
            self.on_read(context, index);
        }
        if has_moved && !self.is_gone {
            self.after_the_log_moved();
        }
    }

    fn apply(&mut self, applied: Applied) {
        let Applied { entry, outcomes, map } = applied;
        if let Some(leader) = &mut self.leader {
            leader.note_applied(&entry);
        }
        let change =
            PastChange { at: self.now, index: self.applied, entry: Arc::new(entry), outcomes };
        self.change_map(&Arc::new(map), Some(change));
    }

    /// This node goes by another map.
    fn change_map(&mut self, map: &Arc<Map>, change: Option<PastChange>) {
        let before = self.map.replace(Arc::clone(map));
        self.balancing.follow(map);
        self.since = self.since.or(map.member_since(self.me.peer()));
        self.out.push(Effect::MapChanged(MapChanged {
            map: Arc::clone(map),
            index: self.applied,
            entry: change.as_ref().map(|change| Arc::clone(&change.entry)),
            outcomes: change.as_ref().map(|change| change.outcomes.clone()).unwrap_or_default(),
        }));
        self.forget_decided(change.as_ref().map(|change| &*change.entry));
        self.forget_handovers(map);
        self.yield_if_decided(map);
        self.withdraw_offers(map);
        if let (Some(before), Some(change)) = (before, change) {
            self.follow_handovers(&before, &change.entry, &change.outcomes);
            self.say_farewell(&change);
            self.history.note_change(change);
        }
        if let Some(leader) = &mut self.leader {
            let lease = map.settings().lease;
            leader.granter.follow(map.members(), self.now, lease);
            leader.lease_is(lease);
        }
        self.welcome_new_members(map);
    }

    /// What follows from the map as it is now, be it after one entry or after many.
    fn after_the_log_moved(&mut self) {
        if self.has_been_taken_off() {
            let left = self.leaving.is_some();
            return self.go(if left { self.gone_by_leaving() } else { Gone::Outcast });
        }
        self.count_grants();
        self.forget_fills();
        self.ask_for_new_basis();
        self.feed_balancer(balance::Input::MapChanged);
        self.tell_serving();
        // Alone, or no longer alone: that counts from this moment on.
        if self.is_alone() != (self.holder.until() == Duration::MAX) {
            self.ask_for_lease();
        }
    }

    // ---- What this node knows.

    pub fn me(&self) -> &Member {
        &self.me
    }

    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// None until a node that joins has received it.
    pub fn map(&self) -> Option<&Arc<Map>> {
        self.map.as_ref()
    }

    /// How far the log is applied.
    pub fn applied(&self) -> LogIndex {
        self.applied
    }

    pub fn leader(&self) -> Option<NodeId> {
        self.consensus.leader()
    }

    /// Who votes and who listens.
    pub fn configuration(&self) -> &Configuration {
        self.consensus.configuration()
    }

    /// Returns what this node has promised and knows, for its next life under a new boot.
    pub fn to_saved(&self) -> Saved {
        self.consensus.to_saved()
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whether the map has this very process as a member.
    pub fn is_member(&self) -> bool {
        let known = self.map.as_ref().and_then(|map| map.member(self.me.id));
        known.is_some_and(|it| it.peer() == self.me.peer() || !holds(Rule::BootsDiffer))
    }

    /// Whether the map has been without this process since it came in. It may be in it again, by a
    /// request to join that was under way for long; but the others count its frames from the first.
    fn has_been_taken_off(&self) -> bool {
        let since = self.map.as_ref().and_then(|map| map.member_since(self.me.peer()));
        self.since.is_some() && (!self.is_member() || since != self.since)
    }

    /// All other members, or those it was told of as long as it has no map.
    fn others(&self) -> impl Iterator<Item = NodeId> + use<'_> {
        let told = self.welcome.as_ref().map(|welcome| welcome.members.as_slice());
        let members = self.map.as_ref().map(|map| map.members()).or(told).unwrap_or_default();
        members.iter().map(|member| member.id).filter(|node| *node != self.me.id)
    }

    /// Sends to each of these but this node itself.
    fn send_all(&mut self, nodes: impl IntoIterator<Item = NodeId>, message: &Message) {
        let others = nodes.into_iter().filter(|node| *node != self.me.id);
        let messages = others.map(|to| Effect::Send { to, message: message.clone() });
        self.out.extend(messages);
    }

    fn send(&mut self, to: NodeId, message: Message) {
        self.out.push(Effect::Send { to, message });
    }
}
