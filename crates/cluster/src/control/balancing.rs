//! The balancer inside the node: its timers, its plan, and its proposals.
//!
//! It decides (`crate::balance`); this module starts its fills, sends its promotions through a handover
//! first (`handover.rs`), and proposes the rest (`proposals.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use placement::Hashmask;

use super::membership::Absence;
use super::{Action, Control, Message};
use crate::Moment;
use crate::balance::{
    self, Balancer, Condition, MoveId, MoveRole, Plan, PlanView, SizeReport, Timer,
};
use crate::consensus::LogEntry;
use crate::data::Order;
use crate::map::{Change, DropReason, Epoch, LeaveWay, Map, NodeId};

/// Interval at which participants of a move check that the others still take part.
const ENGAGED_CHECK: Duration = Duration::from_secs(1);

pub(super) struct Balancing {
    pub(super) balancer: Balancer,
    timers: BTreeMap<(Moment, u64), Timer>,
    last_timer: u64,
    /// The map at its basis, the same on all nodes: all plan from it.
    basis: Option<Arc<Map>>,
    plan: Option<Arc<Plan>>,
    /// Fills from this node, each with its buckets and taker.
    fills: BTreeMap<MoveId, (Vec<Hashmask>, NodeId)>,
    /// The move this node takes part in, and the time of its next check of the others.
    engaged: Option<(MoveId, Moment)>,
    /// True while this node holds timers that others must take over before it may leave.
    pub(super) holds_timers: bool,
}

impl Balancing {
    pub(super) fn new(me: NodeId, seed: u64) -> Balancing {
        Balancing {
            balancer: Balancer::new(me, seed),
            timers: BTreeMap::new(),
            last_timer: 0,
            basis: None,
            plan: None,
            fills: BTreeMap::new(),
            engaged: None,
            holds_timers: false,
        }
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        let timer = self.timers.first_key_value().map(|((at, _), _)| *at);
        timer.into_iter().chain(self.engaged.map(|(_, at)| at)).min()
    }

    /// Keeps the map if it is at its own basis.
    pub(super) fn follow(&mut self, map: &Arc<Map>) {
        if map.basis() == map.epoch() {
            self.basis = Some(Arc::clone(map));
        }
    }

    /// Returns the plan that all nodes follow. `None` if the map came as a whole and is past its basis:
    /// the map from which the others planned is not known then.
    fn plan(&mut self, map: &Map) -> Option<Arc<Plan>> {
        let basis = self.basis.as_ref().filter(|it| it.basis() == map.basis())?;
        if self.plan.as_ref().is_none_or(|plan| plan.basis() != map.basis()) {
            self.plan = Some(Arc::new(Plan::of(basis)));
        }
        self.plan.clone()
    }

    fn take_due(&mut self, now: Moment) -> Option<Timer> {
        let due = self.timers.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(due.remove())
    }

    fn set_timer(&mut self, at: Moment, timer: Timer) {
        self.last_timer += 1;
        self.timers.insert((at, self.last_timer), timer);
    }
}

impl Control {
    /// Returns the plan that this node follows, if it has one.
    pub fn plan(&self) -> Option<&Plan> {
        let basis = self.map.as_ref()?.basis();
        self.balancing.plan.as_deref().filter(|plan| plan.basis() == basis)
    }

    /// Returns the latest load levels of the other nodes, as far as they were asked.
    pub fn levels_of_others(&self) -> &BTreeMap<NodeId, balance::LoadLevels> {
        self.balancing.balancer.levels_of_others()
    }

    /// Returns the move this node takes part in.
    pub fn engagement(&self) -> Option<&balance::Engagement> {
        self.balancing.balancer.engagement()
    }

    pub(super) fn feed_balancer(&mut self, input: balance::BalanceInput) {
        // The duties of an earlier process of this node are not this one's.
        let Some(map) = self.map.clone().filter(|_| self.is_member()) else { return };
        let Some(plan) = self.balancing.plan(&map) else { return };
        let view = PlanView { map: &map, plan: &plan };
        let mut actions = Vec::new();
        self.balancing.balancer.handle(self.now, view, input, &mut actions);
        for action in actions {
            self.carry_out(action);
        }
        self.note_engagement();
    }

    pub(super) fn on_balance(&mut self, from: NodeId, message: balance::BalanceMessage) {
        // A node that has just joined has no lease for a moment: clients would wait for it.
        let is_unfit = self.condition() == Condition::Sick || !self.holds_lease();
        if let balance::BalanceMessage::Offer { move_id, .. } = message
            && is_unfit
        {
            // The giver has possibly not asked for load levels.
            let because = balance::Refused::Busy;
            let refusal = balance::BalanceMessage::Refuse { move_id, because };
            return self.send(from, Message::Balance(refusal));
        }
        self.feed_balancer(balance::BalanceInput::Message { from, message });
    }

