//! Scenarios of nodes that come back, one by one: with their data, without it, too late, in the middle of a
//! fill, and as the last holder.

mod leaving; // Nodes that leave while others fail.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::control::OperatorRequest;
use cluster::data::Plane;
use cluster::fill::Sent;
use cluster::map::{ClusterSettings, LeaveWay, NodeId};
use placement::Slot;
use sim_engine::Quality;
use store::Version;

use super::clients::{KEYS, text_of};
use super::clock::Clock;
use super::linear::Op;
use super::run::{come_to_rest, is_at_rest, judge};
use super::world::{World, ms};

const CLOCK: Clock = Clock { rate: 1000, wall_off: 0 };
const AWAY: NodeId = NodeId(2);

fn world(seed: u64, nodes: u64, backups: u8) -> World {
    let quality = Quality { delay_us: (100, 2_000), lost: 0, doubled: 0, broken: 0 };
    let mut world = World::new(seed, quality, 4);
    let settings = ClusterSettings { min_buckets: 1, backups, ..ClusterSettings::default() };
    world.found(settings, CLOCK);
    (2..=nodes).for_each(|id| world.join(id, CLOCK));
    rest(&mut world);
    world.run_until(world.now + ms(2_000));
    world
}

/// Runs until nothing is left to move; clients go on.
fn rest(world: &mut World) {
    let end = world.now + Duration::from_secs(60);
    world.run_until(world.now + ms(500));
    while !is_at_rest(world) {
        assert!(world.now < end && world.broken.is_none(), "never at rest: {:?}", world.broken);
        world.run_until(world.now + ms(100));
    }
}

fn leave_for(world: &mut World, absence: Duration) {
    world.ask(AWAY, OperatorRequest::LeaveFor { absence, way: LeaveWay::Safe });
    let end = world.now + Duration::from_secs(60);
    while world.nodes.contains_key(&AWAY) {
        assert!(world.now < end && world.broken.is_none(), "it never goes: {:?}", world.broken);
        world.run_until(world.now + ms(20));
    }
}

fn start_again(world: &mut World) {
    let ended = world.ended.pop().expect("a process has ended");
    world.restart(ended);
}

fn quiet(world: &mut World) {
    world.is_busy = false;
    world.run_until(world.now + ms(3_000));
}

fn sent(world: &World) -> Sent {
    world.nodes.values().fold(Sent::default(), |mut sum, node| {
        sum += node.mover.sent();
        sum
    })
}

