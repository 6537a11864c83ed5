//! Leases: the right to serve for the time `lease`, as requested by a node and as granted by the leader.
//!
//! A lease runs from the moment its holder *asked*, noted before the request left, and the leader
//! answers only after a majority has confirmed that it still leads. So whatever a holder believes, the
//! leader's patience (`Granter`) ends later than the holder's lease (`OwnLease`), although their clocks
//! differ in rate and messages may be delayed arbitrarily. `deaths.rs` relies on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::{Action, Control, Message};
use crate::Moment;
use crate::map::{LogIndex, Member, NodeId, Peer};
use crate::rules::{Rule, is_enforced};

/// Number of renewals within one lease.
const RENEWALS_PER_LEASE: u32 = 5;
/// Time the leader waits for its majority before it asks again: the question may have been lost.
const ROUND_WAIT: Duration = Duration::from_millis(150);
/// Maximum number of rounds in flight: on a slow network an answer comes when later rounds have begun.
const ROUNDS_MAX: usize = 16;
/// Maximum number of unanswered requests, and of grants that are not applied yet. Older ones are forgotten.
const ASKS_MAX: usize = 64;
/// Maximum number of early requests per lease: many refused frames are one reason to ask, and must not
/// push out the open requests.
const EARLY_ASKS_PER_LEASE: u32 = 20;
/// Number of leases that a member that has never asked gets to arrive.
const LEASES_TO_ARRIVE: u32 = 5;

/// The lease of this node.
#[derive(Default)]
pub(super) struct OwnLease {
    last_number: u64,
    /// Time of each open request.
    asked: VecDeque<(u64, Moment)>,
    /// Grants that take effect once this index is applied.
    granted: VecDeque<(LogIndex, Moment)>,
    until: Moment,
    next_ask: Moment,
    /// Time for which an early request was last scheduled.
    last_early_ask: Moment,
}

impl OwnLease {
    pub(super) fn until(&self) -> Moment {
        self.until
    }

    pub(super) fn next_ask(&self) -> Moment {
        self.next_ask
    }

    /// Notes the clock, before anything leaves, and returns the number of the request.
    fn ask(&mut self, now: Moment, lease: Duration) -> u64 {
        self.next_ask = now + lease / RENEWALS_PER_LEASE;
        self.last_number += 1;
        self.asked.push_back((self.last_number, now));
        if self.asked.len() > ASKS_MAX {
            self.asked.pop_front();
        }
        self.last_number
    }

    /// Schedules the next request as early as permitted.
    fn hasten(&mut self, now: Moment, lease: Duration) {
        let earliest = now.max(self.last_early_ask + lease / EARLY_ASKS_PER_LEASE);
        if earliest < self.next_ask {
            (self.next_ask, self.last_early_ask) = (earliest, earliest);
        }
    }

    /// Notes the leader's answer to a request; it counts once this node has applied its index.
    fn note_grant(&mut self, number: u64, index: LogIndex, lease: Duration) {
        let Some(place) = self.asked.iter().position(|(asked, _)| *asked == number) else {
            return;
        };
        let (_, asked_at) = self.asked[place];
        // Earlier requests would give a shorter lease than this one.
        self.asked.drain(..=place);
        self.granted.push_back((index, asked_at + lease));
        // A lease shorter than this node expected has to be renewed sooner.
        self.next_ask = self.next_ask.min(asked_at + lease / RENEWALS_PER_LEASE);
        if self.granted.len() > ASKS_MAX {
            self.granted.pop_front();
        }
    }

    /// Applies the grants whose index is applied. Returns true if the lease has become longer.
    fn adopt_applied(&mut self, applied: LogIndex) -> bool {
        let before = self.until;
        self.granted.retain(|(index, until)| {
            let counts = *index <= applied;
            if counts {
                self.until = self.until.max(*until);
            }
            !counts
        });
        self.until > before
    }
}

/// The leader's knowledge of the leases it has granted.
#[derive(Default)]
pub(super) struct Granter {
    records: BTreeMap<NodeId, LeaseRecord>,
    /// Requests that came since the last round began, the latest of each process.
    waiting: BTreeMap<Peer, u64>,
    /// Rounds that are not confirmed yet, the latest last.
    rounds: VecDeque<LeadershipCheck>,
    /// Confirmed by a majority; to be answered when the leader has applied the index itself.
    confirmed: Vec<(LogIndex, BTreeMap<Peer, u64>)>,
    last_context: u64,
    /// Nodes for which `Dead` is proposed: they get no answer any more.
    condemned: BTreeSet<NodeId>,
}

/// A question to the majority: does this node still lead?
struct LeadershipCheck {
    /// The number of the round.
    context: u64,
    since: Moment,
    asks: BTreeMap<Peer, u64>,
}

