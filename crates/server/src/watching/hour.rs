//! The last hour of this node in a bounded number of samples: throughput and command durations. The janitor
//! takes one every few seconds; the console draws them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use commands::{CommandCounts, Flag, Histogram};
use parking_lot::Mutex;

use crate::clock;
use crate::counters::AllCounters;

/// Interval between samples.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// Number of samples in an hour.
const SAMPLES_MAX: usize = 720;

/// Activity between the previous sample and this one.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample, in milliseconds since 1970.
    pub at: u64,
    /// Per second, like the fields below.
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Median and 99th percentile of the durations.
    pub read_nanos: [u64; 2],
    pub write_nanos: [u64; 2],
    pub memory_bytes: u64,
    pub clients: u64,
}

/// Counter values at one moment.
#[derive(Clone, Default)]
struct Counted {
    reads: Class,
    writes: Class,
    others: Class,
    bytes_in: u64,
    bytes_out: u64,
}

#[derive(Clone, Default)]
struct Class {
    calls: u64,
    histogram: Histogram,
}

#[derive(Default)]
pub(crate) struct Hour(Mutex<Samples>);

#[derive(Default)]
struct Samples {
    /// Oldest first.
    kept: VecDeque<Sample>,
    last: Option<(Instant, Counted)>,
}

impl Hour {
    /// Takes a sample of the counters and of the totals by command. Called every [`SAMPLE_EVERY`].
    pub(super) fn sample(
        &self,
        counters: &AllCounters,
        totals: Vec<CommandCounts>,
        memory_bytes: u64,
    ) {
        let fixed = Sample {
            at: clock::now().0,
            memory_bytes,
            clients: counters.client_count() as u64,
            ..Sample::default()
        };
        self.0.lock().add(Instant::now(), Counted::of(counters, totals), fixed);
    }

    /// Returns all samples, oldest first.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.0.lock().kept.iter().copied().collect()
    }

    pub(crate) fn latest(&self) -> Option<Sample> {
        self.0.lock().kept.back().copied()
    }
}

impl Samples {
    fn add(&mut self, now: Instant, counted: Counted, fixed: Sample) {
        if let Some((then, before)) = &self.last {
            let over = now.saturating_duration_since(*then);
            let sample = counted.since(before, over, fixed);
            if self.kept.len() == SAMPLES_MAX {
                self.kept.pop_front();
            }
            self.kept.push_back(sample);
        }
        self.last = Some((now, counted));
    }
}

impl Counted {
    /// Returns the activity since `before`, which was `over` ago; the other fields come from `fixed`.
    fn since(&self, before: &Counted, over: Duration, fixed: Sample) -> Sample {
        let rate = |now: u64, then: u64| super::per_second(now.saturating_sub(then), over);
        Sample {
            reads: rate(self.reads.calls, before.reads.calls),
            writes: rate(self.writes.calls, before.writes.calls),
            others: rate(self.others.calls, before.others.calls),
            bytes_in: rate(self.bytes_in, before.bytes_in),
            bytes_out: rate(self.bytes_out, before.bytes_out),
            read_nanos: self.reads.times_since(&before.reads),
            write_nanos: self.writes.times_since(&before.writes),
            ..fixed
        }
    }

    fn of(counters: &AllCounters, totals: Vec<CommandCounts>) -> Counted {
        let mut counted = Counted {
            bytes_in: counters.total(|counters| &counters.bytes_in),
            bytes_out: counters.total(|counters| &counters.bytes_out),
            ..Counted::default()
        };
        for counts in totals {
            let class = if counts.spec.has(Flag::Write) {
                &mut counted.writes
            } else if counts.spec.has(Flag::ReadOnly) {
                &mut counted.reads
            } else {
                &mut counted.others
            };
            class.calls += counts.calls;
            class.histogram.add(&counts.histogram);
        }
        counted
    }
}

impl Class {
    /// Returns the median and the 99th percentile of the runs since `before`.
    fn times_since(&self, before: &Class) -> [u64; 2] {
        let mut between = self.histogram.clone();
        for (now, then) in between.counts.iter_mut().zip(&before.histogram.counts) {
            *now = now.saturating_sub(*then);
        }
        [500, 990].map(|thousandths| {
            u64::try_from(between.percentile(thousandths).as_nanos()).unwrap_or(u64::MAX)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(calls: u64, nanos: u64) -> Counted {
        let mut histogram = Histogram { counts: vec![0; Histogram::STEPS] };
        histogram.counts[Histogram::step(nanos)] = calls;
        Counted { reads: Class { calls, histogram }, ..Counted::default() }
    }

    #[test]
    fn a_sample_tells_what_happened_since_the_one_before_and_old_ones_go() {
        let mut samples = Samples::default();
        let start = Instant::now();
        for step in 0..800_u32 {
            let now = start + SAMPLE_EVERY * step;
            let fixed = Sample { at: u64::from(step), ..Sample::default() };
            samples.add(now, counted(u64::from(step) * 50, 1_000), fixed);
        }
        assert_eq!(samples.kept.len(), SAMPLES_MAX);
        let last = samples.kept.back().copied().unwrap_or_default();
        assert_eq!((last.at, last.reads, last.writes), (799, 10, 0));
        assert!((1_000..1_300).contains(&last.read_nanos[0]), "{last:?}");
        assert_eq!(last.write_nanos, [0, 0]);
    }
}
