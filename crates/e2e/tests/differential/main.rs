//! Sends the same commands to Redis and to our node, and expects the same answers from both, byte for byte.
//!
//! A run is many short sequences, each from its own seed and from an empty server (`generate.rs`). `lockstep.rs`
//! plays a sequence to both servers; `compare.rs` lists the few answers that may differ, each with its reason;
//! `shrink.rs` shortens a failing sequence.
//!
//! OPENCLUSTER_SEED repeats one sequence. OPENCLUSTER_DIFFERENTIAL=redis plays Redis against itself, which shows that
//! the harness itself invents no differences.
mod lockstep;
mod compare;
mod shrink;
mod generate;
mod command_table;

use e2e::{Effort, Server};
use lockstep::{Lockstep, Mismatch, Speaks, Step};

const COMMANDS: usize = 20_000;
const SEQUENCE: usize = 200;
/// Maximum number of mismatches printed: enough to see what is wrong.
const MISMATCHES_SHOWN: usize = 10;
/// Maximum length printed of an answer; some are pages long.
const SHOWN_MAX: usize = 800;

#[test]
fn random_commands_get_the_answers_of_redis_in_resp2() {
    run(Speaks::Resp2);
}

#[test]
fn random_commands_get_the_answers_of_redis_in_resp3() {
    run(Speaks::Resp3);
}

/// Starts our node, or a second Redis to test the harness.
fn ours() -> Server {
    match std::env::var("OPENCLUSTER_DIFFERENTIAL").as_deref() {
        Ok("redis") => Server::redis(),
        _ => Server::node_with(&["--enable-debug-command", "yes"]),
    }
}

fn run(speaks: Speaks) {
    let mut pair = Lockstep::new(Server::redis(), ours(), speaks);
    let mut shown: Vec<String> = Vec::new();
    let seeds = seeds(Effort::of_this_run().of_normally(COMMANDS) / 2 / SEQUENCE);
    for seed in seeds {
        let steps = generate::sequence(seed, SEQUENCE);
        let Err(mismatch) = pair.play(&steps) else { continue };
        let about = mismatch.command(&steps);
        if !shown.contains(&about) {
            report(&mut pair, seed, &steps, &mismatch);
            shown.push(about);
        }
        if shown.len() == MISMATCHES_SHOWN {
            break;
        }
    }
    assert!(shown.is_empty(), "answers differ for: {}", shown.join(", "));
}

/// Returns the same seeds every time, so that a failing run keeps failing until it is fixed; at night, new ones.
fn seeds(count: usize) -> Vec<u64> {
    if let Ok(seed) = std::env::var("OPENCLUSTER_SEED") {
        return vec![seed.parse().expect("OPENCLUSTER_SEED is a number")];
    }
    let first = match Effort::of_this_run() {
        Effort::Quick | Effort::Normal => 1,
        Effort::Nightly => std::time::UNIX_EPOCH.elapsed().map_or(1, |now| now.as_secs()),
    };
    (first..).take(count).collect()
}

fn report(pair: &mut Lockstep, seed: u64, steps: &[Step], mismatch: &Mismatch) {
    let (short, mismatch) = shrink::shrink(pair, &steps[..=mismatch.at], mismatch.clone());
    println!("--- OPENCLUSTER_SEED={seed} cargo test -p e2e --test differential");
    for step in &short {
        println!("    {step}");
    }
    let cut = |text: &str| text.chars().take(SHOWN_MAX).collect::<String>();
    println!("theirs: {}\n  ours: {}\n", cut(&mismatch.theirs), cut(&mismatch.ours));
}
