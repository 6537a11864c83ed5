//! Maps stay compact: growth from one node ends with at most N x N ranges of slots for N equal nodes, with as few
//! copies and as even totals as ever. Other histories are measured, and bounded.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::BTreeSet;

use cluster::balance::Plan;
use cluster::balance::split::split_by_count;
use cluster::map::{
    Boot, Change, ClusterSettings, DropReason, Endpoints, LogIndex, Map, Member, NodeId, Zone,
};
use placement::Mask;
use sim::lower_bound::lower_bound;
use sim::{Rng, Weather, grow, ranges};

/// A cluster in which every plan is carried out at once.
struct Cluster {
    map: Map,
    index: LogIndex,
}

impl Cluster {
    fn new(mask: Mask, backups: u8) -> Cluster {
        let settings = ClusterSettings { backups, ..ClusterSettings::default() };
        Cluster { map: Map::found(member(1), mask, settings), index: LogIndex::FIRST }
    }

    fn commit(&mut self, change: &Change) {
        self.index.0 += 1;
        self.map.apply(self.index, change);
    }

    /// Adds a node, and splits buckets if there are too few for it.
    fn join(&mut self, id: u64) {
        self.commit(&Change::Join(member(id)));
        while let Some(split) = split_by_count(&self.map) {
            self.commit(&split);
        }
    }

    /// Kills a node, if that loses no bucket.
    fn kill(&mut self, node: NodeId) {
        let is_only = |node| self.map.buckets().any(|bucket| bucket.holders.as_slice() == [node]);
        if !is_only(node) {
            self.commit(&Change::Dead(BTreeSet::from([node])));
        }
    }

    /// Carries out the plan; it must make the fewest copies, and leave the nodes even.
    fn balance(&mut self) {
        let plan = Plan::of(&self.map);
        let copies = plan.copies_to_make();
        assert_eq!(copies, lower_bound(&self.map, copies), "the fewest copies");
        for bucket in plan.buckets() {
            let (hashmask, because) = (bucket.hashmask, DropReason::Balance);
            let epoch = |cluster: &Cluster| cluster.map.bucket(hashmask).unwrap().epoch;
            for copy in &bucket.copies {
                let (node, expected) = (copy.taker, epoch(self));
                self.commit(&Change::AddBackup { bucket: hashmask, node, expected });
            }
            let (node, expected) = (bucket.primary, epoch(self));
            self.commit(&Change::Promote { bucket: hashmask, node, expected });
            let given = bucket.copies.iter().filter_map(|copy| copy.giver);
            for node in given.chain(bucket.drops.iter().copied()) {
                let expected = epoch(self);
                self.commit(&Change::DropBackup { bucket: hashmask, node, expected, because });
            }
        }
        let plan = Plan::of(&self.map);
        assert!(plan.is_empty(), "a balanced map stays as it is");
        for (member, load) in self.map.members().iter().zip(self.map.loads()) {
            let share = plan.share(member.id).unwrap();
            assert!(share.totals().contains(&load.total()), "{load:?}");
            assert!(share.primaries(self.map.copies_wanted()).contains(&load.primaries));
        }
    }

    fn nodes(&self) -> usize {
        self.map.members().len()
    }
}

fn member(id: u64) -> Member {
    let (id, name) = (NodeId(id), grow::name(id));
    Member { id, boot: Boot(1), name, weight: 1, zone: Zone::default(), at: Endpoints::default() }
}

fn check(cluster: &Cluster, story: &str) {
    let (nodes, found) = (cluster.nodes(), ranges::of_primaries(&cluster.map));
    let buckets = cluster.map.bucket_count();
    assert!(found <= nodes * nodes, "{story}: {buckets} buckets, {nodes} nodes: {found} ranges");
}

#[test]
fn growth_one_by_one_ends_with_at_most_n_times_n_ranges() {
    for (mask, nodes) in
        [(Mask::M000F, 20), (Mask::M00FF, 50), (Mask::M0FFF, 50), (Mask::M3FFF, 20)]
    {
        for backups in 0..=2 {
            let mut cluster = Cluster::new(mask, backups);
            for id in 2..=nodes {
                cluster.join(id);
                cluster.balance();
                check(&cluster, "one by one");
            }
        }
    }
}

#[test]
fn ranges_with_backups_are_as_few_with_the_usual_one_backup() {
    for mask in [Mask::M00FF, Mask::M0FFF] {
        let mut cluster = Cluster::new(mask, 1);
        for id in 2..=30 {
            cluster.join(id);
            cluster.balance();
            let (nodes, found) = (cluster.nodes(), ranges::of_holders(&cluster.map));
            assert!(found <= nodes * nodes, "{mask}, {nodes} nodes: {found} ranges");
        }
    }
}

#[test]
fn growth_by_several_nodes_at_once_ends_with_at_most_n_times_n_ranges() {
    for (mask, backups) in [(Mask::M00FF, 1), (Mask::M0FFF, 1), (Mask::M0FFF, 0), (Mask::M0FFF, 2)]
    {
        for (first, all) in [(1, 3), (1, 5), (1, 10), (3, 6), (5, 10), (10, 20)] {
            let mut cluster = Cluster::new(mask, backups);
            for id in 2..=first {
                cluster.join(id);
                cluster.balance();
            }
            for id in first + 1..=all {
                cluster.join(id);
            }
            cluster.balance();
            check(&cluster, &format!("from {first} to {all} at once"));
        }
    }
}

#[test]
fn growth_under_any_weather_ends_with_at_most_n_times_n_ranges() {
    for seed in 0..10 {
        let (mask, settings) = (Mask::M00FF, ClusterSettings::default());
        let weather = Weather::from_seed(seed);
        let mut growth =
            grow::Growth::start(seed, weather, grow::Newcomer::default(), mask, settings);
        for nodes in 2..=10 {
            let step = growth.join(grow::Newcomer::default());
            assert_eq!(step.moved.copies, step.lower_bound, "seed {seed}");
            let found = ranges::of_primaries(&step.map);
            assert!(found <= nodes * nodes, "seed {seed}, {nodes} nodes: {found} ranges");
        }
    }
}

/// After deaths the survivors hold what they held: runs can become more than N x N, but they stay near it.
#[test]
fn joins_and_deaths_stay_near_n_times_n_ranges() {
    let (mut steps, mut sum, mut above) = (0, 0.0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut cluster = Cluster::new(Mask::M00FF, 1);
        let mut next = 2;
        for _ in 0..25 {
            let nodes = cluster.nodes() as u64;
            if nodes < 3 || (nodes < 14 && rng.below(5) < 3) {
                cluster.join(next);
                next += 1;
            } else {
                let node = rng.choose(cluster.map.members()).unwrap().id;
                cluster.kill(node);
            }
            cluster.balance();
            let (nodes, found) = (cluster.nodes(), ranges::of_primaries(&cluster.map));
            steps += 1;
            sum += found as f64 / (nodes * nodes) as f64;
            above += usize::from(found > nodes * nodes);
        }
    }
    let mean = sum / f64::from(steps);
    println!("{steps} steps: {mean:.2} x N x N ranges on average, {above} times more than N x N");
    assert!(mean < 0.7, "{mean}");
}
