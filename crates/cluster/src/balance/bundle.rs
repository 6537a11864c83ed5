//! Buckets that move together: the same kind of step, between the same nodes, one copied after the
//! other, and published as one change of the map. Clients and nodes so follow a few large steps instead
//! of hundreds of small ones.
//!
//! Pure. Called by `balancer.rs` with the decision of `decide.rs`.

use placement::Hashmask;

use super::decide::{Decision, PlanCursor, PlanPhase, PlanView, Step, StepKind, promotion_reason};
use super::plan::{BucketPlan, NewCopy};
use crate::map::{Bucket, Load, NodeId};

/// Maximum number of slots that move together. A handover pauses them all, so it may pause no more than
/// one bucket of a new cluster with 16 buckets has.
const SLOTS_MAX: usize = 1024;
/// Maximum number of buckets that move together: limits a log entry, and what another node can offer.
pub(super) const BUCKETS_MAX: usize = 256;

/// Returns how many buckets of the size of this one move together.
pub(super) fn room_for(bucket: Hashmask) -> usize {
    (SLOTS_MAX / bucket.slots().len()).clamp(1, BUCKETS_MAX)
}

/// Returns the buckets that move together with the decided one, which is the first, in the order of
/// their slots.
pub(super) fn buckets_of(
    view: PlanView,
    cursor: &PlanCursor,
    decision: &Decision,
) -> Vec<Hashmask> {
    let step = &decision.step;
    let mut buckets = vec![step.bucket];
    let Some(first) = view.map.bucket(step.bucket) else { return buckets };
    let promotions = match step.kind {
        StepKind::Promote => {
            let phase = view.phase(&mut cursor.clone());
            promotions_allowed(view, step, view.map.load(step.taker), phase, BUCKETS_MAX)
        }
        StepKind::Drop => 1,
        StepKind::Fill | StepKind::GivePrimary | StepKind::GiveBackup => BUCKETS_MAX,
    };
    let mut slots = step.bucket.slots().len();
    let plans = cursor.open_plans(view.plan).skip_while(|plan| plan.hashmask != step.bucket);
    for plan in plans.skip(1) {
        slots += plan.hashmask.slots().len();
        if slots > SLOTS_MAX || buckets.len() >= BUCKETS_MAX.min(promotions) {
            break;
        }
        let bucket = view.map.bucket_at(plan.place);
        if goes_along(step, first, plan, bucket) {
            buckets.push(plan.hashmask);
        } else {
            slots -= plan.hashmask.slots().len();
        }
    }
    buckets
}

/// Returns whether the same step is planned for this bucket as for the first one.
fn goes_along(step: &Step, first: &Bucket, plan: &BucketPlan, bucket: &Bucket) -> bool {
    let Step { giver, taker, .. } = *step;
    if bucket.primary() != Some(step.source) {
        return false;
    }
    let has_gap = || plan.missing(bucket).any(|copy| copy.giver.is_none());
    let gives = |from: Option<NodeId>| {
        plan.missing(bucket).any(|copy: &NewCopy| copy.giver == from && copy.taker == taker)
    };
    match step.kind {
        StepKind::Promote => plan.primary == taker && bucket.is_held_by(taker),
        // Buckets with fewer copies come first.
        StepKind::Fill => gives(None) && bucket.holders.len() == first.holders.len(),
        StepKind::GivePrimary => {
            // A bucket whose planned primary is another holder is better given away as a backup.
            let successor_waits = plan.primary != taker && bucket.is_held_by(plan.primary);
            gives(Some(giver)) && !has_gap() && !successor_waits
        }
        StepKind::GiveBackup => gives(Some(giver)) && !has_gap(),
        StepKind::Drop => false,
    }
}

/// Returns how many promotions like this one the rules permit one after the other, at most `max`.
pub(super) fn promotions_allowed(
    view: PlanView,
    step: &Step,
    taker: Load,
    phase: PlanPhase,
    max: usize,
) -> usize {
    let (mut giver, mut taker) = (view.map.load(step.giver), taker);
    let mut allowed = 0;
    while allowed < max
        && giver.primaries > 0
        && promotion_reason(view, step, giver, taker, phase).is_some()
    {
        allowed += 1;
        giver.primaries -= 1;
        giver.backups += 1;
        taker.primaries += 1;
        taker.backups = taker.backups.saturating_sub(1);
    }
    allowed
}
