//! Whatever a seed brings: nodes that come, leave, die, stop and are cut off, clocks that differ by
//! a tenth, messages that are late, lost or doubled. The observer in `World` looks at every step.

use std::ops::Range;

use super::world::{Weather, World, ms};
use crate::map::NodeId;

#[test]
fn never_do_two_nodes_serve_a_slot_and_in_the_end_all_have_leases() {
    let nightly = std::env::var_os("OPENCLUSTER_NIGHTLY").is_some();
    stories(0..if nightly { 3_000 } else { 60 });
}

/// The last seed printed is the one to repeat.
fn stories(seeds: Range<u64>) {
    for seed in seeds {
        println!("seed {seed}");
        story(seed);
    }
}

fn story(seed: u64) {
    let mut t = World::new(seed, Weather { delay_ms: (0, 1), lost: 0, doubled: 0 });
    t.weather.delay_ms.1 += t.draw() % 40;
    t.weather.lost = t.draw() % 60;
    t.weather.doubled = t.draw() % 60;
    t.found(1);
    let mut last = 1;
    for _ in 0..3 + t.draw() % 10 {
        something(&mut t, &mut last);
        let pause = t.draw() % 3_000;
        t.run(ms(pause));
    }
    t.cut.clear();
    let stopped: Vec<u64> =
        t.nodes.values().filter(|node| node.is_stopped).map(|node| node.me.id.0).collect();
    for id in stopped {
        t.go_on(id);
    }
    t.run(ms(5_000));
    for map in t.nodes.values().filter_map(|node| node.map.as_ref()) {
        map.check_invariants();
    }
    if t.has_majority() && t.has_a_map() {
        t.run_until(|t| !t.has_a_map() || t.nodes.len() == t.members().len() && t.has_leases());
    }
}

fn something(t: &mut World, last: &mut u64) {
    let ids: Vec<u64> = t.nodes.keys().map(|node| node.0).collect();
    let Some(some) = ids.get((t.draw() % ids.len().max(1) as u64) as usize).copied() else {
        return;
    };
    match t.draw() % 12 {
        0..=4 => {
            *last += 1;
            t.join(*last);
            let rate = 900 + t.draw() % 200;
            t.rates.insert(NodeId(*last), rate);
        }
        5 => {
            t.leave(some);
        }
        6 => t.cut_off(&[some]),
        7 => {
            let other = ids[(t.draw() % ids.len() as u64) as usize];
            t.cut.insert((NodeId(some), NodeId(other)));
        }
        8 => t.cut.clear(),
        9 => t.stop(some),
        10 => {
            if t.node(some).is_stopped {
                t.go_on(some);
            }
        }
        11.. => {
            if t.can_spare(some) {
                t.kill(some);
            }
        }
    }
}
