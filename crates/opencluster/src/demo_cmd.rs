//! `opencluster demo`: a whole cluster on this machine, to watch and to break. The nodes are real processes
//! of this very executable; writers remember every acknowledged write and read it back.
//!
//! Read `herd.rs` for the processes, `load.rs` for the writers, then `play.rs` (keys and a screen) or
//! `tour.rs` (the same as a script, in plain lines).

mod herd; //  The nodes: started, stopped, killed.
mod route; // A client that knows where a key lives.
mod load; //  Writers that check acknowledged writes.
mod play; //  Interactive mode: keys and a screen.
mod view; //  The drawing of the screen.
mod tour; //  Scripted mode: a join, a kill and a leave, reported in lines.

use std::io::IsTerminal;

use clap::Args;

use crate::Failure;
use crate::live::Live;
use herd::Herd;
use load::{Counts, Load};

/// Maximum number of nodes; each is a process with a dozen threads.
const NODES_MAX: usize = 26;

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Number of nodes at the start
    #[arg(long, default_value_t = 3, value_parser = nodes)]
    nodes: usize,
    /// Buckets of the cluster: 16, 256, 4096 or 16384
    #[arg(long, default_value = "16", value_parser = ["16", "256", "4096", "16384"])]
    buckets: String,
    /// Commands a second that the writers send, half of them writes
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Scripted mode without screen and keys: a join, a kill and a leave, reported in plain lines
    #[arg(long)]
    no_tty: bool,
    /// Minimum duration of the script, in seconds
    #[arg(long, default_value_t = 20, requires = "no_tty", value_name = "N")]
    seconds: u64,
}

fn nodes(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=NODES_MAX).contains(count));
    count.ok_or_else(|| format!("must be a number from 1 to {NODES_MAX}"))
}

/// A running cluster with its writers, and a thread that polls its status.
struct Stage {
    herd: Herd,
    live: Live,
    load: Load,
}

/// Starts the cluster and the writers, runs the demo, ends everything, and reports the outcome of the writes.
pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let mut herd = Herd::new(&args.buckets)?;
    for _ in 0..args.nodes {
        herd.add()?;
        herd.wait_for_the_last(&stop)?;
    }
    let live = Live::watch(herd.reachable());
    let load = Load::start(&herd.reachable(), args.rate);
    let mut stage = Stage { herd, live, load };
    let seen = if args.no_tty || !std::io::stdout().is_terminal() {
        tour::run(&mut stage, std::time::Duration::from_secs(args.seconds), &stop)
    } else {
        play::run(&mut stage, &stop)
    };
    let counts = stage.load.end();
    drop(stage.herd);
    anstream::println!("{counts}");
    seen?;
    verdict(&counts)
}

fn verdict(counts: &Counts) -> Result<(), Failure> {
    match counts.lost {
        0 => Ok(()),
        lost => Err(Failure::Refused(format!("{lost} acknowledged writes were lost"))),
    }
}

/// Makes Ctrl-C and similar signals end the demo as `q` does, so that no process is left behind.
fn stop_on_signal() -> Result<Stop, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, std::sync::Arc::clone(&stop.0))
            .map_err(|error| Failure::Refused(format!("cannot listen to signals: {error}")))?;
    }
    Ok(stop)
}

/// A flag that requests the end of the demo.
#[derive(Clone, Default)]
struct Stop(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Stop {
    fn is_wanted(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}
