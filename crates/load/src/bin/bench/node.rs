//! The grid of GETs and SETs: three servers, one thread each, in turn, round after round.
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

use load::request::Requests;
use load::{KeySpace, Loop, Operation, Plan, Popularity};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::measure::{self, CONNECTIONS, Figures};
use crate::servers::{Kind, Server, Tools};

const RUN: Duration = Duration::from_millis(600);
const RUN_QUICK: Duration = Duration::from_millis(150);
const ROUNDS_QUICK: usize = 3;

/// One row of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) set: bool,
    pub(crate) pipeline: usize,
    pub(crate) value_bytes: usize,
    pub(crate) zipf: bool,
    pub(crate) keys: u64,
}

impl Case {
    /// Returns the maximum cost of our node, as a share of Valkey's.
    pub(crate) fn target(self) -> f64 {
        if self.zipf || self.keys < 1_000_000 || self.value_bytes > 64 {
            return 1.0;
        }
        match self.pipeline {
            1 => 0.90,
            16 => 0.65,
            _ => 0.50,
        }
    }

    pub(crate) fn plan(self, server: &Server, seed: u64) -> Plan {
        let popularity = if self.zipf { Popularity::Zipf } else { Popularity::Uniform };
        let operation = if self.set { Operation::Set } else { Operation::Get };
        let keys = KeySpace { keys: self.keys, popularity };
        Plan {
            address: server.address,
            connections: CONNECTIONS,
            requests: Requests { operation, keys, value_bytes: self.value_bytes },
            style: Loop::Closed { pipeline: self.pipeline },
            seed,
        }
    }

    /// Returns whether the case's name has all of these words.
    pub(crate) fn has(self, words: &[String]) -> bool {
        let name = self.to_string();
        let has = |word: &String| name.split(' ').any(|part| part.eq_ignore_ascii_case(word));
        words.iter().all(has)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = if self.set { "SET" } else { "GET" };
        let value = if self.value_bytes < 1024 { "64B" } else { "1K" };
        let popularity = if self.zipf { "zipf" } else { "uniform" };
        let keys = if self.keys < 1_000_000 { "10k" } else { "1M" };
        write!(f, "{operation} P{} {value} {popularity} {keys}", self.pipeline)
    }
}

/// Returns the cases, grouped by the data set that they share.
fn datasets() -> Vec<Vec<Case>> {
    let mut datasets = Vec::new();
    for (value_bytes, keys) in [(64, 1_000_000), (64, 10_000), (1024, 1_000_000), (1024, 10_000)] {
        let mut cases = Vec::new();
        for zipf in [false, true] {
            for pipeline in [1, 16, 64] {
                for set in [false, true] {
                    cases.push(Case { set, pipeline, value_bytes, zipf, keys });
                }
            }
        }
        datasets.push(cases);
    }
    datasets
}

#[derive(Serialize, Deserialize)]
pub(crate) struct NodeResults {
    pub(crate) versions: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) run_millis: u64,
    pub(crate) rows: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) servers: BTreeMap<Kind, Figures>,
    /// Our CPU per operation as a share of theirs.
    pub(crate) share_of: BTreeMap<Kind, f64>,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<NodeResults> {
    let (rounds, time) =
        if options.quick { (ROUNDS_QUICK, RUN_QUICK) } else { (options.rounds, RUN) };
    let mut results = NodeResults {
        versions: Vec::new(),
        rounds,
        run_millis: time.as_millis() as u64,
        rows: Vec::new(),
    };
    for cases in datasets() {
        let chosen: Vec<Case> = cases.into_iter().filter(|case| case.has(&options.only)).collect();
        let Some(first) = chosen.first() else { continue };
        let servers = start_filled(tools, *first)?;
        results.versions = servers.iter().map(Server::version).collect::<io::Result<_>>()?;
        for case in chosen {
            let row = run_case(case, &servers, rounds, time)?;
            print(&row);
            results.rows.push(row);
        }
    }
    Ok(results)
}

fn start_filled(tools: &Tools, case: Case) -> io::Result<Vec<Server>> {
    let mut servers = Vec::new();
    for kind in tools.kinds() {
        let server = tools.start(kind, &measure::alone())?;
        measure::fill(&server, case.plan(&server, 0))?;
        servers.push(server);
    }
    Ok(servers)
}

fn run_case(case: Case, servers: &[Server], rounds: usize, time: Duration) -> io::Result<Row> {
    let mut seen: BTreeMap<Kind, Vec<Figures>> = BTreeMap::new();
    for round in 0..rounds {
        // The first one changes each round, so that none always follows the same neighbour.
        for turn in 0..servers.len() {
            let server = &servers[(round + turn) % servers.len()];
            let figures = measure::measure(server, case.plan(server, round as u64), time)?;
            seen.entry(server.kind).or_default().push(figures);
        }
    }
    let share_of = shares(&seen);
    let servers = seen.into_iter().map(|(kind, rounds)| (kind, Figures::median(&rounds))).collect();
    Ok(Row { case, servers, share_of })
}

fn shares(seen: &BTreeMap<Kind, Vec<Figures>>) -> BTreeMap<Kind, f64> {
    let Some(ours) = seen.get(&Kind::Ours) else { return BTreeMap::new() };
    let peers = seen.iter().filter(|(kind, _)| **kind != Kind::Ours);
    peers.map(|(kind, theirs)| (*kind, measure::share(ours, theirs))).collect()
}

fn print(row: &Row) {
    print!("{:<24}", row.case.to_string());
    for (kind, figures) in &row.servers {
        let kops = figures.ops_per_second / 1e3;
        print!("  {} {:6.3} us {:5.0} k/s", kind.name(), figures.cpu_micros_per_op, kops);
    }
    if let Some(share) = row.share_of.get(&Kind::Valkey) {
        let verdict = if *share <= row.case.target() { "within" } else { "OVER" };
        print!("  {share:.2} of Valkey, {verdict} {:.2}", row.case.target());
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_has_every_case_once() {
        let names: Vec<String> = datasets().concat().iter().map(Case::to_string).collect();
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!((names.len(), distinct.len()), (48, 48));
    }

    #[test]
    fn cases_are_chosen_by_whole_words() {
        let only = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            datasets().concat().into_iter().filter(|case| case.has(&words)).count()
        };
        assert_eq!(only(&[]), 48);
        assert_eq!(only(&["p1"]), 16);
        assert_eq!(only(&["GET", "P64", "64B", "uniform", "1M"]), 1);
    }

    #[test]
    fn only_the_headline_cases_have_a_target_below_one() {
        let below = datasets().concat().into_iter().filter(|case| case.target() < 1.0);
        assert!(below.clone().all(|case| case.to_string().ends_with("64B uniform 1M")));
        assert_eq!(below.count(), 6);
    }
}
