//! Scenarios of nodes that leave while others fail.

use cluster::control::OperatorRequest;
use cluster::map::{LeaveWay, NodeId, Setting};
use cluster::rules::Rule;

use super::{Duration, World, ms, rest, world};
use crate::store::Sabotage;
use crate::store::run::{come_to_rest, judge};

const LEAVER: NodeId = NodeId(2);

fn leave(world: &mut World, way: LeaveWay) {
    world.ask(LEAVER, OperatorRequest::Leave(way));
}

/// Runs until the node has left; returns the time that took.
fn run_until_left(world: &mut World) -> Result<Duration, String> {
    let begun = world.now;
    while world.nodes.contains_key(&LEAVER) && world.broken.is_none() {
        if world.now >= begun + Duration::from_secs(60) {
            return Err("it never goes".into());
        }
        world.run_until(world.now + ms(10));
    }
    Ok(world.now.since(begun))
}

/// Returns the number of buckets with fewer copies than wanted.
fn thin(world: &World) -> usize {
    let map = world.map().expect("there is a map");
    map.buckets().filter(|bucket| bucket.holders.len() < map.copies_wanted()).count()
}

/// Crashes another node while one leaves. Nothing acknowledged may be lost.
fn leave_and_crash(seed: u64, sabotage: Option<Sabotage>) -> Result<(), String> {
    let (nodes, backups) = (4 + seed % 3, 1 + (seed / 3 % 2) as u8);
    let mut world = world(seed, nodes, backups);
    world.sabotage = sabotage;
    let _broken = Sabotage::begin(sabotage);
    leave(&mut world, LeaveWay::Safe);
    world.run_until(world.now + ms(seed * 37 % 1_000));
    let others: Vec<NodeId> = world.nodes.keys().copied().filter(|it| *it != LEAVER).collect();
    world.kill(others[seed as usize % others.len()]);
    run_until_left(&mut world)?;
    come_to_rest(&mut world)?;
    judge(&world)?;
    let is_lost = world.checkers.has_lost() || world.checkers.was_unheld;
    if is_lost { Err("a bucket was lost".into()) } else { Ok(()) }
}

#[test]
fn a_crash_of_another_node_during_a_leave_loses_nothing() {
    for seed in 0..60 {
        leave_and_crash(seed, None).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

#[test]
fn a_node_that_leaves_before_others_have_its_copies_shows() {
    let sabotage = Some(Sabotage::Breaks(Rule::CopiesBeforeLeave));
    assert!((0..60).any(|seed| leave_and_crash(seed, sabotage).is_err()));
}

#[test]
fn a_safe_leave_costs_no_redundancy_and_a_quick_one_does() {
    for (way, is_thin) in [(LeaveWay::Safe, false), (LeaveWay::Quick, true)] {
        let mut world = world(5, 4, 1);
        leave(&mut world, way);
        run_until_left(&mut world).unwrap();
        assert_eq!(thin(&world) > 0, is_thin, "{way:?}: {} buckets", thin(&world));
        rest(&mut world);
        super::end(world);
    }
}

#[test]
fn after_the_timeout_a_node_leaves_the_quick_way() {
    let mut world = world(6, 3, 1);
    world.ask(LEAVER, OperatorRequest::Set(Setting::LeaveTimeout(ms(3_000))));
    world.run_until(world.now + ms(500));
    // No node takes a copy: their memory is full.
    world.full.extend([NodeId(1), NodeId(3)]);
    world.tell_vitals();
    world.run_until(world.now + ms(100));
    leave(&mut world, LeaveWay::Safe);
    let took = run_until_left(&mut world).unwrap();
    assert!(took >= ms(2_700) && took < ms(8_000), "{took:?}");
    assert!(thin(&world) > 0, "nobody could take its copies");
    world.full.clear();
    world.tell_vitals();
    rest(&mut world);
    super::end(world);
}

#[test]
fn of_two_nodes_the_one_that_leaves_for_a_while_keeps_all_its_places() {
    let mut world = world(8, 2, 1);
    super::leave_for(&mut world, Duration::from_secs(60));
    let map = world.map().expect("there is a map");
    let away: Vec<_> = map.away().map(|(node, away)| (node, away.buckets.len())).collect();
    assert_eq!(
        away,
        [(LEAVER, map.bucket_count())],
        "the other one has dropped none of its copies"
    );
    super::start_again(&mut world);
    rest(&mut world);
    super::end(world);
}

#[test]
fn a_second_request_makes_a_leave_quick() {
    let mut world = world(7, 3, 1);
    world.full.extend([NodeId(1), NodeId(3)]);
    world.tell_vitals();
    leave(&mut world, LeaveWay::Safe);
    world.run_until(world.now + ms(2_000));
    assert!(world.nodes.contains_key(&LEAVER), "nobody can take its copies");
    leave(&mut world, LeaveWay::Quick);
    let took = run_until_left(&mut world).unwrap();
    assert!(took < ms(5_000), "{took:?}");
    world.full.clear();
    world.tell_vitals();
    rest(&mut world);
    super::end(world);
}
