//! Random scenarios from seeds: nodes that join, leave, die, restart, stop and are cut off, clocks that
//! differ by a tenth, messages that are late, lost or doubled, survivors that go on alone and meet
//! again. The observer in `World` checks every step.

use std::ops::Range;

use sim_engine::Quality;

use super::world::{CALM, World, ms};
use crate::control::OperatorRequest;
use crate::map::{NodeId, RecreateSource, Setting};
use crate::rules::Rule;

#[test]
fn never_do_two_nodes_serve_a_slot_and_in_the_end_all_have_leases() {
    let nightly = std::env::var_os("OPENCLUSTER_NIGHTLY").is_some();
    stories(0..if nightly { 3_000 } else { 60 });
}

/// Each of these rules is missed within 200 scenarios if it is broken. The others have a scenario of
/// their own in `rules.rs`, because they need more than bad luck.
#[test]
fn the_observer_notices_when_a_rule_is_left_out() {
    let rules = [
        Rule::LeaseFromAsking,
        Rule::NewLeaderWaits,
        Rule::DrainBeforePromotion,
        Rule::BootsDiffer,
    ];
    for rule in rules {
        let is_noticed = |seed| std::panic::catch_unwind(|| story(seed, Some(rule))).is_err();
        assert!((0..200).any(is_noticed), "{rule:?} seems not to be needed");
    }
}

/// Runs the scenarios. The last seed printed is the one to repeat.
fn stories(seeds: Range<u64>) {
    for seed in seeds {
        println!("seed {seed}");
        story(seed, None);
    }
}

fn story(seed: u64, broken: Option<Rule>) {
    let mut t = World::new(seed, Quality { delay_us: (0, 1_000), ..CALM });
    t.break_rule(broken);
    t.given_up_return = true;
    t.network.quality.delay_us.1 += t.draw() % 40 * 1_000;
    t.network.quality.lost = t.draw() % 60;
    t.network.quality.doubled = t.draw() % 60;
    t.found(1);
    let mut last = 1;
    for _ in 0..3 + t.draw() % 12 {
        something(&mut t, &mut last);
        let pause = t.draw() % 3_000;
        t.run(ms(pause));
    }
    t.network.cut.clear();
    for id in t.stopped() {
        t.go_on(id);
    }
    t.run(ms(5_000));
    t.meet_all();
    for map in t.nodes.values().filter_map(|node| node.map.as_ref()) {
        map.check_invariants();
    }
    if t.has_majority() && t.has_a_map() {
        t.run(ms(10_000));
        start_empty_if_alone(&mut t);
        t.run_until(|t| !t.has_a_map() || t.nodes.len() == t.members().len() && t.has_leases());
    }
}

/// Recreates the lost buckets of a cluster whose only member has restarted without its data, as the
/// server does.
fn start_empty_if_alone(t: &mut World) {
    if let ([alone], true) = (&t.members()[..], t.has_a_map() && t.map().lost().next().is_some()) {
        t.ask(*alone, OperatorRequest::Recreate(RecreateSource::Empty));
    }
}

fn something(t: &mut World, last: &mut u64) {
    let ids: Vec<u64> = t.nodes.keys().map(|node| node.0).collect();
    let Some(some) = ids.get((t.draw() % ids.len().max(1) as u64) as usize).copied() else {
        return;
    };
    match t.draw() % 18 {
        0..=4 => {
            *last += 1;
            t.join(*last);
            let rate = 900 + t.draw() % 201;
            t.rates.insert(NodeId(*last), rate);
        }
        5 => {
            t.leave(some);
        }
        6 => t.cut_off(&[some]),
        7 => {
            let other = ids[(t.draw() % ids.len() as u64) as usize];
            t.network.cut.insert((NodeId(some), NodeId(other)));
        }
        8 => t.network.cut.clear(),
        9 => {
            t.stop(some);
            let nap = 1_500 + t.draw() % 3_000;
            t.run(ms(nap));
            if t.nodes.contains_key(&NodeId(some)) {
                t.go_on(some);
            }
        }
        10 => t.stop(some),
        11 => {
            for id in t.stopped() {
                t.go_on(id);
            }
        }
        12 | 13 => {
            if t.can_spare(some) {
                t.kill(some);
            }
        }
        14 => {
            if let Some(disk) = t.kill(some) {
                let away = t.draw() % 2_000;
                t.run(ms(away));
                let boot = 10_000 + t.draw() % 1_000_000;
                t.restart(some, boot, disk);
            }
        }
        15 => t.client_turns_to(some),
        16 => {
            let lease = 500 + t.draw() % 3_000;
            t.set(some, Setting::Lease(ms(lease)));
        }
        17.. => {
            // Once is enough: maps of thousands of buckets only take longer.
            if t.has_a_map() && t.map().bucket_count() == 16 {
                t.ask(some, OperatorRequest::Split(None));
            }
        }
    }
}
