//! The plan: who shall hold and serve what in the end, and so what is left to do, bucket by bucket.
//!
//! A plan is a pure function of the map at its *basis*, the last change that was not itself a step of
//! balancing. Every node makes it from the same map, so all have the same plan; and all keep to it, in
//! whatever order their moves happen to complete, until the basis changes. That is why nothing is
//! moved twice, and why the copies made are exactly `Plan::copies_to_make`, the least possible.
//!
//! `table.rs` the map in numbers, `target.rs` and `refine.rs` who holds, `primaries.rs` who serves.
//! Called by `decide.rs`, which picks a node's next move.

mod table;
mod target;
mod refine;
mod primaries;
#[cfg(test)]
mod tests;

use placement::Hashmask;
use smallvec::SmallVec;

use super::share::Share;
use crate::map::{Bucket, Epoch, Map, NodeId};
use table::{Node, Nodes, Table};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    basis: Epoch,
    copies_to_make: usize,
    /// Only buckets for which there is something to do, in the order of the map.
    buckets: Vec<BucketPlan>,
    /// For each member, in the order of the map, the places in `buckets` in which it has a part: it
    /// serves or shall serve the bucket, or gives or takes a copy.
    concerns: Vec<Vec<u32>>,
    members: Vec<NodeId>,
    shares: Vec<Share>,
}

/// What shall become of one bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketPlan {
    pub hashmask: Hashmask,
    /// Its place in the map, which stays the same as long as the basis does.
    pub(super) place: usize,
    /// Copies to be made.
    pub copies: SmallVec<[NewCopy; 2]>,
    /// Copies that go without being replaced.
    pub drops: SmallVec<[NodeId; 2]>,
    /// Who shall serve it in the end.
    pub primary: NodeId,
}

/// A copy to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewCopy {
    /// Who gives its copy away for it; nobody if the bucket has too few copies.
    pub giver: Option<NodeId>,
    pub taker: NodeId,
}

impl BucketPlan {
    /// The copies that have not been made yet.
    pub fn missing<'a>(&'a self, bucket: &'a Bucket) -> impl Iterator<Item = &'a NewCopy> {
        self.copies.iter().filter(|copy| !bucket.is_held_by(copy.taker))
    }

    /// Whether all that was planned for it is done.
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
    /// The plan for a map. Everything that lasts is settled here.
    pub fn of(map: &Map) -> Plan {
        let mut table = Table::of(map);
        let place = |hashmask| map.place_of_bucket(hashmask);
        let last_received: Vec<Option<usize>> =
            map.loads().iter().map(|load| load.last_received.and_then(place)).collect();
        if table.copies > 0 {
            let optimal = target::aim(&mut table, &last_received);
            if !optimal {
                refine::refine(&mut table);
            }
        }
        Plan::from_table(map, &table)
    }

    fn from_table(map: &Map, table: &Table) -> Plan {
        let pairs: Vec<Vec<(Option<Node>, Node)>> = (0..table.held.len())
            .map(|bucket| paired(&table.held[bucket], &table.target[bucket]))
            .collect();
        let mut primary: Vec<Node> =
            (0..table.held.len()).map(|bucket| heir(table, bucket, &pairs[bucket])).collect();
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
            plan.add_bucket(
                map.bucket_at(bucket).hashmask,
                &Ends {
                    place: bucket,
                    held: &table.held[bucket],
                    target: &table.target[bucket],
                    pairs: &pairs[bucket],
                    primary: primary[bucket],
                },
            );
        }
        plan
    }

    fn add_bucket(&mut self, hashmask: Hashmask, ends: &Ends) {
        let id = |node: Node| self.members[usize::from(node)];
        let given = |node: &Node| ends.pairs.iter().any(|(giver, _)| *giver == Some(*node));
        let goes = |node: &&Node| !ends.target.contains(*node) && !given(node);
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

    /// The least number of copies that lead from the map at the basis to a balanced one.
    pub fn copies_to_make(&self) -> usize {
        self.copies_to_make
    }

    /// Whether the map at the basis was balanced already.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// All that is planned, in the order of the buckets.
    pub fn buckets(&self) -> &[BucketPlan] {
        &self.buckets
    }

    /// What is planned for the buckets in which a node has a part.
    pub fn concerning(&self, node: NodeId) -> impl Iterator<Item = &BucketPlan> + use<'_> {
        self.concerns_of(node).iter().map(|place| &self.buckets[*place as usize])
    }

    /// The places in `buckets` of what concerns a node.
    pub(super) fn concerns_of(&self, node: NodeId) -> &[u32] {
        let place = self.members.binary_search(&node).ok();
        place.map(|place| self.concerns[place].as_slice()).unwrap_or_default()
    }

    /// A node's share of all copies. None if it was no member.
    pub fn share(&self, node: NodeId) -> Option<Share> {
        self.members.binary_search(&node).ok().map(|place| self.shares[place])
    }

    /// How many of the planned copies are still to be made.
    pub fn copies_left(&self, map: &Map) -> usize {
        let left = |plan: &BucketPlan| {
            map.bucket(plan.hashmask).map_or(0, |bucket| plan.missing(bucket).count())
        };
        self.buckets.iter().map(left).sum()
    }

    /// Whether everything planned is done.
    pub fn is_done(&self, map: &Map) -> bool {
        self.buckets
            .iter()
            .all(|plan| map.bucket(plan.hashmask).is_none_or(|bucket| plan.is_done(bucket)))
    }
}

/// From where to where, for one bucket.
struct Ends<'a> {
    place: usize,
    held: &'a Nodes,
    target: &'a Nodes,
    pairs: &'a [(Option<Node>, Node)],
    primary: Node,
}

/// Pairs those who give a bucket away with those who take it. Takers left over fill a gap.
fn paired(held: &Nodes, target: &Nodes) -> Vec<(Option<Node>, Node)> {
    let mut givers = held.iter().copied().filter(|node| !target.contains(node));
    let takers = target.iter().copied().filter(|node| !held.contains(node));
    takers.map(|taker| (givers.next(), taker)).collect()
}

/// Who serves a bucket if nobody is promoted: its primary, or else whoever takes it from the primary.
fn heir(table: &Table, bucket: usize, pairs: &[(Option<Node>, Node)]) -> Node {
    let (held, target) = (&table.held[bucket], &table.target[bucket]);
    let Some(primary) = held.first().copied() else { return 0 };
    if target.is_empty() || target.contains(&primary) {
        return primary;
    }
    let taker = pairs.iter().find(|(giver, _)| *giver == Some(primary)).map(|(_, taker)| *taker);
    taker.or_else(|| held.iter().copied().find(|node| target.contains(node))).unwrap_or(target[0])
}
