//! `cargo xtask chaos`: builds the node and `crates/e2e`'s chaos as they are released, and hands everything
//! on. With `--report`, docs/benchmarks.md is written anew from what it has kept.
use crate::bench;
use crate::workspace::{cargo, run};

pub(crate) fn chore(args: &[String]) -> Result<(), String> {
    run(&mut cargo(&["build", "--release", "--quiet", "--package", "opencluster"]))?;
    let chaos = ["run", "--release", "--quiet", "--package", "e2e", "--bin", "chaos", "--"];
    run(cargo(&chaos).args(args))?;
    let keeps = args.iter().any(|arg| arg == "--report");
    if keeps { bench::page() } else { Ok(()) }
}
