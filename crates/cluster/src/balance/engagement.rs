//! A node's part in one move: the answers it waits for, its proposals, and how it detects the end.

use placement::Hashmask;

use super::decide::{Decision, PlanView, Step, StepKind};
use super::message::{Attempt, BalanceAction, Offered};
use crate::map::{Bucket, Change, DropReason, Epoch, NodeId};

#[derive(Clone, Debug)]
pub struct Engagement {
    pub attempt: Attempt,
    pub bucket: Hashmask,
    /// Basis of the plan this move belongs to. If the basis changes, the move ends unless the new plan
    /// contains it too.
    pub basis: Epoch,
    pub taker: NodeId,
    pub part: MoveRole,
}

#[derive(Clone, Debug)]
pub enum MoveRole {
    /// The giver waits for the taker's answer.
    Offering {
        decision: Box<Decision>,
    },
    /// The giver waits for the source's answer.
    Fetching {
        decision: Box<Decision>,
    },
    /// All partners have agreed. If the giver is the source too, it fills and proposes by itself.
    Giving {
        step: Step,
        proposed: Option<Epoch>,
    },
    Taking {
        what: Offered,
    },
    Sourcing {
        /// The bucket's epoch at the proposal. A later epoch means that the proposal has been decided.
        proposed: Option<Epoch>,
    },
}

impl Engagement {
    fn giver(&self) -> NodeId {
        self.attempt.giver
    }

