//! Clocks that run fast or slow all their life.

use std::time::Duration;

/// The rate of a node's clock, in thousandths of the true time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockRate(pub u64);

impl ClockRate {
    /// Returns the clock's time at this moment of the true time.
    pub fn at(self, now: Duration) -> Duration {
        scaled(now, self.0, 1000)
    }

    /// Returns the true time at which the clock shows `shown`, or a little later.
    pub fn when(self, shown: Duration) -> Duration {
        scaled(shown, 1000, self.0) + Duration::from_nanos(2)
    }
}

fn scaled(time: Duration, times: u64, by: u64) -> Duration {
    let nanos = time.as_nanos() * u128::from(times) / u128::from(by);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_awaited_has_shown_the_time() {
        for rate in [900, 999, 1000, 1001, 1100].map(ClockRate) {
            for nanos in (0..5_000).map(|it| it * 1_234_567) {
                let shown = Duration::from_nanos(nanos);
                let when = rate.when(shown);
                assert!(rate.at(when) >= shown, "{rate:?} at {when:?} before {shown:?}");
                let earlier = when.saturating_sub(Duration::from_nanos(5));
                assert!(nanos == 0 || rate.at(earlier) < shown, "{rate:?} waits too long");
            }
        }
    }

    #[test]
    fn a_clock_never_runs_over() {
        assert!(ClockRate(900).when(Duration::MAX) > Duration::from_secs(1 << 33));
    }
}
