//! Counts and latencies of replies. Filled by `run.rs`, read by the binaries.
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::pace::Nanos;
use crate::replies::Counts;

/// Maximum recorded latency; longer ones are recorded as this.
const LONGEST_NANOS: u64 = 60 * Nanos::SECOND;
/// Three decimal digits: an error of at most a tenth of a percent.
const DIGITS: u8 = 3;

#[derive(Clone, Debug)]
pub struct Tally {
    pub answered: u64,
    pub errors: u64,
    pub misses: u64,
    pub first_error: Option<String>,
    /// Time from the first request to the last reply.
    pub elapsed: Duration,
    latency: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Tally {
        let latency = Histogram::new_with_bounds(1, LONGEST_NANOS, DIGITS);
        Tally {
            answered: 0,
            errors: 0,
            misses: 0,
            first_error: None,
            elapsed: Duration::ZERO,
            latency: latency.expect("the bounds are constant and valid"),
        }
    }
}

impl Tally {
    pub(crate) fn add(&mut self, counts: Counts) {
        self.answered += counts.replies;
        self.errors += counts.errors;
        self.misses += counts.misses;
    }

    #[inline]
    pub(crate) fn record(&mut self, nanos: u64, requests: u64) {
        self.latency.saturating_record_n(nanos.max(1), requests);
    }

    /// Merges the tally of a thread that ran at the same time into this one.
    pub fn merge(&mut self, other: Tally) {
        self.answered += other.answered;
        self.errors += other.errors;
        self.misses += other.misses;
        self.first_error = self.first_error.take().or(other.first_error);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latency.add(&other.latency).expect("all tallies have the same bounds");
    }

    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the latency that this share of the requests (0 to 100) did not exceed.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_percentile(percent))
    }

    pub fn slowest(&self) -> Duration {
        Duration::from_nanos(self.latency.max())
    }
}

/// Returns the median.
///
/// # Panics
/// Panics if there are no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a median of nothing");
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { values[middle - 1].midpoint(values[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_together_have_both_their_latencies() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        one.record(1_000, 90);
        other.record(1_000_000, 10);
        one.merge(other);
        assert!(one.percentile(50.0) < Duration::from_micros(2));
        assert!(one.percentile(99.0) >= Duration::from_micros(999));
    }

    #[test]
    fn a_latency_past_the_longest_is_kept_as_the_longest() {
        let mut tally = Tally::default();
        tally.record(u64::MAX, 1);
        assert!(tally.slowest() >= Duration::from_nanos(LONGEST_NANOS));
    }
}
