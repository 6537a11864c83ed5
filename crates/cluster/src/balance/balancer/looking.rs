//! The part of a balancer that looks for a move: asks for load levels, and chooses the next step by them.

use std::collections::{BTreeMap, BTreeSet};

use super::{ANSWER_WAIT, Balancer, FULL_WAIT, Intent, Precedence, SHED_WAIT, others, send};
use crate::Moment;
use crate::balance::decide::{Decision, PlanView, StepKind, decide};
use crate::balance::levels::{LoadLevels, MoveReadiness};
use crate::balance::message::{BalanceAction, BalanceMessage, Timer};
use crate::balance::pace::Pace;
use crate::map::{Epoch, LeaveWay, NodeId};

/// A round of collecting load levels.
pub(super) struct LevelsRound {
    round: u64,
    /// Epoch of the map when the round began: if the map changes meanwhile, the answers may be out of
    /// date.
    epoch: Epoch,
    waiting: BTreeSet<NodeId>,
    answers: BTreeMap<NodeId, LoadLevels>,
}

impl LevelsRound {
    fn is_out_of_date(&self, epoch: Epoch) -> bool {
        self.epoch != epoch
            || self.answers.values().any(|levels| levels.busy && levels.epoch < epoch)
    }
}

impl Balancer {
    pub(super) fn look_for_move(
        &mut self,
        now: Moment,
        view: PlanView,
        out: &mut Vec<BalanceAction>,
    ) {
        if self.engagement.is_some() || self.asking.is_some() || view.map.member(self.me).is_none()
        {
            return; // One move at a time: the end of this one schedules the next event.
        }
        match self.intent {
            Intent::Leave(_) if !self.is_marked(view) => return self.mark_again(now, view, out),
            Intent::Leave(way) if self.may_leave(view, way) => {
                return self.ask_to_leave(now, view, way, out);
            }
            Intent::Leave(LeaveWay::Quick) => return self.hand_on(now, view, out),
            // A node of weight 0 carries out its part of the plan, in which it holds nothing.
            Intent::Stay | Intent::Leave(LeaveWay::Safe) => {}
        }
        let Some(possible) = decide(view, self.me, &mut self.cursor, |_| MoveReadiness::Free)
        else {
            if self.has_surplus(now, view) {
                return self.ask_levels(others(view, self.me), view, out);
            }
            self.ping_all(now, view, out);
            let is_done = view.plan.is_done(view.map);
            let pace = match self.intent {
                Intent::Leave(_) => Pace::Soon,
                Intent::Stay if is_done => Pace::Seldom,
                Intent::Stay => Pace::Often,
            };
            return self.schedule_look(now, pace, out);
        };
        if possible.step.kind != StepKind::Promote && self.precedence == Precedence::OfOthers {
            self.precedence = Precedence::Mine;
            if view.others_wait_for(self.me, possible.step.taker) {
                return self.schedule_look(now, Pace::AfterOthers, out);
            }
        }
        // A node below its share has no choice that load levels could help with: its step is a bucket
        // that lacks backups, or a promotion, and a busy partner will refuse.
        if possible.step.kind == StepKind::Drop {
            return self.begin(now, view, possible, out);
        }
        let is_full = now < self.full_until;
        if view.is_below_share(self.me) && !is_full {
            return self.begin_if_linked(now, view, possible, out);
        }
        let asks_all = is_full || self.has_surplus(now, view);
        let partners = || view.partners(self.me, &self.cursor);
        let asked = if asks_all { others(view, self.me) } else { partners() };
        self.ask_levels(asked, view, out);
    }

    /// Begins a move for which no load levels are needed. The taker may have joined just now, and have no
    /// link yet; then this node waits for it.
    pub(super) fn begin_if_linked(
        &mut self,
        now: Moment,
        view: PlanView,
        decision: Decision,
        out: &mut Vec<BalanceAction>,
    ) {
        let taker = decision.step.taker;
        if self.linked.contains(&taker) {
            return self.begin(now, view, decision, out);
        }
        send(out, taker, BalanceMessage::Ping);
        self.schedule_look(now, Pace::Soon, out);
    }

    /// Asks the nodes to which this node might give something, or from which it might fetch it. A node
    /// that has just joined may have no link or no map yet: the request is lost then, and repeated by
    /// `ask_again`.
    pub(super) fn ask_levels(
        &mut self,
        waiting: BTreeSet<NodeId>,
        view: PlanView,
        out: &mut Vec<BalanceAction>,
    ) {
        self.rounds += 1;
        let round = self.rounds;
        for node in &waiting {
            send(out, *node, BalanceMessage::AskLevels { round });
        }
        out.push(BalanceAction::SetTimer { timer: Timer::LevelsDue { round }, after: ANSWER_WAIT });
        let epoch = view.map.epoch();
        self.asking = Some(LevelsRound { round, epoch, waiting, answers: BTreeMap::new() });
    }

