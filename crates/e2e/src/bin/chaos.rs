//! `cargo xtask chaos`: breaks a cluster of real processes at random for some minutes, or measures
//! how fast it recovers. Exits with 1 if it finds any anomaly (`e2e::chaos::anomalies`).
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use e2e::Rng;
use e2e::chaos::figures::{self, Part};
use e2e::chaos::ground::Ground;
use e2e::chaos::load::Sizes;
use e2e::chaos::{Echo, Options, run};
use load::availability::{Availability, Run};
use load::kept::Kept;
use load::recovery::Recovery;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Environment variable of the re-executed program, which has a network namespace of its own.
const INSIDE: &str = "OPENCLUSTER_CHAOS_INSIDE";
/// Shell command that succeeds if the tools for namespaces are installed and allowed.
const TRIAL: &str = "ip link add br0 type bridge && ip link add v0 type veth peer name v1 && \
                     command -v nsenter";

#[derive(Parser)]
#[command(
    about = "Breaks a cluster of real processes at random, and checks that it keeps its promises"
)]
struct Arguments {
    /// Minutes during which faults are injected.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Seed that the faults are drawn from; random if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of nodes at the start; up to two more may join later.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(3..=9))]
    nodes: u64,
    /// Environment of the nodes: network namespaces if possible, else loopback addresses.
    #[arg(long, value_enum)]
    ground: Option<Where>,
    /// Measure how fast the cluster recovers: all parts, or one of them.
    #[arg(long, num_args = 0..=1, default_missing_value = "all", value_enum)]
    figures: Option<Figures>,
    /// Save the results for docs/benchmarks.md in docs/bench.
    #[arg(long)]
    report: bool,
    /// Limit values to 5 MB and transactions to 40 copies, for a machine with little memory.
    #[arg(long)]
    small: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Where {
    Namespaces,
    Loopback,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figures {
    All,
    Kills,
    Survivors,
    Leaves,
    Stops,
}

impl Figures {
    fn parts(self) -> Vec<Part> {
        match self {
            Figures::All => Part::ALL.to_vec(),
            Figures::Kills => vec![Part::Kills],
            Figures::Survivors => vec![Part::Survivors],
            Figures::Leaves => vec![Part::Leaves],
            Figures::Stops => vec![Part::Stops],
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let kept = match place(&arguments) {
        Ok(ground) => work(&arguments, ground),
        Err(error) => Err(error),
    };
    match kept {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Determines where the nodes run. For namespaces, this program re-executes itself in a network namespace of its own,
/// so that it touches nothing of the machine's network and leaves nothing behind.
fn place(arguments: &Arguments) -> io::Result<Ground> {
    if std::env::var_os(INSIDE).is_some() {
        Ground::Namespaces.prepare()?;
        return Ok(Ground::Namespaces);
    }
    let wanted = match arguments.ground {
        Some(wanted) => wanted,
        None if can_have_namespaces() => Where::Namespaces,
        None => Where::Loopback,
    };
    if wanted == Where::Loopback {
        println!(
            "nodes run on loopback addresses (network namespaces need root, `ip` and `nsenter`)"
        );
        return Ok(Ground::Loopback);
    }
    let mut again = Command::new("unshare");
    again.arg("--net").arg(std::env::current_exe()?).args(std::env::args_os().skip(1));
    Err(again.env(INSIDE, "1").exec())
}

fn can_have_namespaces() -> bool {
    let mut trial = Command::new("unshare");
    trial.args(["--net", "sh", "-c", TRIAL]).stdout(Stdio::null()).stderr(Stdio::null());
    rustix::process::geteuid().is_root() && trial.status().is_ok_and(|status| status.success())
}

fn work(arguments: &Arguments, ground: Ground) -> io::Result<bool> {
    match arguments.figures {
        None => chaos(arguments, ground),
        Some(wanted) => measure(arguments, wanted, ground),
    }
}

fn chaos(arguments: &Arguments, ground: Ground) -> io::Result<bool> {
    let seed = arguments.seed.unwrap_or_else(|| u64::from(std::process::id()));
    let minutes = arguments.minutes;
    let nodes = usize::try_from(arguments.nodes).expect("at most nine");
    println!("repeat with: cargo xtask chaos --minutes {minutes} --nodes {nodes} --seed {seed}");
    let report = run(&Options {
        seed,
        lasts: Duration::from_secs_f64(minutes * 60.0),
        nodes,
        ground,
        fault_lasts_max: Duration::from_secs(10),
        lease_seconds: 1,
        sizes: if arguments.small { Sizes::SMALL } else { Sizes::FULL },
        lies: Vec::new(),
        echo: Echo::On,
    })?;
    print!("{report}");
    if arguments.report {
        keep(report.figures())?;
    }
    Ok(report.is_clean())
}

/// Saves the figures of a run beside those of other seeds at the same commit.
fn keep(run: Run) -> io::Result<()> {
    let path = bench_file("chaos.json");
    let mut kept: Kept<Availability> = Kept::begin()?;
    let before: Option<Kept<Availability>> = last(&path);
    if let Some(before) = before.filter(|before| before.commit == kept.commit) {
        kept.results = before.results;
    }
    kept.results.add(run);
    write(&path, &kept)
}

fn bench_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench").join(name)
}

/// Returns the results saved last, if any.
fn last<T: DeserializeOwned>(path: &Path) -> Option<T> {
    std::fs::read(path).ok().and_then(|json| serde_json::from_slice(&json).ok())
}

fn write<T: Serialize>(path: &Path, kept: &Kept<T>) -> io::Result<()> {
    let mut json = serde_json::to_string_pretty(kept)?;
    json.push('\n');
    std::fs::write(path, json)
}

fn measure(arguments: &Arguments, wanted: Figures, ground: Ground) -> io::Result<bool> {
    let path = bench_file("recovery.json");
    let mut kept = Kept::begin()?;
    // Each part takes minutes and can be run alone; the results of the other parts are kept.
    let before: Option<Kept<Recovery>> = last(&path);
    let mut recovery = before.map(|kept| kept.results).unwrap_or_default();
    let mut rng = Rng::new(arguments.seed.unwrap_or(1));
    for part in wanted.parts() {
        figures::measure(part, ground, &mut rng, &mut recovery)?;
    }
    print!("\n{recovery}");
    let clean = recovery.is_clean();
    if arguments.report {
        kept.results = recovery;
        write(&path, &kept)?;
    }
    Ok(clean)
}