fn end(mut world: World) {
    come_to_rest(&mut world).unwrap_or_else(|broken| panic!("{broken}"));
    judge(&world).unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn whenever_a_node_is_back_no_history_shows_it() {
    let mut newer = 0;
    for seed in 0..12 {
        let mut world = world(seed, 2 + seed % 4, 1);
        leave_for(&mut world, Duration::from_secs(60));
        world.run_until(world.now + ms(200 * (1 + seed)));
        start_again(&mut world);
        rest(&mut world);
        newer += sent(&world).newer_slots;
        end(world);
    }
    assert!(newer > 0);
}

#[test]
fn a_node_that_is_back_without_its_copies_is_filled_anew() {
    let mut world = world(3, 3, 1);
    leave_for(&mut world, Duration::from_secs(60));
    rest(&mut world);
    world.kept.clear();
    start_again(&mut world);
    rest(&mut world);
    assert_eq!(sent(&world).newer_slots, 0);
    end(world);
}

#[test]
fn a_node_that_is_back_too_late_is_filled_anew() {
    let mut world = world(4, 3, 1);
    leave_for(&mut world, Duration::from_secs(2));
    world.run_until(world.now + ms(6_000));
    assert_eq!(world.map().expect("there is a map").away().count(), 0);
    start_again(&mut world);
    rest(&mut world);
    assert_eq!(sent(&world).newer_slots, 0);
    end(world);
}

#[test]
fn a_node_that_dies_while_it_catches_up_is_none_the_worse() {
    for millis in [5, 30, 80, 200, 500] {
        let mut world = world(millis, 3, 1);
        leave_for(&mut world, Duration::from_secs(60));
        start_again(&mut world);
        world.run_until(world.now + ms(1_000 + millis));
        let killed = world.kill(AWAY).expect("it runs");
        world.run_until(world.now + ms(millis));
        world.restart(killed);
        rest(&mut world);
        end(world);
    }
}

/// Returns the version of every key's slot on the primary.
fn versions(world: &World) -> Vec<Option<Version>> {
    let map = world.map().expect("there is a map");
    let of = |key: &&str| {
        let slot = Slot::of(key.as_bytes());
        let primary = world.nodes.get(&map.bucket_of(slot).primary()?)?;
        Some(primary.plane.with_slot(slot, |state| state.table().version()))
    };
    KEYS.iter().map(of).collect()
}

#[test]
fn the_last_holder_brings_everything_back() {
    let mut world = world(9, 3, 0);
    quiet(&mut world);
    let before = versions(&world);
    world.nodes.get_mut(&AWAY).expect("it runs").is_stopped = true;
    world.run_until(world.now + ms(5_000));
    let lost = world.map().expect("there is a map").lost().count();
    assert!(lost > 0, "it has been given up");
    world.go_on(AWAY);
    world.run_until(world.now + ms(5_000));
    rest(&mut world);
    assert_eq!(world.map().expect("there is a map").lost().count(), 0);
    assert_eq!(versions(&world), before);
}

/// Returns the value that is served for a key.
fn value(world: &World, key: &str) -> Option<String> {
    let map = world.map().expect("there is a map");
    let slot = Slot::of(key.as_bytes());
    let plane = &world.nodes.get(&map.bucket_of(slot).primary()?)?.plane;
    plane.with_slot(slot, |state| {
        let found = state.table().peek(&plane.key(key))?;
        text_of(&found).map(|text| String::from_utf8_lossy(&text).into_owned())
    })
}

/// Writes until the value is served: the node that is asked may be suspended.
fn write(world: &mut World, key: &'static str, wanted: Option<&str>) {
    for _ in 0..20 {
        let op = wanted.map_or(Op::Del, |value| Op::Set(value.to_owned()));
        world.operate(0, key, op);
        world.run_until(world.now + ms(3_000));
        if value(world, key).as_deref() == wanted {
            return;
        }
    }
    panic!("{key} is never {wanted:?}");
}

/// Suspends the only holder of some buckets until these are recreated, and resumes it. Meanwhile some of its
/// keys are written, and some deleted again. Returns the values that should be served for all its keys.
fn too_late(seed: u64) -> (World, Vec<(&'static str, Option<&'static str>)>) {
    let mut world = world(seed, 3, 0);
    quiet(&mut world);
    for key in KEYS {
        write(&mut world, key, Some("before"));
    }
    let map = world.map().expect("there is a map");
    let served_by = |key: &str| map.bucket_of(Slot::of(key.as_bytes())).primary();
    let away = served_by(KEYS[seed as usize % KEYS.len()]).expect("somebody serves it");
    let keys: Vec<&str> = KEYS.into_iter().filter(|key| served_by(key) == Some(away)).collect();
    world.nodes.get_mut(&away).expect("it runs").is_stopped = true;
    world.run_until(world.now + Duration::from_secs(40));
    assert!(world.map().expect("there is a map").begun_anew().count() > 0, "they began again");
    let mut wanted = Vec::new();
    for (key, fate) in keys.into_iter().zip(seed..) {
        if fate % 3 > 0 {
            write(&mut world, key, Some("after"));
        }
        if fate % 3 > 1 {
            write(&mut world, key, None);
        }
        wanted.push((key, [Some("before"), Some("after"), None][(fate % 3) as usize]));
    }
    // Clients that asked it meanwhile have given up.
    world.nodes.get_mut(&away).expect("it sleeps").requests.clear();
    world.go_on(away);
    if seed % 2 == 1 {
        sleep_again(&mut world, away);
    }
    world.run_until(world.now + ms(5_000));
    rest(&mut world);
    (world, wanted)
}

/// Suspends a node that has just become a member again, until it is declared dead once more before it has
/// brought anything.
fn sleep_again(world: &mut World, away: NodeId) {
    let is_back = |world: &World| world.map().is_some_and(|map| map.member(away).is_some());
    while !is_back(world) {
        world.run_until(world.now + Duration::from_micros(200));
    }
    world.nodes.get_mut(&away).expect("it runs").is_stopped = true;
    world.run_until(world.now + ms(10_000));
    assert!(!is_back(world) && world.map().is_some_and(|map| map.may_bring_any(away)));
    world.go_on(away);
}

#[test]
fn who_is_back_too_late_brings_what_nobody_has_changed_since() {
    let mut told = BTreeSet::new();
    for seed in 0..12 {
        let (world, wanted) = too_late(seed);
        let map = world.map().expect("there is a map");
        assert_eq!(map.begun_anew().count(), 0, "nobody waits for it any more");
        assert!(map.loads().iter().all(|load| load.total() > 0), "all are nodes like any other");
        let ledgers = world.nodes.values().map(|node| &node.merging.ledger);
        let reported: u64 = ledgers.map(|ledger| ledger.tally.conflicts()).sum();
        let changed = wanted.iter().filter(|(_, wanted)| *wanted != Some("before")).count() as u64;
        assert_eq!(reported, changed, "seed {seed}: whatever it had that does not stand is told");
        for (key, wanted) in wanted {
            assert_eq!(value(&world, key).as_deref(), wanted, "seed {seed}: {key}");
            told.insert(wanted);
        }
    }
    assert_eq!(told.len(), 3, "all kinds of keys: {told:?}");
}

#[test]
fn who_is_back_with_nothing_is_not_waited_for() {
    let mut world = world(10, 3, 0);
    quiet(&mut world);
    let killed = world.kill(AWAY).expect("it runs");
    world.run_until(world.now + Duration::from_secs(40));
    assert!(world.map().expect("there is a map").begun_anew().count() > 0, "it may come back");
    world.restart(killed);
    world.run_until(world.now + ms(5_000));
    rest(&mut world);
    assert_eq!(world.map().expect("there is a map").begun_anew().count(), 0);
}

#[test]
fn a_backup_that_hears_nothing_of_its_primary_is_pending_until_it_does() {
    let mut world = world(11, 3, 1);
    quiet(&mut world);
    let is_pending = |world: &World, node: u64, primary: u64| {
        world.nodes[&NodeId(node)].plane.pending.borrow().contains(&NodeId(primary))
    };
    assert!(!is_pending(&world, 1, 2) && !is_pending(&world, 2, 1));
    world.network.cut.insert((NodeId(1), NodeId(2)));
    world.run_until(world.now + ms(1_200));
    assert!(is_pending(&world, 2, 1), "nothing comes from 1 any more");
    assert!(!is_pending(&world, 1, 2), "the other way is open");
    world.network.cut.clear();
    world.run_until(world.now + ms(1_000));
    assert!(!is_pending(&world, 2, 1));
}

#[test]
fn a_leader_that_is_late_with_its_answers_takes_nobody_for_dead() {
    let mut world = world(12, 5, 1);
    let leader = world.nodes[&NodeId(1)].control.leader().expect("somebody leads");
    for other in (1..=5).map(NodeId).filter(|other| *other != leader) {
        world.network.slow.insert((leader, other), ms(300));
    }
    world.run_until(world.now + ms(8_000));
    assert_eq!(world.map().expect("there is a map").members().len(), 5);
    assert!(world.nodes.values().all(|node| node.control.holds_lease()), "slow is not dead");
    world.network.slow.clear();
    rest(&mut world);
    judge(&world).expect("every promise is kept");
}

#[test]
fn a_leader_that_reaches_one_node_only_does_not_give_up_all_others() {
    for seed in 20..24 {
        let nodes = 4 + seed % 2;
        let mut world = world(seed, nodes, 1);
        let leader = world.nodes[&NodeId(1)].control.leader().expect("somebody leads");
        let voters = world.nodes[&leader].control.configuration().voters.clone();
        let reached = voters.into_iter().find(|voter| *voter != leader).expect("there are three");
        let is_cut = |other: &NodeId| ![leader, reached].contains(other);
        for other in (1..=nodes).map(NodeId).filter(is_cut) {
            world.network.cut.extend([(leader, other), (other, leader)]);
        }
        world.run_until(world.now + ms(10_000));
        assert!(
            !world.checkers.was_unheld,
            "seed {seed}: one node's links took all copies of a bucket"
        );
        let others = (1..=nodes).map(NodeId).filter(|it| *it != leader);
        let map = world.map().expect("there is a map");
        assert!(others.clone().all(|it| map.member(it).is_some()), "seed {seed}: {others:?}");
        world.network.mend(world.now);
        rest(&mut world);
        end(world);
    }
}

fn stop(world: &mut World, node: NodeId) {
    world.nodes.get_mut(&node).expect("it runs").is_stopped = true;
}

#[test]
fn nothing_is_lost_when_all_holders_of_a_bucket_are_paused_together() {
    for seed in 0..10 {
        let mut world = world(20 + seed, 5, 1);
        let map = world.map().expect("there is a map");
        let key = KEYS[seed as usize % KEYS.len()];
        let holders = map.bucket_of(Slot::of(key.as_bytes())).holders.clone();
        holders.iter().for_each(|node| stop(&mut world, *node));
        world.run_until(world.now + ms(5_000));
        assert!(world.checkers.was_unheld, "seed {seed}: both were given up");
        holders.iter().for_each(|node| world.go_on(*node));
        world.run_until(world.now + ms(3_000));
        rest(&mut world);
        assert!(!world.checkers.has_lost(), "seed {seed}: both are back with all they had");
        assert_eq!(world.map().expect("there is a map").members().len(), 5);
        end(world);
    }
}

#[test]
fn whichever_two_of_three_are_left_after_a_pause_and_a_death_go_on_with_what_they_have() {
    let mut kept = 0;
    for seed in 0..24_u64 {
        let mut world = world(40 + seed, 3, 1);
        let [stopped, killed] = [NodeId(1 + seed % 3), NodeId(1 + (seed + 1 + seed / 3 % 2) % 3)];
        stop(&mut world, stopped);
        world.run_until(world.now + ms(100 * seed));
        world.kill(killed);
        world.run_until(world.now + ms(3_000));
        world.go_on(stopped);
        rest(&mut world);
        assert_eq!(world.map().expect("there is a map").members().len(), 2, "seed {seed}");
        kept += u64::from(!world.checkers.has_lost());
        end(world);
    }
    assert!(kept > 5, "mostly the one that was stopped has all the other had: {kept}");
}