    fn carry_out(&mut self, action: balance::BalanceAction) {
        match action {
            balance::BalanceAction::Send { to, message } => {
                self.send(to, Message::Balance(message));
            }
            balance::BalanceAction::SetTimer { timer, after } => {
                self.balancing.set_timer(self.now + after, timer);
            }
            balance::BalanceAction::StartFill { move_id, buckets, taker } => {
                self.balancing.fills.insert(move_id, (buckets.clone(), taker));
                self.out.push(Action::Order(Order::Fill { move_id, buckets, taker }));
            }
            balance::BalanceAction::NarrowFill { move_id, buckets } => {
                if self.balancing.fills.contains_key(&move_id) {
                    self.out.push(Action::Order(Order::Narrow { move_id, buckets }));
                }
            }
            balance::BalanceAction::CancelFill { move_id } => self.cancel_fill(move_id),
            balance::BalanceAction::Propose { planned_at, changes } => {
                if let [Change::Leave { way, .. }] = changes[..] {
                    return self.propose_to_leave(way);
                }
                if matches!(changes.first(), Some(Change::Promote { .. })) {
                    self.begin_handover(LogEntry { planned_at, changes });
                } else {
                    self.propose(planned_at, changes);
                }
            }
            balance::BalanceAction::Decided(decision) => {
                self.history.note_decision(self.now, decision.clone());
            }
        }
    }

    /// Proposes to leave: the balancer has handed everything on. It repeats this until the node may
    /// leave.
    fn propose_to_leave(&mut self, way: LeaveWay) {
        if self.balancing.holds_timers || self.own_kept.is_bringing {
            return;
        }
        let absence = self.leaving.as_ref().map_or(Absence::ForGood, |leaving| leaving.absence);
        self.propose(None, vec![absence.change(self.me.peer(), way)]);
    }

    /// Runs the timers that are due.
    pub(super) fn run_balancer(&mut self) {
        while let Some(timer) = self.balancing.take_due(self.now) {
            self.feed_balancer(balance::BalanceInput::Timer(timer));
        }
        self.check_engagement();
    }

    /// Makes all nodes plan again from a map that this node knows, if its map came as a whole: it
    /// proposes its own `Join` once more.
    pub(super) fn ask_for_new_basis(&mut self) {
        let Some(map) = &self.map else { return };
        let is_known = self.balancing.basis.as_ref().is_some_and(|it| it.basis() == map.basis());
        if !is_known && self.is_member() {
            let member = map.member(self.me.id).expect("this node is a member").clone();
            self.propose(None, vec![Change::Join(member)]);
        }
    }

    // ---- Fills.

    /// Handles the end of a fill: these buckets are copied, each at this epoch of it.
    pub(super) fn on_fill_done(&mut self, move_id: MoveId, filled: &[(Hashmask, Epoch)]) {
        let Some((_, taker)) = self.balancing.fills.get(&move_id) else { return };
        let taker = *taker;
        // The taker keeps its copy only for that epoch.
        let is_kept = |(bucket, epoch): &&(Hashmask, Epoch)| {
            let known = self.map.as_ref().and_then(|map| map.bucket(*bucket));
            known.is_some_and(|known| known.epoch == *epoch)
        };
        let kept = filled.iter().filter(is_kept).map(|(bucket, _)| *bucket);
        let buckets: Vec<Hashmask> = kept.collect();
        if buckets.is_empty() {
            return self.on_fill_failed(move_id);
        }
        self.feed_balancer(balance::BalanceInput::FillDone { move_id, buckets: buckets.clone() });
        let proposed = |bucket: &Hashmask| self.proposals.adds(*bucket, taker).is_some();
        let unwanted: Vec<Hashmask> = buckets.into_iter().filter(|it| !proposed(it)).collect();
        if let Some((fills, _)) = self.balancing.fills.get_mut(&move_id) {
            fills.retain(|bucket| !unwanted.contains(bucket));
            if fills.is_empty() {
                self.balancing.fills.remove(&move_id);
            }
        }
        self.void_adds(&unwanted, taker);
    }

