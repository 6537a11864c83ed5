//! `cargo xtask sim --seeds N`: the first N histories of `opencluster sim faults`, built for speed.
use crate::workspace::{cargo, run};

const SEEDS: &str = "2000";

pub(crate) fn chore(args: &[String]) -> Result<(), String> {
    let (count, rest) = match args {
        [flag, count, rest @ ..] if flag == "--seeds" => (count.as_str(), rest),
        rest => (SEEDS, rest),
    };
    let count: u64 = count.parse().map_err(|_| format!("--seeds takes a number, not `{count}`"))?;
    let range = format!("0..{count}");
    let mut command = cargo(&["run", "--release", "--quiet", "--package", "opencluster", "--"]);
    run(command.args(["sim", "faults", "--seeds", &range]).args(rest))
}
