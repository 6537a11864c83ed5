//! Sick but alive: a node whose threads stall, whose disk does not sync, or that is cut off from most gets
//! nothing more and hands on the buckets it serves, as long as a healthy node holds a copy.
//!
//! The planner does not know about it: the new primary would promote the sick node again by the plan,
//! and is refused as long as the node is sick. When it has recovered, all nodes plan again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Action, Control, Message};
use crate::Moment;
use crate::balance::{self, Condition, Debt, MemoryReport, Vitals};
use crate::consensus::LogEntry;
use crate::map::{Bucket, Change, NodeId, Peer};

/// Interval between a sick node's announcements. A node that has announced nothing for three intervals
/// counts as healthy.
const SAY_INTERVAL: Duration = Duration::from_secs(1);

/// A process whose links are closed and that opens none within this time has ended.
const NEXT_LIFE_WITHIN: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Health {
    mine: Condition,
    /// Time since when nothing has come from nodes whose links have broken.
    unreachable: BTreeMap<NodeId, Moment>,
    /// Time since when the links of these have been closed by their systems: their processes have
    /// ended, or are about to continue under another boot.
    hung_up: BTreeMap<NodeId, Moment>,
    /// Time until which each of these counts as sick.
    sick: BTreeMap<NodeId, Moment>,
    was_sick: bool,
    say_at: Moment,
    probe_at: Moment,
}

impl Control {
    pub(super) fn on_vitals(&mut self, vitals: Vitals) {
        self.health.mine = vitals.condition;
        let condition = self.condition();
        self.balancing.balancer.set_vitals(Vitals { condition, ..vitals });
        self.note_vitals(Vitals { condition, ..vitals });
    }

    /// Tells the primaries of this node's backups if its memory is full, and lets the balancer give copies
    /// away before that.
    pub(super) fn on_memory(&mut self, report: MemoryReport) {
        let debts = self.map.as_ref().map(|map| report.debts(map, self.me.id));
        for Debt { primary, bytes } in debts.unwrap_or_default() {
            // Those within their part may go on, unless nothing can be evicted for what they add.
            if bytes == 0 && report.level.evicts {
                continue;
            }
            self.send(primary, Message::MakeRoom { bytes });
        }
        self.feed_balancer(balance::BalanceInput::Memory(report));
    }

    /// Passes on that another node's memory is full; a report of an earlier process does not count.
    pub(super) fn on_make_room(&mut self, from: Peer, bytes: u64) {
        let known = self.map.as_ref().and_then(|map| map.member(from.id));
        if known.is_some_and(|member| member.peer() == from) {
            self.out.push(Action::MakeRoom { node: from.id, bytes });
        }
    }

    pub(super) fn on_unreachable(&mut self, node: NodeId) {
        self.consensus.report_unreachable(node);
        self.feed_balancer(balance::BalanceInput::LinkDown { node });
        self.health.unreachable.entry(node).or_insert(self.now);
    }

    /// Returns the time since when the link to a node has been broken.
    pub(super) fn unreachable_since(&self, node: NodeId) -> Option<Moment> {
        self.health.unreachable.get(&node).copied()
    }

    pub(super) fn note_reached(&mut self, node: NodeId) {
        self.health.unreachable.remove(&node);
        self.health.hung_up.remove(&node);
    }

    pub(super) fn on_hung_up(&mut self, node: NodeId) {
        self.feed_balancer(balance::BalanceInput::LinkDown { node });
        self.health.hung_up.entry(node).or_insert(self.now);
    }

    /// Returns whether the node's process has ended, as far as can be told. A paused one keeps its
    /// links, and one that continues under another boot has opened new ones long before.
    pub(super) fn has_ended(&self, node: NodeId) -> bool {
        let since = self.health.hung_up.get(&node);
        since.is_some_and(|since| self.now >= *since + NEXT_LIFE_WITHIN)
    }

    pub(super) fn on_sick(&mut self, from: NodeId) {
        self.health.sick.insert(from, self.now + 3 * SAY_INTERVAL);
    }

    /// Returns this node's condition. A sick node should serve nothing while another node can.
    pub fn condition(&self) -> Condition {
        let is_cut_off = self.is_cut_off_from_most();
        if is_cut_off { Condition::Sick } else { self.health.mine }
    }

    /// Returns whether most others are unreachable. Needs three members: of two, neither can tell whose
    /// link is broken.
    pub(super) fn is_cut_off_from_most(&self) -> bool {
        let others = self.others().count();
        let lost = self.others().filter(|node| self.is_unreachable(*node)).count();
        others > 1 && 2 * lost > others
    }

    /// Returns whether a node has been unreachable for a lease. Not at once: a broken link may be
    /// reopened.
    fn is_unreachable(&self, node: NodeId) -> bool {
        let since = self.health.unreachable.get(&node);
        since.is_some_and(|since| self.now >= *since + self.lease())
    }

    /// Pings unreachable nodes: two nodes may have no messages for each other for long.
    pub(super) fn probe_unreachable(&mut self) {
        if self.health.unreachable.is_empty() || self.now < self.health.probe_at {
            return;
        }
        self.health.probe_at = self.now + self.lease() / 4;
        let members: BTreeSet<NodeId> = self.others().collect();
        self.health.unreachable.retain(|node, _| members.contains(node));
        let asked: Vec<NodeId> = self.health.unreachable.keys().copied().collect();
        self.send_all(asked, &Message::Balance(balance::BalanceMessage::Ping));
    }

    /// Announces that this node is sick, and hands on one bucket after the other.
    pub(super) fn shed_if_sick(&mut self) {
        if self.condition() == Condition::Well || !self.is_member() {
            return self.recover();
        }
        self.health.was_sick = true;
        if self.now >= self.health.say_at {
            self.health.say_at = self.now + SAY_INTERVAL;
            let others: Vec<NodeId> = self.others().collect();
            self.send_all(others, &Message::Sick);
        }
        if !self.gives_nothing() {
            return;
        }
        let now = self.now;
        self.health.sick.retain(|_, until| *until > now);
        if let Some(promotion) = self.next_to_shed() {
            // If all nodes have planned again before it is decided, they have to plan once more.
            let planned_at = self.map.as_ref().map(|map| map.basis());
            self.begin_handover(LogEntry { planned_at, changes: vec![promotion] });
        }
    }

    /// Makes all nodes plan again: by the present plan nothing may be left to do for this node.
    fn recover(&mut self) {
        let known = self.map.as_ref().and_then(|map| map.member(self.me.id)).cloned();
        if let (true, Some(member)) = (std::mem::take(&mut self.health.was_sick), known) {
            self.propose(None, vec![Change::Join(member)]);
        }
    }

    fn next_to_shed(&self) -> Option<Change> {
        let map = self.map.as_ref()?;
        let is_well = |node: &&NodeId| {
            let stays = map.member(**node).is_some_and(|member| member.weight > 0);
            let is_sick = self.health.sick.contains_key(node);
            stays && !is_sick && !self.health.unreachable.contains_key(node)
        };
        let successor = |bucket: &Bucket| bucket.backups().iter().find(is_well).copied();
        let mine = map.buckets().filter(|bucket| bucket.primary() == Some(self.me.id));
        let (bucket, node) = mine.filter_map(|it| Some((it, successor(it)?))).next()?;
        Some(Change::Promote { bucket: bucket.hashmask, node, expected: bucket.epoch })
    }
}
