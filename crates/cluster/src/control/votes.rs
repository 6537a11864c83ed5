//! Voters: how the leader chooses them, and when it takes a vote away.
//!
//! Losing data duties is not losing the vote: `Dead` takes a node's buckets and lease, and leaves its
//! vote alone. The vote goes by a change of its own, which is proposed only if it can be decided
//! without the nodes declared dead and leaves voters of which a majority is reached. Until then a
//! process that was declared dead answers as a voter (it has kept its id, its log and its vote), so
//! whenever a majority of the voters' processes run and reach each other there is a leader again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Control;
use super::leader::Leader;
use crate::Moment;
use crate::consensus::RaftMessage;
use crate::map::{LogIndex, Map, Member, NodeId};

/// A member that is more entries behind than this gets no vote yet.
const BEHIND_MAX: u64 = 1000;
/// A voter is reached if it has answered within this time. A leader asks ten times a second.
const REACHED_WITHIN: Duration = Duration::from_millis(250);
/// Time a voter that was declared dead keeps its vote if no living member can take its seat. Two voters
/// decide nothing without both, so a third vote does no harm, and if its process was only paused its
/// vote lets the cluster tolerate one more fault.
const VOTE_KEPT: Duration = Duration::from_secs(60);

/// A leader's knowledge of the voters besides their leases.
#[derive(Default)]
pub(super) struct Votes {
    /// Time at which each node last answered this leader.
    answered: BTreeMap<NodeId, Moment>,
    /// Time since when each of these voters has not been a member.
    given_up_since: BTreeMap<NodeId, Moment>,
}

impl Control {
    /// Records which nodes answer this leader.
    pub(super) fn note_answer(&mut self, from: NodeId, message: &RaftMessage) {
        let (now, is_of_this_term) = (self.now, message.term == self.consensus.term());
        if let Some(leader) = self.leader.as_mut().filter(|_| is_of_this_term) {
            leader.votes.answered.insert(from, now);
        }
    }

    /// Returns whether a node, member or not, answers this leader at this moment.
    pub(super) fn is_reached(&self, node: NodeId) -> bool {
        let Some(leader) = &self.leader else { return false };
        let answered = leader.votes.answered.get(&node);
        node == self.me.id || answered.is_some_and(|at| self.read_until() <= *at + REACHED_WITHIN)
    }

    pub(super) fn choose_voters(&mut self) {
        let Some(map) = self.map.clone() else { return };
        self.note_given_up(&map);
        let wanted = self.wanted_voters(&map);
        let may_change = self.can_decide_with(&map, &wanted);
        let voters = if may_change { wanted } else { self.consensus.voters().clone() };
        let members = map.members().iter().map(|member| member.id);
        let learners = members.filter(|node| !voters.contains(node)).collect();
        self.consensus.reconfigure(&voters, &learners);
    }

    fn note_given_up(&mut self, map: &Map) {
        let now = self.now;
        let voters = self.consensus.voters().iter().copied();
        let given_up: BTreeSet<NodeId> = voters.filter(|it| map.member(*it).is_none()).collect();
        let Some(leader) = &mut self.leader else { return };
        leader.votes.given_up_since.retain(|node, _| given_up.contains(node));
        for node in given_up {
            leader.votes.given_up_since.entry(node).or_insert(now);
        }
    }

    /// Returns whether the change to these voters can be decided without the votes of nodes that were
    /// declared dead and lose theirs by it, and whether the new voters can decide the next change.
    fn can_decide_with(&self, map: &Map, wanted: &BTreeSet<NodeId>) -> bool {
        let helps = |node: NodeId| wanted.contains(&node) || map.member(node).is_some();
        is_majority(self.consensus.voters(), |node| helps(node) && self.is_reached(node))
            && is_majority(wanted, |node| self.is_reached(node))
    }

