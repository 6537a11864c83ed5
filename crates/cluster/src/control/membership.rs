//! Membership: joining and leaving. `votes.rs` chooses the voters.
//!
//! A joining process asks any member, which passes the request on to the leader; the answer is one of
//! three: welcome, wait, no. A leaving node first hands everything on (`balance`), then becomes a
//! learner, then leaves: so no later decision waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::join::{self, JoinDecision};
use super::leader::{LeaveAnnouncement, Proposed, has_successors};
use super::{Action, Answer, Control, Gone, JoinAnswer, JoinRequest, Message, PastChange, Welcome};
use crate::Moment;
use crate::balance;
use crate::balance::split::split_by_count;
use crate::consensus::{Configuration, LogEntry};
use crate::map::{
    Change, ChangeOutcome, Generation, LeaveWay, LogIndex, Map, Member, NodeId, Peer,
};

/// Timeout of a request to the leader.
const LEADER_WAIT: Duration = Duration::from_secs(2);
/// Time after which a candidate that has not asked again counts as gone.
const CANDIDATE_WAIT: Duration = Duration::from_secs(10);
/// Maximum interval between requests of a joining process.
const ASKS_AGAIN: Duration = Duration::from_secs(1);
/// Time for which a leaving node without a successor and without a lease waits for either.
const SUCCESSOR_WAIT: Duration = Duration::from_secs(10);

/// The processes that want to join, as the leader knows them.
#[derive(Default)]
pub(super) struct Candidates {
    first_asked: BTreeMap<Peer, (Moment, Moment)>,
    /// Candidates whose `Join` is in the log, with the callers that wait for the answer.
    proposed: BTreeMap<Peer, Vec<JoinRequester>>,
}

/// The recipient of the answer to a join request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinRequester {
    /// A caller at this node, under this id.
    Here(u64),
    /// Another node, under its number.
    There(NodeId, u64),
}

impl Candidates {
    /// Records a request; returns the time of the process's first one. A process that was silent for
    /// long counts as new.
    fn note(&mut self, now: Moment, peer: Peer) -> Moment {
        self.first_asked.retain(|_, (_, last)| now < *last + CANDIDATE_WAIT);
        let (first, last) = self.first_asked.entry(peer).or_insert((now, now));
        *last = now;
        *first
    }

    /// Returns whether a process of this node asks to join just now.
    pub(super) fn asks(&self, node: NodeId, now: Moment) -> bool {
        let of_node = self.first_asked.iter().filter(|(peer, _)| peer.id == node);
        of_node.map(|(_, (_, last))| *last).any(|last| now < last + ASKS_AGAIN)
    }
}

/// Maximum time for which a node's places are reserved.
pub(super) const AWAY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The time a leaving node stays away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Absence {
    ForGood,
    For(Duration),
}

impl Absence {
    /// Returns the change by which the node leaves.
    pub(super) fn change(self, Peer { id: node, boot }: Peer, way: LeaveWay) -> Change {
        match self {
            Absence::ForGood => Change::Leave { node, boot, way },
            Absence::For(absence) => Change::Away { node, boot, absence, way },
        }
    }
}

/// A node's wish to leave.
pub(super) struct Leaving {
    pub(super) absence: Absence,
    pub(super) way: LeaveWay,
    /// Time of the first request; `leave-timeout` counts from here.
    asked_at: Moment,
    /// The callers that asked for it, answered when it is done.
    askers: Vec<u64>,
    /// Time since when there is no node to hand anything to, and no lease.
    without_successors_since: Option<Moment>,
}

/// Requests that this node has passed on to the leader.
#[derive(Default)]
pub(super) struct PassedOn {
    last_number: u64,
    open: BTreeMap<u64, (JoinRequester, Moment)>,
}

impl Control {
    // ---- Joining, at the member that was asked.

    pub(super) fn on_join_ask(&mut self, request: JoinRequest, asker: JoinRequester) {
        match self.consensus.leader() {
            Some(leader) if leader == self.me.id => self.consider(request, asker),
            Some(leader) => {
                self.passed_on.last_number += 1;
                let number = self.passed_on.last_number;
                self.passed_on.open.insert(number, (asker, self.now + LEADER_WAIT));
                let request = Box::new(request);
                self.send(leader, Message::JoinAsk { number, request });
            }
            None => self.answer_join(asker, wait("the cluster has no leader just now")),
        }
    }

