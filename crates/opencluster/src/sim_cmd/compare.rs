//! `opencluster sim compare`: ways to place keys, side by side.

use std::fmt::Write;
use std::ops::RangeInclusive;

use clap::Args;
use serde_json::{Value, json};
use sim::compare::{Score, Way, optimum, score};

use crate::Failure;

const NODES_MAX: usize = 256;
const KEYS_MAX: usize = 100_000_000;

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Numbers of nodes, from and to: 3..32
    #[arg(long, default_value = "3..32", value_name = "FROM..TO")]
    nodes: String,
    /// Number of keys to place
    #[arg(long, default_value_t = 1_000_000)]
    keys: usize,
    /// Print JSON: one object for each number of nodes and each way
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CompareArgs) -> Result<String, Failure> {
    let nodes = range(&args.nodes)?;
    if args.keys == 0 || args.keys > KEYS_MAX {
        return Err(Failure::BadInput(format!("--keys is 1 to {KEYS_MAX}, not {}", args.keys)));
    }
    let table: Vec<(usize, Vec<(Way, Score)>)> = nodes
        .map(|nodes| (nodes, Way::ALL.map(|way| (way, score(way, nodes, args.keys))).to_vec()))
        .collect();
    Ok(if args.json { as_json(&table) } else { describe(&table) })
}

/// Parses `3..32`, both ends included, or one number.
fn range(text: &str) -> Result<RangeInclusive<usize>, Failure> {
    let wrong = || {
        let line = format!("--nodes is written like 3..32, from 2 to {NODES_MAX}, not {text:?}");
        Failure::BadInput(line)
    };
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
    let (from, to) = (number(from)?, number(to.trim_start_matches('='))?);
    if from < 2 || to < from || to > NODES_MAX { Err(wrong()) } else { Ok(from..=to) }
}

fn describe(table: &[(usize, Vec<(Way, Score)>)]) -> String {
    let mut text = String::from(
        "Percent of all keys that move when one node joins and when one leaves, and the fullest node\n\
         beside the average.\n\n",
    );
    let _ = write!(text, "{:>5}  {:>19}", "nodes", "optimum");
    for way in Way::ALL {
        let _ = write!(text, "  {:>21}", way.name());
    }
    text.push('\n');
    for (nodes, scores) in table {
        let _ = write!(text, "{nodes:>5}  {:>19}", cell(&optimum(*nodes)));
        for (_, score) in scores {
            let _ = write!(text, "  {:>21}", cell(score));
        }
        text.push('\n');
    }
    text + "\nThe optimum: only the keys of the joining or leaving node move, and the nodes stay even.\n"
}

fn cell(score: &Score) -> String {
    let percent = |part: f64| part * 100.0;
    let (join, leave) = (percent(score.moved_by_join), percent(score.moved_by_leave));
    format!("{join:5.1} {leave:5.1} {:6.3}", score.imbalance)
}

fn as_json(table: &[(usize, Vec<(Way, Score)>)]) -> String {
    let object = |nodes: usize, way: &str, score: &Score| {
        json!({
            "nodes": nodes,
            "way": way,
            "moved_by_join": score.moved_by_join,
            "moved_by_leave": score.moved_by_leave,
            "imbalance": score.imbalance,
        })
    };
    let mut rows: Vec<Value> = Vec::new();
    for (nodes, scores) in table {
        rows.push(object(*nodes, "optimum", &optimum(*nodes)));
        rows.extend(scores.iter().map(|(way, score)| object(*nodes, way.name(), score)));
    }
    format!("{:#}\n", Value::Array(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(nodes: &str, keys: usize) -> Result<String, Failure> {
        run(&CompareArgs { nodes: nodes.to_owned(), keys, json: false })
    }

    #[test]
    fn there_is_a_line_for_each_number_of_nodes() {
        let text = compare("3..5", 2000).unwrap();
        for nodes in 3..=5 {
            assert!(text.lines().any(|line| line.starts_with(&format!("{nodes:>5}  "))), "{text}");
        }
        assert!(text.contains("25.0  33.3  1.000"), "the optimum of three nodes:\n{text}");
    }

    #[test]
    fn bad_input_gets_one_clear_line() {
        for nodes in ["", "x", "3..", "5..3", "1..4", "3..1000", "-3..4"] {
            let Err(Failure::BadInput(line)) = compare(nodes, 10) else { panic!("{nodes}") };
            assert!(line.starts_with("--nodes is written like 3..32"), "{line}");
        }
        assert!(matches!(compare("3..4", 0), Err(Failure::BadInput(_))));
    }
}
