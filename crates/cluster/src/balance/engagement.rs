//! A node's part in one move: the answers it waits for, its proposals, and how it detects the end.
//!
//! A move is of one bucket, or of several that go together (`bundle.rs`). Changes of all its buckets are
//! proposed as one log entry, so one bucket that shows the change proves that the entry is decided.

use std::collections::BTreeSet;

use placement::Hashmask;

use super::decide::{Decision, PlanView, Step, StepKind};
use super::message::{BalanceAction, MoveId, Offered};
use super::plan::BucketPlan;
use crate::map::{Bucket, Change, DropReason, Epoch, NodeId};

/// A node's part in the one move it takes part in.
#[derive(Clone, Debug)]
pub struct Engagement {
    pub move_id: MoveId,
    /// The buckets that move, in the order in which they are copied. Never empty.
    pub buckets: Vec<Hashmask>,
    /// Basis of the plan this move belongs to. If the basis changes, the move ends unless the new plan
    /// contains it too.
    pub basis: Epoch,
    pub taker: NodeId,
    pub role: MoveRole,
}

/// Buckets, each with its epoch at the proposal. A later epoch means that the proposal has been decided.
pub(super) type ProposedEpochs = Vec<(Hashmask, Epoch)>;

#[derive(Clone, Debug)]
pub enum MoveRole {
    /// The giver waits for the taker's answer.
    AwaitingTaker {
        decision: Box<Decision>,
    },
    /// The giver waits for the source's answer.
    AwaitingSource {
        decision: Box<Decision>,
    },
    /// All partners have agreed. If the giver is the source too, it fills and proposes by itself.
    Giving {
        step: Step,
        proposed: ProposedEpochs,
    },
    Taking {
        what: Offered,
    },
    Sourcing {
        proposed: ProposedEpochs,
    },
}

impl Engagement {
    /// Returns the bucket by which `status` names the move.
    pub fn bucket(&self) -> Hashmask {
        *self.buckets.first().expect("a move has a bucket")
    }

    fn giver(&self) -> NodeId {
        self.move_id.giver
    }

    /// Returns the state of its buckets, without those that were split.
    fn states<'a>(&'a self, view: PlanView<'a>) -> impl Iterator<Item = &'a Bucket> {
        self.buckets.iter().filter_map(move |bucket| view.map.bucket(*bucket))
    }

    /// Returns whether this node can take the part it is asked to take.
    pub(super) fn fits(&self, view: PlanView, me: NodeId) -> bool {
        let fits = |bucket: &Bucket| match self.role {
            MoveRole::Taking { what: Offered::Fill | Offered::Gift } => !bucket.is_held_by(me),
            MoveRole::Taking { what: Offered::Promotion } => bucket.backups().contains(&me),
            MoveRole::Sourcing { .. } => {
                bucket.primary() == Some(me) && !bucket.is_held_by(self.taker)
            }
            MoveRole::AwaitingTaker { .. }
            | MoveRole::AwaitingSource { .. }
            | MoveRole::Giving { .. } => true,
        };
        self.buckets.iter().all(|bucket| view.map.bucket(*bucket).is_some_and(fits))
    }

    /// Returns whether the map shows that the move is complete, or can no longer complete. Buckets of it
    /// that the map does not show to have moved stay where they are: they are moved later.
    pub(super) fn is_over(&self, view: PlanView) -> bool {
        if self.states(view).next().is_none() {
            return true;
        }
        let taken = |bucket: &Bucket| bucket.is_held_by(self.taker);
        let served = |bucket: &Bucket| bucket.primary() == Some(self.taker);
        match &self.role {
            MoveRole::AwaitingTaker { .. } | MoveRole::AwaitingSource { .. } => false,
            MoveRole::Giving { step, .. } => match step.kind {
                StepKind::Promote | StepKind::GivePrimary => self.states(view).any(served),
                StepKind::Fill | StepKind::GiveBackup => self.states(view).any(taken),
                StepKind::Drop => true,
            },
            MoveRole::Taking { what: Offered::Promotion } => self.states(view).any(served),
            MoveRole::Taking { what: Offered::Fill } => self.states(view).any(taken),
            // A given primary arrives as a backup first, and is promoted a moment later.
            MoveRole::Taking { what: Offered::Gift } => self
                .states(view)
                .any(|bucket| taken(bucket) && bucket.primary() != Some(self.giver())),
            MoveRole::Sourcing { .. } => self.states(view).any(taken),
        }
    }