#[derive(Clone, Copy)]
pub(super) struct LeaseRecord {
    peer: Peer,
    /// True if it has never been granted a lease.
    is_new: bool,
    /// Before this time its lease may still be valid.
    pub(super) may_serve_until: Moment,
    pub(super) last_ask: Option<Moment>,
    pub(super) applied: LogIndex,
    /// True if it does not reach most of the others.
    pub(super) is_cut_off: bool,
}

/// A received lease request.
#[derive(Clone, Copy)]
pub(super) struct LeaseRequest {
    pub(super) number: u64,
    pub(super) applied: LogIndex,
    pub(super) is_cut_off: bool,
}

impl LeaseRecord {
    fn until(peer: Peer, may_serve_until: Moment) -> LeaseRecord {
        let applied = LogIndex(0);
        let (last_ask, is_cut_off) = (None, false);
        LeaseRecord { peer, is_new: false, may_serve_until, last_ask, applied, is_cut_off }
    }

    /// Records that a grant leaves now.
    fn grant(&mut self, now: Moment, lease: Duration) {
        let surely_over = now + patience(lease);
        let before = if self.is_new { Moment::START } else { self.may_serve_until };
        self.may_serve_until = before.max(surely_over);
        self.is_new = false;
    }
}

impl Granter {
    pub(super) fn record(&self, node: NodeId) -> Option<&LeaseRecord> {
        self.records.get(&node)
    }

    /// Returns the time of a node's last lease request, if there was one.
    pub(super) fn last_ask(&self, node: NodeId) -> Option<Moment> {
        self.record(node).and_then(|record| record.last_ask)
    }

    pub(super) fn condemn(&mut self, nodes: &BTreeSet<NodeId>) {
        self.condemned.extend(nodes);
    }

    pub(super) fn is_condemned(&self, node: NodeId) -> bool {
        self.condemned.contains(&node)
    }

    /// Counts all members as renewed at this moment: earlier grants are not known for sure.
    pub(super) fn renew_all(&mut self, now: Moment, lease: Duration) {
        for record in self.records.values_mut() {
            let renewed = now + patience(lease);
            record.may_serve_until = record.may_serve_until.max(renewed);
        }
    }

    /// Counts every member as renewed at this moment, because a new leader knows of no grant.
    pub(super) fn begin(&mut self, members: &[Member], now: Moment, lease: Duration) {
        for peer in members.iter().map(Member::peer) {
            self.records.insert(peer.id, LeaseRecord::until(peer, now + patience(lease)));
        }
    }

    /// Keeps exactly the members of the map; a new process starts afresh.
    pub(super) fn follow(&mut self, members: &[Member], now: Moment, lease: Duration) {
        let known = |node: &NodeId| members.iter().any(|member| member.id == *node);
        self.records.retain(|node, _| known(node));
        self.condemned.retain(known);
        for peer in members.iter().map(Member::peer) {
            let arrives_by = now + patience(lease) * LEASES_TO_ARRIVE;
            let fresh = LeaseRecord { is_new: true, ..LeaseRecord::until(peer, arrives_by) };
            let record = self.records.entry(peer.id).or_insert(fresh);
            if record.peer != peer {
                *record = fresh;
            }
        }
    }

    /// Asserts that the leader keeps a record of exactly the members, and condemns nobody else.
    pub(super) fn check_invariants(&self, members: &[Member]) {
        assert!(
            self.records.values().map(|record| record.peer).eq(members.iter().map(Member::peer)),
            "a lease record per member"
        );
        assert!(self.condemned.iter().all(|node| self.records.contains_key(node)));
        assert!(self.rounds.len() <= ROUNDS_MAX, "rounds in flight are limited");
    }

    fn note_ask(&mut self, now: Moment, from: Peer, ask: LeaseRequest) {
        let LeaseRequest { number, applied, is_cut_off } = ask;
        if let Some(record) = self.records.get_mut(&from.id).filter(|it| it.peer == from) {
            record.last_ask = Some(now);
            record.is_cut_off = is_cut_off;
            record.applied = record.applied.max(applied);
        }
        let latest = self.waiting.entry(from).or_insert(number);
        *latest = number.max(*latest);
    }

