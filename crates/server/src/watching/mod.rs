//! The node's records of its own activity: calls and durations by command, errors, slow commands, and the
//! connections that monitor every command. INFO, SLOWLOG, LATENCY and MONITOR read them.
mod command_stats; // Calls and durations, by command; one table per worker.
mod error_stats; //   Errors, by code.
mod hour; //          The last hour, for charts.
mod latency; //       Events that took too long.
mod monitors; //      Connections that see every command.
mod rates; //         Rates per second.
mod slow_log; //      Commands that took too long.

use core::sync::atomic::Ordering::Relaxed;

use commands::{CommandCounts, Table};
use parking_lot::Mutex;

pub(crate) use command_stats::CommandStats;
pub(crate) use error_stats::ErrorStats;
pub use hour::Sample;
pub(crate) use hour::{Hour, SAMPLE_EVERY};
pub(crate) use latency::{LATENCY_EVENTS, LatencyMonitor};
pub(crate) use monitors::{Monitor, Monitors, line as monitor_line};
use rates::per_second;
pub(crate) use rates::{Rates, Totals};
pub(crate) use slow_log::{Slow, SlowLog};

use crate::counters::AllCounters;

pub(crate) struct Watching {
    /// One for each worker.
    pub commands: Vec<CommandStats>,
    pub errors: ErrorStats,
    pub rates: Rates,
    pub hour: Hour,
    pub slow_log: SlowLog,
    pub latency: LatencyMonitor,
    pub monitors: Monitors,
    /// Counter values at the last CONFIG RESETSTAT. Counters belong to the threads that write them, so a reset
    /// does not clear them; readers subtract this baseline.
    baseline: Mutex<Baseline>,
}

/// Counters at one moment.
#[derive(Clone, Default)]
pub(crate) struct Baseline {
    pub counters: CounterSums,
    commands: Vec<command_stats::Sums>,
}

/// Sums over all threads' counters.
#[derive(Clone, Copy, Default)]
pub(crate) struct CounterSums {
    pub accepted: u64,
    pub rejected: u64,
    pub commands: u64,
    pub hits: u64,
    pub misses: u64,
    pub expired: u64,
    pub evicted: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl CounterSums {
    /// Returns the counts since the node started.
    fn of(all: &AllCounters) -> CounterSums {
        CounterSums {
            accepted: all.accepted.load(Relaxed),
            rejected: all.rejected.load(Relaxed),
            commands: all.total(|counters| &counters.commands),
            hits: all.total(|counters| &counters.hits),
            misses: all.total(|counters| &counters.misses),
            expired: all.total(|counters| &counters.expired),
            evicted: all.total(|counters| &counters.evicted),
            bytes_in: all.total(|counters| &counters.bytes_in),
            bytes_out: all.total(|counters| &counters.bytes_out),
        }
    }

    fn since(self, then: CounterSums) -> CounterSums {
        CounterSums {
            accepted: self.accepted - then.accepted,
            rejected: self.rejected - then.rejected,
            commands: self.commands - then.commands,
            hits: self.hits - then.hits,
            misses: self.misses - then.misses,
            expired: self.expired - then.expired,
            evicted: self.evicted - then.evicted,
            bytes_in: self.bytes_in - then.bytes_in,
            bytes_out: self.bytes_out - then.bytes_out,
        }
    }
}

impl Watching {
    pub(crate) fn new(workers: usize, table: &Table) -> Watching {
        Watching {
            commands: (0..workers).map(|_| CommandStats::new(table)).collect(),
            errors: ErrorStats::default(),
            rates: Rates::default(),
            hour: Hour::default(),
            slow_log: SlowLog::default(),
            latency: LatencyMonitor::default(),
            monitors: Monitors::default(),
            baseline: Mutex::default(),
        }
    }

    /// Returns the counters since the last reset.
    pub(crate) fn counters(&self, all: &AllCounters) -> CounterSums {
        // Read the baseline first: counts in between may be missing, but the difference is never negative.
        let then = self.baseline.lock().counters;
        CounterSums::of(all).since(then)
    }

    /// Returns the counts of each command since the last reset, without commands never called.
    pub(crate) fn command_counts(&self, table: &Table) -> Vec<CommandCounts> {
        let baseline = self.baseline.lock().commands.clone();
        self.counts_since(table, &baseline)
    }

    /// Returns the same since the node started: scraped counters must never decrease.
    pub(crate) fn totals(&self, table: &Table) -> Vec<CommandCounts> {
        self.counts_since(table, &[])
    }

    fn counts_since(&self, table: &Table, baseline: &[command_stats::Sums]) -> Vec<CommandCounts> {
        let mut counts = Vec::new();
        for (index, spec) in table.specs().iter().enumerate() {
            let sums = command_stats::sum(&self.commands, index);
            let sums = match baseline.get(index) {
                Some(then) => sums.since(then),
                None => sums,
            };
            if sums.asked > 0 {
                counts.push(sums.counts(spec));
            }
        }
        counts
    }

    /// Takes a sample for the last hour. Called every [`SAMPLE_EVERY`].
    pub(crate) fn sample(&self, all: &AllCounters, table: &Table, memory_bytes: u64) {
        self.hour.sample(all, self.totals(table), memory_bytes);
    }

    /// Sets the counters that people see to zero.
    pub(crate) fn reset(&self, all: &AllCounters, table: &Table) {
        let commands = 0..table.specs().len();
        *self.baseline.lock() = Baseline {
            counters: CounterSums::of(all),
            commands: commands.map(|index| command_stats::sum(&self.commands, index)).collect(),
        };
        self.errors.reset();
    }
}
