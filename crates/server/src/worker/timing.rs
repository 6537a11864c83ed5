//! Measures how long commands take. Quick commands are timed by the batch and share its time evenly, which
//! saves reading the clock for each; the others are timed one by one. Commands that took too long go to the
//! slow log and the latency monitor.

use std::time::{Duration, Instant};

use commands::{Ending, Flag, Request};

use super::Worker;
use super::serve::Job;
use crate::watching::{LATENCY_EVENTS, Slow};

/// The stopwatch of a batch.
pub(super) struct BatchTime {
    /// The last reading of the clock.
    since: Instant,
    /// Time that the quick commands took so far.
    quick: Duration,
}

impl BatchTime {
    pub(super) fn start() -> BatchTime {
        BatchTime { since: Instant::now(), quick: Duration::ZERO }
    }

    /// Begins a command that is timed by itself.
    pub(super) fn begin_alone(&mut self) {
        let now = Instant::now();
        self.quick += now - self.since;
        self.since = now;
    }

    /// Ends that command, and returns how long it took.
    pub(super) fn end_alone(&mut self) -> Duration {
        let now = Instant::now();
        let took = now - self.since;
        self.since = now;
        took
    }

    /// Returns how long the quick commands took together.
    pub(super) fn end(self) -> Duration {
        self.quick + self.since.elapsed()
    }
}

impl Worker<'_> {
    /// Records a command that was timed by itself.
    pub(super) fn note_alone(&mut self, index: usize, request: &Request<'_>, took: Duration) {
        let stats = &self.shared.watching.commands[self.number];
        stats.ran(request.command, 1, nanos(took));
        self.shared.watching.latency.note(LATENCY_EVENTS.command, took, &self.settings);
        if self.is_slow(took) {
            self.log_slow(index, request, took);
        }
    }

    /// Records the quick commands of a batch; `took` is their total time.
    #[inline]
    pub(super) fn note_batch(&mut self, jobs: &[Job], requests: &[Request<'_>], took: Duration) {
        let quick = || requests.iter().filter(|request| !request.is_timed_alone());
        let count = quick().count() as u64;
        if count == 0 {
            return;
        }
        let share = nanos(took) / count;
        let stats = &self.shared.watching.commands[self.number];
        let mut run = (requests[0].command, 0);
        for request in quick() {
            if request.command != run.0 {
                stats.ran(run.0, run.1, share);
                run = (request.command, 0);
            }
            run.1 += 1;
        }
        stats.ran(run.0, run.1, share);

        let share = Duration::from_nanos(share);
        self.shared.watching.latency.note(LATENCY_EVENTS.fast_command, share, &self.settings);
        if self.is_slow(share) {
            let all = jobs.iter().zip(requests);
            let quick = all.filter(|(_, request)| !request.is_timed_alone());
            quick.for_each(|(job, request)| self.log_slow(job.index, request, share));
        }
    }

    #[inline]
    fn is_slow(&self, took: Duration) -> bool {
        self.settings.slowlog_log_slower_than.is_some_and(|limit| took >= limit)
    }

    #[cold]
    fn log_slow(&self, index: usize, request: &Request<'_>, took: Duration) {
        let Some(spec) = request.spec.filter(|spec| !spec.has(Flag::SkipSlowlog)) else { return };
        let connection = &self.connections[index];
        let slow = Slow {
            spec,
            args: request.args,
            client: &connection.client,
            client_name: &connection.session.name,
        };
        self.shared.watching.slow_log.record(&slow, took, &self.settings);
    }

    /// Adds the round's errors, and its commands run by EXEC, to the statistics.
    pub(super) fn record_statistics(&mut self) {
        let watching = &self.shared.watching;
        for error in self.outcome.errors.drain(..) {
            watching.errors.count(error.text());
        }
        for (spec, ending) in self.outcome.ran_in_exec.drain(..) {
            let command = self.shared.table.id_of(spec);
            watching.commands[self.number].ran_untimed(command);
            if ending == Ending::Failed {
                watching.commands[self.number].failed(command);
            }
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
