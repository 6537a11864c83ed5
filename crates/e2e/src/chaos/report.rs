//! What a run has found, and how it is printed.
use std::fmt;
use std::time::{Duration, Instant};

use super::outages::Outage;

/// How many of a long list are shown.
const SHOWN: usize = 10;

/// A fault that has struck.
#[derive(Clone, Debug)]
pub struct Struck {
    /// Since the beginning of the run.
    pub at: Duration,
    pub what: String,
    /// From its end until the cluster was whole again.
    pub whole_after: Duration,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub seed: u64,
    pub begun: Instant,
    pub lasted: Duration,
    pub writes: u64,
    pub reads: u64,
    pub unknown: u64,
    /// Errors that clients saw, by their first words, with how often.
    pub errors: Vec<(String, u64)>,
    /// Keys whose last acknowledged write is not there.
    pub lost: Vec<String>,
    /// Everything that was found broken, in words: old reads, losses, what was never done and showed.
    pub breaches: Vec<String>,
    /// Buckets that the cluster itself reports as begun again empty.
    pub begun_again: Vec<String>,
    pub faults: Vec<Struck>,
    /// The longest of every bucket, the longest first.
    pub outages: Vec<Outage>,
}

impl Report {
    /// Whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.breaches.is_empty() && self.begun_again.is_empty()
    }

    /// Reads that were older than they may be, losses apart.
    pub fn stale(&self) -> usize {
        self.breaches.len() - self.lost.len()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "faults: {}", self.faults.len())?;
        for fault in &self.faults {
            let (at, whole) = (fault.at.as_secs_f64(), fault.whole_after.as_secs_f64());
            writeln!(f, "  {at:>7.1} s  {}; whole again after {whole:.1} s", fault.what)?;
        }
        writeln!(f, "longest unavailability of a bucket, the worst {SHOWN}:")?;
        for outage in self.outages.iter().take(SHOWN) {
            let until = outage.until.saturating_duration_since(self.begun).as_secs_f64();
            let lasted = outage.lasted.as_secs_f64();
            writeln!(f, "  {}  {lasted:>6.2} s, until {until:.1} s", outage.bucket)?;
        }
        let errors: Vec<String> =
            self.errors.iter().map(|(words, count)| format!("{words}: {count}")).collect();
        let errors = if errors.is_empty() { "none".to_owned() } else { errors.join(", ") };
        writeln!(f, "errors seen by clients: {errors}")?;
        for breach in self.breaches.iter().take(SHOWN) {
            writeln!(f, "BROKEN {breach}")?;
        }
        for bucket in self.begun_again.iter().take(SHOWN) {
            writeln!(f, "BEGUN AGAIN {bucket}")?;
        }
        writeln!(
            f,
            "seed {}: {} writes acknowledged, {} reads, {} writes of unknown fate, {} faults in {:.0} s; \
             lost {}, stale {}",
            self.seed,
            self.writes,
            self.reads,
            self.unknown,
            self.faults.len(),
            self.lasted.as_secs_f64(),
            self.lost.len(),
            self.stale(),
        )
    }
}
