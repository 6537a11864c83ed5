//! Tests the wheel's guarantees: never early, once, in order, however far away and however the time jumps.

use std::collections::BTreeMap;

use super::*;
use placement::SplitMix64;

const DAY: u64 = 86_400_000;

fn out_by(wheel: &mut Wheel, now: u64) -> Vec<u32> {
    std::iter::from_fn(|| wheel.pop(MonotonicMillis(now))).map(|(entry, _)| entry).collect()
}

#[test]
fn an_entry_comes_out_at_its_moment_and_not_a_millisecond_before() {
    for span in [1, 63, 64, 65, 4095, 4096, 300_000, DAY, 400 * DAY, 365 * 300 * DAY] {
        for start in [0, 1, 4095, 1_700_000_000_123, (1 << 42) - 1] {
            let mut wheel = Wheel::new(MonotonicMillis(start));
            wheel.set(7, MonotonicMillis(start + span));
            assert_eq!(out_by(&mut wheel, start + span - 1), [0; 0], "{start} + {span}");
            assert_eq!(out_by(&mut wheel, start + span), [7], "{start} + {span}");
            assert!(wheel.is_empty());
        }
    }
}

#[test]
fn a_jump_over_years_brings_each_out_once_and_in_order() {
    let mut wheel = Wheel::new(MonotonicMillis(5));
    let moments = [6, 70, 5000, 5001, 3 * DAY, 800 * DAY, 60_000 * DAY];
    for (entry, at) in moments.into_iter().enumerate().rev() {
        wheel.set(entry as u32, MonotonicMillis(at));
    }
    assert_eq!(out_by(&mut wheel, u64::MAX / 2), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(out_by(&mut wheel, u64::MAX), [0; 0]);
}

#[test]
fn what_is_due_already_comes_out_at_once() {
    let mut wheel = Wheel::new(MonotonicMillis(1000));
    wheel.set(1, MonotonicMillis(1000));
    wheel.set(2, MonotonicMillis(3));
    assert_eq!(wheel.next_moment(), Some(MonotonicMillis(1000)));
    let mut out = out_by(&mut wheel, 1000);
    out.sort_unstable();
    assert_eq!(out, [1, 2]);
}

#[test]
fn a_time_that_runs_back_changes_nothing() {
    let mut wheel = Wheel::new(MonotonicMillis(1000));
    wheel.set(1, MonotonicMillis(2000));
    assert_eq!(out_by(&mut wheel, 10), [0; 0]);
    assert_eq!(out_by(&mut wheel, 1999), [0; 0]);
    assert_eq!(out_by(&mut wheel, 2000), [1]);
}

#[test]
fn an_entry_taken_out_or_moved_does_not_come_out_at_its_old_moment() {
    let mut wheel = Wheel::new(MonotonicMillis(0));
    wheel.set(1, MonotonicMillis(100));
    wheel.set(2, MonotonicMillis(100));
    wheel.set(3, MonotonicMillis(100));
    wheel.remove(1);
    wheel.set(2, MonotonicMillis(9000));
    wheel.set(3, MonotonicMillis(50));
    assert_eq!(wheel.len(), 2);
    assert_eq!(out_by(&mut wheel, 100), [3]);
    assert_eq!(wheel.moment_of(2), Some(MonotonicMillis(9000)));
    assert_eq!(out_by(&mut wheel, 9000), [2]);
    assert_eq!(wheel.moment_of(2), None);
}

/// Compares the wheel with a plain sorted map, under random sets, removals and steps of time.
#[test]
fn the_wheel_does_what_a_sorted_map_does() {
    for seed in 0..200 {
        let mut rng = SplitMix64::new(seed);
        let mut now = rng.draw() % (1 << 45);
        let mut wheel = Wheel::new(MonotonicMillis(now));
        let mut plain: BTreeMap<u32, u64> = BTreeMap::new();
        for _ in 0..400 {
            let entry = (rng.draw() % 3000) as u32;
            let reach = 1 << (rng.draw() % 44);
            match rng.draw() % 10 {
                0 => {
                    wheel.remove(entry);
                    plain.remove(&entry);
                }
                1 | 2 => {
                    now += rng.draw() % reach;
                    let mut expected: Vec<(u64, u32)> = plain
                        .iter()
                        .filter(|(_, at)| **at <= now)
                        .map(|(e, at)| (*at, *e))
                        .collect();
                    expected.sort_unstable();
                    plain.retain(|_, at| *at > now);
                    assert!(wheel.next_moment().is_none_or(|next| {
                        expected.first().is_none_or(|(first, _)| next.0 <= *first)
                    }));
                    let mut out: Vec<(u64, u32)> = Vec::new();
                    while let Some((entry, at)) = wheel.pop(MonotonicMillis(now)) {
                        out.push((at.0, entry));
                    }
                    assert!(out.is_sorted_by_key(|(at, _)| *at), "seed {seed}");
                    out.sort_unstable();
                    assert_eq!(out, expected, "seed {seed}");
                }
                _ => {
                    let at = now + 1 + rng.draw() % reach;
                    wheel.set(entry, MonotonicMillis(at));
                    plain.insert(entry, at);
                }
            }
            assert_eq!(wheel.len(), plain.len());
        }
    }
}
