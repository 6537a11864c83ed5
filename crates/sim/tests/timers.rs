//! Timers under virtual time: their promises in good weather, in storms, and under network partitions; that
//! every rule is needed; and two scenarios step by step.
//!
//! `OPENCLUSTER_SEED=17 cargo test -p sim --test timers storms` repeats one history, `17..5000` runs many;
//! `OPENCLUSTER_TRACE=` and a timer's number prints the messages and actions about it;
//! `OPENCLUSTER_NIGHTLY=1` runs twenty times as many, `OPENCLUSTER_QUICK=1` a tenth.

use std::collections::BTreeMap;

use sim::timers::run::{Report, Run};
use sim::timers::{Outcome, Plan, Sky, Weather, World, checkers};
use timers::{TimerId, TimerRule, TimerSettings};

fn seeds(count: u64) -> std::ops::Range<u64> {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if let Ok(text) = std::env::var("OPENCLUSTER_SEED") {
        let number = |text: &str| text.parse().expect("a seed is a number");
        return match text.split_once("..") {
            Some((from, to)) => number(from)..number(to),
            None => number(&text)..number(&text) + 1,
        };
    }
    match (is_set("OPENCLUSTER_NIGHTLY"), is_set("OPENCLUSTER_QUICK")) {
        (true, _) => 0..count * 20,
        (false, true) => 0..count / 10,
        (false, false) => 0..count,
    }
}

fn all_hold(sky: Sky, count: u64) -> Vec<Report> {
    let (mut reports, mut broken) = (Vec::new(), Vec::new());
    for seed in seeds(count) {
        match Run::new(seed, sky).run() {
            Ok(report) => reports.push(report),
            Err(promise) => broken.push(format!("OPENCLUSTER_SEED={seed}, {sky:?}: {promise}")),
        }
    }
    assert!(broken.is_empty(), "{} histories:\n{}", broken.len(), broken.join("\n"));
    reports
}

#[test]
fn in_clear_weather_every_pop_is_made_exactly_once() {
    let reports = all_hold(Sky::Clear, 100);
    assert!(reports.iter().all(|report| report.calls > 20));
}

#[test]
fn in_storms_every_timer_pops_and_none_that_was_deleted() {
    let reports = all_hold(Sky::Stormy, 200);
    let calls: usize = reports.iter().map(|report| report.calls).sum();
    let duplicates: usize = reports.iter().map(|report| report.duplicates).sum();
    assert!(duplicates * 20 < calls, "{duplicates} of {calls} calls were made before");
}

#[test]
fn when_the_network_falls_apart_every_timer_pops() {
    all_hold(Sky::Torn, 100);
}

/// Leaves out a rule, and expects that a checker notices within 1,000 seeds.
fn is_needed(rule: TimerRule, sky: Sky) {
    let caught = (0..1000).find(|seed| Run::new(*seed, sky).without(rule).run().is_err());
    let Some(seed) = caught else { panic!("{rule:?} was left out, and nobody noticed") };
    assert!(Run::new(seed, sky).run().is_ok(), "seed {seed} fails with the rule, too");
}

#[test]
fn a_timer_let_go_before_the_new_replicas_have_it_is_lost() {
    is_needed(TimerRule::LetGoAfterAck, Sky::Clear);
}

#[test]
fn an_answer_before_all_replicas_have_it_is_a_lie() {
    is_needed(TimerRule::AnswerAfterAll, Sky::Stormy);
}

#[test]
fn a_node_that_slept_pops_what_was_deleted_unless_it_asks() {
    is_needed(TimerRule::AskWhenInDoubt, Sky::Stormy);
}

#[test]
fn without_tombstones_the_deleted_come_back() {
    is_needed(TimerRule::Tombstones, Sky::Stormy);
}

#[test]
fn a_former_holder_that_is_not_told_pops_what_was_deleted() {
    is_needed(TimerRule::TellFormers, Sky::Clear);
}

#[test]
fn who_does_not_tell_of_its_pop_has_it_made_twice() {
    is_needed(TimerRule::TellPopped, Sky::Clear);
}

#[test]
fn who_does_not_tell_of_its_call_has_it_made_twice() {
    is_needed(TimerRule::TellCalling, Sky::Clear);
}

