//! One node's control plane: the log of map changes and all decisions made through it.
//!
//! `Control::handle` takes one input and the time and returns actions; it touches nothing else. The
//! server runs it on a thread of its own, the simulator runs hundreds side by side. Time is the node's
//! own monotonic clock, which keeps running while the machine sleeps.

mod input; //      All inputs and actions.
mod message; //    Messages between nodes.
mod version; //    The versions of these messages that two nodes have in common.
mod lease; //      The right to serve: requested and granted.
mod deaths; //     Failure detection.
mod leader; //     State of a node while it leads.
mod join; //       Admission of joining nodes.
mod membership; // Joining and leaving.
mod votes; //      Choice and removal of voters.
mod proposals; //  This node's proposals, until they are decided.
mod handover; //   A bucket gets another primary.
mod balancing; //  The balancer, its timers and its proposals.
mod takeover; //   Going on alone, in a new generation.
mod generations; // Two generations meet.
mod recreate; //   Buckets whose holders are all gone.
mod returning; //  A last holder that comes back too late.
mod inbox_read; //  The time up to which all received messages are handled.
mod health; //     Sick but alive.
mod skew; //       Wall clocks that differ.
mod sights; //     State of the other members, for `status` and the console.
mod operator; //   Leave, split, set.
mod documents; //  Writing documents, until every member has them.
mod invariants; // Assertions between inputs, in debug builds.
mod history; //    Recent changes and decisions, and their reasons.
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use store::UnixMillis;

pub use documents::WriteRequest;
pub use history::{ControlHistory, PastChange};
pub use input::{Action, Answer, Gone, Input, MapChanged, OperatorRequest};
pub use message::{JoinAnswer, JoinRequest, Message, Welcome};
pub use operator::objection;
pub use recreate::{Freshness, KeptCopy};
pub use skew::Skew;
pub use version::{PROTOCOL_VERSION, ProtocolRange};

use crate::Moment;
use crate::balance;
use crate::consensus::{
    AppliedEntry, Begin, Committed, Configuration, Consensus, Ready, Saved, TICK,
};
use crate::data::{BucketLag, LAGS_MAX};
use crate::map::{ClusterId, LogIndex, Map, Member, NodeId, Peer};
use crate::rules::{Rule, is_enforced};
use balancing::Balancing;
use documents::Writes;
use generations::Yielding;
use handover::Handovers;
use health::Health;
use inbox_read::InboxRead;
use leader::Leader;
use lease::OwnLease;
use membership::{JoinRequester, Leaving, PassedOn};
use proposals::Proposals;
use recreate::OwnKeptCopies;
use sights::Sights;
use skew::Clocks;
use takeover::LastContact;

/// Maximum number of missed ticks that a node makes up for after it was stopped.
const MISSED_TICKS_MAX: u32 = 3;

/// Time after which a welcomed process without a map assumes that it has been forgotten.
const ARRIVAL_WAIT: Duration = Duration::from_secs(15);

/// The initial state of a node's control plane.
pub struct Start {
    pub me: Member,
    pub cluster: ClusterId,
    /// Seed for random numbers. Need not be the same on all nodes: only election timeouts and paces
    /// depend on it.
    pub seed: u64,
    pub begin: Begin,
    /// The welcome that a joining node received.
    pub welcome: Option<Welcome>,
}

pub struct Control {
    me: Member,
    cluster: ClusterId,
    began: Moment,
    now: Moment,
    out: Vec<Action>,
    consensus: Consensus,
    next_tick: Moment,
    /// `None` until a joining node has received it.
    map: Option<Arc<Map>>,
    applied: LogIndex,
    /// The welcome received on joining: it names the nodes to ask until there is a map.
    welcome: Option<Welcome>,
    /// Log index at which this very process became a member, once the map has shown it.
    since: Option<LogIndex>,
    is_gone: bool,
    leader: Option<Leader>,
    own_lease: OwnLease,
    proposals: Proposals,
    writes: Writes,
    handovers: Handovers,
    balancing: Balancing,
    passed_on: PassedOn,
    leaving: Option<Leaving>,
    contact: LastContact,
    inbox_read: InboxRead,
    health: Health,
    /// Set once this process ends in favour of another generation: it never serves again, hands over
    /// the data that the other side lacks, and ends.
    yielding: Option<Yielding>,
    sights: Sights,
    clocks: Clocks,
    own_kept: OwnKeptCopies,
    history: ControlHistory,
}

