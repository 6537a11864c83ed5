//! Every chore as `cargo xtask NAME`. `main` only picks the chore; each has its own file.
//!
//! Start at `check.rs` (the steps of `test` and `nightly`, in order), then `tidy.rs`.
mod workspace; // paths, and running of commands
mod tally; //     passed and failed checks
mod check; //     test and nightly
mod tools; //     external programs that the tests need, and their installation
mod tidy; //      the rules of this repository that a program can check
mod fuzz; //      coverage-guided fuzzing
mod bench; //     benchmarks, by the load generator
mod instructions; // instructions per command, compared with those kept
mod sim; //       simulated histories of whole clusters, as many as wanted
mod chaos; //     a cluster of real processes, broken at random

use std::process::ExitCode;

const HELP: &str = "\
Every chore of the workspace.

  cargo xtask test [--quick]                  install what the tests need, check and test everything
  cargo xtask nightly                         the same with the long versions, and fuzzing
  cargo xtask tidy [--shrink]                 only the rules; --shrink lowers ratchet entries that fell
  cargo xtask fuzz [--seconds N] [TARGET]...  fuzz each target for N seconds (60)
  cargo xtask sim [--seeds N] [--calm]        N histories of whole clusters with faults (2000)
  cargo xtask bench NAME [ARGS]...            a benchmark of crates/load; `report` only writes docs/benchmarks.md
  cargo xtask instructions [--write]          count instructions per command; --write keeps the new counts
  cargo xtask chaos [--minutes N] [--seed S] [--nodes 3] [--report]   break a cluster at random, check its promises
  cargo xtask chaos --figures [PART] [--report]                       measure how fast a cluster recovers
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = args.split_first() else {
        eprint!("{HELP}");
        return ExitCode::FAILURE;
    };
    let done = match name.as_str() {
        "test" => check::test(rest),
        "nightly" => check::nightly(rest),
        "tidy" => tidy::chore(rest),
        "fuzz" => fuzz::chore(rest),
        "sim" => sim::chore(rest),
        "bench" => bench::chore(rest),
        "instructions" => instructions::chore(rest),
        "chaos" => chaos::chore(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("there is no chore named `{other}`\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
