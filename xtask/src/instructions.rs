//! `cargo xtask instructions`: instructions per command from request bytes to reply bytes, counted by
//! callgrind and compared with `xtask/instructions.txt`. The nightly run fails if one grew by more than
//! [`TOLERANCE_PERCENT`].
//!
//! The measured program is `crates/opencluster/examples/instructions.rs`. Only the thread that serves clients is
//! counted, and only in user space, without the kernel's part of reading and writing sockets.
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tools;
use crate::workspace::{cargo, root, run, shown, target_dir};

const TOLERANCE_PERCENT: u64 = 3;
const EXAMPLE: &str = "instructions";
/// The loop of the thread that serves clients: nothing outside of it is counted.
const COUNTED: &str = "server::worker::Worker::run";
const HEAD: &str = "\
# Instructions per command of a worker, from request bytes to reply bytes (callgrind, user space).
# Written by `cargo xtask instructions --write`; compared by `cargo xtask nightly`.
# node, command, pipeline, instructions
";

/// A node, a command and a pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Case {
    name: String,
    /// Instructions for each command.
    instructions: u64,
}

pub(crate) fn chore(args: &[String]) -> Result<(), String> {
    match args {
        [] => compare(&measure()?),
        [write] if write == "--write" => {
            let measured = measure()?;
            print!("{}", table(&kept().unwrap_or_default(), &measured));
            std::fs::write(kept_path(), written(&measured))
                .map_err(|error| format!("{}: {error}", kept_path().display()))
        }
        [other, ..] => Err(format!("`instructions` takes --write or nothing, not `{other}`")),
    }
}

fn compare(measured: &[Case]) -> Result<(), String> {
    let kept = kept()?;
    print!("{}", table(&kept, measured));
    let faults = faults(&kept, measured);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Builds the example and counts its cases.
fn measure() -> Result<Vec<Case>, String> {
    tools::valgrind()?;
    let build = ["build", "--release", "--quiet", "--package", "opencluster", "--example", EXAMPLE];
    run(&mut cargo(&build))?;
    let dir = target_dir().join("instructions");
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let lines = count(&dir)?;
    let cases = lines.lines().enumerate().map(|(place, line)| {
        let (name, commands) = case_of(line)?;
        // callgrind numbers its dumps from 1.
        let total = total_of(&dir.join(format!("out.{}", place + 1)))?;
        Ok(Case { name, instructions: (total + commands / 2) / commands })
    });
    cases.collect()
}

/// Runs the example under callgrind, which writes a file for every case. Returns the output of the
/// example: a line for each case.
fn count(dir: &Path) -> Result<String, String> {
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--toggle-collect={COUNTED}"))
        .args(["--zero-before=*begin_case*", "--dump-before=*end_case*"])
        .arg(format!("--callgrind-out-file={}", dir.join("out").display()))
        .arg(target_dir().join("release/examples").join(EXAMPLE))
        .stderr(Stdio::inherit())
        .current_dir(dir);
    let shown = shown(&command);
    let output = command.output().map_err(|error| format!("`{shown}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{shown}` ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("`{shown}`: {error}"))
}

/// Returns the case and the number of commands in a line like `alone GET 16 8192`.
fn case_of(line: &str) -> Result<(String, u64), String> {
    let parsed = line.rsplit_once(' ').and_then(|(name, count)| Some((name, count.parse().ok()?)));
    match parsed {
        Some((name, count)) if count > 0 => Ok((name.to_owned(), count)),
        Some(_) | None => Err(format!("cannot parse `{line}` from the example {EXAMPLE}")),
    }
}

/// Returns the instructions counted in a callgrind file.
fn total_of(path: &Path) -> Result<u64, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let bytes = std::fs::read(path).map_err(|error| failed(&error))?;
    let counted = total_in(&String::from_utf8_lossy(&bytes)).filter(|total| *total > 0);
    counted.ok_or_else(|| failed(&format!("{COUNTED} never ran; was it renamed?")))
}

fn total_in(file: &str) -> Option<u64> {
    let total = |line: &str| line.strip_prefix("totals: ")?.trim().parse().ok();
    file.lines().find_map(total)
}

fn kept_path() -> PathBuf {
    root().join("xtask/instructions.txt")
}

fn kept() -> Result<Vec<Case>, String> {
    let path = kept_path();
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    read(&text)
}

fn read(text: &str) -> Result<Vec<Case>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cases = lines.map(|line| {
        let (name, instructions) = case_of(line)?;
        Ok(Case { name, instructions })
    });
    cases.collect()
}

fn written(cases: &[Case]) -> String {
    cases.iter().fold(HEAD.to_owned(), |text, case| {
        text + &format!("{} {}\n", case.name, case.instructions)
    })
}

fn find<'a>(cases: &'a [Case], name: &str) -> Option<&'a Case> {
    cases.iter().find(|case| case.name == name)
}

