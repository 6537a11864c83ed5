//! Many histories, one seed after the other, on a few threads. The tests and `opencluster sim faults`
//! run them from here.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::run::{Failure, Report, Run, run};

/// The histories to run: as `like`, with each of the seeds.
#[derive(Clone, Debug)]
pub struct Many {
    pub seeds: Range<u64>,
    pub like: Run,
    pub threads: usize,
}

/// Totals of all histories.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sum {
    pub histories: u64,
    pub answered: u64,
    pub acknowledged: u64,
    /// Histories in which all copies of a bucket were gone, so that nothing was promised.
    pub lost: u64,
    /// Keys whose history was too tangled to judge.
    pub unknown: u64,
}

impl Sum {
    fn add(mut self, report: &Report) -> Sum {
        self.histories += 1;
        self.answered += report.answered;
        self.acknowledged += report.acknowledged;
        self.lost += u64::from(report.lost);
        self.unknown += report.unknown as u64;
        self
    }

    fn and(self, other: Sum) -> Sum {
        Sum {
            histories: self.histories + other.histories,
            answered: self.answered + other.answered,
            acknowledged: self.acknowledged + other.acknowledged,
            lost: self.lost + other.lost,
            unknown: self.unknown + other.unknown,
        }
    }
}

impl Many {
    /// Runs all histories, or until one fails: then returns the failure with the smallest seed among those
    /// that had begun. `progress` receives the number of histories done.
    pub fn run(&self, progress: impl Fn(u64) + Sync) -> Result<Sum, Failure> {
        let next = AtomicU64::new(self.seeds.start);
        let failed = AtomicBool::new(false);
        let worker = || self.work(&next, &failed, &progress);
        let parts: Vec<Result<Sum, Failure>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(worker)).collect();
            threads.into_iter().map(|it| it.join().expect("a history panicked")).collect()
        });
        let first = parts.iter().filter_map(|part| part.as_ref().err());
        if let Some(failure) = first.min_by_key(|failure| failure.run.seed) {
            return Err(failure.clone());
        }
        Ok(parts.into_iter().flatten().fold(Sum::default(), Sum::and))
    }

    fn work(
        &self,
        next: &AtomicU64,
        failed: &AtomicBool,
        progress: impl Fn(u64),
    ) -> Result<Sum, Failure> {
        let mut sum = Sum::default();
        while !failed.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.seeds.end {
                break;
            }
            let report = run(Run { seed, ..self.like });
            failed.fetch_or(report.is_err(), Ordering::Relaxed);
            sum = sum.add(&report?);
            progress(seed - self.seeds.start);
        }
        Ok(sum)
    }
}
