//! `cargo xtask fuzz`: builds the targets of fuzz/ with the compiler's coverage counters, which
//! works on the stable toolchain, and lets libFuzzer search for inputs that break them.
//!
//! fuzz/src/lib.rs and fuzz/src/peers.rs state what each target claims. An input that broke one is
//! put into fuzz/corpus/TARGET, which `crates/e2e/tests/corpus.rs` replays in every test run.
use std::path::{Path, PathBuf};

use crate::workspace::{cargo, root, run, target_dir};

const DEFAULT_SECONDS: u64 = 60;

/// Limits of time and memory: an input that exceeds them counts as a finding, too.
const LIMITS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=1024", "-max_len=4096"];

/// Maximum number of lines shown of a failed run.
const LOG_LINES_SHOWN: usize = 60;

/// Compiler flags for libFuzzer's feedback: the branches that an input took, and the values compared.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

#[derive(Debug, PartialEq, Eq)]
struct Request {
    seconds: u64,
    /// Targets to run; all of them if empty.
    targets: Vec<String>,
}

pub(crate) fn chore(args: &[String]) -> Result<(), String> {
    let request = parse(args)?;
    fuzz(&request)
}

/// Fuzzes every target for this long.
pub(crate) fn all(seconds: u64) -> Result<(), String> {
    fuzz(&Request { seconds, targets: Vec::new() })
}

fn parse(args: &[String]) -> Result<Request, String> {
    let mut request = Request { seconds: DEFAULT_SECONDS, targets: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--seconds" {
            let value = args.next().ok_or("--seconds needs a number")?;
            request.seconds =
                value.parse().map_err(|_| format!("--seconds needs a number, not `{value}`"))?;
        } else {
            request.targets.push(arg.clone());
        }
    }
    Ok(request)
}

fn fuzz(request: &Request) -> Result<(), String> {
    let known = known_targets(&root().join("fuzz/src/bin"))?;
    if let Some(unknown) = request.targets.iter().find(|target| !known.contains(target)) {
        return Err(format!("there is no target `{unknown}`; there are: {}", known.join(", ")));
    }
    build()?;
    let wanted = if request.targets.is_empty() { &known } else { &request.targets };
    let failures: Vec<String> =
        wanted.iter().filter_map(|target| fuzz_one(target, request.seconds).err()).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Returns the targets: each has a binary of its own.
fn known_targets(bins: &Path) -> Result<Vec<String>, String> {
    let entries =
        std::fs::read_dir(bins).map_err(|error| format!("{}: {error}", bins.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn build() -> Result<(), String> {
    let mut command = cargo(&["build", "--quiet", "--profile", "fuzz"]);
    command.arg("--manifest-path").arg(root().join("fuzz/Cargo.toml"));
    command.arg("--target-dir").arg(built());
    // With `--target`, build scripts and macros are built without the counters.
    command.args(["--target", &host()?]);
    run(command.env("RUSTFLAGS", COVERAGE.join(" ")))
}

fn built() -> PathBuf {
    target_dir().join("fuzz")
}

/// Returns the compiler's name of the machine we build on.
fn host() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc).arg("-vV").output();
    let output = output.map_err(|error| format!("rustc could not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc -vV names no host")?.to_owned())
}

fn fuzz_one(target: &str, seconds: u64) -> Result<(), String> {
    println!("--> {target}, {seconds} s");
    let seeds = root().join("fuzz/corpus").join(target);
    let grown = built().join("corpus").join(target);
    for dir in [&seeds, &grown] {
        std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    let binary = built().join(host()?).join("fuzz").join(target);
    let mut command = std::process::Command::new(binary);
    command.args(LIMITS).arg(format!("-max_total_time={seconds}"));
    command.arg("-print_final_stats=1");
    command.arg(format!("-artifact_prefix={}/found-", seeds.display()));
    let words = root().join("fuzz/words").join(target);
    if words.is_file() {
        command.arg(format!("-dict={}", words.display()));
    }
    // New inputs go to the first folder; the second is only read.
    command.arg(&grown).arg(&seeds);
    let output = command.output().map_err(|error| format!("{target}: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        log.lines().filter(|line| line.starts_with("stat::")).for_each(|line| println!("{line}"));
        return Ok(());
    }
    let end: Vec<&str> = log.lines().rev().take(LOG_LINES_SHOWN).collect();
    end.iter().rev().for_each(|line| eprintln!("{line}"));
    let seeds = seeds.display();
    Err(format!("{target} failed; the input is in {seeds}: commit it together with the fix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&args)
    }

    #[test]
    fn seconds_and_targets_are_read_in_any_order() {
        let request = Request { seconds: 5, targets: vec!["request_parser".into()] };
        assert_eq!(parsed("request_parser --seconds 5").as_ref(), Ok(&request));
        assert_eq!(parsed("--seconds 5 request_parser").as_ref(), Ok(&request));
    }

    #[test]
    fn without_arguments_every_target_runs_for_a_minute() {
        assert_eq!(parsed(""), Ok(Request { seconds: 60, targets: vec![] }));
    }

    #[test]
    fn seconds_that_are_no_number_are_refused() {
        assert!(parsed("--seconds soon").is_err());
        assert!(parsed("--seconds").is_err());
    }

    #[test]
    fn an_unknown_target_is_refused_and_the_known_ones_named() {
        let why = fuzz(&Request { seconds: 1, targets: vec!["nonsense".into()] }).unwrap_err();
        assert!(why.contains("request_parser"), "{why}");
    }
}
