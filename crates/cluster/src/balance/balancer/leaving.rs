//! The part of a balancer that leaves. The safe way: others make copies of all this node holds, then it leaves.
//! The quick way: it hands on the buckets it serves, then it leaves.

use super::{Balancer, Intent};
use crate::Moment;
use crate::balance::decide::{PlanView, Step, StepKind, decide_leaving};
use crate::balance::engagement::{Engagement, MoveRole};
use crate::balance::message::BalanceAction;
use crate::balance::pace::Pace;
use crate::map::{Change, LeaveWay, Member};

impl Balancer {
    pub(super) fn on_leave(
        &mut self,
        now: Moment,
        view: PlanView,
        way: LeaveWay,
        out: &mut Vec<BalanceAction>,
    ) {
        match (self.intent, way) {
            (Intent::Stay, _) => {
                self.intent = Intent::Leave(way);
                self.mark_as_leaving(view, out);
                self.schedule_look(now, Pace::Soon, out);
            }
            (Intent::Leave(LeaveWay::Safe), LeaveWay::Quick) => {
                self.intent = Intent::Leave(way);
                if self.engagement.as_ref().is_some_and(|it| it.is_only_for_safety(view, self.me)) {
                    self.abandon(now, out);
                }
                self.schedule_look(now, Pace::AtOnce, out);
            }
            (Intent::Leave(_), _) => {}
        }
    }

    pub(super) fn is_marked(&self, view: PlanView) -> bool {
        view.map.member(self.me).is_some_and(|member| member.weight == 0)
    }

    /// Proposes weight 0 for this node: plans then treat it as gone, and no node gives it anything
    /// more.
    pub(super) fn mark_as_leaving(&self, view: PlanView, out: &mut Vec<BalanceAction>) {
        if let Some(member) = view.map.member(self.me) {
            let weightless = Member { weight: 0, ..member.clone() };
            let changes = vec![Change::Join(weightless)];
            out.push(BalanceAction::Propose { planned_at: None, changes });
        }
    }

    /// Marks this node again if its own earlier announcement was decided after its mark and has
    /// overwritten it.
    pub(super) fn mark_again(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        if std::mem::take(&mut self.was_marked) {
            self.mark_as_leaving(view, out);
        }
        self.schedule_look(now, Pace::Soon, out);
    }

    pub(super) fn may_leave(&self, view: PlanView, way: LeaveWay) -> bool {
        let is_replaced = || view.map.bucket_that_needs(self.me).is_none();
        view.map.load(self.me).primaries == 0 && (way == LeaveWay::Quick || is_replaced())
    }

    /// Proposes to leave, repeatedly until it is done: a node may die meanwhile and make this node a
    /// primary again.
    pub(super) fn ask_to_leave(
        &mut self,
        now: Moment,
        view: PlanView,
        way: LeaveWay,
        out: &mut Vec<BalanceAction>,
    ) {
        if let Some(Member { id: node, boot, .. }) = view.map.member(self.me) {
            let changes = vec![Change::Leave { node: *node, boot: *boot, way }];
            out.push(BalanceAction::Propose { planned_at: None, changes });
        }
        self.schedule_look(now, Pace::Soon, out);
    }

    /// Hands on the next bucket, in the quick way. A promotion needs nobody's agreement: a backup that is
    /// busy with a copy can become primary meanwhile.
    pub(super) fn hand_on(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        let Some(decision) = decide_leaving(view, self.me) else {
            return self.schedule_look(now, Pace::Soon, out);
        };
        if decision.step.kind != StepKind::Promote {
            return self.begin(now, view, decision, out);
        }
        let Step { bucket, taker, .. } = decision.step;
        let (move_id, basis) = (self.next_move(), view.plan.basis());
        let role = MoveRole::AwaitingTaker { decision: Box::new(decision.clone()) };
        let buckets = vec![bucket];
        self.engagement = Some(Engagement { move_id, buckets, basis, taker, role });
        self.start_own(view, decision, out);
    }
}
