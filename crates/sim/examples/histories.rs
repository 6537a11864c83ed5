//! Histories of the store from seeds: `histories FROM TO [calm] [trace] [sabotage=N]`.

use sim::store::{Run, Sabotage, Sky, run};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| args.get(place).and_then(|arg| arg.parse().ok());
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let sky = if has("calm") { Sky::Calm } else { Sky::Stormy };
    let chosen = args.iter().find_map(|arg| arg.strip_prefix("sabotage="));
    let sabotage = chosen.and_then(|arg| arg.parse::<usize>().ok()).map(|it| Sabotage::ALL[it]);
    let (from, to) = (number(0).unwrap_or(0), number(1).unwrap_or(10));
    let (mut failed, mut lost, mut answered, mut unknown) = (0, 0, 0, 0);
    for seed in from..to {
        match run(Run { seed, sky, sabotage, tells: has("trace") }) {
            Ok(report) => {
                lost += u64::from(report.lost);
                answered += report.answered;
                unknown += report.unknown;
            }
            Err(failure) => {
                failed += 1;
                let text = failure.to_string();
                println!("{}", &text[..text.len().min(1500)]);
                if !has("all") {
                    break;
                }
            }
        }
    }
    println!("failed {failed}, lost {lost}, answered {answered}, unknown {unknown}");
}
