//! The next move of one node: the remaining work of the plan, in the order of preference.
//!
//! 1. Promote, if that evens out primaries and the giver does not end with fewer than the taker. While
//!    anything is still to be copied, the taker may not end with more primaries than backups: it may
//!    still get enough primaries by copies. A few promotions wait until there are more (`bundle.rs`).
//! 2. Fill a bucket of this node that has too few backups; one with a single copy first.
//! 3. Give a copy away, of the kind this node has more of.
//! 4. Drop a copy that is one too many.
//!
//! Pure: the same view gives the same decision. Called by `balancer.rs`, which carries it out.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use placement::Hashmask;
use smallvec::SmallVec;

use super::bundle::{promotions_allowed, room_for};
use super::levels::MoveReadiness;
use super::plan::{BucketPlan, NewCopy, Plan};
use crate::map::{Bucket, Load, Map, NodeId};

/// The input of a decision: the node's map, and the plan made at the basis of that map.
#[derive(Clone, Copy)]
pub struct PlanView<'a> {
    pub map: &'a Map,
    pub plan: &'a Plan,
}

/// One action of the plan. The node that decides on it is the giver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub kind: StepKind,
    pub bucket: Hashmask,
    pub giver: NodeId,
    /// The node that gets the copy or the primary; for a drop, the node that loses its copy.
    pub taker: NodeId,
    /// The bucket's primary, the source of the data.
    pub source: NodeId,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    Promote,
    Fill,
    GivePrimary,
    GiveBackup,
    Drop,
}

/// The reason for a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The giver has at least two primaries more than the taker, by weight.
    EvenPrimaries,
    /// No single promotion helps, but this one and others together do.
    ChainOfPromotions,
    /// The bucket has fewer backups than it should have.
    TooFewBackups,
    /// The giver is above its share, the taker below.
    EvenTotals,
    /// The giver receives as much as it gives: with weights or zones, evening out may take several
    /// moves.
    Exchange,
    /// The bucket has more copies than it should have.
    TooManyCopies,
    /// The giver is about to leave.
    Leaving,
    /// The giver is near its limit of memory.
    ShortOfMemory,
}

/// A step, its reason, and the numbers behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    pub step: Step,
    /// Number of buckets that move together. The step names the first of them.
    pub buckets: usize,
    pub rule: Reason,
    pub giver: LoadAndShare,
    pub taker: LoadAndShare,
}

/// A node's load when a decision was made, and the range it may have in the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadAndShare {
    pub load: Load,
    pub share: RangeInclusive<u32>,
}

/// Progress of a plan over all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanPhase {
    Copying,
    /// Only promotions and drops are left.
    Copied,
}

/// A cache of the finished parts of one plan, so that they are not checked again. It never changes a
/// decision, only how fast it is found.
#[derive(Clone, Default, Debug)]
pub struct PlanCursor {
    /// All planned copies before this place of the plan have been made.
    copied: usize,
    /// Places in the plan that concern the node and are not done yet; `None` before the first decision.
    open: Option<Vec<u32>>,
}

impl PlanCursor {
    /// Returns the plans that concern the node and were not done at its last decision.
    pub(super) fn open_plans<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a BucketPlan> {
        self.open.iter().flatten().map(|place| &plan.buckets()[*place as usize])
    }
}