    /// Returns the voters this leader wants: enough of the living, in as many zones as possible,
    /// preferring present voters.
    fn wanted_voters(&self, map: &Map) -> BTreeSet<NodeId> {
        let now: &BTreeSet<NodeId> = self.consensus.voters();
        let Some(leader) = &self.leader else { return now.clone() };
        // A leaving leader needs a successor, and keeps its vote only until then.
        let i_leave = self.leaving.is_some()
            && map.member(self.me.id).is_some_and(|member| member.weight == 0);
        let is_me = |member: &Member| member.id == self.me.id;
        let stays = |member: &&Member| {
            let goes = self.may_do_without(map, leader, member.id) || leader.lets_go(member.id);
            !(goes || i_leave && is_me(member))
        };
        let seats = seats(map.members().iter().filter(stays).count());
        let mut open: Vec<&Member> = map
            .members()
            .iter()
            .filter(stays)
            .filter(|it| it.id != self.me.id && (now.contains(&it.id) || self.is_up_to_date(it.id)))
            .collect();
        let me = map.member(self.me.id);
        let mut chosen: Vec<&Member> = me.filter(|_| !i_leave).into_iter().collect();
        // An even number of voters tolerates no more failures than one voter fewer, and needs a larger
        // majority.
        let seats = match seats.min(chosen.len() + open.len()) {
            few @ 0..=2 => few,
            more => (more - 1) | 1,
        };
        while chosen.len() < seats && !open.is_empty() {
            let neighbours =
                |it: &Member| chosen.iter().filter(|chosen| chosen.zone == it.zone).count();
            let rank = |it: &Member| {
                (i_leave && it.weight == 0, neighbours(it), !now.contains(&it.id), it.id)
            };
            let best = (0..open.len()).min_by_key(|place| rank(open[*place]));
            chosen.push(open.swap_remove(best.expect("somebody is left")));
        }
        let mut wanted: BTreeSet<NodeId> = chosen.into_iter().chain(me).map(|it| it.id).collect();
        if wanted.len() == 2 {
            wanted.extend(self.kept_vote(leader));
        }
        wanted
    }

    /// Returns a voter that was declared dead and is worth a seat beside two others: its process may
    /// only have been paused or cut off.
    fn kept_vote(&self, leader: &Leader) -> Option<NodeId> {
        let is_kept = |(node, since): &(&NodeId, &Moment)| {
            self.is_reached(**node) || !self.has_ended(**node) && self.now < **since + VOTE_KEPT
        };
        let kept = leader.votes.given_up_since.iter().filter(is_kept);
        kept.map(|(node, _)| *node).max_by_key(|node| (self.is_reached(*node), *node))
    }

    /// Returns whether a member wants to leave and all other voters have been heard since: if one of
    /// them has just died, the leaver's vote is needed until that is decided.
    fn may_do_without(&self, map: &Map, leader: &Leader, node: NodeId) -> bool {
        let Some(wish) = leader.leave_announced_by(node) else { return false };
        let others =
            self.consensus.voters().iter().filter(|it| leader.leave_announced_by(**it).is_none());
        let mut others = others.filter(|it| **it != self.me.id && map.member(**it).is_some());
        others.all(|it| {
            let was_heard = leader.granter.last_ask(*it) > Some(wish.since);
            was_heard && !leader.granter.is_condemned(*it)
        })
    }

    /// Returns whether a member answers and has the log, so that decisions need not wait for it. Its answers
    /// to this leader tell that sooner than its requests for a lease: the vote of a third node must not
    /// come later than its buckets, because of two voters none may die.
    fn is_up_to_date(&self, node: NodeId) -> bool {
        let matched = self.consensus.matched(node).filter(|matched| *matched > LogIndex(0));
        self.is_reached(node) && matched.is_some_and(|it| it.0 + BEHIND_MAX >= self.applied.0)
    }
}

/// Returns the number of voters of a cluster with this many members.
fn seats(members: usize) -> usize {
    match members {
        0..=2 => members,
        3 | 4 => 3,
        5.. => 5,
    }
}

/// Returns whether more than half of the voters are fit.
pub(super) fn is_majority(voters: &BTreeSet<NodeId>, is_fit: impl Fn(NodeId) -> bool) -> bool {
    2 * voters.iter().filter(|node| is_fit(**node)).count() > voters.len()
}
