//! The report of a run, and its printed form.
use std::fmt;
use std::time::{Duration, Instant};

use load::availability::{CauseRow, Run, seconds};

use super::anomalies::{Anomaly, summary};
use super::outages::Outage;

/// Maximum number of entries shown of a long list.
const SHOWN: usize = 10;

/// A fault that was injected.
#[derive(Clone, Debug)]
pub struct Struck {
    /// Time since the beginning of the run.
    pub at: Duration,
    pub what: String,
    /// Time from the end of the fault until the cluster was whole again.
    pub whole_after: Duration,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub seed: u64,
    /// Number of nodes at the start.
    pub nodes: usize,
    pub begun: Instant,
    pub lasted: Duration,
    pub writes: u64,
    pub reads: u64,
    pub unknown: u64,
    pub walks: u64,
    pub locks: usize,
    pub transactions: u64,
    pub large_values: u64,
    /// Errors that clients saw, by their first words, with their counts.
    pub errors: Vec<(String, u64)>,
    pub anomalies: Vec<Anomaly>,
    /// Buckets that the cluster itself reports as restarted empty.
    pub begun_again: Vec<String>,
    pub faults: Vec<Struck>,
    /// All outages of 0.1 s or more, the longest first.
    pub outages: Vec<Outage>,
    pub causes: Vec<CauseRow>,
}

impl Report {
    /// Returns whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.anomalies.is_empty() && self.begun_again.is_empty()
    }

    /// Returns the figures that docs/benchmarks.md keeps.
    pub fn figures(&self) -> Run {
        Run {
            seed: self.seed,
            minutes: (self.lasted.as_secs_f64() / 6.0).round() / 10.0,
            nodes: self.nodes,
            faults: self.faults.len(),
            writes: self.writes,
            reads: self.reads,
            anomalies: summary(&self.anomalies),
            causes: self.causes.clone(),
        }
    }

    fn faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "faults: {}", self.faults.len())?;
        for fault in &self.faults {
            let (at, whole) = (fault.at.as_secs_f64(), fault.whole_after.as_secs_f64());
            writeln!(f, "  {at:>7.1} s  {}; whole again after {whole:.1} s", fault.what)?;
        }
        Ok(())
    }

    fn outages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "longest outages of a bucket, the worst {SHOWN}:")?;
        for outage in self.outages.iter().take(SHOWN) {
            let [since, until] = [outage.since, outage.until]
                .map(|at| at.saturating_duration_since(self.begun).as_secs_f64());
            let lasted = outage.lasted().as_secs_f64();
            writeln!(f, "  {}  {lasted:>6.2} s: {since:.1} s to {until:.1} s", outage.bucket)?;
        }
        writeln!(f, "longest outage of a bucket by cause:")?;
        for CauseRow { cause, times, longest } in &self.causes {
            writeln!(f, "  {cause:<24} {times:>4} times  {:>11}", seconds(*longest))?;
        }
        Ok(())
    }

    fn counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { seed, writes, reads, unknown, walks, locks, .. } = self;
        let Report { transactions, large_values, .. } = self;
        let (faults, lasted) = (self.faults.len(), self.lasted.as_secs_f64());
        writeln!(
            f,
            "seed {seed}: {writes} writes acknowledged, {reads} reads, {unknown} writes of unknown \
             fate, {walks} walks, {locks} locks, {transactions} transactions, {large_values} large \
             values, {faults} faults in {lasted:.0} s"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults(f)?;
        self.outages(f)?;
        let errors: Vec<String> =
            self.errors.iter().map(|(words, count)| format!("{words}: {count}")).collect();
        let errors = if errors.is_empty() { "none".to_owned() } else { errors.join(", ") };
        writeln!(f, "errors seen by clients: {errors}")?;
        for anomaly in self.anomalies.iter().take(SHOWN) {
            writeln!(f, "ANOMALY {anomaly}")?;
        }
        for bucket in self.begun_again.iter().take(SHOWN) {
            writeln!(f, "BUCKET LOST {bucket}")?;
        }
        self.counts(f)?;
        writeln!(f, "{}", summary(&self.anomalies))
    }
}