impl PlanView<'_> {
    fn bucket(&self, plan: &BucketPlan) -> &Bucket {
        let bucket = self.map.bucket_at(plan.place);
        debug_assert_eq!(bucket.hashmask, plan.hashmask, "map and plan have the same basis");
        bucket
    }

    /// Returns the number of copies of a bucket on nodes that do not leave.
    pub(super) fn staying_holders(&self, bucket: &Bucket) -> usize {
        bucket.holders.iter().filter(|node| self.weight(**node) > 0).count()
    }

    fn weight(&self, node: NodeId) -> u64 {
        self.map.member(node).map_or(0, |member| u64::from(member.weight))
    }

    fn standing(&self, node: NodeId) -> LoadAndShare {
        let share = self.plan.share(node).map_or(0..=0, |share| share.totals());
        LoadAndShare { load: self.map.load(node), share }
    }

    /// Returns whether any node still has to make a planned copy.
    pub fn phase(&self, seen: &mut PlanCursor) -> PlanPhase {
        let plans = self.plan.buckets();
        while let Some(plan) = plans.get(seen.copied) {
            if plan.missing(self.bucket(plan)).next().is_some() {
                return PlanPhase::Copying;
            }
            seen.copied += 1;
        }
        PlanPhase::Copied
    }

    /// Returns the nodes to which this node might give something, or from which it might fetch it.
    pub(super) fn partners(&self, me: NodeId, seen: &PlanCursor) -> BTreeSet<NodeId> {
        let mut partners = BTreeSet::new();
        // The same few nodes occur again and again.
        let mut last = me;
        let mut add = |node: NodeId| {
            if node != last && node != me {
                partners.insert(node);
                last = node;
            }
        };
        for plan in seen.open_plans(self.plan) {
            let bucket = self.bucket(plan);
            let primary = bucket.primary();
            let given = |copy: &&NewCopy| copy.giver.or(primary) == Some(me);
            for copy in plan.missing(bucket).filter(given) {
                add(copy.taker);
                primary.into_iter().for_each(&mut add);
            }
            if primary == Some(me) {
                add(plan.primary);
            }
        }
        partners
    }

    /// Returns whether another node has a copy to give to the taker.
    pub fn others_wait_for(&self, me: NodeId, taker: NodeId) -> bool {
        self.plan.concerning(taker).any(|plan| {
            let bucket = self.bucket(plan);
            let giver = |copy: &NewCopy| copy.giver.or(bucket.primary());
            plan.missing(bucket).any(|copy| copy.taker == taker && giver(copy) != Some(me))
        })
    }

    /// Returns whether a node holds less than the floor of its share.
    pub fn is_below_share(&self, node: NodeId) -> bool {
        let standing = self.standing(node);
        standing.load.total() < *standing.share.start()
    }
}

/// Returns the next step of a node, if any. `readiness` says which nodes can take part in a move.
pub fn decide(
    view: PlanView,
    me: NodeId,
    seen: &mut PlanCursor,
    readiness: impl Fn(NodeId) -> MoveReadiness,
) -> Option<Decision> {
    let phase = view.phase(seen);
    let open = seen.open.get_or_insert_with(|| view.plan.concerns_of(me).to_vec());
    let mut mine: SmallVec<[&BucketPlan; 16]> = SmallVec::new();
    open.retain(|place| {
        let plan = &view.plan.buckets()[*place as usize];
        let bucket = view.bucket(plan);
        let gives = || plan.copies.iter().any(|copy| copy.giver == Some(me));
        let is_done = plan.is_done(bucket);
        if !is_done && (bucket.primary() == Some(me) || gives()) {
            mine.push(plan);
        }
        !is_done
    });
    let decider = Decider { view, me, phase, readiness: &readiness };
    let mine = || mine.iter().copied();
    let promotion = decider.promotion(mine());
    // Each promotion costs clients a redirect and a look at the map, so a few wait for more.
    if promotion.as_ref().is_some_and(|it| decider.makes_a_bundle(&it.step)) {
        return promotion;
    }
    decider
        .fill(mine())
        .or_else(|| decider.gift(mine()))
        .or(promotion)
        .or_else(|| decider.drop(mine()))
}

/// Returns the next step of a node that leaves the quick way: hand on the buckets it serves. When it
/// serves none any more, it can leave.
pub fn decide_leaving(view: PlanView, me: NodeId) -> Option<Decision> {
    let readiness = |_| MoveReadiness::Free;
    let decider = Decider { view, me, phase: PlanPhase::Copied, readiness: &readiness };
    let mut sole = None;
    for plan in view.plan.concerning(me) {
        let bucket = view.bucket(plan);
        if bucket.primary() != Some(me) {
            continue;
        }
        let successors = bucket.backups().iter().copied().filter(|node| view.weight(*node) > 0);
        let planned = |node: &NodeId| *node != plan.primary;
        let successor =
            successors.min_by_key(|node| (planned(node), view.map.load(*node).primaries));
        let step = match successor {
            Some(successor) => decider.step(StepKind::Promote, bucket, successor),
            None => {
                let mut missing = plan.missing(bucket);
                let copy = missing.find(|copy| !view.map.may_bring_any(copy.taker));
                let Some(copy) = copy else { continue };
                // This node stays a backup until it leaves.
                decider.step(StepKind::Fill, bucket, copy.taker)
            }
        };
        let decision = decider.decision(step, Reason::Leaving);
        if step.kind == StepKind::Promote {
            return Some(decision);
        }
        sole.get_or_insert(decision);
    }
    sole
}