    /// Returns whether this node's proposal was decided but had no effect: every bucket has a later
    /// epoch, and none shows the change.
    pub(super) fn has_failed(&self, view: PlanView) -> bool {
        if self.states(view).next().is_none() {
            return true;
        }
        let (proposed, kind) = match &self.role {
            MoveRole::Giving { step, proposed } => (proposed, step.kind),
            MoveRole::Sourcing { proposed } => (proposed, StepKind::GiveBackup),
            MoveRole::AwaitingTaker { .. }
            | MoveRole::AwaitingSource { .. }
            | MoveRole::Taking { .. } => {
                return false;
            }
        };
        let is_done = |bucket: &Bucket| match kind {
            StepKind::Promote => bucket.primary() == Some(self.taker),
            StepKind::Fill | StepKind::GivePrimary | StepKind::GiveBackup | StepKind::Drop => {
                bucket.is_held_by(self.taker)
            }
        };
        is_decided(view, proposed) && !self.states(view).any(is_done)
    }

    /// Returns whether the move only makes a copy that a node which leaves the quick way can do without:
    /// another holder of the bucket stays.
    pub(super) fn is_only_for_safety(&self, view: PlanView, me: NodeId) -> bool {
        let is_promotion = match &self.role {
            MoveRole::AwaitingTaker { decision } | MoveRole::AwaitingSource { decision } => {
                decision.step.kind == StepKind::Promote
            }
            MoveRole::Giving { step, .. } => step.kind == StepKind::Promote,
            MoveRole::Taking { what } => *what == Offered::Promotion,
            MoveRole::Sourcing { .. } => false,
        };
        let stays = |node: &NodeId| {
            *node != me && view.map.member(*node).is_some_and(|member| member.weight > 0)
        };
        !is_promotion && self.states(view).all(|bucket| bucket.holders.iter().any(stays))
    }

    /// Returns whether this node was the giver of a copy, and not only of a promotion.
    pub(super) fn has_given(&self) -> bool {
        matches!(&self.role, MoveRole::Giving { step, .. } if step.kind != StepKind::Promote)
    }

    /// Proposes the taker as a holder of these buckets, whose fills are complete. A backup that is given
    /// away is dropped in the same log entry, a primary after its handover. Returns false if the move
    /// contains none of them any more.
    pub(super) fn propose_copies(
        &mut self,
        view: PlanView,
        filled: &[Hashmask],
        out: &mut Vec<BalanceAction>,
    ) -> bool {
        let (taker, giver) = (self.taker, self.giver());
        let filled = self.states(view).filter(|bucket| filled.contains(&bucket.hashmask));
        let filled: ProposedEpochs = filled.map(|it| (it.hashmask, it.epoch)).collect();
        let drops = match &mut self.role {
            MoveRole::Sourcing { proposed } => {
                proposed.clone_from(&filled);
                true
            }
            MoveRole::Giving { proposed, .. } => {
                proposed.clone_from(&filled);
                false
            }
            MoveRole::AwaitingTaker { .. }
            | MoveRole::AwaitingSource { .. }
            | MoveRole::Taking { .. } => {
                return true;
            }
        };
        if filled.is_empty() {
            return false;
        }
        let mut changes = Vec::new();
        for (bucket, expected) in filled.iter().copied() {
            changes.push(Change::AddBackup { bucket, node: taker, expected });
            if drops {
                changes.push(drop_of(bucket, giver, expected.next()));
            }
        }
        self.buckets = filled.iter().map(|(bucket, _)| *bucket).collect();
        self.propose(changes, out);
        true
    }

