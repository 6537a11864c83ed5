//! The map as the planner sees it: nodes and buckets as small numbers, and the holders in the end.
//!
//! Built from the map by `Table::of`, changed by `target.rs` and `refine.rs`, read by `primaries.rs`
//! and `plan.rs`. A *unit* is one copy of one bucket; it is *kept* if the node holds it already.

use std::ops::RangeInclusive;

use smallvec::SmallVec;

use crate::balance::share::{Share, shares};
use crate::map::{Map, Member};

/// A node, as its place in `Map::members`.
pub(super) type Node = u16;
/// A few nodes: the holders of a bucket.
pub(super) type Nodes = SmallVec<[Node; 4]>;

pub(super) struct Table {
    /// Number of copies each bucket should have.
    pub(super) copies: usize,
    pub(super) shares: Vec<Share>,
    /// The floor and the ceiling of each node's share.
    pub(super) bounds: Vec<RangeInclusive<u32>>,
    pub(super) zones: Zones,
    /// For each bucket, its present holders, the primary first. Empty if the bucket is lost; it is then
    /// left out of everything.
    pub(super) held: Vec<Nodes>,
    /// For each bucket, its holders in the end. Starts as `held` without nodes of weight 0.
    pub(super) target: Vec<Nodes>,
    /// Number of units each node has in `target`.
    pub(super) count: Vec<u32>,
    /// Buckets that members held before they were away, and do not hold again yet.
    pub(super) places: Vec<(Node, usize)>,
}

impl Table {
    pub(super) fn of(map: &Map) -> Table {
        let members = map.members();
        let place = |node| map.place_of(node).expect("a holder is a member") as Node;
        let held: Vec<Nodes> = map
            .buckets()
            .map(|bucket| bucket.holders.iter().map(|holder| place(*holder)).collect())
            .collect();
        let weights: Vec<u32> = members.iter().map(|member| member.weight).collect();
        let live = held.iter().filter(|holders| !holders.is_empty()).count();
        let copies = map.copies_wanted();
        let shares = shares(&weights, live, copies);
        let weighted = |node: &Node| weights[usize::from(*node)] > 0;
        let target: Vec<Nodes> =
            held.iter().map(|holders| holders.iter().copied().filter(weighted).collect()).collect();
        let mut count = vec![0; members.len()];
        for node in target.iter().flatten() {
            count[usize::from(*node)] += 1;
        }
        let bounds = shares.iter().map(|share| share.totals()).collect();
        let zones = Zones::of(members, copies);
        Table { copies, shares, bounds, zones, held, target, count, places: places(map) }
    }

    pub(super) fn nodes(&self) -> usize {
        self.count.len()
    }

    /// Returns the buckets that are not lost.
    pub(super) fn buckets(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.held.len()).filter(|bucket| !self.held[*bucket].is_empty())
    }

    pub(super) fn is_held(&self, bucket: usize, node: Node) -> bool {
        self.held[bucket].contains(&node)
    }

    pub(super) fn is_target(&self, bucket: usize, node: Node) -> bool {
        self.target[bucket].contains(&node)
    }

    pub(super) fn add(&mut self, bucket: usize, node: Node) {
        self.target[bucket].push(node);
        self.count[usize::from(node)] += 1;
    }

    pub(super) fn remove(&mut self, bucket: usize, node: Node) {
        let rank = self.target[bucket].iter().position(|holder| *holder == node);
        self.target[bucket].remove(rank.expect("only a unit that is there is removed"));
        self.count[usize::from(node)] -= 1;
    }

    /// Returns the number of units of a bucket in a zone.
    pub(super) fn in_zone(&self, bucket: usize, zone: u16) -> usize {
        self.target[bucket].iter().filter(|node| self.zones.of[usize::from(**node)] == zone).count()
    }

    /// Returns whether the node's zone has room for one more unit of the bucket.
    pub(super) fn zone_has_room(&self, bucket: usize, node: Node) -> bool {
        !self.zones.matter
            || self.in_zone(bucket, self.zones.of[usize::from(node)]) < self.zones.limit
    }

    /// Returns the number of copies to make to get from `held` to `target`.
    pub(super) fn copies_to_make(&self) -> usize {
        let new = |bucket: usize| {
            self.target[bucket].iter().filter(move |node| !self.is_held(bucket, **node)).count()
        };
        self.buckets().map(new).sum()
    }
}

/// Returns the places that are reserved for returning members.
fn places(map: &Map) -> Vec<(Node, usize)> {
    let back = map.away().filter_map(|(node, away)| Some((map.place_of(node)?, away)));
    let of = |(node, away): (usize, &crate::map::Away)| {
        let buckets = away.buckets.iter().filter_map(|bucket| map.place_of_bucket(*bucket));
        buckets.map(|bucket| (node as Node, bucket)).collect::<Vec<_>>()
    };
    back.flat_map(of).collect()
}

/// The zones of the nodes.
pub(super) struct Zones {
    /// For each node, the number of its zone.
    pub(super) of: Vec<u16>,
    pub(super) count: usize,
    /// Maximum number of units of a bucket per zone: as few as spreading them out allows.
    pub(super) limit: usize,
    /// True if there is anything to spread.
    pub(super) matter: bool,
}

impl Zones {
    fn of(members: &[Member], copies: usize) -> Zones {
        let weighted = || members.iter().filter(|member| member.weight > 0);
        let mut names: Vec<_> = weighted().map(|member| &member.zone).collect();
        names.sort_unstable();
        names.dedup();
        let number = |member: &Member| names.binary_search(&&member.zone).unwrap_or(0) as u16;
        let count = names.len().max(1);
        Zones {
            of: members.iter().map(number).collect(),
            count,
            limit: copies.div_ceil(count),
            matter: count > 1 && copies > 1,
        }
    }
}
