//! `bench`: the cost of our node beside Redis and Valkey, on this machine, now.
//!
//! `cargo run --release -p load --bin bench -- node` and so on; see docs/benchmarks.md, which
//! `--report` writes. Absolute figures on a shared machine mean little, so servers are measured in
//! turn, round after round. The significant figures are CPU per operation and its ratio.
mod node; //      Start here: the grid of GETs and SETs, three servers in turn.
mod memory; //    Bytes per key.
mod threads; //   Two I/O threads beside one, and a hot key.
mod latency; //   Latency at a moderate rate: open loop.
mod cluster; //   Clusters: the cost of a write, and the effect on clients when a node joins.
mod timers; //    Timers: bytes each, accepted a second, lateness.
mod generator; // The cost of the load generator itself, beside redis-benchmark.
mod fleet; //     The fleet's proxy beside twemproxy, and a migration under load.
mod measure; //   One measured run, and the median of several.
mod servers; //   The servers: finds, installs, starts and stops them.
mod report; //    docs/benchmarks.md and the JSON beside it.
mod plots; //     The plots in that page.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use load::process;
use measure::LOAD_CORE;
use servers::{Kind, Tools};

#[derive(Parser)]
#[command(about = "Measures the cost of our node beside Redis and Valkey")]
struct Arguments {
    #[command(subcommand)]
    part: Part,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand, Clone, Copy)]
enum Part {
    /// CPU per operation, throughput and latency: values x keys x popularity x pipeline x GET/SET.
    Node,
    /// Bytes per key, with and without a time to live.
    Memory,
    /// Our node with two I/O threads beside one, and a hot key.
    Threads,
    /// Latency at a fixed rate, counted from when each request was due.
    Latency,
    /// Three primaries with a backup each: throughput, CPU, and a fourth node that joins.
    Cluster,
    /// Timers on one node: bytes each, accepted a second, lateness.
    Timers,
    /// The load generator's own cost beside redis-benchmark's.
    Generator,
    /// The fleet's proxy beside twemproxy (Debian's nutcracker), and a migration under load.
    Fleet,
    /// All of the above.
    All,
    /// CPU per operation beside an earlier build of ours (--before), alone and as one of three.
    Against,
    /// Measure nothing: only rewrite docs/benchmarks.md and its plots from the last kept results.
    #[command(alias = "page")]
    Report,
}

#[derive(Args, Clone, Debug)]
struct Options {
    /// Shorter and fewer runs: a first impression, not a result.
    #[arg(long, global = true)]
    quick: bool,
    /// Number of runs of each case on each server; the median counts.
    #[arg(long, global = true, default_value_t = 5)]
    rounds: usize,
    /// Only the cases with all these words, as in `--only GET,P16,1M`; for `cluster`, one of
    /// `throughput`, `growth`, `libraries` or `hot`.
    #[arg(long, global = true, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these servers.
    #[arg(long, global = true, value_enum, value_delimiter = ',',
          default_values_t = [Kind::Ours, Kind::Valkey, Kind::Redis])]
    servers: Vec<Kind>,
    /// Our binary, if not the one that `cargo build --release` makes here.
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
    /// The earlier build's binary, for `against`.
    #[arg(long, global = true)]
    before: Option<PathBuf>,
    /// Keep the results in docs/bench and rewrite docs/benchmarks.md. Whole runs only.
    #[arg(long, global = true, conflicts_with_all = ["quick", "only"])]
    report: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.part, &arguments.options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(part: Part, options: &Options) -> io::Result<()> {
    if matches!(part, Part::Report) {
        return report::write_page();
    }
    if cfg!(debug_assertions) {
        return Err(io::Error::other(
            "built without --release: the load generator would be the bottleneck; run with \
             --release",
        ));
    }
    process::pin_this_thread(&[LOAD_CORE])?;
    let tools = Tools::prepare(&options.servers, options.binary.as_ref())?;
    match part {
        Part::Node => run_node(&tools, options),
        Part::Memory => run_memory(&tools, options),
        Part::Threads => run_threads(&tools, options),
        Part::Latency => run_latency(&tools, options),
        Part::Cluster => run_cluster(&tools, options),
        Part::Timers => run_timers(&tools, options),
        Part::Generator => run_generator(&tools, options),
        Part::Fleet => run_fleet(&tools, options),
        Part::Against => {
            let missing = || io::Error::other("`against` needs --before PATH: a binary of ours");
            let before = options.before.as_ref().ok_or_else(missing)?;
            cluster::against::run(&tools, before, options)
        }
        Part::All => {
            run_node(&tools, options)?;
            run_memory(&tools, options)?;
            run_threads(&tools, options)?;
            run_latency(&tools, options)?;
            run_cluster(&tools, options)?;
            run_timers(&tools, options)?;
            run_generator(&tools, options)?;
            run_fleet(&tools, options)
        }
        Part::Report => Ok(()), // Written above: this part measures nothing.
    }
}

fn run_node(tools: &Tools, options: &Options) -> io::Result<()> {
    report::keep("node", options, || node::run(tools, options))
}

fn run_timers(tools: &Tools, options: &Options) -> io::Result<()> {
    report::keep("timers", options, || timers::run(tools, options))
}

fn run_memory(tools: &Tools, options: &Options) -> io::Result<()> {
    report::keep("memory", options, || memory::run(tools, options))
}

fn run_threads(tools: &Tools, options: &Options) -> io::Result<()> {
    report::keep("threads", options, || threads::run(tools, options))
}

fn run_latency(tools: &Tools, options: &Options) -> io::Result<()> {
    report::keep("latency", options, || latency::run(tools, options))
}

fn run_cluster(tools: &Tools, options: &Options) -> io::Result<()> {
    report::keep("cluster", options, || cluster::run(tools, options))
}

fn run_generator(tools: &Tools, options: &Options) -> io::Result<()> {
    report::keep("generator", options, || generator::run(tools, options))
}

fn run_fleet(tools: &Tools, options: &Options) -> io::Result<()> {
    report::keep("fleet", options, || fleet::run(tools, options))
}
