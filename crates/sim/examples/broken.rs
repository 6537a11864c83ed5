//! Finds the first history that detects each rule left out: `cargo run -p sim --example broken -- 200
//! [RULE...]`.

use sim::store::{Many, Run, Sabotage, Sky};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count: u64 = args.first().and_then(|text| text.parse().ok()).unwrap_or(200);
    for sabotage in Sabotage::ALL {
        let name = sabotage.to_string();
        if args.len() > 1 && !args.contains(&name) {
            continue;
        }
        let like = Run { seed: 0, sky: Sky::Stormy, sabotage: Some(sabotage), tells: false };
        match (Many { seeds: 0..count, like, threads: 2 }).run(|_| {}) {
            Ok(_) => println!("{name}: NOT in {count}"),
            Err(failure) => {
                let what = failure.what.lines().next().unwrap_or_default();
                println!("{name}: seed {}: {what}", failure.run.seed);
            }
        }
    }
}