#[test]
fn a_primary_that_does_not_wait_for_the_last_one_is_overruled() {
    is_needed(TimerRule::WaitForEntered, Sky::Clear);
}

#[test]
fn a_change_of_an_earlier_epoch_would_overrule_a_later_one() {
    is_needed(TimerRule::EpochFirst, Sky::Stormy);
}

fn quiet_cluster(nodes: u64) -> World {
    let weather = Weather { nodes, delay_ms: 3, slow: 0, ..Weather::from_seed(1, Sky::Clear) };
    let mut world = World::new(1, weather, TimerSettings::default());
    world.run_for(2000);
    assert!(world.is_at_rest());
    world
}

/// Returns the calls since the last time this was asked: the second, the caller, and the sequence number.
fn calls_since(world: &World, seen: &mut usize) -> Vec<(u64, u64, u32)> {
    let calls = &world.history.called[*seen..];
    *seen = world.history.called.len();
    calls.iter().map(|call| ((call.at - 2000) / 1000, call.by, call.sequence.0)).collect()
}

/// Three replicas, an interval of 20 s: turns at 20, 22 and 24. The primary dies, the two others are
/// partitioned and reconnected, the dead one returns empty.
#[test]
fn turns_pass_from_replica_to_replica_and_back() {
    let mut world = quiet_cluster(3);
    world.look_away();
    let mut seen = 0;
    world.create(Plan { interval: 20_000, pops: 6, factor: 3 });
    world.run_for(30_000);
    let [(20, a, 0)] = calls_since(&world, &mut seen)[..] else { panic!("the primary pops at 20") };
    world.crash(a);
    world.run_for(20_000);
    let [(42, b, 1)] = calls_since(&world, &mut seen)[..] else { panic!("the next one at 42") };
    let c = *world.node_names().iter().find(|node| **node != b).expect("two are left");
    world.cut([c]);
    world.run_for(20_000);
    // Partitioned, each thinks the other is gone: the same number twice, which shows that it is a duplicate.
    assert_eq!(calls_since(&world, &mut seen), [(62, b, 2), (64, c, 2)]);
    world.heal();
    world.come_back_empty(a);
    world.run_for(20_000);
    assert_eq!(calls_since(&world, &mut seen), [(82, b, 3)]);
    // The pops of the others have brought the timer back to the primary, and everything is as before.
    world.run_for(20_000);
    assert_eq!(calls_since(&world, &mut seen), [(100, a, 4)]);
    world.run_for(20_000);
    assert_eq!(calls_since(&world, &mut seen), [(120, a, 5)]);
    world.run_for(60_000);
    assert_eq!(calls_since(&world, &mut seen), []);
}

/// From one node to five, and back to two, with one death on the way, while timers are made and pop.
#[test]
fn no_timer_is_lost_while_a_cluster_grows_from_one_node_and_shrinks_to_two() {
    for seed in seeds(30) {
        let weather = Weather { nodes: 1, ..Weather::from_seed(seed, Sky::Clear) };
        let mut world = World::new(seed, weather, TimerSettings::default());
        world.run_for(2000);
        for number in 0..400 {
            match number {
                50 | 100 | 150 | 200 => world.join(),
                250 => world.crash(5),
                300 => world.leave(4),
                350 => world.leave(3),
                _ => {}
            }
            world.create(Plan { interval: 5000, pops: 1, factor: 2 });
            world.run_for(100);
        }
        world.run_for(60_000);
        let judged = checkers::at_least_once(&world.history, world.now)
            .and_then(|()| checkers::never_early(&world.history));
        assert_eq!(judged, Ok(()), "OPENCLUSTER_SEED={seed}");
        assert!(world.is_at_rest() && world.node_names() == [1, 2], "OPENCLUSTER_SEED={seed}");
        let (calls, twice) = (world.history.called.len(), checkers::duplicates(&world.history));
        assert!(calls >= 390 && twice * 100 < calls, "{twice} of {calls} came twice, seed {seed}");
    }
}

/// Returns the calls of a timer, by its place in the history: the caller, and the sequence number.
fn calls_of(world: &World, asked: usize) -> Vec<(u64, u32)> {
    let id = world.history.asked[asked].id.expect("it was answered");
    let calls = world.history.called.iter().filter(|called| called.id == id);
    calls.map(|called| (called.by, called.sequence.0)).collect()
}

