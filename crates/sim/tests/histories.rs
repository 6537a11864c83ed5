//! For any history of joins, leaves and deaths, under any weather, balancing ends, evenly, at the lower
//! bound.
//!
//! The invariants of every commit and every rest are in `sim/src/checkers.rs`. `OPENCLUSTER_NIGHTLY=1` runs
//! the full ranges, `OPENCLUSTER_QUICK=1` a tenth of the usual.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::balance::Plan;
use cluster::map::{Change, ClusterSettings, NodeId, Zone};
use placement::Mask;
use sim::grow::{Growth, Newcomer};
use sim::lower_bound::lower_bound;
use sim::{Rng, Weather};

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

fn nightly() -> bool {
    is_set("OPENCLUSTER_NIGHTLY")
}

/// Parameters from which a history is drawn.
#[derive(Clone, Copy)]
struct Range {
    mask: Mask,
    nodes_max: usize,
    events: usize,
    weights: &'static [u32],
    zones: &'static [&'static str],
}

const EQUAL: Range =
    Range { mask: Mask::M000F, nodes_max: 24, events: 6, weights: &[1], zones: &[""] };

struct History {
    growth: Growth,
    rng: Rng,
    range: Range,
    seed: u64,
}

impl History {
    fn new(seed: u64, range: Range) -> History {
        let mut rng = Rng::new(seed);
        let settings = ClusterSettings {
            backups: rng.below(3) as u8,
            // Half of the histories split buckets by the usual rule, the others never.
            min_buckets: if rng.below(2) == 0 { 6 } else { 0 },
            ..ClusterSettings::default()
        };
        let first = Newcomer { weight: range.weights[0], zone: Zone(range.zones[0].to_owned()) };
        let growth = Growth::start(seed, Weather::from_seed(seed), first, range.mask, settings);
        History { growth, rng, range, seed }
    }

    /// Adds several nodes at once, before anything has moved: again exactly the lower bound.
    fn burst(&mut self) {
        for _ in 0..self.rng.below(self.range.nodes_max as u64) {
            let newcomer = self.newcomer();
            self.growth.let_in(newcomer);
        }
        let world = self.growth.world();
        let bound = lower_bound(world.map(), world.copies_planned());
        world.run_to_rest();
        assert_eq!(world.take_moved().copies, bound, "seed {}: a burst of joins", self.seed);
        self.check_rest();
    }

    fn newcomer(&mut self) -> Newcomer {
        let weight = *self.rng.choose(self.range.weights).unwrap();
        let zone = Zone((*self.rng.choose(self.range.zones).unwrap()).to_owned());
        Newcomer { weight, zone }
    }

    fn somebody(&mut self) -> NodeId {
        let members = self.growth.map().members();
        self.rng.choose(members).unwrap().id
    }

    /// Runs one join or leave at rest: exactly the lower bound.
    fn step(&mut self) {
        let nodes = self.growth.map().members().len();
        let grows = nodes < 2 || (nodes < self.range.nodes_max && self.rng.below(3) > 0);
        let step = if grows {
            let newcomer = self.newcomer();
            self.growth.join(newcomer)
        } else {
            let node = self.somebody();
            self.growth.leave(node)
        };
        assert_eq!(step.moved.copies, step.lower_bound, "seed {}: {:?}", self.seed, step.event);
        self.check_rest();
    }

    /// Runs several events at once, none of which waits for the others to end.
    fn tumult(&mut self) {
        for _ in 0..2 + self.rng.below(3) {
            let nodes = self.growth.map().members().len();
            match self.rng.below(4) {
                0 if nodes > 3 => self.death(),
                1 if nodes > 3 => {
                    let node = self.somebody();
                    self.growth.world().leave(node);
                }
                _ if nodes < self.range.nodes_max => {
                    let newcomer = self.newcomer();
                    self.growth.let_in(newcomer);
                }
                _ => {}
            }
            let pause = Duration::from_micros(1 << self.rng.below(20));
            self.growth.world().run_for(pause);
        }
        self.growth.world().run_for(Duration::from_secs(60));
        self.growth.world().run_to_rest();
        self.check_rest();
    }

    /// Kills a node, if that loses no bucket.
    fn death(&mut self) {
        let node = self.somebody();
        let only =
            |node| self.growth.map().buckets().any(|bucket| bucket.holders.as_slice() == [node]);
        if !only(node) {
            self.growth.world().change(Change::Dead(BTreeSet::from([node])));
        }
    }

    fn check_rest(&self) {
        let map = self.growth.map();
        let plan = Plan::of(map);
        assert!(plan.is_empty(), "seed {}: a balanced map stays as it is", self.seed);
        for (member, load) in map.members().iter().zip(map.loads()) {
            let share = plan.share(member.id).unwrap();
            assert!(share.totals().contains(&load.total()), "seed {}: {load:?}", self.seed);
            assert!(share.primaries(map.copies_wanted()).contains(&load.primaries));
        }
    }
}

/// Prints the seed when a history fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was the history of seed {}", self.0);
        }
    }
}

fn history(seed: u64, range: Range) {
    let _told = Told(seed);
    let mut history = History::new(seed, range);
    history.burst();
    for _ in 0..range.events {
        history.step();
    }
    history.tumult();
    history.step();
}

/// `OPENCLUSTER_SEED=780 cargo test -p sim --test histories 256` repeats one history.
fn histories(count: u64, nightly_count: u64, range: Range) {
    if let Some(seed) = std::env::var("OPENCLUSTER_SEED").ok().and_then(|text| text.parse().ok()) {
        return history(seed, range);
    }
    let count = match (nightly(), is_set("OPENCLUSTER_QUICK")) {
        (true, _) => nightly_count,
        (false, true) => count.div_ceil(10),
        (false, false) => count,
    };
    let nodes_max = if nightly() { 64 } else { range.nodes_max };
    let range = Range { nodes_max, ..range };
    let halves = [0, 1].map(|half| {
        std::thread::spawn(move || {
            (0..count).filter(|seed| seed % 2 == half).for_each(|seed| history(seed, range));
        })
    });
    for half in halves {
        half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

#[test]
fn equal_nodes_with_16_buckets() {
    histories(1000, 20_000, EQUAL);
}

#[test]
fn equal_nodes_with_256_buckets() {
    histories(1000, 10_000, Range { mask: Mask::M00FF, events: 2, ..EQUAL });
}

#[test]
fn equal_nodes_with_4096_buckets() {
    histories(20, 500, Range { mask: Mask::M0FFF, events: 2, ..EQUAL });
}

#[test]
fn weights() {
    let range = Range { weights: &[1, 2, 3, 7], nodes_max: 12, events: 5, ..EQUAL };
    histories(200, 5000, range);
}

#[test]
fn zones() {
    let range = Range { zones: &["a", "b", "c"], nodes_max: 12, events: 5, ..EQUAL };
    histories(100, 5000, range);
}

#[test]
fn weights_and_zones() {
    let (weights, zones) = (&[2, 1, 5], &["a", "b"]);
    let range = Range { weights, zones, nodes_max: 9, events: 5, ..EQUAL };
    histories(100, 5000, range);
}