/// Describes every case that grew, is new, or is no longer measured: one line each.
fn faults(kept: &[Case], measured: &[Case]) -> Vec<String> {
    let hint = "if that is wanted: cargo xtask instructions --write";
    let grown = measured.iter().filter_map(|now| match find(kept, &now.name) {
        None => Some(format!("{}: not in xtask/instructions.txt; {hint}", now.name)),
        Some(before) => {
            let limit = before.instructions * (100 + TOLERANCE_PERCENT);
            (now.instructions * 100 > limit).then(|| {
                let (name, from, to) = (&now.name, before.instructions, now.instructions);
                format!("{name}: {to} instructions per command instead of {from}; {hint}")
            })
        }
    });
    let gone = kept.iter().filter(|before| find(measured, &before.name).is_none());
    let gone = gone.map(|before| format!("{}: not measured any more; {hint}", before.name));
    grown.chain(gone).collect()
}

fn table(kept: &[Case], measured: &[Case]) -> String {
    let mut text = format!("{:<20}{:>10}{:>10}{:>9}\n", "case", "kept", "now", "change");
    for now in measured {
        let before = find(kept, &now.name).map(|case| case.instructions);
        let kept = before.map_or("-".to_owned(), |count| count.to_string());
        let change = before.map_or("new".to_owned(), |count| change(count, now.instructions));
        let (name, now) = (&now.name, now.instructions);
        writeln!(text, "{name:<20}{kept:>10}{now:>10}{change:>9}").expect("a string takes all");
    }
    text
}

/// Returns the growth in percent, with its sign.
fn change(before: u64, now: u64) -> String {
    let tenths = (i128::from(now) - i128::from(before)) * 1_000 / i128::from(before.max(1));
    let sign = if tenths < 0 { '-' } else { '+' };
    format!("{sign}{}.{} %", tenths.abs() / 10, tenths.abs() % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, instructions: u64) -> Case {
        Case { name: name.to_owned(), instructions }
    }

    #[test]
    fn growth_beyond_the_tolerance_is_a_fault() {
        let kept = [case("alone GET 1", 1_000)];
        assert_eq!(faults(&kept, &[case("alone GET 1", 1_030)]), Vec::<String>::new());
        assert_eq!(faults(&kept, &[case("alone GET 1", 500)]), Vec::<String>::new());
        let faults = faults(&kept, &[case("alone GET 1", 1_031)]);
        assert!(
            faults[0].starts_with("alone GET 1: 1031 instructions per command instead of 1000")
        );
    }

    #[test]
    fn a_case_on_one_side_only_is_a_fault() {
        let (one, other) = ([case("alone GET 1", 1_000)], [case("alone GET 2", 1_000)]);
        assert_eq!(faults(&one, &other).len(), 2);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let cases = [case("alone GET 1", 4_216), case("of-three SET 64", 3_000)];
        assert_eq!(read(&written(&cases)), Ok(cases.to_vec()));
        assert!(read("alone GET").is_err());
        assert!(read("alone GET 0").is_err());
    }

    #[test]
    fn the_total_of_a_file_is_found() {
        assert_eq!(total_in("version: 1\nsummary: 1300\n\ntotals: 1234\n"), Some(1_234));
        assert_eq!(total_in("version: 1\n"), None);
    }

    #[test]
    fn a_change_has_its_sign() {
        assert_eq!(change(1_000, 1_031), "+3.1 %");
        assert_eq!(change(1_000, 995), "-0.5 %");
    }
}