/// Two nodes are partitioned, both go on alone, and reconnect minutes later: the requests of either side then
/// hold on both, and no timer that has ended comes back.
#[test]
fn when_two_sides_meet_again_the_timers_of_both_survive() {
    let mut world = quiet_cluster(2);
    let once = |interval: u64| Plan { interval, pops: 1, factor: 2 };
    let create =
        |world: &mut World, interval| world.create(once(interval)).expect("a node is awake");
    let before = create(&mut world, 400_000);
    let deleted = create(&mut world, 400_000);
    let both = create(&mut world, 30_000);
    world.run_for(1000);
    // 1) They are partitioned. Clients ask both for more.
    world.cut([2]);
    world.run_for(3000);
    world.take_over(2);
    world.clients_of = Some(1);
    let here = create(&mut world, 400_000);
    let id = |world: &World, asked: usize| world.history.asked[asked].id.expect("answered");
    let gone = id(&world, deleted);
    world.delete(gone);
    world.clients_of = Some(2);
    let there = create(&mut world, 400_000);
    let changed = create(&mut world, 400_000);
    // Longer than a tombstone lives.
    world.run_for(90_000);
    assert_eq!(calls_of(&world, both).len(), 2, "each side has popped it");
    // 2) They reconnect.
    world.meet_again(2);
    world.run_for(20_000);
    assert!(world.is_at_rest());
    world.clients_of = Some(1);
    let changed = id(&world, changed);
    let answered = world.put(changed, once(500_000)).expect("a node is awake");
    world.run_for(2000);
    assert!(matches!(world.history.asked[answered].outcome, Outcome::Done { .. }));
    let kept = keepers(&world);
    for asked in [before, here, there, answered] {
        let places = &kept[&id(&world, asked)];
        assert_eq!(places.len(), 2, "both nodes keep it");
    }
    // 3) The timers come due.
    world.run_for(600_000);
    for asked in [before, here, there, answered] {
        assert_eq!(calls_of(&world, asked).len(), 1, "{:?}", world.history.asked[asked]);
    }
    let set_at = world.history.asked[answered].from;
    let called = world.history.called.iter().find(|called| called.id == changed);
    assert!(called.expect("seen above").at >= set_at + 500_000, "as it was set the last time");
    assert_eq!(calls_of(&world, deleted), [], "deleted on one side, forgotten on the other");
}

/// Returns the keepers of each timer, by place.
fn keepers(world: &World) -> BTreeMap<TimerId, BTreeMap<u8, u64>> {
    let mut keepers: BTreeMap<TimerId, BTreeMap<u8, u64>> = BTreeMap::new();
    for node in world.node_names() {
        for (id, place) in world.core(node).kept() {
            let known = keepers.entry(id).or_default().insert(place, node);
            assert_eq!(known, None, "two nodes at one place");
        }
    }
    keepers
}

#[test]
fn a_node_that_joins_takes_its_share_and_nothing_else_moves() {
    for nodes in [2, 3, 4, 7] {
        let mut world = quiet_cluster(nodes);
        for _ in 0..2000 {
            world.create(Plan { interval: 10_000_000, pops: 1, factor: 2 });
            world.run_for(1);
        }
        world.run_for(3000);
        let before = keepers(&world);
        assert!(before.len() == 2000 && before.values().all(|places| places.len() == 2));
        world.join();
        world.run_for(5000);
        assert!(world.is_at_rest());
        let after = keepers(&world);
        let newcomer = nodes + 1;
        let mut moved = 0;
        for (id, old) in &before {
            let new = &after[id];
            assert_eq!(new.len(), 2);
            assert!([old[&0], newcomer].contains(&new[&0]), "a primary moved among the old nodes");
            assert!(new[&1] != old[&0] && new[&0] != old[&1], "a primary and a backup swapped");
            moved += u64::from(new[&0] == newcomer);
        }
        let most = 2000 * 11 / (10 * newcomer);
        assert!(moved <= most && moved > 0, "{moved} of 2000 primaries moved, {most} at most");
    }
}