    pub(super) fn on_join_answer(&mut self, number: u64, answer: JoinAnswer) {
        if let Some((asker, _)) = self.passed_on.open.remove(&number) {
            return self.answer_join(asker, answer);
        }
        // No caller asked through this node: it was its own request to come back.
        if let (JoinAnswer::Refused(reason), false) = (answer, self.is_member()) {
            self.go(Gone::Refused(reason));
        }
    }

    pub(super) fn give_up_questions(&mut self) {
        let now = self.now;
        let late = self.passed_on.open.extract_if(.., |_, (_, until)| *until <= now);
        for (asker, _) in late.map(|(_, open)| open).collect::<Vec<_>>() {
            self.answer_join(asker, wait("the cluster's leader does not answer"));
        }
    }

    /// Asks to come back: a process that has kept its id is another boot, and not a member before the
    /// map says so. It asks all members: its log may be too old to name a leader, or name one that has
    /// gone since, and no node sends the log to a process that is not a member. It asks all voters, too:
    /// the leader may be a process that was declared dead and is no member itself.
    pub(super) fn ask_to_come_back(&mut self) {
        if self.is_gone || self.is_member() {
            return;
        }
        let request = JoinRequest::of_returning(self.me.clone(), self.cluster);
        if self.leads() {
            return self.consider(request, JoinRequester::There(self.me.id, 0));
        }
        let Configuration { voters, voters_before, .. } = self.consensus.configuration();
        let voters = voters.union(voters_before).copied();
        let asked: BTreeSet<NodeId> = self.others().chain(voters).collect();
        self.send_all(asked, &Message::JoinAsk { number: 0, request: Box::new(request) });
    }

    // ---- Joining, at the leader.

    pub(super) fn consider(&mut self, request: JoinRequest, asker: JoinRequester) {
        let now = self.now;
        let (Some(map), Some(leader)) = (self.map.clone(), &mut self.leader) else {
            return self.answer_join(asker, wait("the cluster has no leader just now"));
        };
        let peer = request.member.peer();
        if request.is_loading {
            leader.lost.note_loading(peer.id, now);
            return self.answer_join(asker, wait("it is still loading its data"));
        }
        let first_asked = leader.candidates.note(now, peer);
        let renewed =
            |node: NodeId| node == self.me.id || leader.granter.last_ask(node) > Some(first_asked);
        // A delayed request of an earlier process looks like a new one: but the process that is the
        // member would have been heard meanwhile. The last lease request of an ended process may be
        // delayed, too, and must not count forever.
        let last_ask = leader.granter.last_ask(peer.id).unwrap_or(first_asked);
        let is_quiet = now >= last_ask.max(first_asked) + map.settings().lease / 2;
        let is_last = if peer.id == self.me.id { peer == self.me.peer() } else { is_quiet };
        match join::judge(&map, self.cluster, &request, renewed, is_last) {
            JoinDecision::Member => self.answer_join(asker, self.welcome(&map)),
            JoinDecision::Wait(reason) => self.answer_join(asker, JoinAnswer::Wait(reason)),
            JoinDecision::Refuse(reason) => self.answer_join(asker, JoinAnswer::Refused(reason)),
            JoinDecision::Admit if leader.granter.is_condemned(peer.id) => {
                self.answer_join(asker, wait("its earlier process is being removed from the map"));
            }
            JoinDecision::Admit
                if request.has_kept_copies() && self.is_someone_in_doubt(&map, peer) =>
            {
                let reason =
                    "another member may be dead; the returning node's copies may still be needed";
                self.answer_join(asker, wait(reason));
            }
            JoinDecision::Admit => self.admit(&map, request.member, asker),
        }
    }

    /// Returns whether a member may be dead and is not declared dead yet. A returning process frees its
    /// copies of buckets that others hold when it is admitted, so none is admitted before those others
    /// are known to live.
    fn is_someone_in_doubt(&self, map: &Map, returning: Peer) -> bool {
        let Some(leader) = &self.leader else { return true };
        let is_accounted_for = |node: NodeId| {
            node == self.me.id
                || node == returning.id
                || self.was_heard(leader, node)
                || leader.candidates.asks(node, self.now)
        };
        !map.members().iter().all(|member| is_accounted_for(member.id))
    }

