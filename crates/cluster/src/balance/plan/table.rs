//! The map as the planner sees it: nodes and buckets as small numbers, and the holders in the end.
//!
//! Buckets are numbered in the order of their slots: the neighbours of a bucket are the numbers before
//! and after its own. That is how the planner keeps runs of slots together.
//!
//! Built from the map by `PlanTable::of`, changed by `target.rs` and `refine.rs`, read by `primaries.rs`
//! and `plan.rs`. A *unit* is one copy of one bucket; it is *kept* if the node holds it already.

use std::ops::RangeInclusive;

use placement::Hashmask;
use smallvec::SmallVec;

use crate::balance::share::{Share, shares};
use crate::map::{Map, Member, NodeId};

/// A node, as its place in `Map::members`.
pub(super) type NodeNumber = u16;
/// A few nodes: the holders of a bucket.
pub(super) type Nodes = SmallVec<[NodeNumber; 4]>;

pub(super) struct PlanTable {
    /// Number of copies each bucket should have.
    pub(super) copies: usize,
    pub(super) shares: Vec<Share>,
    /// The floor and the ceiling of each node's share.
    pub(super) bounds: Vec<RangeInclusive<u32>>,
    pub(super) zones: Zones,
    /// For each bucket, its place in the map.
    pub(super) places: Vec<usize>,
    /// For each bucket, its present holders, the primary first. Empty if the bucket is lost; it is then
    /// left out of everything.
    pub(super) held: Vec<Nodes>,
    /// The holders in the end of those buckets for which they may differ from `held`. The first entry is
    /// not used.
    targets: Vec<Nodes>,
    /// For each bucket, its place in `targets`; 0 if its holders stay.
    target_at: Vec<u32>,
    /// Number of units each node shall have in the end.
    pub(super) count: Vec<u32>,
    /// Buckets that members held before they were away, and do not hold again yet.
    pub(super) reserved: Vec<(NodeNumber, usize)>,
    /// For each node, the bucket it received last.
    pub(super) last_received: Vec<Option<usize>>,
}

impl PlanTable {
    pub(super) fn of(map: &Map) -> PlanTable {
        let members = map.members();
        let places: Vec<usize> = map.places_by_slot().collect();
        let mut numbers = vec![0; places.len()];
        places.iter().enumerate().for_each(|(number, place)| numbers[*place] = number);
        let held = holders(map, &numbers);
        let weights: Vec<u32> = members.iter().map(|member| member.weight).collect();
        let live = held.iter().filter(|holders| !holders.is_empty()).count();
        let copies = map.copies_wanted();
        let shares = shares(&weights, live, copies);
        let mut count = vec![0; members.len()];
        for node in held.iter().flatten() {
            count[usize::from(*node)] += 1;
        }
        let bounds = shares.iter().map(|share| share.totals()).collect();
        let zones = Zones::of(members, copies);
        let number = |bucket: Hashmask| map.place_of_bucket(bucket).map(|place| numbers[place]);
        let last_received = map.loads().iter().map(|load| load.last_received.and_then(number));
        let (last_received, reserved) = (last_received.collect(), reserved(map, &numbers));
        let mut table = PlanTable {
            copies,
            shares,
            bounds,
            zones,
            places,
            target_at: vec![0; held.len()],
            targets: vec![Nodes::new()],
            held,
            count,
            reserved,
            last_received,
        };
        if weights.contains(&0) {
            table.remove_weightless(&weights);
        }
        table
    }

    /// Removes the units of nodes without weight: these shall hold nothing.
    fn remove_weightless(&mut self, weights: &[u32]) {
        for bucket in 0..self.held.len() {
            let weightless = |node: &NodeNumber| weights[usize::from(*node)] == 0;
            let gone: Nodes = self.held[bucket].iter().copied().filter(weightless).collect();
            gone.into_iter().for_each(|node| self.remove(bucket, node));
        }
    }

    /// Returns the holders that a bucket shall have in the end, as far as they are planned.
    pub(super) fn target(&self, bucket: usize) -> &Nodes {
        match self.target_at[bucket] {
            0 => &self.held[bucket],
            at => &self.targets[at as usize],
        }
    }

    fn target_mut(&mut self, bucket: usize) -> &mut Nodes {
        if self.target_at[bucket] == 0 {
            self.target_at[bucket] = self.targets.len() as u32;
            self.targets.push(self.held[bucket].clone());
        }
        &mut self.targets[self.target_at[bucket] as usize]
    }

