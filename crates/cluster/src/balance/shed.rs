//! Moves for want of memory, outside the plan: a node near its limit gives backups, then primaries, to nodes
//! with room; and a missing copy goes to a node with room if the planned one has none.
//!
//! The plan counts copies, not bytes, and does not know of these moves: it stays as it is, and buckets of
//! which something is left to do by the plan are not touched. When the basis changes, the plan may want such
//! a copy back; the crowded node refuses it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use placement::Hashmask;

use super::decide::{Decision, LoadAndShare, PlanView, Reason, Step, StepKind};
use super::memory::MemoryReport;
use crate::map::{Bucket, NodeId};

/// Returns the node's next gift for want of memory. `room` returns the free bytes of a node that can take a
/// copy of this size now.
pub(super) fn decide_shedding(
    view: PlanView,
    me: NodeId,
    report: &MemoryReport,
    room: impl Fn(NodeId, u64) -> Option<u64>,
) -> Option<Decision> {
    if remaining_surplus(view, me, report) == 0 {
        return None;
    }
    let open =
        view.plan.buckets().iter().filter(|plan| {
            view.map.bucket(plan.hashmask).is_some_and(|bucket| !plan.is_done(bucket))
        });
    let open: BTreeSet<Hashmask> = open.map(|plan| plan.hashmask).collect();
    let mut copies: Vec<(&Bucket, u64)> = report
        .copies
        .iter()
        .filter(|(hashmask, bytes)| **bytes > 0 && !open.contains(hashmask))
        .filter_map(|(hashmask, bytes)| Some((view.map.bucket(*hashmask)?, *bytes)))
        .filter(|(bucket, _)| bucket.is_held_by(me))
        .collect();
    // Backups first; the largest first, because that takes the fewest moves.
    copies.sort_by_key(|(bucket, bytes)| (bucket.primary() == Some(me), Reverse(*bytes)));
    copies.into_iter().find_map(|(bucket, bytes)| {
        let taker = roomiest(view, bucket, |node| room(node, bytes))?;
        let serves = bucket.primary() == Some(me);
        let kind = if serves { StepKind::GivePrimary } else { StepKind::GiveBackup };
        Some(decision(view, me, kind, bucket, taker, Reason::ShortOfMemory))
    })
}

/// Returns the bytes that are still to be given away: copies that have gone since the report count as free.
pub(super) fn remaining_surplus(view: PlanView, me: NodeId, report: &MemoryReport) -> u64 {
    if !report.level.is_crowded() {
        return 0;
    }
    let is_gone = |hashmask: &Hashmask| {
        view.map.bucket(*hashmask).is_none_or(|bucket| !bucket.is_held_by(me))
    };
    let gone = report.copies.iter().filter(|(hashmask, _)| is_gone(hashmask));
    report.level.surplus().saturating_sub(gone.map(|(_, bytes)| bytes).sum())
}

/// Returns a fill of a bucket of this node that lacks a copy, if the planned taker has no room for it: to
/// another node, or, if no node has room, to the planned one after all. A missing copy matters more than memory.
pub(super) fn decide_elsewhere(
    view: PlanView,
    me: NodeId,
    is_full: impl Fn(NodeId) -> bool,
    room: impl Fn(NodeId) -> Option<u64>,
    may_overflow: impl Fn(NodeId) -> bool,
) -> Option<Decision> {
    view.plan.concerning(me).find_map(|plan| {
        let bucket = view.map.bucket(plan.hashmask).filter(|it| it.primary() == Some(me))?;
        let gaps = || plan.missing(bucket).filter(|copy| copy.giver.is_none());
        let lacks_copies = view.staying_holders(bucket) < view.map.copies_wanted();
        if !lacks_copies || !gaps().all(|copy| is_full(copy.taker)) {
            return None;
        }
        let planned = || gaps().map(|copy| copy.taker).find(|taker| may_overflow(*taker));
        let taker = roomiest(view, bucket, &room).or_else(planned)?;
        Some(decision(view, me, StepKind::Fill, bucket, taker, Reason::TooFewBackups))
    })
}

/// Returns the node with the most room that lacks the bucket; one in a zone without a copy if there is one.
fn roomiest(
    view: PlanView,
    bucket: &Bucket,
    room: impl Fn(NodeId) -> Option<u64>,
) -> Option<NodeId> {
    let zones: BTreeSet<_> = bucket
        .holders
        .iter()
        .filter_map(|node| view.map.member(*node))
        .map(|member| &member.zone)
        .collect();
    let members = view.map.members().iter().filter(|member| member.weight > 0);
    let takers = members.filter(|member| !bucket.is_held_by(member.id));
    let ranked = takers.filter_map(|member| {
        Some((!zones.contains(&member.zone), room(member.id)?, Reverse(member.id)))
    });
    ranked.max().map(|(_, _, Reverse(node))| node)
}

fn decision(
    view: PlanView,
    giver: NodeId,
    kind: StepKind,
    bucket: &Bucket,
    taker: NodeId,
    rule: Reason,
) -> Decision {
    let source = bucket.primary().expect("a held bucket has a primary");
    let step = Step { kind, bucket: bucket.hashmask, giver, taker, source };
    let standing = |node: NodeId| LoadAndShare {
        load: view.map.load(node),
        share: view.plan.share(node).map_or(0..=0, |share| share.totals()),
    };
    Decision { step, buckets: 1, rule, giver: standing(giver), taker: standing(taker) }
}
