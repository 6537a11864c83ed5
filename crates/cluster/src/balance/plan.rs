//! The plan: the holders and the primary each bucket shall have in the end, and so the remaining work,
//! bucket by bucket.
//!
//! A plan is a pure function of the map at its *basis*, the last change that was not itself a step of
//! balancing. Every node computes it from the same map, so all have the same plan; and all keep to it,
//! in whatever order their moves complete, until the basis changes. That is why nothing is moved twice,
//! and why the number of copies made is exactly `Plan::copies_to_make`, the minimum.
//!
//! `table.rs` is the map in numbers, `target.rs`, `give.rs` and `refine.rs` choose the holders,
//! `primaries.rs` the primaries. Called by `decide.rs`, which picks a node's next move.

mod table;
mod target;
mod give;
mod refine;
mod primaries;
#[cfg(test)]
mod tests;

use placement::Hashmask;
use smallvec::SmallVec;

use super::share::Share;
use crate::map::{Bucket, Epoch, Map, NodeId};
use table::{NodeNumber, Nodes, PlanTable};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    basis: Epoch,
    copies_to_make: usize,
    /// Buckets that need work, in the order of their slots.
    buckets: Vec<BucketPlan>,
    /// For each member, in the order of the map, the places in `buckets` in which it has a part: it
    /// serves or shall serve the bucket, or gives or takes a copy.
    concerns: Vec<Vec<u32>>,
    members: Vec<NodeId>,
    shares: Vec<Share>,
}

/// The planned changes of one bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketPlan {
    pub hashmask: Hashmask,
    /// Its place in the map, which stays the same as long as the basis does.
    pub(super) place: usize,
    /// Copies to make.
    pub copies: SmallVec<[NewCopy; 2]>,
    /// Copies to drop without replacement. A node that leaves drops nothing before it goes.
    pub drops: SmallVec<[NodeId; 2]>,
    /// The primary in the end.
    pub primary: NodeId,
}

/// A copy to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewCopy {
    /// The node that gives its copy away in return; `None` if the bucket has too few copies.
    pub giver: Option<NodeId>,
    pub taker: NodeId,
}

impl BucketPlan {
    /// Returns the copies that have not been made yet.
    pub fn missing<'a>(&'a self, bucket: &'a Bucket) -> impl Iterator<Item = &'a NewCopy> {
        self.copies.iter().filter(|copy| !bucket.is_held_by(copy.taker))
    }

    /// Returns whether everything planned for the bucket is done.
    pub fn is_done(&self, bucket: &Bucket) -> bool {
        bucket.primary() == Some(self.primary)
            && self.copies.iter().all(|copy| {
                bucket.is_held_by(copy.taker)
                    && !copy.giver.is_some_and(|giver| bucket.is_held_by(giver))
            })
            && !self.drops.iter().any(|node| bucket.is_held_by(*node))
    }
}

impl Plan {
    /// Computes the plan for a map. All final holders and primaries are settled here.
    pub fn of(map: &Map) -> Plan {
        let mut table = PlanTable::of(map);
        if table.copies > 0 {
            let optimal = target::aim(&mut table);
            if !optimal {
                refine::refine(&mut table);
            }
        }
        Plan::from_table(map, &table)
    }

    fn from_table(map: &Map, table: &PlanTable) -> Plan {
        let mut primary: Vec<NodeNumber> =
            (0..table.held.len()).map(|bucket| successor(table, bucket)).collect();
        if table.copies > 0 {
            primaries::even_out(table, &mut primary);
        }
        let mut plan = Plan {
            basis: map.basis(),
            copies_to_make: table.copies_to_make(),
            buckets: Vec::new(),
            concerns: vec![Vec::new(); table.nodes()],
            members: map.members().iter().map(|member| member.id).collect(),
            shares: table.shares.clone(),
        };
        for bucket in table.buckets().filter(|_| table.copies > 0) {
            let held = &table.held[bucket];
            if table.is_touched(bucket) || held[0] != primary[bucket] {
                let (place, target, primary) =
                    (table.places[bucket], table.target(bucket), primary[bucket]);
                let hashmask = map.bucket_at(place).hashmask;
                let pairs = paired(table, bucket);
                plan.add_bucket(hashmask, &Ends { place, held, target, pairs, primary });
            }
        }
        plan
    }

