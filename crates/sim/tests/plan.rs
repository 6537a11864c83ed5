//! The plan by itself, without time and messages: for any history it is even, makes as few copies as
//! the flow says, and stays so after every single step, whatever the order of the steps.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::BTreeSet;

use cluster::balance::{BucketPlan, Plan};
use cluster::map::{
    Boot, Change, ClusterSettings, DropReason, Endpoints, LogIndex, Map, Member, NodeId, Setting,
    Zone,
};
use placement::Mask;
use sim::{Rng, lower_bound};

struct World {
    map: Map,
    index: LogIndex,
    rng: Rng,
    next_id: u64,
    weights: &'static [u32],
    zones: &'static [&'static str],
}

/// Kinds of members that a history may have.
#[derive(Clone, Copy)]
struct Kind {
    weights: &'static [u32],
    zones: &'static [&'static str],
    backups: u8,
}

const EQUAL: Kind = Kind { weights: &[1], zones: &[""], backups: 1 };

impl World {
    fn new(seed: u64, mask: Mask, kind: Kind) -> World {
        let settings = ClusterSettings { backups: kind.backups, ..ClusterSettings::default() };
        let (weights, zones) = (kind.weights, kind.zones);
        let first = Member {
            id: NodeId(1),
            boot: Boot(1),
            name: "n1".to_owned(),
            weight: weights[0],
            zone: Zone(zones[0].to_owned()),
            at: Endpoints::default(),
        };
        let map = Map::found(first, mask, settings);
        let rng = Rng::new(seed);
        World { map, index: LogIndex::FIRST, rng, next_id: 2, weights, zones }
    }

    fn commit(&mut self, change: &Change) {
        self.index.0 += 1;
        self.map.apply(self.index, change);
    }

    fn join(&mut self) {
        let id = NodeId(self.next_id);
        self.next_id += 1;
        let weight = *self.rng.choose(self.weights).unwrap();
        let zone = Zone((*self.rng.choose(self.zones).unwrap()).to_owned());
        self.commit(&Change::Join(Member {
            id,
            boot: Boot(1),
            name: format!("n{id}"),
            weight,
            zone,
            at: Endpoints::default(),
        }));
    }

    /// Removes a node whose death loses nothing, if there is one.
    fn remove_one(&mut self) {
        let only =
            |node: NodeId| self.map.buckets().any(|bucket| bucket.holders.as_slice() == [node]);
        let mut ids: Vec<NodeId> = self.map.members().iter().map(|member| member.id).collect();
        self.rng.shuffle(&mut ids);
        if let Some(id) = ids.into_iter().find(|id| !only(*id)) {
            self.commit(&Change::Dead(BTreeSet::from([id])));
        }
    }

    /// Carries out one open step of the plan, drawn by chance. Returns false if none is left.
    fn step(&mut self, plan: &Plan) -> bool {
        let mut open: Vec<Change> =
            plan.buckets().iter().flat_map(|bucket| self.steps_of(bucket)).collect();
        self.rng.shuffle(&mut open);
        let Some(change) = open.first() else { return false };
        self.commit(change);
        true
    }

    fn steps_of(&self, plan: &BucketPlan) -> Vec<Change> {
        let state = self.map.bucket(plan.hashmask).unwrap();
        let (bucket, expected, because) = (plan.hashmask, state.epoch, DropReason::Balance);
        let mut steps = Vec::new();
        for copy in &plan.copies {
            if !state.is_held_by(copy.taker) {
                steps.push(Change::AddBackup { bucket, node: copy.taker, expected });
            }
        }
        let primary = state.primary().unwrap();
        if primary != plan.primary && state.is_held_by(plan.primary) {
            steps.push(Change::Promote { bucket, node: plan.primary, expected });
        }
        let given = plan.copies.iter().filter(|copy| state.is_held_by(copy.taker));
        let gone = given.filter_map(|copy| copy.giver).chain(plan.drops.iter().copied());
        for node in gone.filter(|node| state.is_held_by(*node) && *node != primary) {
            steps.push(Change::DropBackup { bucket, node, expected, because });
        }
        steps
    }

    fn check_even(&self, plan: &Plan) {
        let copies = self.map.copies_wanted();
        for (member, load) in self.map.members().iter().zip(self.map.loads()) {
            let share = plan.share(member.id).unwrap();
            assert!(share.totals().contains(&load.total()), "{} has {load:?}", member.name);
            assert!(
                share.primaries(copies).contains(&load.primaries),
                "{} has {load:?}",
                member.name
            );
        }
        assert!(self.map.buckets().all(|bucket| bucket.holders.len() == copies));
    }
}

/// Runs one history: events, each followed by balancing, which the next event sometimes interrupts.
fn history(seed: u64, mask: Mask, kind: Kind, nodes_max: usize) {
    let mut world = World::new(seed, mask, kind);
    for _ in 0..12 {
        let nodes = world.map.members().len();
        match world.rng.below(8) {
            0 | 1 if nodes > 2 => world.remove_one(),
            2 if nodes > 4 => {
                world.remove_one();
                world.remove_one();
            }
            3 => {
                let backups = world.rng.below(3) as u8;
                world.commit(&Change::Set(Setting::Backups(backups)));
            }
            _ if nodes < nodes_max => world.join(),
            _ => world.remove_one(),
        }
        let plan = Plan::of(&world.map);
        let optimum = lower_bound::by_flow(&world.map);
        assert_eq!(plan.copies_to_make(), optimum.copies, "seed {seed}: the plan is optimal");
        let bound = lower_bound::lower_bound(&world.map, plan.copies_to_make());
        assert_eq!(bound, optimum.copies, "seed {seed}: counting and flow agree");
        if !world.map.members().iter().any(|member| member.weight > 0) {
            continue;
        }
        let cut_off = world.rng.below(3) == 0;
        let mut steps = 0;
        while world.step(&plan) {
            steps += 1;
            let left = plan.copies_left(&world.map);
            if steps % 7 == 0 {
                let fresh = Plan::of(&world.map).copies_to_make();
                assert_eq!(fresh, left, "seed {seed}: planning anew finds just what is left");
            }
            if cut_off && world.rng.below(10) == 0 {
                break;
            }
        }
        world.map.check_invariants();
        if plan.is_done(&world.map) {
            world.check_even(&plan);
            let crowded = lower_bound::crowded_units(&world.map);
            assert_eq!(crowded, optimum.crowded, "seed {seed}: zones are as apart as can be");
            assert!(Plan::of(&world.map).is_empty(), "seed {seed}: a balanced map stays as it is");
        }
    }
}

#[test]
fn equal_nodes() {
    (0..150).for_each(|seed| history(seed, Mask::M000F, EQUAL, 9));
}

#[test]
fn equal_nodes_and_many_buckets() {
    (0..6).for_each(|seed| history(seed, Mask::M00FF, EQUAL, 12));
}

#[test]
fn weights() {
    let kind = Kind { weights: &[1, 2, 3, 7, 0], zones: &[""], backups: 1 };
    (0..150).for_each(|seed| history(seed, Mask::M000F, kind, 9));
}

#[test]
fn zones() {
    let kind = Kind { weights: &[1], zones: &["a", "b", "c"], backups: 1 };
    (0..150).for_each(|seed| history(seed, Mask::M000F, kind, 9));
}

#[test]
fn weights_and_zones_and_two_backups() {
    let kind = Kind { weights: &[4, 1, 2], zones: &["a", "b", "c"], backups: 2 };
    (0..150).for_each(|seed| history(seed, Mask::M000F, kind, 9));
}