    fn state<'a>(&self, view: PlanView<'a>) -> Option<&'a Bucket> {
        view.map.bucket(self.bucket)
    }

    /// Returns whether this node can take the part it is asked to take.
    pub(super) fn fits(&self, view: PlanView, me: NodeId) -> bool {
        let Some(bucket) = self.state(view) else { return false };
        match self.part {
            MoveRole::Taking { what: Offered::Fill | Offered::Gift } => !bucket.is_held_by(me),
            MoveRole::Taking { what: Offered::Promotion } => bucket.backups().contains(&me),
            MoveRole::Sourcing { .. } => {
                bucket.primary() == Some(me) && !bucket.is_held_by(self.taker)
            }
            MoveRole::Offering { .. } | MoveRole::Fetching { .. } | MoveRole::Giving { .. } => true,
        }
    }

    /// Returns whether the map shows that the move is complete, or can no longer complete.
    pub(super) fn is_over(&self, view: PlanView) -> bool {
        let Some(bucket) = self.state(view) else { return true };
        let taken = bucket.is_held_by(self.taker);
        let served = bucket.primary() == Some(self.taker);
        match &self.part {
            MoveRole::Offering { .. } | MoveRole::Fetching { .. } => false,
            MoveRole::Giving { step, .. } => match step.kind {
                StepKind::Promote => served,
                StepKind::Fill => taken,
                StepKind::GiveBackup => taken,
                StepKind::GivePrimary => served,
                StepKind::Drop => true,
            },
            MoveRole::Taking { what: Offered::Promotion } => served,
            MoveRole::Taking { what: Offered::Fill } => taken,
            // A given primary arrives as a backup first, and is promoted a moment later.
            MoveRole::Taking { what: Offered::Gift } => {
                taken && bucket.primary() != Some(self.giver())
            }
            MoveRole::Sourcing { .. } => taken,
        }
    }

    /// Returns whether this node's proposal was decided but had no effect: the bucket has a later
    /// epoch, but does not show the change.
    pub(super) fn has_failed(&self, view: PlanView) -> bool {
        let Some(bucket) = self.state(view) else { return true };
        let (proposed, kind) = match &self.part {
            MoveRole::Giving { step, proposed } => (*proposed, step.kind),
            MoveRole::Sourcing { proposed } => (*proposed, StepKind::GiveBackup),
            MoveRole::Offering { .. } | MoveRole::Fetching { .. } | MoveRole::Taking { .. } => {
                return false;
            }
        };
        let done = match kind {
            StepKind::Promote => bucket.primary() == Some(self.taker),
            StepKind::Fill | StepKind::GivePrimary | StepKind::GiveBackup | StepKind::Drop => {
                bucket.is_held_by(self.taker)
            }
        };
        proposed.is_some_and(|epoch| bucket.epoch > epoch) && !done
    }

    /// Returns whether the move only makes a copy that a node which leaves the quick way can do without:
    /// another holder of the bucket stays.
    pub(super) fn is_only_for_safety(&self, view: PlanView, me: NodeId) -> bool {
        let is_promotion = match &self.part {
            MoveRole::Offering { decision } | MoveRole::Fetching { decision } => {
                decision.step.kind == StepKind::Promote
            }
            MoveRole::Giving { step, .. } => step.kind == StepKind::Promote,
            MoveRole::Taking { what } => *what == Offered::Promotion,
            MoveRole::Sourcing { .. } => false,
        };
        let stays = |node: &NodeId| {
            *node != me && view.map.member(*node).is_some_and(|member| member.weight > 0)
        };
        !is_promotion && self.state(view).is_some_and(|bucket| bucket.holders.iter().any(stays))
    }

    /// Returns whether this node was the giver of a copy, and not only of a promotion.
    pub(super) fn has_given(&self) -> bool {
        matches!(&self.part, MoveRole::Giving { step, .. } if step.kind != StepKind::Promote)
    }

    /// Proposes the taker as a holder, once the fill is complete. A backup that is given away is
    /// dropped in the same log entry, a primary after its handover.
    pub(super) fn propose_copy(&mut self, view: PlanView, out: &mut Vec<BalanceAction>) {
        let Some(bucket) = self.state(view) else { return };
        let (expected, giver) = (bucket.epoch, self.giver());
        let mut changes =
            vec![Change::AddBackup { bucket: self.bucket, node: self.taker, expected }];
        let drop = drop_of(self.bucket, giver, expected.next());
        match &mut self.part {
            MoveRole::Sourcing { proposed } => {
                *proposed = Some(expected);
                changes.push(drop);
            }
            MoveRole::Giving { proposed, .. } => *proposed = Some(expected),
            MoveRole::Offering { .. } | MoveRole::Fetching { .. } | MoveRole::Taking { .. } => {
                return;
            }
        }
        self.propose(changes, out);
    }

    /// Proposes the promotion that was agreed on; returns the epoch it expects.
    pub(super) fn propose_promotion(
        &self,
        view: PlanView,
        out: &mut Vec<BalanceAction>,
    ) -> Option<Epoch> {
        let expected = self.state(view)?.epoch;
        let (bucket, node) = (self.bucket, self.taker);
        self.propose(vec![Change::Promote { bucket, node, expected }], out);
        Some(expected)
    }

    /// Proposes the handover of a given primary once the taker is in sync.
    pub(super) fn go_on(&mut self, view: PlanView, out: &mut Vec<BalanceAction>) {
        let Some(bucket) = self.state(view) else { return };
        let (hashmask, taker, giver) = (self.bucket, self.taker, self.giver());
        let MoveRole::Giving { step, proposed: Some(proposed) } = &mut self.part else { return };
        let in_sync = bucket.is_held_by(taker) && bucket.primary() == Some(giver);
        if step.kind == StepKind::GivePrimary && in_sync && bucket.epoch > *proposed {
            let expected = bucket.epoch;
            *proposed = expected;
            let promote = Change::Promote { bucket: hashmask, node: taker, expected };
            let drop = drop_of(hashmask, giver, expected.next());
            self.propose(vec![promote, drop], out);
        }
    }

    fn propose(&self, changes: Vec<Change>, out: &mut Vec<BalanceAction>) {
        out.push(BalanceAction::Propose { planned_at: Some(self.basis), changes });
    }

    /// Returns whether the plan of a new basis contains this move too.
    pub(super) fn is_planned(&self, view: PlanView) -> bool {
        let mut plans = view.plan.concerning(self.taker);
        let Some(plan) = plans.find(|plan| plan.hashmask == self.bucket) else { return false };
        let mut copies = plan.copies.iter().filter(|copy| copy.taker == self.taker);
        let serves = self.state(view).and_then(Bucket::primary) == Some(self.giver());
        match &self.part {
            MoveRole::Offering { .. } | MoveRole::Fetching { .. } => false,
            MoveRole::Giving { step: Step { kind: StepKind::Promote, .. }, .. }
            | MoveRole::Taking { what: Offered::Promotion } => serves && plan.primary == self.taker,
            MoveRole::Giving { step: Step { kind: StepKind::Fill, .. }, .. }
            | MoveRole::Taking { what: Offered::Fill } => {
                serves && copies.any(|copy| copy.giver.is_none())
            }
            MoveRole::Giving { .. } | MoveRole::Taking { .. } | MoveRole::Sourcing { .. } => {
                let has_gap = plan.copies.iter().any(|copy| copy.giver.is_none());
                !has_gap && copies.any(|copy| copy.giver == Some(self.giver()))
            }
        }
    }

    /// Returns the other participants, as far as this node knows them.
    pub(super) fn others(&self, me: NodeId) -> Vec<NodeId> {
        let source = match &self.part {
            MoveRole::Offering { .. } | MoveRole::Taking { .. } | MoveRole::Sourcing { .. } => None,
            MoveRole::Fetching { decision } => Some(decision.step.source),
            MoveRole::Giving { step, .. } => Some(step.source),
        };
        let mut others: Vec<NodeId> =
            [self.giver(), self.taker].into_iter().chain(source).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|node| *node != me);
        others
    }

    /// Returns the primary's proposal to drop a copy that is one too many.
    pub(super) fn drop_changes(view: PlanView, step: &Step) -> Vec<Change> {
        let Some(state) = view.map.bucket(step.bucket) else { return Vec::new() };
        let (bucket, node, because) = (step.bucket, step.taker, DropReason::Balance);
        vec![Change::DropBackup { bucket, node, expected: state.epoch, because }]
    }
}

fn drop_of(bucket: Hashmask, node: NodeId, expected: Epoch) -> Change {
    Change::DropBackup { bucket, node, expected, because: DropReason::Balance }
}