    pub(super) fn on_fill_failed(&mut self, move_id: MoveId) {
        self.balancing.fills.remove(&move_id);
        let Some(engagement) = self.engagement().filter(|it| it.move_id == move_id) else {
            return;
        };
        let others = [move_id.giver, engagement.taker];
        let forget = balance::BalanceMessage::Forget { move_id };
        self.send_all(others, &Message::Balance(forget.clone()));
        let from = self.me.id;
        self.feed_balancer(balance::BalanceInput::Message { from, message: forget });
    }

    fn cancel_fill(&mut self, move_id: MoveId) {
        self.out.push(Action::Order(Order::Cancel { move_id }));
        let Some((buckets, taker)) = self.balancing.fills.get(&move_id) else { return };
        let (mut proposed, taker) = (buckets.clone(), *taker);
        proposed.retain(|bucket| self.proposals.adds(*bucket, taker).is_some());
        if !proposed.is_empty() {
            self.balancing.fills.remove(&move_id);
            self.void_adds(&proposed, taker);
        }
    }

    /// Makes sure that copies are not added any more, or finds in the map that they were: the first of two
    /// changes in the log makes the other one stale.
    fn void_adds(&mut self, buckets: &[Hashmask], node: NodeId) {
        let mut changes = Vec::new();
        for bucket in buckets.iter().copied() {
            let epoch = self.map.as_ref().and_then(|map| map.bucket(bucket)).map(|it| it.epoch);
            let Some(expected) = self.proposals.adds(bucket, node).or(epoch) else { continue };
            self.proposals.withdraw_add(bucket, node);
            let because = DropReason::Balance;
            changes.push(Change::DropBackup { bucket, node, expected, because });
        }
        if !changes.is_empty() {
            self.propose(None, changes);
        }
    }

    pub(super) fn on_out_of_sync(&mut self, bucket: Hashmask, node: NodeId, epoch: Epoch) {
        let known = self.map.as_ref().and_then(|map| map.bucket(bucket));
        let is_mine = known.is_some_and(|it| it.primary() == Some(self.me.id) && it.epoch == epoch);
        if !is_mine || !self.is_member() {
            return;
        }
        self.proposals.withdraw_add(bucket, node);
        let because = DropReason::OutOfSync;
        let drop = Change::DropBackup { bucket, node, expected: epoch, because };
        self.propose(None, vec![drop]);
    }

    /// Forgets fills that the map shows to be over, successful or not.
    pub(super) fn forget_fills(&mut self) {
        let Some(map) = &self.map else { return };
        self.balancing.fills.retain(|_, (buckets, taker)| {
            let is_open = |it: &Hashmask| map.bucket(*it).is_some_and(|it| !it.is_held_by(*taker));
            buckets.retain(is_open);
            !buckets.is_empty() && map.member(*taker).is_some()
        });
    }

    // ---- Detecting moves that only one side still waits for.

    fn note_engagement(&mut self) {
        let move_id = self.engagement().map(|engagement| engagement.move_id);
        if self.balancing.engaged.map(|(move_id, _)| move_id) != move_id {
            let check_at = self.now + ENGAGED_CHECK;
            self.balancing.engaged = move_id.map(|move_id| (move_id, check_at));
        }
    }

    fn check_engagement(&mut self) {
        let Some((move_id, at)) = self.balancing.engaged.filter(|(_, at)| *at <= self.now) else {
            return;
        };
        self.balancing.engaged = Some((move_id, at.max(self.now) + ENGAGED_CHECK));
        let Some(engagement) = self.engagement() else { return };
        let others = match &engagement.role {
            // Not agreed on yet: the asking node times out by itself.
            MoveRole::AwaitingTaker { .. } | MoveRole::AwaitingSource { .. } => return,
            MoveRole::Giving { step, .. } => vec![step.taker, step.source],
            MoveRole::Taking { .. } | MoveRole::Sourcing { .. } => vec![move_id.giver],
        };
        self.send_all(others, &Message::Engaged { move_id });
    }

    pub(super) fn on_engaged(&mut self, from: NodeId, move_id: MoveId) {
        if self.engagement().is_none_or(|engagement| engagement.move_id != move_id) {
            let message = balance::BalanceMessage::Forget { move_id };
            self.send(from, Message::Balance(message));
        }
    }

    // ---- Sizes.

    pub(super) fn on_sizes(&mut self, report: SizeReport) {
        match self.consensus.leader() {
            Some(leader) if leader == self.me.id => self.on_sizes_of(leader, report),
            Some(leader) => self.send(leader, Message::Sizes(report)),
            None => {}
        }
    }

    pub(super) fn on_sizes_of(&mut self, node: NodeId, report: SizeReport) {
        if let Some(leader) = &mut self.leader {
            leader.note_sizes(node, report);
        }
    }
}