impl Control {
    pub fn new(now: Moment, start: Start) -> Control {
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
            own_lease: OwnLease::default(),
            proposals: Proposals::default(),
            writes: Writes::default(),
            handovers: Handovers::default(),
            balancing: Balancing::new(me.id, seed ^ me.id.0 ^ me.boot.0),
            passed_on: PassedOn::default(),
            leaving: None,
            contact: LastContact::default(),
            inbox_read: InboxRead::default(),
            health: Health::default(),
            yielding: None,
            sights: Sights::default(),
            clocks: Clocks::default(),
            own_kept: OwnKeptCopies::default(),
            history: ControlHistory::default(),
            me,
        }
    }

    /// Handles one input. The actions are appended to `out`, to be carried out in order.
    pub fn handle(&mut self, now: Moment, input: Input, out: &mut Vec<Action>) {
        if self.is_gone {
            return;
        }
        let now = now.max(self.now);
        let was_stopped = self.notice_stall(now);
        self.now = now;
        self.note_silence(was_stopped);
        self.dispatch(input);
        self.pass_time();
        self.run_follow_ups();
        out.append(&mut self.out);
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
    }

    fn dispatch(&mut self, input: Input) {
        match input {
            Input::Message { from, message } => self.on_message(from, message),
            Input::Tick => {}
            Input::FillDone { move_id, filled } => self.on_fill_done(move_id, &filled),
            Input::FillFailed { move_id } => self.on_fill_failed(move_id),
            Input::Drained { buckets } => self.on_drained(&buckets),
            Input::OutOfSync { bucket, node, epoch } => self.on_out_of_sync(bucket, node, epoch),
            Input::Stuck { node } => self.feed_balancer(balance::BalanceInput::Stuck { node }),
            Input::BackupLag { to, remaining_bytes, lags } => {
                self.send(to, Message::BackupLag { remaining_bytes, lags });
            }
            Input::NewerReignSeen { slot, reign } => self.on_newer_reign_seen(slot, reign),
            Input::ClientDemand => self.on_client_demand(),
            Input::Met(generation) => self.on_met(generation),
            Input::Merged => self.on_merged(),
            Input::Brought(buckets) => self.on_brought(buckets),
            Input::Found(copies) => self.on_found(copies),
            Input::Vitals(vitals) => self.on_vitals(vitals),
            Input::Memory(report) => self.on_memory(report),
            Input::HoldsTimers(full) => self.balancing.holds_timers = full,
            Input::Sizes(report) => self.on_sizes(report),
            Input::LinkUp(node) => self.on_link_up(node),
            Input::Unreachable(node) => self.on_unreachable(node),
            Input::HungUp(node) => self.on_hung_up(node),
            Input::LookAround => self.on_look_around(),
            Input::Clock(wall) => self.on_clock(wall),
            Input::OperatorRequest { id, ask } => self.on_ask(id, ask),
        }
    }

    fn on_message(&mut self, from: Peer, message: Message) {
        self.note_contact();
        self.note_reached(from.id);
        self.note_spoken(from.id);
        match message {
            Message::Raft { generation, message } => self.on_raft(from.id, generation, &message),
            Message::LeaseAsk { number, applied, is_cut_off } => {
                self.on_lease_ask(from, lease::LeaseRequest { number, applied, is_cut_off });
            }
            Message::LeaseGrant { number, index, lease } => {
                self.on_lease_grant(number, index, lease);
            }
            Message::LeaseRefused { generation, index } => {
                self.on_lease_refused(generation, index);
            }
            Message::Propose(entry) => self.on_propose(from, entry),
            Message::Balance(message) => self.on_balance(from.id, message),
            Message::Engaged { move_id } => self.on_engaged(from.id, move_id),
            Message::JoinAsk { number, request } => {
                self.on_join_ask(*request, JoinRequester::There(from.id, number));
            }
            Message::JoinAnswer { number, answer } => self.on_join_answer(number, answer),
            Message::Sizes(report) => self.on_sizes_of(from.id, report),
            Message::Sick => self.on_sick(from.id),
            Message::MakeRoom { bytes } => self.on_make_room(from, bytes),
            Message::Look => self.on_look(from.id),
            Message::Sight(sight) => self.on_sight(from.id, *sight),
            Message::BackupLag { remaining_bytes, lags } => {
                self.on_backup_lag(from, remaining_bytes, lags);
            }
            Message::KeptCopies(copies) => self.on_kept_copies(from, copies),
            Message::Clock { unix_millis } => self.on_clock_of(from, UnixMillis(unix_millis)),
            Message::FollowAsk => self.on_follow_ask(from.id),
            Message::Following(applied) => self.on_following(from.id, applied),
            Message::Yielding(handed) => self.on_yielding(from.id, handed),
            Message::Farewell => {
                if self.leaving.is_some() {
                    self.go(self.gone_by_leaving());
                }
            }
        }
    }

    /// Handles a new link: a request for a lease, or for load levels, may have been lost without it.
    fn on_link_up(&mut self, node: NodeId) {
        if !self.holds_lease() {
            self.ask_for_lease_soon();
        }
        self.feed_balancer(balance::BalanceInput::LinkUp { node });
    }

    /// Handles a later reign than this node knows: its map is behind. The next lease brings it up to
    /// date, and shows whether this node is still a member.
    fn on_newer_reign_seen(&mut self, slot: placement::Slot, reign: LogIndex) {
        let known = self.map.as_ref().map(|map| map.bucket_of(slot).reign);
        if known.is_some_and(|known| known < reign) {
            self.ask_for_lease_soon();
        }
    }

    /// Passes on a primary's report of unacknowledged bytes; a report of an earlier process does not
    /// count.
    fn on_backup_lag(&mut self, from: Peer, remaining_bytes: u64, mut lags: Vec<BucketLag>) {
        lags.truncate(LAGS_MAX);
        let known = self.map.as_ref().and_then(|map| map.member(from.id));
        if known.is_some_and(|member| member.peer() == from) {
            self.out.push(Action::BackupLag { from: from.id, remaining_bytes, lags });
        }
    }

    /// Performs everything that is due by time.
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
        if self.now >= self.own_lease.next_ask() {
            self.ask_for_lease();
        }
        self.run_balancer();
        self.give_up_handovers();
        self.go_on_with_writes();
        self.give_up_questions();
        self.report_kept_copies();
        self.hand_over_former_data();
        self.probe_unreachable();
        self.shed_if_sick();
        self.go_on_leaving();
        self.go_on_yielding();
        if self.map.is_none() && self.now >= self.began + ARRIVAL_WAIT {
            self.go(Gone::Removed);
        }
    }

    /// Returns whether this process is no member any more. It answers nothing then.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Returns the latest time for the next `Input::Tick`.
    pub fn wake_at(&self) -> Moment {
        if self.is_gone {
            return Moment::NEVER;
        }
        let leader = self.leader.as_ref().and_then(|leader| leader.granter.round_due());
        let due = [
            self.proposals.next_due(),
            self.writes.next_due(),
            self.handovers.next_due(),
            self.balancing.next_due(),
            leader,
            Some(self.own_lease.next_ask()),
        ];
        due.into_iter().flatten().fold(self.next_tick, Moment::min)
    }

    /// Does all follow-up work until none is left.
    fn run_follow_ups(&mut self) {
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
            self.out.push(Action::Persist(Box::new(persist)));
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

    fn apply(&mut self, applied: AppliedEntry) {
        let AppliedEntry { entry, outcomes, map } = applied;
        if let Some(leader) = &mut self.leader {
            leader.note_applied(&entry);
        }
        let change =
            PastChange { at: self.now, index: self.applied, entry: Arc::new(entry), outcomes };
        self.change_map(&Arc::new(map), Some(change));
    }

    /// Adopts another map.
    fn change_map(&mut self, map: &Arc<Map>, change: Option<PastChange>) {
        if cfg!(debug_assertions) {
            map.check_invariants();
        }
        let before = self.map.replace(Arc::clone(map));
        self.balancing.follow(map);
        self.since = self.since.or(map.member_since(self.me.peer()));
        self.out.push(Action::MapChanged(MapChanged {
            map: Arc::clone(map),
            index: self.applied,
            entry: change.as_ref().map(|change| Arc::clone(&change.entry)),
            outcomes: change.as_ref().map(|change| change.outcomes.clone()).unwrap_or_default(),
        }));
        self.forget_decided(change.as_ref().map(|change| &*change.entry));
        self.follow_writes(map);
        self.forget_handovers(map);
        self.yield_if_decided(map);
        self.forget_unwanted_copies(map);
        if let (Some(_), Some(change)) = (before, change) {
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

    /// Reacts to the present map, after one entry or after many.
    fn after_the_log_moved(&mut self) {
        if self.has_been_taken_off() {
            let left = self.leaving.is_some();
            return self.go(if left { self.gone_by_leaving() } else { Gone::Removed });
        }
        self.count_grants();
        if !self.holds_lease() {
            self.ask_for_lease_soon();
        }
        self.forget_fills();
        self.ask_for_new_basis();
        self.feed_balancer(balance::BalanceInput::MapChanged);
        // Becoming alone, or no longer alone, takes effect at once.
        if self.is_alone() != (self.own_lease.until() == Moment::NEVER) {
            self.ask_for_lease();
        }
    }

    // ---- State of this node.

    pub fn me(&self) -> &Member {
        &self.me
    }

    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Returns the map; `None` until a joining node has received it.
    pub fn map(&self) -> Option<&Arc<Map>> {
        self.map.as_ref()
    }

    /// Returns the index up to which the log is applied.
    pub fn applied(&self) -> LogIndex {
        self.applied
    }

    pub fn leader(&self) -> Option<NodeId> {
        self.consensus.leader()
    }

    /// Returns the voters and learners.
    pub fn configuration(&self) -> &Configuration {
        self.consensus.configuration()
    }

    /// Returns whether a node votes, by this node's log: also in the first half of a change of voters.
    pub fn is_voter(&self, node: NodeId) -> bool {
        let Configuration { voters, voters_before, .. } = self.configuration();
        voters.contains(&node) || voters_before.contains(&node)
    }

    /// Returns this node's promises and knowledge, for its next boot.
    pub fn to_saved(&self) -> Saved {
        self.consensus.to_saved()
    }

    pub fn history(&self) -> &ControlHistory {
        &self.history
    }

    /// Returns whether the map has this very process as a member.
    pub fn is_member(&self) -> bool {
        let known = self.map.as_ref().and_then(|map| map.member(self.me.id));
        known.is_some_and(|it| it.peer() == self.me.peer() || !is_enforced(Rule::BootsDiffer))
    }

    /// Returns whether the map has ever been without this process since it joined. A delayed join
    /// request may have added it again; but the others then expect its frames to be numbered from the
    /// first.
    fn has_been_taken_off(&self) -> bool {
        let since = self.map.as_ref().and_then(|map| map.member_since(self.me.peer()));
        self.since.is_some() && (!self.is_member() || since != self.since)
    }

    /// Returns all other members; without a map, those named in the welcome.
    fn others(&self) -> impl Iterator<Item = NodeId> + use<'_> {
        let told = self.welcome.as_ref().map(|welcome| welcome.members.as_slice());
        let members = self.map.as_ref().map(|map| map.members()).or(told).unwrap_or_default();
        members.iter().map(|member| member.id).filter(|node| *node != self.me.id)
    }

    /// Sends to each of these nodes except this one.
    fn send_all(&mut self, nodes: impl IntoIterator<Item = NodeId>, message: &Message) {
        let others = nodes.into_iter().filter(|node| *node != self.me.id);
        let messages = others.map(|to| Action::Send { to, message: message.clone() });
        self.out.extend(messages);
    }

    fn send(&mut self, to: NodeId, message: Message) {
        self.out.push(Action::Send { to, message });
    }
}
