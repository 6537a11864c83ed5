//! Measures the cost of the wheel: inserting, removing and popping, with a million entries.

use timers::{MonotonicMillis, Wheel};

const ENTRIES: u32 = 1_000_000;

fn main() {
    divan::main();
}

/// Returns moments spread over a day, in a scattered order.
fn moment(entry: u32) -> MonotonicMillis {
    MonotonicMillis(1 + u64::from(entry.wrapping_mul(2_654_435_761)) % 86_400_000)
}

fn full() -> Wheel {
    let mut wheel = Wheel::new(MonotonicMillis(0));
    (0..ENTRIES).for_each(|entry| wheel.set(entry, moment(entry)));
    wheel
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn put_in_a_million(bencher: divan::Bencher) {
    bencher.counter(ENTRIES).bench(full);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn move_a_million(bencher: divan::Bencher) {
    bencher.counter(ENTRIES).with_inputs(full).bench_values(|mut wheel| {
        (0..ENTRIES).for_each(|entry| wheel.set(entry, moment(entry ^ 0x5555)));
        wheel
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn a_million_come_due_within_a_day(bencher: divan::Bencher) {
    bencher.counter(ENTRIES).with_inputs(full).bench_values(|mut wheel| {
        let mut out = 0;
        for now in (0..=86_400_000).step_by(10) {
            while wheel.pop(MonotonicMillis(now)).is_some() {
                out += 1;
            }
        }
        assert_eq!(out, ENTRIES);
        wheel
    });
}