    /// Begins a round for the waiting requests. Returns its number, which `read_index` takes as its context; `None` if
    /// no round is needed, or the last one is too recent. An unconfirmed leader needs one although nobody asks: perhaps all that live are returning
    /// processes, which it cannot admit before it has declared the others dead.
    fn begin_round(&mut self, now: Moment, is_confirmed: bool) -> Option<u64> {
        let last = self.rounds.back();
        if last.is_some_and(|last| now < last.since + ROUND_WAIT) {
            return None;
        }
        // Requests of a round that may be lost are asked again; its answer still counts.
        let mut asks = last.map(|last| last.asks.clone()).unwrap_or_default();
        asks.append(&mut self.waiting);
        let is_wanted = !asks.is_empty() || !is_confirmed && self.confirmed.is_empty();
        if !is_wanted {
            return None;
        }
        if self.rounds.len() == ROUNDS_MAX {
            self.rounds.pop_front();
        }
        self.last_context += 1;
        self.rounds.push_back(LeadershipCheck { context: self.last_context, since: now, asks });
        Some(self.last_context)
    }

    pub(super) fn round_due(&self) -> Option<Moment> {
        self.rounds.back().map(|round| round.since + ROUND_WAIT)
    }

    fn confirm(&mut self, context: u64, index: LogIndex) {
        let Some(place) = self.rounds.iter().position(|round| round.context == context) else {
            return; // Belongs to a round that a later one has answered, or to an earlier term.
        };
        // This round repeated all requests of earlier rounds; later rounds need not repeat what is
        // answered now.
        let Some(LeadershipCheck { asks, .. }) = self.rounds.drain(..=place).next_back() else {
            return;
        };
        for round in &mut self.rounds {
            let is_open = |peer: &Peer, ask: &u64| asks.get(peer).is_none_or(|done| ask > done);
            round.asks.retain(|peer, ask| is_open(peer, ask));
        }
        // A round without requests is not due again.
        self.rounds.retain(|round| !round.asks.is_empty());
        self.confirmed.push((index, asks));
    }

    /// Returns the requests that can be answered now.
    fn take_confirmed(&mut self, applied: LogIndex) -> Vec<(LogIndex, BTreeMap<Peer, u64>)> {
        let (ready, later) = std::mem::take(&mut self.confirmed)
            .into_iter()
            .partition(|(index, _)| *index <= applied);
        self.confirmed = later;
        ready
    }
}

/// Returns how long after an answer the leader waits before it counts a lease as surely expired: each
/// clock may be ten percent off, so the holder's second may take 1.22 of the leader's.
pub(super) fn patience(lease: Duration) -> Duration {
    lease + lease / 4
}

impl Control {
    /// Returns the time until which this node may serve, by its clock.
    pub fn lease_until(&self) -> Moment {
        self.own_lease.until
    }

    pub fn holds_lease(&self) -> bool {
        self.now < self.own_lease.until
    }

    /// Returns the lease length of the map. Only the leader grants by it; others use the length in the
    /// grant.
    pub(super) fn lease(&self) -> Duration {
        self.map.as_ref().map_or(Duration::from_secs(1), |map| map.settings().lease)
    }

    /// Asks for the next lease: the leader, or all members if the lease has expired, because then the
    /// leader this node knows may not lead any more.
    pub(super) fn ask_for_lease(&mut self) {
        if self.yielding.is_some() {
            // This process never serves again.
            self.own_lease = OwnLease { next_ask: Moment::NEVER, ..OwnLease::default() };
            return self.out.push(Action::Lease { until: Moment::START });
        }
        if self.is_alone() {
            self.own_lease.next_ask = self.now + self.lease() / RENEWALS_PER_LEASE;
            return self.set_lease(Moment::NEVER);
        }
        if self.map.is_some() && !self.is_member() {
            self.own_lease.next_ask = self.now + self.lease() / RENEWALS_PER_LEASE;
            return self.ask_to_come_back();
        }
        if self.own_lease.until == Moment::NEVER {
            // No other node could decide anything until now; from here on one may.
            self.set_lease(self.now + self.lease());
        }
        let number = self.own_lease.ask(self.now, self.lease());
        let (applied, is_cut_off) = (self.applied, self.is_cut_off_from_most());
        if self.leads() {
            self.on_lease_ask(self.me.peer(), LeaseRequest { number, applied, is_cut_off });
        }
        let leader = self.consensus.leader();
        let asked: BTreeSet<NodeId> = match leader.filter(|_| self.holds_lease()) {
            Some(leader) => BTreeSet::from([leader]),
            // The leader is possibly not a member: a node that was declared dead keeps its vote.
            None => self.others().chain(leader).collect(),
        };
        self.send_all(asked, &Message::LeaseAsk { number, applied, is_cut_off });
    }

    /// Asks for the next lease early, now or in a moment.
    pub(super) fn ask_for_lease_soon(&mut self) {
        let lease = self.lease();
        self.own_lease.hasten(self.now, lease);
    }

