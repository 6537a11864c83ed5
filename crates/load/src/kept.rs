//! Figures as they are kept in docs/bench: with where, when and of which commit they are. Written by
//! `src/bin/bench` and by `cargo xtask chaos`; docs/benchmarks.md is made from them.
use std::io;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::process;

/// What was found, and where and when.
#[derive(Serialize, Deserialize, Debug)]
pub struct Kept<T> {
    pub machine: String,
    pub date: String,
    pub commit: String,
    /// Of the last minute as it began: what else the machine had to do.
    pub load_average: String,
    pub results: T,
}

impl<T: Default> Kept<T> {
    /// On this machine, now, with nothing found yet.
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

/// What a program says, run in the workspace.
pub fn output(program: &str, arguments: &[&str]) -> io::Result<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(program).args(arguments).current_dir(here).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
