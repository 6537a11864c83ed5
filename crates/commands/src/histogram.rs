//! A histogram of durations: four steps per doubling, from a nanosecond to hours.

use std::time::Duration;

/// Steps per doubling, as a power of two.
const STEPS_LOG: u32 = 2;
const STEPS: u64 = 1 << STEPS_LOG;

/// Counts by duration. [`Histogram::step`] returns the step of a duration.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Number of steps. Durations of 2^42 ns (more than an hour) and above share the last step.
    pub const STEPS: usize = 41 * STEPS as usize + 1;

    /// Returns the step of a duration: the first few are single nanoseconds, then each is a quarter of its doubling
    /// wide.
    pub fn step(nanos: u64) -> usize {
        if nanos < STEPS {
            return usize::try_from(nanos).unwrap_or(0);
        }
        let doubling = nanos.ilog2();
        let within = nanos >> (doubling - STEPS_LOG) & (STEPS - 1);
        let step = u64::from(doubling - STEPS_LOG + 1) * STEPS + within;
        usize::try_from(step).unwrap_or(usize::MAX).min(Self::STEPS - 1)
    }

    /// Returns the longest duration that belongs to a step.
    fn upper(step: usize) -> Duration {
        let step = step as u64;
        if step < STEPS {
            return Duration::from_nanos(step);
        }
        let doubling = step / STEPS - 1;
        let within = step % STEPS;
        Duration::from_nanos(((STEPS + within + 1) << doubling) - 1)
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Histogram) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum += count;
        }
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the duration that the given share of all runs, in thousandths, did not exceed.
    pub fn percentile(&self, thousandths: u64) -> Duration {
        let total = self.total();
        let wanted = (total * thousandths).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (step, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Self::upper(step);
            }
        }
        Duration::ZERO
    }

    /// Returns the number of runs that certainly took at most `limit`.
    pub fn within(&self, limit: Duration) -> u64 {
        let steps = self.counts.iter().enumerate();
        steps.take_while(|(step, _)| Self::upper(*step) <= limit).map(|(_, count)| count).sum()
    }

    /// Returns pairs of a limit in microseconds and the number of runs within it, for each power of two at which
    /// that number grows, up to the longest run.
    pub fn cumulative_micros(&self) -> Vec<(u64, u64)> {
        let total = self.total();
        let mut lines = Vec::new();
        let mut last = 0;
        for power in 0..=42u32 {
            let micros = 1u64 << power;
            let count = self.within(Duration::from_micros(micros));
            if count > last {
                lines.push((micros, count));
                last = count;
            }
            if count == total {
                break;
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_belongs_to_the_step_that_ends_at_or_behind_it() {
        for nanos in (0..5_000).chain([1 << 20, (1 << 20) - 1, 123_456_789, 1 << 40]) {
            let step = Histogram::step(nanos);
            let upper = u64::try_from(Histogram::upper(step).as_nanos()).unwrap();
            assert!(nanos <= upper, "{nanos} ns in a step up to {upper}");
            assert!(
                step == 0 || nanos > u64::try_from(Histogram::upper(step - 1).as_nanos()).unwrap()
            );
            assert!(upper - nanos <= nanos / 4 + 1, "{nanos} ns are rounded up to {upper}");
        }
        assert_eq!(Histogram::step(u64::MAX), Histogram::STEPS - 1);
    }

    #[test]
    fn percentiles_and_lines_follow_the_counts() {
        let mut histogram = Histogram { counts: vec![0; Histogram::STEPS] };
        histogram.counts[Histogram::step(500)] = 90;
        histogram.counts[Histogram::step(3_000)] = 10;
        assert_eq!(histogram.percentile(500), Duration::from_nanos(511));
        assert_eq!(histogram.percentile(990), Duration::from_nanos(3_071));
        assert_eq!(histogram.cumulative_micros(), [(1, 90), (4, 100)]);
        let mut sum = Histogram::default();
        sum.add(&histogram);
        sum.add(&histogram);
        assert_eq!((sum.total(), sum.percentile(990)), (200, histogram.percentile(990)));
        assert_eq!(Histogram::default().percentile(500), Duration::ZERO);
        assert!(Histogram::default().cumulative_micros().is_empty());
    }
}
