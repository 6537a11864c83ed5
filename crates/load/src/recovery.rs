//! The recovery times of a cluster, and the cost to clients. Measured by `cargo xtask chaos --figures`,
//! shown on the terminal and in docs/benchmarks.md.
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tally::median;

/// Our promises, in seconds: median and worst case after a kill, and the survivor of two.
const KILL_MEDIAN_MAX: f64 = 2.0;
const KILL_WORST_MAX: f64 = 3.0;
const SURVIVOR_MAX: f64 = 5.0;

/// The results of all parts, which can be measured one by one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Recovery {
    pub kills: Option<Kills>,
    pub survivors: Option<Survivors>,
    pub leaves: Option<Leaves>,
    pub stops: Option<Stops>,
}

/// Results of killing one of three nodes, again and again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Kills {
    /// Seconds from each kill until every bucket that the node served could be written to.
    pub seconds: Vec<f64>,
    pub lost: usize,
    pub stale: usize,
    pub writes: u64,
}

/// Results of killing one of two nodes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Survivors {
    /// Seconds from the first client's command until everything was served; the client came right after the kill.
    pub at_once: Vec<f64>,
    /// The same for a client that came three seconds later.
    pub later: Vec<f64>,
}

/// Results of nodes leaving gracefully.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Leaves {
    /// Seconds each node took to hand over everything.
    pub seconds: Vec<f64>,
    /// Errors that any client saw.
    pub errors: u64,
    pub lost: usize,
    pub stale: usize,
    pub writes: u64,
}

/// Results of stopping a node and resuming it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stops {
    pub rounds: usize,
    pub seconds: f64,
    pub lost: usize,
    pub stale: usize,
    pub writes: u64,
    pub reads: u64,
}

impl Recovery {
    /// Returns whether no acknowledged write was lost and no stale value was read.
    pub fn is_clean(&self) -> bool {
        let kills = self.kills.as_ref().map_or(0, |kills| kills.lost + kills.stale);
        let leaves = self.leaves.as_ref().map_or(0, |leaves| leaves.lost + leaves.stale);
        let stops = self.stops.as_ref().map_or(0, |stops| stops.lost + stops.stale);
        kills + leaves + stops == 0
    }
}

fn worst(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(0.0, f64::max)
}

/// Formats a figure beside its target, marked if it is above.
fn beside(figure: f64, wanted: f64) -> String {
    let over = if figure > wanted { " (over)" } else { "" };
    format!("{figure:.2} s{over} | {wanted:.0} s")
}

impl fmt::Display for Recovery {
    /// Formats a table in Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what happened | figure | seen | wanted |\n|---|---|---|---|")?;
        if let Some(kills) = &self.kills {
            let what = format!("{} times kill -9 of one of three nodes", kills.seconds.len());
            let median = beside(median(kills.seconds.clone()), KILL_MEDIAN_MAX);
            writeln!(f, "| {what} | all its buckets writable, median | {median} |")?;
            let worst = beside(worst(&kills.seconds), KILL_WORST_MAX);
            writeln!(f, "| | worst | {worst} |")?;
            let Kills { lost, stale, writes, .. } = kills;
            writeln!(f, "| | lost, stale, of {writes} writes | {lost}, {stale} | 0, 0 |")?;
        }
        if let Some(Survivors { at_once, later }) = &self.survivors {
            let what = format!("{} times kill -9 of one of two", at_once.len() + later.len());
            let first = beside(worst(at_once), SURVIVOR_MAX);
            writeln!(
                f,
                "| {what} | all served after a client that comes at once, worst | {first} |"
            )?;
            let second = beside(worst(later), SURVIVOR_MAX);
            writeln!(f, "| | after a client that comes 3 s later, worst | {second} |")?;
        }
        if let Some(leaves) = &self.leaves {
            let what = format!("{} nodes leave a busy cluster", leaves.seconds.len());
            let Leaves { errors, lost, stale, writes, .. } = leaves;
            writeln!(f, "| {what} | errors seen by clients, in {writes} writes | {errors} | 0 |")?;
            writeln!(f, "| | lost, stale | {lost}, {stale} | 0, 0 |")?;
            let longest = worst(&leaves.seconds);
            writeln!(f, "| | longest leave | {longest:.2} s | |")?;
        }
        if let Some(Stops { rounds, seconds, lost, stale, writes, reads }) = &self.stops {
            let what = format!("{rounds} times SIGSTOP for {seconds:.0} s, of one of three");
            let of = format!("lost, stale, of {writes} writes and {reads} reads");
            writeln!(f, "| {what} | {of} | {lost}, {stale} | 0, 0 |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kills(seconds: Vec<f64>, lost: usize) -> Recovery {
        let kills = Some(Kills { seconds, lost, stale: 0, writes: 10 });
        Recovery { kills, ..Recovery::default() }
    }

    #[test]
    fn a_figure_over_what_is_wanted_is_marked() {
        let shown = kills(vec![1.0, 1.5, 3.5], 0).to_string();
        assert!(shown.contains("median | 1.50 s | 2 s |"), "{shown}");
        assert!(shown.contains("worst | 3.50 s (over) | 3 s |"), "{shown}");
    }

    #[test]
    fn a_loss_is_not_clean() {
        assert!(Recovery::default().is_clean());
        assert!(kills(vec![1.0], 0).is_clean());
        assert!(!kills(vec![1.0], 1).is_clean());
    }
}