    fn add_bucket(&mut self, hashmask: Hashmask, ends: &Ends) {
        let id = |node: NodeNumber| self.members[usize::from(node)];
        let given = |node: &NodeNumber| ends.pairs.iter().any(|(giver, _)| *giver == Some(*node));
        let leaves = |node: &NodeNumber| self.shares[usize::from(*node)].is_nothing();
        let goes =
            |node: &&NodeNumber| !ends.target.contains(*node) && !given(node) && !leaves(node);
        let bucket = BucketPlan {
            hashmask,
            place: ends.place,
            copies: ends
                .pairs
                .iter()
                .map(|(giver, taker)| NewCopy { giver: giver.map(id), taker: id(*taker) })
                .collect(),
            drops: ends.held.iter().filter(goes).map(|node| id(*node)).collect(),
            primary: id(ends.primary),
        };
        let stays_as_it_is =
            bucket.copies.is_empty() && bucket.drops.is_empty() && ends.held[0] == ends.primary;
        if stays_as_it_is {
            return;
        }
        let place = self.buckets.len() as u32;
        let pairs = ends.pairs.iter().flat_map(|(giver, taker)| giver.iter().chain([taker]));
        let mut nodes: Nodes = pairs.chain([&ends.held[0], &ends.primary]).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            self.concerns[usize::from(node)].push(place);
        }
        self.buckets.push(bucket);
    }

    pub fn basis(&self) -> Epoch {
        self.basis
    }

    /// Returns the least number of copies that lead from the map at the basis to a balanced one.
    pub fn copies_to_make(&self) -> usize {
        self.copies_to_make
    }

    /// Returns whether the map at the basis was balanced already.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Returns everything that is planned, in the order of the slots.
    pub fn buckets(&self) -> &[BucketPlan] {
        &self.buckets
    }

    /// Returns the plans of the buckets in which a node has a part.
    pub fn concerning(&self, node: NodeId) -> impl Iterator<Item = &BucketPlan> + use<'_> {
        self.concerns_of(node).iter().map(|place| &self.buckets[*place as usize])
    }

    /// Returns the places in `buckets` in which a node has a part.
    pub(super) fn concerns_of(&self, node: NodeId) -> &[u32] {
        let place = self.members.binary_search(&node).ok();
        place.map(|place| self.concerns[place].as_slice()).unwrap_or_default()
    }

    /// Returns a node's share of all copies, or `None` if it was not a member.
    pub fn share(&self, node: NodeId) -> Option<Share> {
        self.members.binary_search(&node).ok().map(|place| self.shares[place])
    }

    /// Returns how many of the planned copies are still to be made.
    pub fn copies_left(&self, map: &Map) -> usize {
        let left = |plan: &BucketPlan| {
            map.bucket(plan.hashmask).map_or(0, |bucket| plan.missing(bucket).count())
        };
        self.buckets.iter().map(left).sum()
    }

    /// Returns whether everything planned is done.
    pub fn is_done(&self, map: &Map) -> bool {
        self.buckets
            .iter()
            .all(|plan| map.bucket(plan.hashmask).is_none_or(|bucket| plan.is_done(bucket)))
    }
}

/// The start and the target of one bucket.
struct Ends<'a> {
    place: usize,
    held: &'a Nodes,
    target: &'a Nodes,
    pairs: Pairs,
    primary: NodeNumber,
}

/// The nodes that give a bucket away, each with the node that takes it.
type Pairs = SmallVec<[(Option<NodeNumber>, NodeNumber); 2]>;

/// Pairs the nodes that give a bucket away with those that take it. Takers left over fill a gap. A node
/// that leaves gives nothing away: it keeps its copies until it goes, and the primaries fill the gaps that
/// it will leave.
fn paired(table: &PlanTable, bucket: usize) -> Pairs {
    let (held, target) = (&table.held[bucket], table.target(bucket));
    let stays = |node: &NodeNumber| !table.shares[usize::from(*node)].is_nothing();
    let mut givers = held.iter().copied().filter(|node| !target.contains(node) && stays(node));
    let takers = target.iter().copied().filter(|node| !held.contains(node));
    takers.map(|taker| (givers.next(), taker)).collect()
}

/// Returns the primary of a bucket without any promotion: its present one, or else the node that takes
/// the bucket from it.
fn successor(table: &PlanTable, bucket: usize) -> NodeNumber {
    let (held, target) = (&table.held[bucket], table.target(bucket));
    let Some(primary) = held.first().copied() else { return 0 };
    if !table.is_touched(bucket) || target.is_empty() || target.contains(&primary) {
        return primary;
    }
    let pairs = paired(table, bucket);
    let taker = pairs.iter().find(|(giver, _)| *giver == Some(primary)).map(|(_, taker)| *taker);
    taker.or_else(|| held.iter().copied().find(|node| target.contains(node))).unwrap_or(target[0])
}
