//! The part of a balancer that gives: offers buckets, handles the answers, and has them fetched from their source.

use super::{ANSWER_WAIT, Balancer, Intent, send};
use crate::Moment;
use crate::balance::bundle;
use crate::balance::bundle::promotions_allowed;
use crate::balance::decide::{Decision, PlanView, Reason, Step, StepKind};
use crate::balance::engagement::{Engagement, MoveRole};
use crate::balance::levels::LoadLevels;
use crate::balance::message::{BalanceAction, BalanceMessage, MoveId, Offered, Timer};
use crate::balance::pace::Pace;
use crate::map::{Load, NodeId};
use placement::Hashmask;

impl Balancer {
    pub(super) fn begin(
        &mut self,
        now: Moment,
        view: PlanView,
        mut decision: Decision,
        out: &mut Vec<BalanceAction>,
    ) {
        let Step { kind, bucket, taker, .. } = decision.step;
        if decision.rule == Reason::ShortOfMemory {
            let bytes = self.memory.copies.get(&bucket).copied().unwrap_or(0);
            *self.shed_to.entry(taker).or_default() += bytes;
        }
        if kind == StepKind::Drop {
            let changes = Engagement::drop_changes(view, &decision.step);
            out.push(BalanceAction::Propose { planned_at: Some(view.plan.basis()), changes });
            out.push(BalanceAction::Decided(decision));
            return self.schedule_look(now, Pace::Soon, out);
        }
        let move_id = self.next_move();
        let basis = view.plan.basis();
        let what = match kind {
            StepKind::Promote | StepKind::Drop => Offered::Promotion,
            StepKind::Fill => Offered::Fill,
            StepKind::GivePrimary | StepKind::GiveBackup => Offered::Gift,
        };
        let buckets = self.buckets_together(view, &decision);
        decision.buckets = buckets.len();
        let role = MoveRole::AwaitingTaker { decision: Box::new(decision) };
        let offer = BalanceMessage::Offer { move_id, buckets: buckets.clone(), basis, what };
        self.engagement = Some(Engagement { move_id, buckets, basis, taker, role });
        ask(out, move_id, taker, offer);
    }

    /// Returns the buckets that move together with the decided one: as many as the taker has room for.
    pub(super) fn buckets_together(&self, view: PlanView, decision: &Decision) -> Vec<Hashmask> {
        if self.intent != Intent::Stay || decision.rule == Reason::ShortOfMemory {
            return vec![decision.step.bucket];
        }
        let mut buckets = bundle::buckets_of(view, &self.cursor, decision);
        if let Some(levels) = self.heard.get(&decision.step.taker) {
            let fit = levels.vitals.memory.room() / self.average_copy(view).max(1);
            buckets.truncate(usize::try_from(fit).unwrap_or(usize::MAX).max(1));
        }
        buckets
    }

    pub(super) fn on_accept(
        &mut self,
        now: Moment,
        view: PlanView,
        from: NodeId,
        move_id: MoveId,
        levels: LoadLevels,
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.is_engaged_in(move_id) {
            return send(out, from, BalanceMessage::Forget { move_id });
        }
        let engagement = self.engagement.as_mut().expect("engaged in this move_id");
        match engagement.role.clone() {
            MoveRole::AwaitingTaker { decision } => {
                self.on_accept_by_taker(now, view, *decision, levels, out);
            }
            MoveRole::AwaitingSource { decision } => {
                engagement.role = MoveRole::Giving { step: decision.step, proposed: Vec::new() };
                out.push(BalanceAction::Decided(*decision));
            }
            MoveRole::Giving { .. } | MoveRole::Taking { .. } | MoveRole::Sourcing { .. } => {}
        }
    }

    pub(super) fn on_accept_by_taker(
        &mut self,
        now: Moment,
        view: PlanView,
        decision: Decision,
        levels: LoadLevels,
        out: &mut Vec<BalanceAction>,
    ) {
        let step = decision.step;
        if step.kind == StepKind::Promote {
            let allowed = self.promotions_still_allowed(view, &decision, levels);
            let engagement = self.engagement.as_mut().expect("agreed on just now");
            if allowed == 0 {
                let move_id = engagement.move_id;
                send(out, step.taker, BalanceMessage::Forget { move_id });
                return self.disengage(now, Pace::Soon, out);
            }
            engagement.buckets.truncate(allowed);
        }
        if step.source == self.me {
            return self.start_own(view, decision, out);
        }
        let engagement = self.engagement.as_mut().expect("agreed on just now");
        let (move_id, basis) = (engagement.move_id, engagement.basis);
        engagement.role = MoveRole::AwaitingSource { decision: Box::new(decision) };
        let (buckets, taker) = (engagement.buckets.clone(), step.taker);
        ask(
            out,
            move_id,
            step.source,
            BalanceMessage::RequestFill { move_id, buckets, basis, taker },
        );
    }

    /// Returns how many promotions still help, by the latest numbers the taker has sent.
    pub(super) fn promotions_still_allowed(
        &mut self,
        view: PlanView,
        decision: &Decision,
        levels: LoadLevels,
    ) -> usize {
        if self.intent != Intent::Stay {
            return 1;
        }
        let taker =
            Load { primaries: levels.primaries, backups: levels.backups, last_received: None };
        let phase = view.phase(&mut self.cursor);
        promotions_allowed(view, &decision.step, taker, phase, decision.buckets)
    }

    /// Starts the promotion or the fill itself, because the giver is the primary.
    pub(super) fn start_own(
        &mut self,
        view: PlanView,
        decision: Decision,
        out: &mut Vec<BalanceAction>,
    ) {
        let engagement = self.engagement.as_mut().expect("agreed on just now");
        let (move_id, step) = (engagement.move_id, decision.step);
        let mut proposed = Vec::new();
        if step.kind == StepKind::Promote {
            proposed = engagement.propose_promotions(view, out);
        } else {
            let (buckets, taker) = (engagement.buckets.clone(), step.taker);
            out.push(BalanceAction::StartFill { move_id, buckets, taker });
        }
        engagement.role = MoveRole::Giving { step, proposed };
        out.push(BalanceAction::Decided(decision));
    }

    pub(super) fn on_refuse(
        &mut self,
        now: Moment,
        from: NodeId,
        move_id: MoveId,
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.is_engaged_in(move_id) {
            return;
        }
        let engagement = self.engagement.as_ref().expect("engaged in this move_id");
        if from != engagement.taker {
            send(out, engagement.taker, BalanceMessage::Forget { move_id });
        }
        self.disengage(now, Pace::Soon, out);
    }

    pub(super) fn on_answer_due(
        &mut self,
        now: Moment,
        move_id: MoveId,
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.is_engaged_in(move_id) {
            return;
        }
        let engagement = self.engagement.as_ref().expect("engaged in this move_id");
        let source = match &engagement.role {
            MoveRole::AwaitingTaker { .. } => None,
            MoveRole::AwaitingSource { decision } => Some(decision.step.source),
            MoveRole::Giving { .. } | MoveRole::Taking { .. } | MoveRole::Sourcing { .. } => return,
        };
        for node in source.into_iter().chain([engagement.taker]) {
            send(out, node, BalanceMessage::Forget { move_id });
        }
        self.disengage(now, Pace::Soon, out);
    }
}

/// Sends a message that must be answered within `ANSWER_WAIT`.
fn ask(out: &mut Vec<BalanceAction>, move_id: MoveId, to: NodeId, message: BalanceMessage) {
    send(out, to, message);
    let timer = Timer::AnswerDue { move_id };
    out.push(BalanceAction::SetTimer { timer, after: ANSWER_WAIT });
}
