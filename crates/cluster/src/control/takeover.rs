//! Takeover: one of two nodes, or one of a few survivors, goes on alone in a new generation.
//!
//! With two members nothing can be decided without both, and the survivor cannot tell whether the other
//! is dead or cut off. Client demand is the evidence (`two-node-takeover`); if a majority is gone for
//! good, the operator's request is. When the two sides meet again, their writes are merged
//! (`generations.rs`).

use super::lease::patience;
use super::{Answer, Control};
use crate::Moment;
use crate::consensus::Payload;
use crate::map::{Change, Map, Member, NodeId};
use crate::rules::{Rule, is_enforced};

/// The time this node last heard from the others, and the time it lost its lease.
#[derive(Default)]
pub(super) struct LastContact {
    last: Moment,
    lease_ended: Option<Moment>,
}

impl LastContact {
    /// Returns the time since when this node has been without a lease, if it is.
    pub(super) fn lease_ended(&self) -> Option<Moment> {
        self.lease_ended
    }
}

impl Control {
    /// Returns whether the survivor of two may go on alone if a client request arrives now.
    pub fn may_take_over(&self) -> bool {
        self.objection_to_takeover().is_none() && self.is_one_of_two() && self.is_allowed()
    }

    fn is_allowed(&self) -> bool {
        let holds = |map: &Map| map.load(self.me.id).total() > 0;
        self.map.as_ref().is_some_and(|map| map.settings().two_node_takeover && holds(map))
    }

    /// Handles client demand: a command for a key, a topology query on a connection opened after this
    /// node lost its lease, or a client that waits for a timer.
    pub(super) fn on_client_demand(&mut self) {
        if self.may_take_over() {
            self.take_over();
        }
    }

    /// Handles an operator's request for a takeover: the missing nodes will not come back.
    pub(super) fn on_ask_takeover(&mut self, id: u64) {
        match self.objection_to_takeover() {
            Some(text) => self.answer(id, Answer::Refused(text.into())),
            None => {
                self.take_over();
                self.answer(id, Answer::Done);
            }
        }
    }

    fn objection_to_takeover(&self) -> Option<&'static str> {
        let map = self.map.as_ref()?;
        if !self.is_member() {
            return Some("this process is not a member of the cluster");
        }
        if self.yielding.is_some() {
            return Some("this side of the split cluster has ended in favour of another");
        }
        if map.members().len() == 1 {
            return Some("this node is the only member: there is nothing to take over");
        }
        if self.holds_lease() {
            return Some("this node holds a lease: the cluster can decide without a takeover");
        }
        let silence = patience(self.lease());
        let since = self.contact.lease_ended.unwrap_or(self.now);
        (self.now < since + silence)
            .then_some("the last lease expired only a moment ago; retry in a few seconds")
    }

    /// Returns whether this node and one other are the only members by everything in its log, committed
    /// or not, and the other has been silent for so long that it cannot hold a lease.
    fn is_one_of_two(&self) -> bool {
        let Some(map) = &self.map else { return false };
        let configuration = self.consensus.configuration();
        let is_pair = configuration.voters.len() == 2
            && configuration.voters.contains(&self.me.id)
            && configuration.learners.is_empty()
            && !configuration.is_joint();
        let is_undecided = |payload: &Payload| match payload {
            Payload::Nothing => false,
            Payload::Reconfigure(_) => true,
            Payload::Changes(entry) => entry.changes.iter().any(|change| self.adds_a_third(change)),
        };
        is_pair
            && map.members().iter().map(|member| member.id).eq(configuration.voters.iter().copied())
            && (!is_enforced(Rule::NoThirdInTheLog)
                || !self.consensus.undecided().any(|entry| is_undecided(&entry.payload)))
            && self.now >= self.contact.last + patience(self.lease())
    }

    fn adds_a_third(&self, change: &Change) -> bool {
        let known = |node: NodeId| self.map.as_ref().is_some_and(|map| map.member(node).is_some());
        matches!(change, Change::Join(member) if !known(member.id))
    }

    fn take_over(&mut self) {
        self.leader = None;
        self.consensus.take_over();
    }

    /// Returns the nodes that were members before a takeover and have not come back since: when one is
    /// met again, the two generations have to be merged. The leader looks for them.
    pub fn partitioned_members(&self) -> &[Member] {
        let map = self.map.as_ref().filter(|_| self.leads() && self.yielding.is_none());
        map.map_or(&[], |map| map.partitioned_members())
    }

    // ---- Silence.

    pub(super) fn note_contact(&mut self) {
        self.contact.last = self.now;
    }

    /// Updates the silence of the others. A node that was stopped itself has not yet read the messages
    /// in its sockets.
    pub(super) fn note_silence(&mut self, was_stopped: WasStopped) {
        if was_stopped == WasStopped::Yes {
            self.contact.last = self.now;
        }
        let ended = self.contact.lease_ended.filter(|_| was_stopped == WasStopped::No);
        self.contact.lease_ended =
            if self.holds_lease() { None } else { Some(ended.unwrap_or(self.now)) };
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WasStopped {
    Yes,
    No,
}
