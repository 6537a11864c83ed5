//! Figures as they are kept in docs/bench: with their machine, date and commit. Written by
//! `src/bin/bench` and by `cargo xtask chaos`; docs/benchmarks.md is made from them.
use std::io;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::process;

/// Results, with their machine, date and commit.
#[derive(Serialize, Deserialize, Debug)]
pub struct Kept<T> {
    pub machine: String,
    pub date: String,
    pub commit: String,
    /// Load average of the last minute at the start: the other work of the machine.
    pub load_average: String,
    pub results: T,
}

impl<T: Default> Kept<T> {
    /// Begins a record for this machine and commit, without results yet.
    pub fn begin() -> io::Result<Kept<T>> {
        Ok(Kept {
            machine: process::machine(),
            date: output("date", &["-u", "+%Y-%m-%d"])?,
            commit: output("git", &["rev-parse", "--short", "HEAD"])?,
            load_average: process::load_average(),
            results: T::default(),
        })
    }
}

/// Returns the output of a program, run in the workspace.
pub fn output(program: &str, arguments: &[&str]) -> io::Result<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(program).args(arguments).current_dir(here).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
