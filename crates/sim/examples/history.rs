//! Histories of the store, step by step: `cargo run -p sim --example history -- 51 52 [--calm]`.

use sim::store::{Run, Sky, run};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let sky = if args.iter().any(|arg| arg == "--calm") { Sky::Calm } else { Sky::Stormy };
    for seed in args.iter().filter_map(|arg| arg.parse().ok()) {
        match run(Run { seed, sky, sabotage: None, tells: true }) {
            Ok(report) => println!("seed {seed}: {report:?}"),
            Err(failure) => println!("{failure}"),
        }
    }
}
