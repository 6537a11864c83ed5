//! Rates per second, averaged over the last second and a half. The janitor takes the samples.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Number of samples to average over.
const SAMPLES: usize = 16;

/// Counters that rates are computed from.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub commands: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

#[derive(Default)]
pub(crate) struct Rates(Mutex<VecDeque<(Instant, Totals)>>);

impl Rates {
    pub(crate) fn sample(&self, now: Instant, totals: Totals) {
        let mut samples = self.0.lock();
        if samples.len() == SAMPLES {
            samples.pop_front();
        }
        samples.push_back((now, totals));
    }

    /// Returns the rates per second.
    pub(crate) fn per_second(&self) -> Totals {
        let samples = self.0.lock();
        let (Some((from, first)), Some((to, last))) = (samples.front(), samples.back()) else {
            return Totals::default();
        };
        let over = to.duration_since(*from);
        let rate = |first: u64, last: u64| per_second(last.saturating_sub(first), over);
        Totals {
            commands: rate(first.commands, last.commands),
            bytes_in: rate(first.bytes_in, last.bytes_in),
            bytes_out: rate(first.bytes_out, last.bytes_out),
        }
    }
}

pub(super) fn per_second(count: u64, over: Duration) -> u64 {
    let micros = over.as_micros();
    if micros == 0 {
        return 0;
    }
    u64::try_from(u128::from(count) * 1_000_000 / micros).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_samples() {
        let rates = Rates::default();
        assert_eq!(rates.per_second(), Totals::default());
        let start = Instant::now();
        for step in 0..40u32 {
            // Idle at first, then ten commands every 100 ms.
            let commands = u64::from(step.saturating_sub(20)) * 10;
            let totals = Totals { commands, ..Totals::default() };
            rates.sample(start + Duration::from_millis(100) * step, totals);
        }
        assert_eq!(rates.per_second().commands, 100);
    }
}
