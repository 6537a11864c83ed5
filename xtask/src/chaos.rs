//! `cargo xtask chaos`: builds the node and `crates/e2e`'s chaos in release mode, and passes
//! everything on. With `--report`, rewrites docs/benchmarks.md from the kept results. Its nodes are
//! processes of `target/release/opencluster`, so that file must not be built again while it runs.
use crate::bench;
use crate::workspace::{cargo, run};

pub(crate) fn chore(args: &[String]) -> Result<(), String> {
    run(&mut cargo(&["build", "--release", "--quiet", "--package", "opencluster"]))?;
    let chaos = ["run", "--release", "--quiet", "--package", "e2e", "--bin", "chaos", "--"];
    run(cargo(&chaos).args(args))?;
    let keeps = args.iter().any(|arg| arg == "--report");
    if keeps { bench::page() } else { Ok(()) }
}
