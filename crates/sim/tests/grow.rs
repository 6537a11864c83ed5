//! The standard examples of growth, run by the simulator.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use cluster::balance::{Decision, StepKind};
use cluster::map::{ClusterSettings, Zone};
use placement::{Mask, Slot};
use sim::Weather;
use sim::grow::{Growth, Newcomer, Step, name};

fn start(seed: u64, mask: Mask) -> Growth {
    Growth::start(seed, Weather::default(), Newcomer::default(), mask, ClusterSettings::default())
}

fn loads(step: &Step) -> Vec<(u32, u32)> {
    step.map.loads().iter().map(|load| (load.primaries, load.backups)).collect()
}

#[test]
fn two_nodes_end_at_8_plus_8_each() {
    for seed in 0..20 {
        let mut growth = start(seed, Mask::M000F);
        let step = growth.join(Newcomer::default());
        assert_eq!(loads(step), [(8, 8), (8, 8)]);
        assert_eq!((step.moved.copies, step.lower_bound), (16, 16));
    }
}

#[test]
fn the_first_steps_are_two_copies_and_a_promotion() {
    for seed in 0..20 {
        let mut growth = start(seed, Mask::M000F);
        let step = growth.join(Newcomer::default());
        let first: Vec<(StepKind, String)> = step.moved.decisions[..4]
            .iter()
            .map(|(_, decision)| (decision.step.kind, decision.step.bucket.to_string()))
            .collect();
        // 0000, 0008 and 0004 are neighbours: slots 0 to 3071.
        let wanted = [
            (StepKind::Fill, "000F/0000"),
            (StepKind::Fill, "000F/0008"),
            (StepKind::Promote, "000F/0000"),
            (StepKind::Fill, "000F/0004"),
        ];
        assert_eq!(first, wanted.map(|(kind, bucket)| (kind, bucket.to_owned())));
        let standing = |number: usize| {
            let decision = &step.moved.decisions[number].1;
            let part = |load: cluster::map::Load| (load.primaries, load.backups);
            (part(decision.giver.load), part(decision.taker.load))
        };
        assert_eq!(standing(0), ((16, 0), (0, 0)));
        assert_eq!(standing(1), ((16, 0), (0, 1)));
        assert_eq!(standing(2), ((16, 0), (0, 2)));
        assert_eq!(standing(3), ((15, 1), (1, 1)));
    }
}

/// Describes the first moves of a step: kind, bucket, giver and taker.
fn first_moves(step: &Step, moves: usize) -> Vec<String> {
    let tell = |decision: &Decision| {
        let Decision { step, .. } = decision;
        format!("{} {} {}->{}", step.kind, step.bucket, name(step.giver.0), name(step.taker.0))
    };
    step.moved.decisions[..moves].iter().map(|(_, decision)| tell(decision)).collect()
}

#[test]
fn the_third_node_gets_two_backups_then_a_promotion_then_a_primary() {
    let told = |seed| {
        let (mask, settings) = (Mask::M000F, ClusterSettings::default());
        let mut growth = Growth::start(seed, Weather::calm(), Newcomer::default(), mask, settings);
        growth.join(Newcomer::default());
        first_moves(growth.join(Newcomer::default()), 6)
    };
    let story = [
        "give backup 000F/000C A->C",
        "give backup 000F/0005 B->C",
        "promote 000F/0005 A->C",
        "give primary 000F/0006 B->C",
    ];
    let all: Vec<_> = (0..20).map(told).collect();
    // Chance decides which of A and B acts first; the expected moves are those with A first.
    let mut a_first = all.iter().filter(|moves| moves[0] == story[0]).peekable();
    assert!(a_first.peek().is_some(), "{all:?}");
    for moves in a_first {
        assert_eq!(moves[..3], story[..3]);
        // Chance also decides which of them acts next; B now has more primaries than backups.
        let of_b = moves[3..].iter().find(|told| told.ends_with("B->C"));
        assert_eq!(of_b.map(String::as_str), Some(story[3]), "{moves:?}");
    }
}

#[test]
fn the_third_node_begins_with_backups_and_ends_with_its_share() {
    for seed in 0..20 {
        let mut growth = start(seed, Mask::M000F);
        growth.join(Newcomer::default());
        let step = growth.join(Newcomer::default());
        for (_, decision) in &step.moved.decisions[..2] {
            assert_eq!(decision.step.kind, StepKind::GiveBackup, "seed {seed}");
        }
        assert_eq!((step.moved.copies, step.lower_bound), (10, 10));
        let mut totals: Vec<u32> = loads(step).iter().map(|(p, s)| p + s).collect();
        totals.sort_unstable();
        assert_eq!(totals, [10, 11, 11]);
    }
}

#[test]
fn four_nodes_end_at_4_plus_4_and_five_at_7_7_6_6_6() {
    for seed in 0..20 {
        let mut growth = start(seed, Mask::M000F);
        for _ in 0..3 {
            growth.join(Newcomer::default());
        }
        assert_eq!(loads(growth.steps().last().unwrap()), [(4, 4); 4]);
        let step = growth.join(Newcomer::default());
        let mut totals: Vec<u32> = loads(step).iter().map(|(p, s)| p + s).collect();
        totals.sort_unstable();
        assert_eq!(totals, [6, 6, 6, 7, 7]);
        assert_eq!(step.moved.copies, 6);
    }
}

