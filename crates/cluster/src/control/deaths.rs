//! Failure detection: a node is dead when it has been silent for so long that its lease has surely
//! expired.
//!
//! Only the leader decides it, only by its own clock, and nothing shortens the wait. Nodes that fell
//! silent together are declared dead in one step, so that none of them is promoted in the place of
//! another. If no other node has their buckets, another leader has to confirm it first: it may be this
//! leader that is cut off.
//!
//! A death takes a node's buckets and its lease. Its vote is a separate matter (`votes.rs`).

use std::collections::BTreeSet;
use std::time::Duration;

use super::Control;
use super::leader::{Leader, Proposed};
use super::lease::patience;
use super::votes::is_majority;
use crate::Moment;
use crate::consensus::LogEntry;
use crate::map::{Bucket, Change, NodeId};

impl Control {
    /// Returns whether this node leads and has proposed that one as dead.
    pub fn condemns(&self, node: NodeId) -> bool {
        self.leader.as_ref().is_some_and(|leader| leader.granter.is_condemned(node))
    }

    /// Returns whether this leader will count the node's lease as expired within 100 ms, unless the node renews it.
    pub fn is_about_to_condemn(&self, node: NodeId) -> bool {
        self.silent_until(self.now + Duration::from_millis(100)).contains(&node)
    }

    pub(super) fn declare_deaths(&mut self) {
        if self.leader.as_ref().is_none_or(|leader| !leader.is_confirmed) {
            return;
        }
        let dead = self.silent_until(self.read_until());
        if dead.is_empty() || !self.can_decide_without(&dead) || self.waits_for_more(&dead) {
            return self.doubt(None);
        }
        if let Some(transferee) = self.better_judge(&dead) {
            self.doubt(Some(self.now));
            return self.transfer_leadership_to(transferee);
        }
        let entry = LogEntry { planned_at: None, changes: vec![Change::Dead(dead.clone())] };
        if self.put_into_log(entry) == Proposed::Now {
            let leader = self.leader.as_mut().expect("only a leader puts something into the log");
            leader.granter.condemn(&dead);
        }
    }

    /// Returns the voter that should confirm these deaths first, because with them all copies of a
    /// bucket would be lost. `None` if this leader has never heard from them: then it was itself asked
    /// to confirm, or they have been silent for long. Also `None` after a while, if no other node takes
    /// over.
    fn better_judge(&self, dead: &BTreeSet<NodeId>) -> Option<NodeId> {
        let (map, leader) = (self.map.as_ref()?, self.leader.as_ref()?);
        let is_dead = |node: &NodeId| dead.contains(node);
        let goes =
            |bucket: &Bucket| !bucket.holders.is_empty() && bucket.holders.iter().all(is_dead);
        let was_here = |node: &NodeId| leader.granter.last_ask(*node).is_some();
        let until = leader.in_doubt_since.map(|since| since + patience(self.lease()));
        if !map.buckets().any(goes)
            || !dead.iter().any(was_here)
            || until.is_some_and(|until| self.now >= until)
        {
            return None;
        }
        self.transferee_among(|node| {
            let record = leader.granter.record(*node);
            self.was_heard(leader, *node) && record.is_some_and(|it| !it.is_cut_off)
        })
    }

    fn doubt(&mut self, since: Option<Moment>) {
        if let Some(leader) = &mut self.leader {
            leader.in_doubt_since = since.map(|since| leader.in_doubt_since.unwrap_or(since));
        }
    }

    /// Returns the nodes whose lease will surely have expired by then, unless they renew it. A node
    /// that has asked just now is alive: it is this leader that is late with its answers. So is one
    /// whose next process asks to join: that takes the place of the earlier one without a death.
    fn silent_until(&self, until: Moment) -> BTreeSet<NodeId> {
        let Some(leader) = &self.leader else { return BTreeSet::new() };
        let is_silent = |node: &NodeId| {
            !leader.granter.is_condemned(*node)
                && !self.was_heard(leader, *node)
                && !leader.candidates.asks(*node, self.now)
                && leader.granter.record(*node).is_some_and(|it| it.may_serve_until <= until)
        };
        self.others().filter(is_silent).collect()
    }

    /// Returns whether a node has asked for its lease within the time in which every node does.
    pub(super) fn was_heard(&self, leader: &Leader, node: NodeId) -> bool {
        let asked = leader.granter.last_ask(node);
        asked.is_some_and(|asked| self.read_until() <= asked + patience(self.lease()) / 2)
    }

    /// Returns whether more of the nodes that fell silent at the same time will surely be dead in a
    /// moment. They renew at different times, so their leases end up to one renewal apart.
    fn waits_for_more(&self, dead: &BTreeSet<NodeId>) -> bool {
        let Some(leader) = &self.leader else { return false };
        let margin = self.lease() / 4;
        let first = dead.iter().filter_map(|node| leader.granter.record(*node));
        let Some(first) = first.map(|record| record.may_serve_until).min() else {
            return false;
        };
        let together = self.silent_until(first + margin);
        self.read_until() < first + margin && together.iter().any(|node| !dead.contains(node))
    }

    /// Returns whether a majority of the voters is reached at this moment without these nodes, so that
    /// the entry that declares them dead needs none of their own votes. A voter that was declared dead
    /// earlier and is back counts: it has kept its vote. With two voters the survivor never reaches a
    /// majority: it cannot tell whether the other is dead or cut off. While other voters are proposed,
    /// it is not known yet whose majority is needed.
    fn can_decide_without(&self, dead: &BTreeSet<NodeId>) -> bool {
        let Some(leader) = self.leader.as_ref().filter(|_| !self.consensus.has_proposed_voters())
        else {
            return false;
        };
        let is_left = |node: NodeId| {
            !dead.contains(&node) && !leader.granter.is_condemned(node) && self.is_reached(node)
        };
        let configuration = self.consensus.configuration();
        let is_enough = |voters| is_majority(voters, is_left);
        is_enough(&configuration.voters)
            && (!configuration.is_joint() || is_enough(&configuration.voters_before))
    }
}