    /// Proposes the promotions that were agreed on; returns the epochs they expect.
    pub(super) fn propose_promotions(
        &self,
        view: PlanView,
        out: &mut Vec<BalanceAction>,
    ) -> ProposedEpochs {
        let known = self.states(view).map(|bucket| (bucket.hashmask, bucket.epoch));
        let proposed: ProposedEpochs = known.collect();
        let promote = |(bucket, expected): &(Hashmask, Epoch)| Change::Promote {
            bucket: *bucket,
            node: self.taker,
            expected: *expected,
        };
        self.propose(proposed.iter().map(promote).collect(), out);
        proposed
    }

    /// Proposes the next step of giving primaries away: once the taker holds its copies, it is promoted
    /// and this node drops its own.
    pub(super) fn go_on(&mut self, view: PlanView, out: &mut Vec<BalanceAction>) {
        let (taker, giver) = (self.taker, self.giver());
        let MoveRole::Giving { step, proposed } = &self.role else { return };
        if step.kind != StepKind::GivePrimary || !is_decided(view, proposed) || self.is_over(view) {
            return;
        }
        let arrived = self
            .states(view)
            .filter(|bucket| bucket.is_held_by(taker) && bucket.primary() == Some(giver))
            .map(|bucket| (bucket.hashmask, bucket.epoch));
        let arrived: ProposedEpochs = arrived.collect();
        if arrived.is_empty() {
            return;
        }
        let mut changes = Vec::new();
        for (bucket, expected) in arrived.iter().copied() {
            changes.push(Change::Promote { bucket, node: taker, expected });
            changes.push(drop_of(bucket, giver, expected.next()));
        }
        self.buckets = arrived.iter().map(|(bucket, _)| *bucket).collect();
        self.propose(changes, out);
        if let MoveRole::Giving { proposed, .. } = &mut self.role {
            *proposed = arrived;
        }
    }

    fn propose(&self, changes: Vec<Change>, out: &mut Vec<BalanceAction>) {
        out.push(BalanceAction::Propose { planned_at: Some(self.basis), changes });
    }

    /// Limits the move to the buckets that the plan of a new basis moves in the same way. Returns false
    /// if there are none.
    pub(super) fn keep_planned(&mut self, view: PlanView) -> bool {
        let plans = view.plan.concerning(self.taker);
        let planned = plans.filter(|plan| self.is_planned(view, plan)).map(|plan| plan.hashmask);
        let planned: BTreeSet<Hashmask> = planned.collect();
        if !self.buckets.iter().any(|bucket| planned.contains(bucket)) {
            return false;
        }
        self.buckets.retain(|bucket| planned.contains(bucket));
        true
    }

    fn is_planned(&self, view: PlanView, plan: &BucketPlan) -> bool {
        let mut copies = plan.copies.iter().filter(|copy| copy.taker == self.taker);
        let primary = view.map.bucket(plan.hashmask).and_then(Bucket::primary);
        let serves = primary == Some(self.giver());
        match &self.role {
            MoveRole::AwaitingTaker { .. } | MoveRole::AwaitingSource { .. } => false,
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
        let source = match &self.role {
            MoveRole::AwaitingTaker { .. }
            | MoveRole::Taking { .. }
            | MoveRole::Sourcing { .. } => None,
            MoveRole::AwaitingSource { decision } => Some(decision.step.source),
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

/// Returns whether something was proposed and the map shows that it was decided.
fn is_decided(view: PlanView, proposed: &ProposedEpochs) -> bool {
    let passed = |(bucket, epoch): &(Hashmask, Epoch)| {
        view.map.bucket(*bucket).is_none_or(|bucket| bucket.epoch > *epoch)
    };
    !proposed.is_empty() && proposed.iter().all(passed)
}

fn drop_of(bucket: Hashmask, node: NodeId, expected: Epoch) -> Change {
    Change::DropBackup { bucket, node, expected, because: DropReason::Balance }
}
