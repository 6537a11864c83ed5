//! The latency monitor: events longer than `latency-monitor-threshold`, by kind.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use commands::{LatencyEvent, LatencySample};
use parking_lot::Mutex;
use settings::Settings;

use crate::clock;

/// Maximum number of samples of an event; at most one per second.
const SAMPLES_MAX: usize = 160;

/// The names of events.
pub(crate) struct EventNames {
    pub command: &'static str,
    pub fast_command: &'static str,
    pub expire_cycle: &'static str,
    pub eviction_cycle: &'static str,
}

pub(crate) const LATENCY_EVENTS: EventNames = EventNames {
    command: "command",
    fast_command: "fast-command",
    expire_cycle: "expire-cycle",
    eviction_cycle: "eviction-cycle",
};

#[derive(Default)]
pub(crate) struct LatencyMonitor(Mutex<BTreeMap<&'static str, Series>>);

#[derive(Default)]
struct Series {
    millis_max: u64,
    samples: VecDeque<LatencySample>,
}

impl LatencyMonitor {
    /// Records an event if it took too long.
    #[inline]
    pub(crate) fn note(&self, name: &'static str, took: Duration, settings: &Settings) {
        let threshold = settings.latency_monitor_threshold;
        if !threshold.is_zero() && took >= threshold {
            self.record(name, took, clock::now().0 / 1_000);
        }
    }

    #[cold]
    fn record(&self, name: &'static str, took: Duration, unix_seconds: u64) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let mut all = self.0.lock();
        let series = all.entry(name).or_default();
        series.millis_max = series.millis_max.max(millis);
        match series.samples.back_mut() {
            // Keep the worst of each second.
            Some(last) if last.unix_seconds == unix_seconds => {
                last.millis = last.millis.max(millis);
            }
            Some(_) | None => {
                if series.samples.len() == SAMPLES_MAX {
                    series.samples.pop_front();
                }
                series.samples.push_back(LatencySample { unix_seconds, millis });
            }
        }
    }

    pub(crate) fn events(&self) -> Vec<LatencyEvent> {
        let all = self.0.lock();
        let events = all.iter().map(|(name, series)| LatencyEvent {
            name,
            millis_max: series.millis_max,
            samples: series.samples.iter().copied().collect(),
        });
        events.collect()
    }

    pub(crate) fn forget(&self, name: &str) -> bool {
        self.0.lock().remove(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_second_the_worst_is_kept_and_old_ones_go() {
        let monitor = LatencyMonitor::default();
        let millis = Duration::from_millis;
        monitor.record("command", millis(20), 100);
        monitor.record("command", millis(90), 100);
        monitor.record("command", millis(30), 100);
        monitor.record("command", millis(10), 101);
        let event = &monitor.events()[0];
        let sample = |unix_seconds, millis| LatencySample { unix_seconds, millis };
        assert_eq!(event.samples, [sample(100, 90), sample(101, 10)]);
        assert_eq!(event.millis_max, 90);
        for second in 200..500 {
            monitor.record("command", millis(5), second);
        }
        let event = &monitor.events()[0];
        assert_eq!((event.samples.len(), event.millis_max), (SAMPLES_MAX, 90));
        assert!(monitor.forget("command"));
        assert!(!monitor.forget("command"));
    }

    #[test]
    fn without_a_threshold_nothing_is_recorded() {
        let monitor = LatencyMonitor::default();
        let mut settings = Settings::default();
        monitor.note("command", Duration::from_secs(1), &settings);
        assert!(monitor.events().is_empty());
        settings.latency_monitor_threshold = Duration::from_millis(5);
        monitor.note("command", Duration::from_millis(4), &settings);
        assert!(monitor.events().is_empty());
        monitor.note("command", Duration::from_millis(5), &settings);
        assert_eq!(monitor.events().len(), 1);
    }
}