    /// Repeats what was lost because the link did not stand yet.
    pub(super) fn on_link_up(
        &mut self,
        now: Moment,
        view: PlanView,
        node: NodeId,
        out: &mut Vec<BalanceAction>,
    ) {
        self.note_link(now, view, node, out);
        self.ask_again(now, view, node, out);
    }

    /// Repeats a request for load levels that a node has not answered.
    pub(super) fn ask_again(
        &mut self,
        now: Moment,
        view: PlanView,
        node: NodeId,
        out: &mut Vec<BalanceAction>,
    ) {
        let asking = self.asking.as_ref().filter(|asking| asking.waiting.contains(&node));
        let Some(round) = asking.map(|asking| asking.round) else { return };
        if view.is_below_share(self.me) {
            // By the present map it needs no load levels.
            self.asking = None;
            self.schedule_look(now, Pace::Next, out);
        } else {
            send(out, node, BalanceMessage::AskLevels { round });
        }
    }

    /// Records that the link to a node stands; this node may have waited for that.
    pub(super) fn note_link(
        &mut self,
        now: Moment,
        view: PlanView,
        node: NodeId,
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.linked.insert(node) {
            return;
        }
        self.linked.retain(|node| view.map.member(*node).is_some());
        let is_idle = self.engagement.is_none() && self.asking.is_none();
        if is_idle && view.plan.concerning(self.me).next().is_some() {
            self.schedule_look(now, Pace::Next, out);
        }
    }

    pub(super) fn on_levels(
        &mut self,
        now: Moment,
        view: PlanView,
        from: NodeId,
        round: u64,
        levels: LoadLevels,
        out: &mut Vec<BalanceAction>,
    ) {
        let Some(asking) = self.asking.as_mut().filter(|asking| asking.round == round) else {
            return;
        };
        if asking.waiting.remove(&from) {
            asking.answers.insert(from, levels);
            self.heard.insert(from, levels);
            self.heard.retain(|node, _| view.map.member(*node).is_some());
        }
        if asking.waiting.is_empty() {
            self.decide_with_answers(now, view, out);
        }
    }

    pub(super) fn on_levels_due(
        &mut self,
        now: Moment,
        view: PlanView,
        round: u64,
        out: &mut Vec<BalanceAction>,
    ) {
        if self.asking.as_ref().is_some_and(|asking| asking.round == round) {
            self.decide_with_answers(now, view, out);
        }
    }

    pub(super) fn decide_with_answers(
        &mut self,
        now: Moment,
        view: PlanView,
        out: &mut Vec<BalanceAction>,
    ) {
        let asking = self.asking.take().expect("answers belong to a question");
        if self.engagement.is_some() {
            return; // Meanwhile another node has offered something to this one; that comes first.
        }
        // A returning node takes nothing until it has brought back the copies it kept.
        let is_put_off = |node| self.backoff.is_waiting(now, node);
        let takes_part = |node: &NodeId| !view.map.may_bring_any(*node) && !is_put_off(*node);
        let answer = |node| asking.answers.get(&node).filter(|_| takes_part(&node));
        let readiness = |node| answer(node).map_or(MoveReadiness::Unfit, LoadLevels::readiness);
        let decision = decide(view, self.me, &mut self.cursor, readiness)
            .or_else(|| self.decide_for_memory(view, &asking.answers, readiness));
        match decision {
            Some(decision) => self.begin(now, view, decision, out),
            // A node was busy with a move that this node knows to be over, or the map has changed
            // since.
            None if asking.is_out_of_date(view.map.epoch()) => {
                self.schedule_look(now, Pace::Next, out);
            }
            None => {
                let is_full = |node: &NodeId| readiness(*node) == MoveReadiness::Full;
                let no_room = asking.answers.keys().any(is_full);
                if no_room {
                    self.full_until = now + FULL_WAIT;
                }
                let has_surplus = self.has_surplus(now, view);
                if has_surplus {
                    self.shed_again_at = now + SHED_WAIT;
                }
                let waits = no_room || has_surplus;
                self.schedule_look(now, if waits { Pace::Often } else { Pace::Soon }, out);
            }
        }
    }

    /// Makes sure that the others are reachable: all that a node with nothing to give does.
    pub(super) fn ping_all(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        if self.last_pings.is_some_and(|last| now < last + Pace::Seldom.longest() / 2) {
            return;
        }
        self.last_pings = Some(now);
        for member in view.map.members().iter().filter(|member| member.id != self.me) {
            send(out, member.id, BalanceMessage::Ping);
        }
    }
}
