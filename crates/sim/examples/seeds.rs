//! Histories of many seeds, all failures listed: `cargo run -p sim --example seeds -- 0 2000 [--calm]`.

use sim::store::{Run, Sky, run};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let sky = if args.iter().any(|arg| arg == "--calm") { Sky::Calm } else { Sky::Stormy };
    let numbers: Vec<u64> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let [from, to] = numbers[..] else {
        panic!("two numbers are wanted: the first seed, and the one after the last")
    };
    for seed in from..to {
        if let Err(failure) = run(Run { seed, sky, sabotage: None, tells: false }) {
            println!("seed {seed}: {}", failure.what.lines().next().unwrap_or_default());
        }
    }
    println!("{} histories", to - from);
}