/// Returns the rule that permits a promotion, by the latest numbers of both sides. Checked again when
/// the taker has agreed and sent its own numbers.
pub(super) fn promotion_reason(
    view: PlanView,
    step: &Step,
    giver: Load,
    taker: Load,
    phase: PlanPhase,
) -> Option<Reason> {
    let (giver_weight, taker_weight) = (view.weight(step.giver), view.weight(step.taker));
    let giver_after = u64::from(giver.primaries.saturating_sub(1)) * taker_weight;
    let taker_after = u64::from(taker.primaries + 1) * giver_weight;
    let more_primaries_than_backups = taker.primaries + 1 > taker.backups.saturating_sub(1);
    match phase {
        PlanPhase::Copying if more_primaries_than_backups || giver_after < taker_after => None,
        PlanPhase::Copied if giver_after < taker_after => Some(Reason::ChainOfPromotions),
        PlanPhase::Copying | PlanPhase::Copied => Some(Reason::EvenPrimaries),
    }
}

struct Decider<'a, Ready> {
    view: PlanView<'a>,
    me: NodeId,
    phase: PlanPhase,
    readiness: &'a Ready,
}

impl<Ready: Fn(NodeId) -> MoveReadiness> Decider<'_, Ready> {
    fn step(&self, kind: StepKind, bucket: &Bucket, taker: NodeId) -> Step {
        let source = bucket.primary().expect("lost buckets are not planned for");
        Step { kind, bucket: bucket.hashmask, giver: self.me, taker, source }
    }

    fn is_free(&self, node: NodeId) -> bool {
        (self.readiness)(node) == MoveReadiness::Free
    }

    /// Returns whether the node can become primary of a bucket it holds, which needs no memory.
    fn may_be_promoted(&self, node: NodeId) -> bool {
        matches!((self.readiness)(node), MoveReadiness::Free | MoveReadiness::Full)
    }

    fn decision(&self, step: Step, rule: Reason) -> Decision {
        let (giver, taker) = (self.view.standing(step.giver), self.view.standing(step.taker));
        Decision { step, buckets: 1, rule, giver, taker }
    }

    fn promotion<'p>(&self, open: impl Iterator<Item = &'p BucketPlan>) -> Option<Decision> {
        let mut last_resort = None;
        // Most buckets have the same few takers: the answer for the previous one is cached.
        let mut known: Option<(NodeId, Option<Reason>)> = None;
        for plan in open {
            let bucket = self.view.bucket(plan);
            let mine = bucket.primary() == Some(self.me) && plan.primary != self.me;
            if !mine || !bucket.is_held_by(plan.primary) {
                continue;
            }
            let step = self.step(StepKind::Promote, bucket, plan.primary);
            let rule = match known {
                Some((taker, rule)) if taker == plan.primary => rule,
                Some(_) | None => self.promotion_reason(&step),
            };
            known = Some((plan.primary, rule));
            match rule {
                Some(Reason::ChainOfPromotions) => {
                    last_resort.get_or_insert(self.decision(step, Reason::ChainOfPromotions));
                }
                Some(rule) => return Some(self.decision(step, rule)),
                None => {}
            }
        }
        last_resort
    }

    fn promotion_reason(&self, step: &Step) -> Option<Reason> {
        if !self.may_be_promoted(step.taker) {
            return None;
        }
        let load = |node| self.view.map.load(node);
        promotion_reason(self.view, step, load(step.giver), load(step.taker), self.phase)
    }

    /// Returns whether the rules permit as many promotions like this one as move together.
    fn makes_a_bundle(&self, step: &Step) -> bool {
        let (taker, room) = (self.view.map.load(step.taker), room_for(step.bucket));
        promotions_allowed(self.view, step, taker, self.phase, room) == room
    }

    fn fill<'p>(&self, open: impl Iterator<Item = &'p BucketPlan>) -> Option<Decision> {
        let mut best: Option<(usize, Step)> = None;
        for plan in open {
            let bucket = self.view.bucket(plan);
            if bucket.primary() != Some(self.me) {
                continue;
            }
            if self.view.staying_holders(bucket) >= self.view.map.copies_wanted() {
                continue; // Another node has filled the gap, because the planned one had no room.
            }
            let mut gaps = plan.missing(bucket).filter(|copy| copy.giver.is_none());
            let Some(copy) = gaps.find(|copy| self.is_free(copy.taker)) else { continue };
            let holders = bucket.holders.len();
            if best.is_none_or(|(fewest, _)| holders < fewest) {
                best = Some((holders, self.step(StepKind::Fill, bucket, copy.taker)));
            }
            if holders == 1 {
                break;
            }
        }
        best.map(|(_, step)| self.decision(step, Reason::TooFewBackups))
    }

    fn gift<'p>(&self, open: impl Iterator<Item = &'p BucketPlan>) -> Option<Decision> {
        let load = self.view.map.load(self.me);
        let prefers_primary = load.primaries > load.backups;
        let mut best: Option<(u8, Step)> = None;
        let mut lowest_busy = u8::MAX;
        for plan in open {
            let bucket = self.view.bucket(plan);
            let mut missing = plan.missing(bucket);
            let Some(copy) = missing.find(|copy| copy.giver == Some(self.me)) else { continue };
            // A bucket with too few backups gets those first: its number of copies must not shrink.
            if plan.missing(bucket).any(|copy| copy.giver.is_none()) {
                continue;
            }
            let serves = bucket.primary() == Some(self.me);
            let kind = if serves { StepKind::GivePrimary } else { StepKind::GiveBackup };
            let step = self.step(kind, bucket, copy.taker);
            // Another holder is the planned primary: it is better to promote that one first, once the
            // rules permit it, and to give the copy as a backup.
            let successor_waits =
                serves && plan.primary != copy.taker && bucket.is_held_by(plan.primary);
            let rank = 2 * u8::from(successor_waits) + u8::from(serves != prefers_primary);
            if best.is_some_and(|(lowest, _)| lowest <= rank) {
                continue;
            }
            let source = if serves { MoveReadiness::Free } else { (self.readiness)(step.source) };
            // The source needs no memory.
            let source = if source == MoveReadiness::Full { MoveReadiness::Free } else { source };
            let mut others = [(self.readiness)(step.taker), source].into_iter();
            if others.clone().any(|it| matches!(it, MoveReadiness::Unfit | MoveReadiness::Full)) {
                continue;
            }
            // A better gift is worth waiting for, as long as none of its partners is unfit.
            let is_free = others.all(|readiness| readiness == MoveReadiness::Free);
            if is_free {
                best = Some((rank, step));
            } else {
                lowest_busy = lowest_busy.min(rank);
            }
            if is_free && rank == 0 {
                break;
            }
        }
        let worth_it = best.filter(|(rank, _)| *rank <= lowest_busy);
        worth_it.map(|(_, step)| self.decision(step, self.gift_reason(&step)))
    }

    fn gift_reason(&self, step: &Step) -> Reason {
        let (giver, taker) = (self.view.standing(step.giver), self.view.standing(step.taker));
        let above = giver.load.total() > *giver.share.start();
        let below = taker.load.total() < *taker.share.end();
        if above && below { Reason::EvenTotals } else { Reason::Exchange }
    }

    fn drop<'p>(&self, mut open: impl Iterator<Item = &'p BucketPlan>) -> Option<Decision> {
        let wanted = self.view.map.copies_wanted();
        open.find_map(|plan| {
            let bucket = self.view.bucket(plan);
            // A copy on a node that leaves is no reason to drop another one.
            let has_extra = self.view.staying_holders(bucket) > wanted;
            if bucket.primary() != Some(self.me) || !has_extra {
                return None;
            }
            let given = plan.copies.iter().filter_map(|copy| copy.giver);
            let mut gone = plan.drops.iter().copied().chain(given);
            let node = gone.find(|node| bucket.backups().contains(node))?;
            let step = self.step(StepKind::Drop, bucket, node);
            Some(self.decision(step, Reason::TooManyCopies))
        })
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            StepKind::Promote => "promote",
            StepKind::Fill => "fill",
            StepKind::GivePrimary => "give primary",
            StepKind::GiveBackup => "give backup",
            StepKind::Drop => "drop",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reason::EvenPrimaries => "even primaries",
            Reason::ChainOfPromotions => "chain of promotions",
            Reason::TooFewBackups => "too few backups",
            Reason::EvenTotals => "even totals",
            Reason::Exchange => "exchange",
            Reason::TooManyCopies => "too many copies",
            Reason::Leaving => "leaving",
            Reason::ShortOfMemory => "short of memory",
        })
    }
}

impl fmt::Display for LoadAndShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (load, share) = (&self.load, &self.share);
        write!(f, "{}+{}={} of {}", load.primaries, load.backups, load.total(), share.start())?;
        if share.start() < share.end() { write!(f, "..{}", share.end()) } else { Ok(()) }
    }
}
