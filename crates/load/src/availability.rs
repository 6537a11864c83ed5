//! The results of chaos runs: anomalies by class, and the longest outage of a bucket by cause. Written by
//! `cargo xtask chaos --report`, shown in docs/benchmarks.md.
use std::fmt;

use serde::{Deserialize, Serialize};

/// The runs of one commit, by seed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Availability {
    pub runs: Vec<Run>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Run {
    pub seed: u64,
    pub minutes: f64,
    pub nodes: usize,
    pub faults: usize,
    pub writes: u64,
    pub reads: u64,
    /// The count of every class of anomaly, in one line.
    pub anomalies: String,
    pub causes: Vec<CauseRow>,
}

/// A cause of outages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CauseRow {
    pub cause: String,
    /// Number of occurrences.
    pub times: usize,
    /// The longest time in seconds for which any bucket could not be written to; 0 if under 0.1.
    pub longest: f64,
}

impl Availability {
    /// Adds a run; it replaces an earlier one with the same seed and number of nodes.
    pub fn add(&mut self, run: Run) {
        self.runs.retain(|old| (old.seed, old.nodes) != (run.seed, run.nodes));
        self.runs.push(run);
    }

    /// Returns the rows of all runs together, the longest outage first.
    fn causes(&self) -> Vec<CauseRow> {
        let mut all: Vec<CauseRow> = Vec::new();
        for row in self.runs.iter().flat_map(|run| &run.causes) {
            match all.iter_mut().find(|known| known.cause == row.cause) {
                Some(known) => {
                    known.times += row.times;
                    known.longest = known.longest.max(row.longest);
                }
                None => all.push(row.clone()),
            }
        }
        all.sort_by(|a, b| b.longest.total_cmp(&a.longest));
        all
    }
}

impl fmt::Display for Availability {
    /// Formats two tables in Markdown: the runs, and the causes of all of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| seed | minutes | nodes | faults | writes | reads | anomalies |")?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for run in &self.runs {
            let Run { seed, minutes, nodes, faults, writes, reads, anomalies, .. } = run;
            writeln!(
                f,
                "| {seed} | {minutes} | {nodes} | {faults} | {writes} | {reads} | {anomalies} |"
            )?;
        }
        writeln!(f, "\nThe longest time without an answer for any bucket, by cause:\n")?;
        writeln!(f, "| cause | times | longest |\n|---|---|---|")?;
        for CauseRow { cause, times, longest } in self.causes() {
            writeln!(f, "| {cause} | {times} | {} |", seconds(longest))?;
        }
        Ok(())
    }
}

/// Formats the length of an outage.
pub fn seconds(longest: f64) -> String {
    if longest == 0.0 { "under 0.1 s".to_owned() } else { format!("{longest:.2} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, longest: f64) -> Run {
        let row = |cause: &str, longest| CauseRow { cause: cause.to_owned(), times: 2, longest };
        Run {
            seed,
            minutes: 20.0,
            nodes: 3,
            faults: 4,
            writes: 10,
            reads: 20,
            anomalies: "lost 0".to_owned(),
            causes: vec![row("break", 0.0), row("kill", longest)],
        }
    }

    #[test]
    fn causes_of_all_runs_are_put_together_and_a_repeated_run_replaces_its_earlier_result() {
        let mut all = Availability::default();
        all.add(run(1, 9.0));
        all.add(run(2, 1.5));
        all.add(run(1, 2.25));
        let shown = all.to_string();
        assert!(shown.contains("| kill | 4 | 2.25 s |\n| break | 4 | under 0.1 s |"), "{shown}");
    }
}