    pub(super) fn on_lease_ask(&mut self, from: Peer, ask: LeaseRequest) {
        let now = self.now;
        let known = self.map.as_ref().and_then(|map| map.member(from.id));
        if let Some(leader) = &mut self.leader {
            leader.granter.note_ask(now, from, ask);
        } else if self.map.is_some() && known.is_none_or(|member| member.peer() != from) {
            // The asking node may know none of the present members, so any member tells it.
            self.refuse_lease(from.id, self.applied);
        }
    }

    pub(super) fn on_lease_grant(&mut self, number: u64, index: LogIndex, lease: Duration) {
        if !is_enforced(Rule::LeaseFromAsking) {
            self.own_lease.asked.iter_mut().for_each(|(_, asked_at)| *asked_at = self.now);
        }
        self.own_lease.note_grant(number, index, lease);
        self.count_grants();
    }

    pub(super) fn count_grants(&mut self) {
        if self.own_lease.adopt_applied(self.applied) {
            let until = self.own_lease.until;
            self.out.push(Action::Lease { until });
        }
    }

    fn set_lease(&mut self, until: Moment) {
        if self.own_lease.until != until {
            self.own_lease.until = until;
            self.out.push(Action::Lease { until });
        }
    }

    /// Performs the leader's part: a round with the majority, then the answers.
    pub(super) fn grant_leases(&mut self) {
        let (now, applied) = (self.now, self.applied);
        let Some(leader) = &mut self.leader else { return };
        if let Some(context) = leader.granter.begin_round(now, leader.is_confirmed) {
            self.consensus.read_index(context);
        }
        let (lease, waits) = (self.lease(), is_enforced(Rule::NewLeaderWaits));
        let Some(leader) = &mut self.leader else { return };
        let confirmed = leader.granter.take_confirmed(applied);
        if !confirmed.is_empty() && !leader.is_confirmed {
            // Everything committed before its election is applied now, possibly another lease length
            // too.
            leader.is_confirmed = true;
            if waits {
                leader.granter.renew_all(now, lease);
            }
        }
        for (index, asks) in confirmed {
            for (peer, number) in asks {
                self.answer_ask(peer, number, index);
            }
        }
    }

    pub(super) fn on_read(&mut self, context: u64, index: LogIndex) {
        if let Some(leader) = &mut self.leader {
            leader.granter.confirm(context, index);
        }
    }

    fn refuse_lease(&mut self, node: NodeId, index: LogIndex) {
        if let Some(generation) = self.generation() {
            self.send(node, Message::LeaseRefused { generation, index });
        }
    }

    fn answer_ask(&mut self, peer: Peer, number: u64, index: LogIndex) {
        let Some(map) = self.map.clone() else { return };
        let grants_to_all = !is_enforced(Rule::NoLeaseAfterDeathProposed);
        let is_same = |it: &Member| it.peer() == peer || !is_enforced(Rule::BootsDiffer);
        let is_member = map.member(peer.id).is_some_and(is_same);
        let Some(leader) = &mut self.leader else { return };
        if leader.granter.is_condemned(peer.id) && !grants_to_all {
            return;
        }
        if !is_member {
            return self.refuse_lease(peer.id, index);
        }
        let lease = leader.lease_to_grant(map.settings().lease);
        let record = leader.granter.records.get_mut(&peer.id);
        let record = record.expect("the granter follows the members of the map");
        record.grant(self.now, lease);
        if peer.id == self.me.id {
            self.on_lease_grant(number, index, lease);
        } else {
            self.send(peer.id, Message::LeaseGrant { number, index, lease });
        }
    }

    /// Returns whether no other node could change the map: then this node needs no permission to serve.
    pub(super) fn is_alone(&self) -> bool {
        let Some(map) = &self.map else { return false };
        let voters = self.consensus.voters().iter().copied();
        self.yielding.is_none()
            && map.members().iter().map(Member::peer).eq([self.me.peer()])
            && voters.eq([self.me.id])
            && !self.consensus.is_reconfiguring()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Boot;

    #[test]
    fn a_round_that_an_earlier_one_has_answered_is_not_due() {
        let (mut granter, at) = (Granter::default(), Moment::START + Duration::from_secs(9));
        let peer = Peer { id: NodeId(2), boot: Boot(20) };
        granter.note_ask(
            at,
            peer,
            LeaseRequest { number: 1, applied: LogIndex(1), is_cut_off: false },
        );
        let first = granter.begin_round(at, true).unwrap();
        assert!(
            granter.begin_round(at + ROUND_WAIT, true).is_some(),
            "it may be lost: asked again"
        );
        assert_eq!(granter.round_due(), Some(at + 2 * ROUND_WAIT));
        granter.confirm(first, LogIndex(1));
        assert_eq!(granter.round_due(), None, "or this node would be woken again and again");
    }
}
