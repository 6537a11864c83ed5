//! `load`: one run of the load generator against any server that speaks the Redis protocol.
//!
//! For experiments by hand; `bench` makes the comparisons in docs/benchmarks.md.
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use load::request::Requests;
use load::{KeySpace, Load, Loop, Operation, Plan, Popularity, Tally, Until};

#[derive(Parser)]
#[command(about = "Load for a server that speaks the Redis protocol")]
struct Arguments {
    #[arg(default_value = "127.0.0.1:6379")]
    address: SocketAddr,
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Number of requests a connection sends before it waits for their replies.
    #[arg(long, default_value_t = 1)]
    pipeline: usize,
    /// Open loop: this many requests a second, latency counted from when each was due.
    #[arg(long, conflicts_with = "pipeline")]
    rate: Option<u64>,
    #[arg(long, value_enum, default_value_t = Kind::Get)]
    operation: Kind,
    /// Share of GETs in a mix, in percent.
    #[arg(long, default_value_t = 80)]
    get_percent: u8,
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Draw keys by Zipf's law (theta 0.99) instead of uniformly.
    #[arg(long)]
    zipf: bool,
    #[arg(long, default_value_t = 64)]
    value_bytes: usize,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Stop after this many requests instead of a time.
    #[arg(long)]
    requests: Option<u64>,
    /// First SET every key once.
    #[arg(long)]
    fill: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Get,
    Set,
    SetExpiring,
    Mix,
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let plan = plan(&arguments);
    if arguments.fill {
        Load::connect(plan.filling())?.run(Until::Requests(arguments.keys))?;
    }
    print(&Load::connect(plan)?.run(until(&arguments))?);
    Ok(())
}

fn plan(arguments: &Arguments) -> Plan {
    let popularity = if arguments.zipf { Popularity::Zipf } else { Popularity::Uniform };
    let operation = match arguments.operation {
        Kind::Get => Operation::Get,
        Kind::Set => Operation::Set,
        Kind::SetExpiring => Operation::SetExpiring,
        Kind::Mix => Operation::Mix { get_percent: arguments.get_percent },
    };
    Plan {
        address: arguments.address,
        connections: arguments.connections,
        requests: Requests {
            operation,
            keys: KeySpace { keys: arguments.keys, popularity },
            value_bytes: arguments.value_bytes,
        },
        style: match arguments.rate {
            Some(per_second) => Loop::Open { per_second },
            None => Loop::Closed { pipeline: arguments.pipeline },
        },
        seed: arguments.seed,
    }
}

fn until(arguments: &Arguments) -> Until {
    match arguments.requests {
        Some(count) => Until::Requests(count),
        None => Until::Elapsed(Duration::from_secs_f64(arguments.seconds)),
    }
}

fn print(tally: &Tally) {
    println!("{} answered in {:.3} s", tally.answered, tally.elapsed.as_secs_f64());
    println!("{:.0} a second", tally.per_second());
    for percent in [50.0, 90.0, 99.0, 99.9] {
        println!("p{percent:<5} {:.3} ms", tally.percentile(percent).as_secs_f64() * 1e3);
    }
    println!("max    {:.3} ms", tally.slowest().as_secs_f64() * 1e3);
    println!("{} misses, {} errors", tally.misses, tally.errors);
    if let Some(error) = &tally.first_error {
        println!("first error: {error}");
    }
}