    /// Returns whether the target of a bucket may differ from its present holders.
    pub(super) fn is_touched(&self, bucket: usize) -> bool {
        self.target_at[bucket] != 0
    }

    pub(super) fn nodes(&self) -> usize {
        self.count.len()
    }

    /// Returns the buckets that are not lost.
    pub(super) fn buckets(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.held.len()).filter(|bucket| !self.held[*bucket].is_empty())
    }

    pub(super) fn is_held(&self, bucket: usize, node: NodeNumber) -> bool {
        self.held[bucket].contains(&node)
    }

    pub(super) fn is_target(&self, bucket: usize, node: NodeNumber) -> bool {
        self.target(bucket).contains(&node)
    }

    pub(super) fn add(&mut self, bucket: usize, node: NodeNumber) {
        self.target_mut(bucket).push(node);
        self.count[usize::from(node)] += 1;
    }

    pub(super) fn remove(&mut self, bucket: usize, node: NodeNumber) {
        let target = self.target_mut(bucket);
        let rank = target.iter().position(|holder| *holder == node);
        target.remove(rank.expect("only a unit that is there is removed"));
        self.count[usize::from(node)] -= 1;
    }

    /// Returns the number of units of a bucket in a zone.
    pub(super) fn in_zone(&self, bucket: usize, zone: u16) -> usize {
        let zone_of = |node: &NodeNumber| self.zones.of[usize::from(*node)];
        self.target(bucket).iter().filter(|node| zone_of(node) == zone).count()
    }

    /// Returns whether the node's zone has room for one more unit of the bucket.
    pub(super) fn zone_has_room(&self, bucket: usize, node: NodeNumber) -> bool {
        !self.zones.matter
            || self.in_zone(bucket, self.zones.of[usize::from(node)]) < self.zones.limit
    }

    /// Returns the number of copies to make to get from `held` to `target`.
    pub(super) fn copies_to_make(&self) -> usize {
        let new = |bucket: usize| {
            self.target(bucket).iter().filter(move |node| !self.is_held(bucket, **node)).count()
        };
        self.buckets().filter(|bucket| self.is_touched(*bucket)).map(new).sum()
    }
}

/// Returns, for each bucket, its holders. `numbers` has the number of the bucket at each place of the map.
fn holders(map: &Map, numbers: &[usize]) -> Vec<Nodes> {
    let nodes = NodeIndex::of(map.members());
    let mut held = vec![Nodes::new(); numbers.len()];
    for (bucket, number) in map.buckets().zip(numbers) {
        let of_bucket = &mut held[*number];
        bucket.holders.iter().for_each(|holder| of_bucket.push(nodes.find(*holder)));
    }
    held
}

/// Returns the buckets that are reserved for returning members.
fn reserved(map: &Map, numbers: &[usize]) -> Vec<(NodeNumber, usize)> {
    let mut reserved = Vec::new();
    for (node, away) in map.away() {
        if let Some(node) = map.place_of(node) {
            let places = away.buckets.iter().filter_map(|bucket| map.place_of_bucket(*bucket));
            reserved.extend(places.map(|place| (node as NodeNumber, numbers[place])));
        }
    }
    reserved
}

/// Finds nodes by id: a hash table with open addressing, because every holder of every bucket is looked
/// up.
struct NodeIndex {
    /// A power of two, at least twice as many as there are members.
    entries: Vec<Option<(NodeId, NodeNumber)>>,
}

impl NodeIndex {
    fn of(members: &[Member]) -> NodeIndex {
        let mut index = NodeIndex { entries: vec![None; (2 * members.len()).next_power_of_two()] };
        for (node, member) in members.iter().enumerate() {
            let free = index.probe(member.id).find(|at| index.entries[*at].is_none());
            index.entries[free.expect("half of the entries are free")] =
                Some((member.id, node as NodeNumber));
        }
        index
    }

    fn find(&self, id: NodeId) -> NodeNumber {
        let found = self.probe(id).find_map(|at| self.entries[at].filter(|entry| entry.0 == id));
        found.expect("a holder is a member").1
    }

    /// Returns the places at which an id may be, in the order to look there.
    fn probe(&self, id: NodeId) -> impl Iterator<Item = usize> + use<> {
        let last = self.entries.len() - 1;
        let first = (id.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        (0..=last).map(move |step| (first + step) & last)
    }
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
        let same = members.windows(2).all(|pair| pair[0].zone == pair[1].zone);
        if same {
            return Zones { of: vec![0; members.len()], count: 1, limit: copies, matter: false };
        }
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
