//! `cargo xtask bench NAME`: builds the node and the load generator in release mode, and passes
//! everything on to `crates/load`, which has the benchmarks.
use crate::workspace::{cargo, run};

pub(crate) fn chore(args: &[String]) -> Result<(), String> {
    if args == ["report"] {
        // Nothing is measured: any build will do.
        return run(&mut cargo(&[
            "run",
            "--quiet",
            "--package",
            "load",
            "--bin",
            "bench",
            "report",
        ]));
    }
    run(&mut cargo(&["build", "--release", "--quiet", "--package", "opencluster"]))?;
    let mut command =
        cargo(&["run", "--release", "--quiet", "--package", "load", "--bin", "bench", "--"]);
    run(command.args(args))
}

/// Rewrites docs/benchmarks.md from the kept results.
pub(crate) fn page() -> Result<(), String> {
    chore(&["report".to_owned()])
}