#[test]
fn the_sixth_node_splits_all_buckets_first() {
    let mut growth = start(1, Mask::M000F);
    for _ in 0..4 {
        growth.join(Newcomer::default());
    }
    let before = growth.map().clone();
    let step = growth.join(Newcomer::default());
    assert_eq!((before.bucket_count(), step.map.bucket_count()), (16, 256));
    assert_eq!(step.moved.copies, step.lower_bound);
}

#[test]
fn a_leave_costs_just_the_copies_the_node_held() {
    for seed in 0..20 {
        let mut growth = start(seed, Mask::M000F);
        for _ in 0..4 {
            growth.join(Newcomer::default());
        }
        while growth.map().members().len() > 2 {
            let node = growth.map().members()[(seed % 2) as usize].id;
            let held = growth.map().load(node).total() as usize;
            let step = growth.leave(node);
            assert_eq!((step.moved.copies, step.lower_bound), (held, held));
        }
        let node = growth.map().members()[1].id;
        let step = growth.leave(node);
        assert_eq!(step.moved.copies, 0, "the last node has everything already");
        assert_eq!(loads(step), [(16, 0)]);
    }
}

#[test]
fn a_split_in_the_middle_of_fills_moves_no_slot_and_loses_nothing() {
    for seed in 0..20 {
        let mut growth = start(seed, Mask::M000F);
        for _ in 0..3 {
            growth.join(Newcomer::default());
        }
        growth.let_in(Newcomer::default());
        growth.world().run_for(Duration::from_millis(20 + seed * 3));
        assert!(!growth.world().is_at_rest(), "seed {seed}: the fifth node is being filled");
        let before = growth.map().clone();
        growth.let_in(Newcomer::default());
        let after = growth.map().clone();
        assert_eq!((before.bucket_count(), after.bucket_count()), (16, 256));
        for slot in Slot::all() {
            assert_eq!(before.bucket_of(slot).holders, after.bucket_of(slot).holders);
        }
        growth.world().run_to_rest();
        assert!(growth.map().buckets().all(|bucket| bucket.holders.len() == 2));
    }
}

#[test]
fn a_balanced_cluster_only_pings_and_seldom() {
    let mut growth = start(1, Mask::M000F);
    for _ in 0..3 {
        growth.join(Newcomer::default());
    }
    growth.world().run_for(Duration::from_secs(30));
    growth.world().take_moved();
    growth.world().run_for(Duration::from_secs(100));
    let moved = growth.world().take_moved();
    assert_eq!((moved.copies, moved.promotions, moved.decisions.len()), (0, 0, 0));
    // Four nodes, an event every 5 to 10 seconds, three pings and their answers each.
    assert!((4 * 10 * 3..=4 * 20 * 3 * 2).contains(&moved.messages), "{}", moved.messages);
}

#[test]
fn a_new_node_gets_its_first_bucket_as_soon_as_its_links_stand() {
    for seed in 0..20 {
        let weather = Weather { link: Duration::from_millis(80), ..Weather::default() };
        let settings = ClusterSettings::default();
        let mut growth = Growth::start(seed, weather, Newcomer::default(), Mask::M000F, settings);
        for _ in 0..3 {
            let step = growth.join(Newcomer::default());
            let first = step.moved.decisions[0].0.since(step.began);
            // The links stand after 80 ms. Load levels, an offer and its source take six messages of at most
            // 2 ms. Two givers may get in each other's way; one tries again within 50 ms.
            let expected = Duration::from_millis(80)..Duration::from_millis(150);
            assert!(expected.contains(&first), "seed {seed}: {first:?}");
        }
    }
}

#[test]
fn a_growth_changes_the_map_in_a_few_large_steps() {
    for (mask, seed) in [Mask::M00FF, Mask::M0FFF].into_iter().flat_map(|it| [(it, 1), (it, 2)]) {
        let mut growth = start(seed, mask);
        // One bucket at a time it would be 385, 256 and 193 steps with 256 buckets, 128, 85 and 64 of primaries.
        for (nodes, steps_max, primary_steps_max) in [(2, 25, 8), (3, 24, 8), (4, 22, 7)] {
            let step = growth.join(Newcomer::default());
            let (steps, primary_steps) = (step.moved.map_steps, step.moved.primary_steps);
            let told =
                format!("{nodes} nodes, {mask}: {steps} steps, {primary_steps} of primaries");
            assert!(steps <= steps_max && primary_steps <= primary_steps_max, "{told}");
            assert_eq!(step.moved.copies, step.lower_bound);
        }
    }
}

#[test]
fn zones_and_weights_are_kept_to_while_a_cluster_grows() {
    let (mask, settings) = (Mask::M00FF, ClusterSettings::default());
    let zoned = |zone: &str| Newcomer { weight: 1, zone: Zone(zone.to_owned()) };
    let mut growth = Growth::start(1, Weather::default(), zoned("east"), mask, settings.clone());
    for zone in ["west", "east", "west", "east", "west"] {
        growth.join(zoned(zone));
    }
    let map = growth.map();
    let zone = |node| &map.member(node).unwrap().zone;
    assert!(map.buckets().all(|bucket| zone(bucket.holders[0]) != zone(bucket.holders[1])));

    let mut growth = Growth::start(1, Weather::default(), Newcomer::default(), mask, settings);
    for weight in [1, 2] {
        growth.join(Newcomer { weight, ..Newcomer::default() });
    }
    assert_eq!(loads(growth.steps().last().unwrap()), [(64, 64), (64, 64), (128, 128)]);
}