    /// Proposes the `Join`, together with the split that it may make necessary.
    fn admit(&mut self, map: &Map, member: Member, asker: JoinRequester) {
        let peer = member.peer();
        let mut changes = vec![Change::Join(member)];
        let mut after = map.clone();
        after.apply(LogIndex(0), &changes[0]);
        changes.extend(split_by_count(&after));
        let known = self.leader.as_mut().map(|leader| &mut leader.candidates.proposed);
        if let Some(askers) = known.and_then(|proposed| proposed.get_mut(&peer)) {
            askers.retain(|known| *known != asker);
            return askers.push(asker);
        }
        // Not while voters change: the `Join` could be decided without the new voters, which have not heard
        // of it.
        let entry = LogEntry { planned_at: None, changes };
        if self.consensus.is_reconfiguring() || self.put_into_log(entry) == Proposed::NotNow {
            return self.answer_join(asker, wait("the cluster is changing its voters"));
        }
        let leader = self.leader.as_mut().expect("only a leader puts something into the log");
        leader.candidates.proposed.insert(peer, vec![asker]);
    }

    /// Welcomes candidates whose `Join` has been applied.
    pub(super) fn welcome_new_members(&mut self, map: &Map) {
        let Some(leader) = &mut self.leader else { return };
        let is_in = |peer: &Peer| map.member(peer.id).is_some_and(|it| it.peer() == *peer);
        let (known, open): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut leader.candidates.proposed)
                .into_iter()
                .partition(|(peer, _)| is_in(peer));
        leader.candidates.proposed = open;
        for asker in known.into_values().flatten() {
            self.answer_join(asker, self.welcome(map));
        }
    }

    fn welcome(&self, map: &Map) -> JoinAnswer {
        let (cluster, generation) = (self.cluster, map.generation());
        let (members, index) = (map.members().to_vec(), self.applied);
        JoinAnswer::Welcome(Welcome { cluster, generation, members, index })
    }

    fn answer_join(&mut self, asker: JoinRequester, answer: JoinAnswer) {
        match asker {
            JoinRequester::Here(id) => self.answer(id, Answer::Join(answer)),
            JoinRequester::There(node, number) if node == self.me.id => {
                self.on_join_answer(number, answer);
            }
            JoinRequester::There(node, number) => {
                self.send(node, Message::JoinAnswer { number, answer });
            }
        }
    }

    // ---- Leaving.

    /// Begins to leave. A second request can only make it quicker.
    pub(super) fn on_ask_leave(&mut self, id: u64, absence: Absence, way: LeaveWay) {
        if let Some(leaving) = &mut self.leaving {
            leaving.askers.push(id);
            if way == LeaveWay::Quick {
                self.leave_the_quick_way();
            }
            return;
        }
        self.leaving = Some(Leaving {
            absence,
            way,
            asked_at: self.now,
            askers: vec![id],
            without_successors_since: None,
        });
        self.feed_balancer(balance::BalanceInput::Leave(way));
        self.go_on_leaving();
    }

    fn leave_the_quick_way(&mut self) {
        if let Some(leaving) = self.leaving.as_mut().filter(|it| it.way == LeaveWay::Safe) {
            leaving.way = LeaveWay::Quick;
            let safe = leaving.absence.change(self.me.peer(), LeaveWay::Safe);
            self.proposals.withdraw(&[safe]);
            self.feed_balancer(balance::BalanceInput::Leave(LeaveWay::Quick));
        }
    }

    /// Switches to the quick way when `leave-timeout` has passed.
    fn hurry_if_late(&mut self) {
        let (Some(leaving), Some(map)) = (&self.leaving, &self.map) else { return };
        if self.now >= leaving.asked_at + map.settings().leave_timeout {
            self.leave_the_quick_way();
        }
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Continues leaving. Called repeatedly while this node leaves.
    pub(super) fn go_on_leaving(&mut self) {
        self.hurry_if_late();
        let holds_lease = self.holds_lease();
        let (Some(leaving), Some(map)) = (&mut self.leaving, &self.map) else { return };
        let is_last = map.members().len() == 1;
        let has_successors = has_successors(map, self.me.id);
        // A lease shows that other members live. They leave as well, and are handing their buckets to
        // this node: it goes when it is the last.
        if has_successors || holds_lease && !is_last {
            leaving.without_successors_since = None;
        } else {
            let since = leaving.without_successors_since.get_or_insert(self.now);
            if is_last || self.now >= *since + SUCCESSOR_WAIT {
                return self.go(Gone::LeftAsTheLast);
            }
        }
        if !self.is_member() {
            return self.go(self.gone_by_leaving());
        }
        self.hand_leadership_on();
    }

    /// Hands leadership on, but only when the map shows that this node may leave: of two leaving nodes
    /// one has to stay and lead. Never to a node that leaves as well, or leadership would go round in
    /// circles unused.
    fn hand_leadership_on(&mut self) {
        let Some(map) = &self.map else { return };
        if map.member(self.me.id).is_none_or(|member| member.weight > 0) {
            return;
        }
        let stays = |node: &NodeId| map.member(*node).is_some_and(|member| member.weight > 0);
        if let Some(transferee) = self.transferee_among(stays) {
            self.transfer_leadership_to(transferee);
        }
    }

    /// Records at the leader that a member has handed everything on.
    pub(super) fn on_wants_to_go(&mut self, peer: Peer, absence: Absence, way: LeaveWay) {
        if let Some(leader) = &mut self.leader {
            let announcement = LeaveAnnouncement { absence, way, since: self.now };
            let known = leader.leaving.entry(peer).or_insert(announcement);
            if way == LeaveWay::Quick {
                known.way = way;
            }
        }
    }

    /// Returns the reason for the end of a process that has left as it wanted to.
    pub(super) fn gone_by_leaving(&self) -> Gone {
        match self.leaving.as_ref().map(|leaving| leaving.absence) {
            Some(Absence::For(absence)) => Gone::LeftFor(absence),
            Some(Absence::ForGood) | None => Gone::Left,
        }
    }

    /// Releases the reserved places of nodes that stay away too long, and those of a returned node when
    /// all moves planned for it are done.
    pub(super) fn release_reserved_places(&mut self) {
        let (Some(leader), Some(map)) = (&mut self.leader, self.map.clone()) else { return };
        let now = self.now;
        leader.away_since.retain(|node, _| map.away().any(|(away, _)| away == *node));
        for (node, away) in map.away() {
            let Some(leader) = &mut self.leader else { return };
            let since = *leader.away_since.entry(node).or_insert(now);
            let is_over = match map.member(node) {
                Some(_) => self.plan().is_some_and(|plan| plan.is_done(&map)),
                None => now >= since + away.absence,
            };
            if is_over {
                let changes = vec![Change::Forget(node)];
                self.put_into_log(LogEntry { planned_at: None, changes });
            }
        }
    }

    /// Removes members that want to leave and have no vote any more.
    pub(super) fn remove_leavers(&mut self) {
        let (Some(leader), Some(map)) = (&mut self.leader, &self.map) else { return };
        leader.leaving.retain(|peer, _| map.member(peer.id).is_some_and(|it| it.peer() == *peer));
        let configuration = self.consensus.configuration();
        let is_free =
            |peer: &Peer| !configuration.is_voter(peer.id) && map.load(peer.id).primaries == 0;
        let free = leader.leaving.iter().map(|(peer, wish)| (*peer, *wish));
        for (peer, wish) in free.filter(|(peer, _)| is_free(peer)).collect::<Vec<_>>() {
            let changes = vec![wish.absence.change(peer, wish.way)];
            let entry = LogEntry { planned_at: None, changes };
            self.put_into_log(entry);
            // If it could not leave after all, it will ask again.
            if let Some(leader) = &mut self.leader {
                leader.leaving.remove(&peer);
            }
        }
    }

    /// Tells a node that it has left. It need not wait to hear that through the log, which is no longer
    /// sent to it.
    pub(super) fn say_farewell(&mut self, change: &PastChange) {
        for (change, outcome) in change.entry.changes.iter().zip(&change.outcomes) {
            let (Change::Leave { node, .. } | Change::Away { node, .. }) = change else { continue };
            if *outcome == ChangeOutcome::Applied && self.leads() {
                self.send(*node, Message::Farewell);
            }
        }
    }

    /// Ends this process as a member.
    pub(super) fn go(&mut self, gone: Gone) {
        for id in self.leaving.take().map(|leaving| leaving.askers).unwrap_or_default() {
            self.answer(id, Answer::Done);
        }
        self.end_writes();
        self.out.push(Action::Gone(gone));
        self.is_gone = true;
    }

    /// Handles another node's notice that this process is not a member by its map.
    pub(super) fn on_lease_refused(&mut self, generation: Generation, index: LogIndex) {
        if self.generation().is_some_and(|mine| !mine.is_one_with(generation)) {
            return self.on_met(generation);
        }
        let welcomed_at = self.welcome.as_ref().map_or(LogIndex(0), |welcome| welcome.index);
        if index < welcomed_at || (self.is_member() && self.applied >= index) {
            return; // Refused by an older map than this node knows.
        }
        // A process that was admitted and removed again is not coming back, although its map may be
        // older than both.
        let is_coming_back = self.welcome.is_none() && self.map.is_some() && self.since.is_none();
        if self.leaving.is_some() {
            self.go(self.gone_by_leaving());
        } else if !is_coming_back {
            self.go(Gone::Removed);
        }
    }
}

fn wait(reason: &str) -> JoinAnswer {
    JoinAnswer::Wait(reason.into())
}
