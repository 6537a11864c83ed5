//! `opencluster sim faults`: whole clusters under virtual time, with clients and faults of every kind, one
//! history for each seed; every promise is checked at every step.

use std::io::IsTerminal;
use std::ops::Range;
use std::thread::available_parallelism;

use clap::Args;
use sim::store::{Many, Run, Sabotage, Sky};

use crate::Failure;

#[derive(Args, Debug)]
pub(crate) struct FaultsArgs {
    /// Seeds of the histories: one number, or FROM..TO (TO excluded)
    #[arg(long, default_value = "0..100", value_name = "SEEDS")]
    seeds: String,
    /// Nothing fails: nodes come and go, buckets split, settings change
    #[arg(long)]
    calm: bool,
    /// Leave a rule out, to see that it is needed (`list` shows them)
    #[arg(long, value_name = "RULE")]
    without: Option<String>,
    /// Print every event
    #[arg(long)]
    trace: bool,
}

pub(crate) fn run(args: &FaultsArgs) -> Result<String, Failure> {
    if args.without.as_deref() == Some("list") {
        return Ok(Sabotage::ALL.map(|rule| format!("{rule}\n")).concat());
    }
    let sabotage = args.without.as_deref().map(rule).transpose()?;
    if sabotage.is_some() && !sim::store::CAN_BREAK {
        let line = "this build has no switches to leave rules out; use a debug build: \
                    `cargo run -- sim faults --without RULE`";
        return Err(Failure::BadInput(line.to_owned()));
    }
    let sky = if args.calm { Sky::Calm } else { Sky::Stormy };
    let like = Run { seed: 0, sky, sabotage, tells: args.trace };
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = if args.trace { 1 } else { cores };
    let many = Many { seeds: seeds(&args.seeds)?, like, threads };
    let shows = std::io::stderr().is_terminal() && !args.trace;
    let progress = |done: u64| {
        if shows && done.is_multiple_of(100) {
            eprint!("\r{done} histories");
        }
    };
    let sum = many.run(progress).map_err(|failure| Failure::Refused(failure.to_string()))?;
    Ok(format!(
        "{} histories, {} operations answered, {} writes acknowledged: every promise was kept\n\
         {} histories lost all copies of a bucket at once, {} keys were too complex to judge\n",
        sum.histories, sum.answered, sum.acknowledged, sum.lost, sum.unknown
    ))
}

fn rule(name: &str) -> Result<Sabotage, Failure> {
    let unknown = || format!("there is no rule {name:?} to leave out; `--without list` names them");
    Sabotage::named(name).ok_or_else(|| Failure::BadInput(unknown()))
}

fn seeds(text: &str) -> Result<Range<u64>, Failure> {
    let wrong = || {
        let line = format!("--seeds is a number or like 0..100, not {text:?}");
        Failure::BadInput(line)
    };
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (number(from)?, number(to)?),
        None => (number(text)?, number(text)?.checked_add(1).ok_or_else(wrong)?),
    };
    if from < to { Ok(from..to) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_or_a_range_of_them() {
        assert_eq!(seeds("7").unwrap(), 7..8);
        assert_eq!(seeds("3..9").unwrap(), 3..9);
        for wrong in ["", "x", "9..3", "3..3", "-1", "18446744073709551615"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_rule_is_found_by_the_name_it_is_shown_with() {
        for known in Sabotage::ALL {
            assert_eq!(rule(&known.to_string()).unwrap(), known);
        }
        assert!(rule("gravity").is_err());
    }
}
