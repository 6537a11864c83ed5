//! Calls, outcomes and durations by command. Each worker has its own rows and writes them with plain stores; a
//! reader adds them up.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;
use std::time::Duration;

use commands::{CommandCounts, CommandId, Histogram, Spec, Table};

use crate::counters::count;

/// One worker's rows, indexed by command.
pub(crate) struct CommandStats {
    rows: Box<[Row]>,
}

#[derive(Default)]
struct Row {
    asked: AtomicU64,
    /// Of those asked for: queued by MULTI, refused before they ran, failed.
    queued: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    nanos: AtomicU64,
    /// Allocated on first use: most commands are never called.
    histogram: OnceLock<Box<[AtomicU64]>>,
}

impl CommandStats {
    pub(crate) fn new(table: &Table) -> CommandStats {
        CommandStats { rows: table.specs().iter().map(|_| Row::default()).collect() }
    }

    /// Records `times` runs of a command that took `nanos` each.
    #[inline]
    pub(crate) fn ran(&self, command: CommandId, times: u64, nanos: u64) {
        let Some(row) = self.rows.get(command.index()) else { return };
        count(&row.asked, times);
        count(&row.nanos, times * nanos);
        let histogram = row.histogram.get_or_init(Row::new_histogram);
        count(&histogram[Histogram::step(nanos)], times);
    }

    /// Records a run that was not timed individually.
    pub(crate) fn ran_untimed(&self, command: CommandId) {
        if let Some(row) = self.rows.get(command.index()) {
            count(&row.asked, 1);
        }
    }

    pub(crate) fn queued(&self, command: CommandId) {
        if let Some(row) = self.rows.get(command.index()) {
            count(&row.queued, 1);
        }
    }

    pub(crate) fn rejected(&self, command: CommandId) {
        if let Some(row) = self.rows.get(command.index()) {
            count(&row.rejected, 1);
        }
    }

    pub(crate) fn failed(&self, command: CommandId) {
        if let Some(row) = self.rows.get(command.index()) {
            count(&row.failed, 1);
        }
    }
}

impl Row {
    #[cold]
    fn new_histogram() -> Box<[AtomicU64]> {
        (0..Histogram::STEPS).map(|_| AtomicU64::new(0)).collect()
    }
}

/// Sums over all workers' rows of one command.
#[derive(Clone, Default)]
pub(super) struct Sums {
    pub asked: u64,
    queued: u64,
    rejected: u64,
    failed: u64,
    nanos: u64,
    histogram: Vec<u64>,
}

pub(super) fn sum(workers: &[CommandStats], index: usize) -> Sums {
    let mut sums = Sums::default();
    for worker in workers {
        let row = &worker.rows[index];
        sums.asked += row.asked.load(Relaxed);
        sums.queued += row.queued.load(Relaxed);
        sums.rejected += row.rejected.load(Relaxed);
        sums.failed += row.failed.load(Relaxed);
        sums.nanos += row.nanos.load(Relaxed);
        let Some(histogram) = row.histogram.get() else { continue };
        sums.histogram.resize(Histogram::STEPS, 0);
        for (sum, step) in sums.histogram.iter_mut().zip(histogram) {
            *sum += step.load(Relaxed);
        }
    }
    sums
}

impl Sums {
    pub(super) fn since(self, then: &Sums) -> Sums {
        let mut histogram = self.histogram;
        for (now, then) in histogram.iter_mut().zip(&then.histogram) {
            *now -= then;
        }
        Sums {
            asked: self.asked - then.asked,
            queued: self.queued - then.queued,
            rejected: self.rejected - then.rejected,
            failed: self.failed - then.failed,
            nanos: self.nanos - then.nanos,
            histogram,
        }
    }

    pub(super) fn counts(self, spec: &'static Spec) -> CommandCounts {
        // The parts are written one after the other; a reader may see an intermediate state.
        let calls = self.asked.saturating_sub(self.queued + self.rejected);
        CommandCounts {
            spec,
            calls,
            time: Duration::from_nanos(self.nanos),
            failed: self.failed,
            rejected: self.rejected,
            histogram: Histogram { counts: self.histogram },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_workers_are_added_up_and_looked_at_from_a_baseline() {
        let table = Table::default();
        let workers = [CommandStats::new(&table), CommandStats::new(&table)];
        let get = CommandId::from_number(3);
        workers[0].ran(get, 10, 500);
        workers[1].ran(get, 1, 3_000);
        workers[1].rejected(get);
        workers[0].failed(get);
        let then = sum(&workers, get.index());
        let counts = then.clone().counts(table.specs()[3]);
        assert_eq!((counts.calls, counts.failed, counts.rejected), (10, 1, 1));
        assert_eq!(counts.time, Duration::from_nanos(8_000));
        assert_eq!(counts.histogram.total(), 11);

        workers[0].ran(get, 2, 500);
        let counts = sum(&workers, get.index()).since(&then).counts(table.specs()[3]);
        assert_eq!((counts.calls, counts.failed, counts.histogram.total()), (2, 0, 2));
        workers[0].ran(CommandId::NONE, 1, 1);
    }
}
