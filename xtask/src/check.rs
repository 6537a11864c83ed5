//! `cargo xtask test` and `cargo xtask nightly`: install, format, clippy, tidy, tests, and one line
//! at the end. Continuous integration runs the first and nothing else.
//!
//! Each test decides how much work it does: it reads OPENCLUSTER_QUICK or OPENCLUSTER_NIGHTLY (see
//! `e2e::effort`).
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::tally::{Count, Tally};
use crate::workspace::{cargo, run, tools_dir};
use crate::{fuzz, instructions, tidy, tools};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Takes about three minutes.
    Quick,
    Normal,
    /// Includes the long versions, instructions per command, and minutes of fuzzing.
    Nightly,
}

/// Time for each fuzz target in the nightly run.
const NIGHTLY_FUZZ_SECONDS: u64 = 600;

pub(crate) fn test(args: &[String]) -> Result<(), String> {
    match args {
        [] => all(Effort::Normal),
        [quick] if quick == "--quick" => all(Effort::Quick),
        [other, ..] => Err(format!("`test` takes --quick or nothing, not `{other}`")),
    }
}

pub(crate) fn nightly(args: &[String]) -> Result<(), String> {
    match args {
        [] => all(Effort::Nightly),
        [other, ..] => Err(format!("`nightly` takes no arguments, not `{other}`")),
    }
}

fn all(effort: Effort) -> Result<(), String> {
    let mut tally = Tally::default();
    tally.check("install", tools::install);
    tally.check("format", || run(&mut cargo(&["fmt", "--all", "--check"])));
    tally.check("clippy", || {
        let lints = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
        run(&mut cargo(&lints))
    });
    tally.check("tidy", tidy::check);
    tally.check("build", || run(&mut cargo(&["build", "--quiet", "--package", "opencluster"])));
    tally.count("tests", || tests(effort));
    if effort == Effort::Nightly {
        tally.check("instructions", || instructions::chore(&[]));
        tally.check("fuzz", || fuzz::all(NIGHTLY_FUZZ_SECONDS));
    }
    print!("\n{}", tally.summary());
    // The verdict is the last line, so the reason for the exit code is not printed after it.
    if tally.total().failed > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// Runs all tests of the workspace, including documentation tests.
fn tests(effort: Effort) -> Count {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.env("OPENCLUSTER_TOOLS", tools_dir());
    match effort {
        Effort::Quick => command.env("OPENCLUSTER_QUICK", "1"),
        Effort::Normal => &mut command,
        Effort::Nightly => command.env("OPENCLUSTER_NIGHTLY", "1"),
    };
    counted(&mut command)
}

/// Runs `cargo test`, prints its output, and adds up its "test result:" lines.
fn counted(command: &mut Command) -> Count {
    let mut count = Count::default();
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("cargo test could not be started: {error}");
            return Count { passed: 0, failed: 1 };
        }
    };
    let output = BufReader::new(child.stdout.take().expect("its output is piped to us"));
    for line in output.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if is_worth_showing(&line) {
            println!("{line}");
        }
        count.add(test_result(&line).unwrap_or_default());
    }
    let ended_well = child.wait().is_ok_and(|status| status.success());
    if !ended_well && count.failed == 0 {
        // It did not compile, or a test crashed the whole process.
        count.failed = 1;
    }
    count
}

/// Returns whether to print a line: tests that passed are only counted, and empty sections are left out.
fn is_worth_showing(line: &str) -> bool {
    let passed = line.starts_with("test ") && line.ends_with("... ok");
    let empty = line.is_empty()
        || line == "running 0 tests"
        || line.starts_with("test result: ok. 0 passed");
    !passed && !empty
}

/// Returns the counts in a line like `test result: ok. 3 passed; 0 failed; 1 ignored; ...`. An
/// ignored test has not passed, and nobody would notice it otherwise: it counts as failed.
fn test_result(line: &str) -> Option<Count> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number_of = |what: &str| -> Option<u64> {
        let part = counts.split("; ").find_map(|part| part.strip_suffix(what))?;
        part.trim().parse().ok()
    };
    let failed = number_of("failed")? + number_of("ignored")?;
    Some(Count { passed: number_of("passed")?, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_result_line_are_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered \
                    out; finished in 0.10s";
        assert_eq!(test_result(line), Some(Count { passed: 12, failed: 3 }));
        assert_eq!(test_result("test resp::tests::a_claim ... ok"), None);
    }

    #[test]
    fn an_ignored_test_counts_as_failed() {
        let line = "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(test_result(line), Some(Count { passed: 2, failed: 1 }));
    }

    #[test]
    fn a_run_that_breaks_off_without_a_result_has_failed() {
        let broken = counted(Command::new("sh").args(["-c", "echo running 3 tests; exit 101"]));
        assert_eq!(broken, Count { passed: 0, failed: 1 });
    }

    #[test]
    fn results_of_all_test_binaries_are_added_up() {
        let script = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored; x'
                      echo 'test result: FAILED. 4 passed; 1 failed; 0 ignored; x'; exit 101";
        let added = counted(Command::new("sh").args(["-c", script]));
        assert_eq!(added, Count { passed: 7, failed: 1 });
    }
}
