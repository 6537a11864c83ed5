//! Passed and failed checks in one run of `check.rs`, and the duration of each step.
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The number of checks that passed, and the number that failed.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Count {
    /// Counts the outcome of a single check.
    pub(crate) fn of(outcome: &Result<(), String>) -> Count {
        let failed = u64::from(outcome.is_err());
        Count { passed: 1 - failed, failed }
    }

    pub(crate) fn add(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The steps of a run in their order. A failed step does not end the run, so that one run shows
/// everything that needs fixing.
#[derive(Default)]
pub(crate) struct Tally {
    steps: Vec<(&'static str, Count, Duration)>,
}

impl Tally {
    /// Runs a step that is a single check.
    pub(crate) fn check(&mut self, name: &'static str, step: impl FnOnce() -> Result<(), String>) {
        self.count(name, || {
            let outcome = step();
            if let Err(why) = &outcome {
                eprintln!("{why}");
            }
            Count::of(&outcome)
        });
    }

    /// Runs a step that counts its own checks.
    pub(crate) fn count(&mut self, name: &'static str, step: impl FnOnce() -> Count) {
        println!("==> {name}");
        let begun = Instant::now();
        let count = step();
        self.steps.push((name, count, begun.elapsed()));
    }

    pub(crate) fn total(&self) -> Count {
        let mut total = Count::default();
        self.steps.iter().for_each(|(_, count, _)| total.add(*count));
        total
    }

    /// Returns the table of steps, and as the last line `N passed, N failed`.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        for (name, count, took) in &self.steps {
            let verdict = if count.failed == 0 { "ok" } else { "FAILED" };
            let seconds = took.as_secs_f64();
            let Count { passed, failed } = count;
            let _ = writeln!(
                text,
                "    {name:<10} {verdict:<7} {passed:>5} passed {failed:>4} failed {seconds:>8.1} s"
            );
        }
        let Count { passed, failed } = self.total();
        let _ = writeln!(text, "{passed} passed, {failed} failed");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_counted_and_the_next_one_still_runs() {
        let mut tally = Tally::default();
        tally.check("first", || Err("no".into()));
        tally.count("second", || Count { passed: 7, failed: 0 });
        assert_eq!(tally.total(), Count { passed: 7, failed: 1 });
    }

    #[test]
    fn the_last_line_is_the_verdict() {
        let mut tally = Tally::default();
        tally.count("tests", || Count { passed: 7, failed: 2 });
        assert_eq!(tally.summary().lines().last(), Some("7 passed, 2 failed"));
    }
}
