//! Sequences of steps from a seed: every command, with valid, borderline and invalid arguments,
//! over few keys, so that commands encounter each other's results.
//!
//! Times to live are long, so that the speed of the machine does not matter, and values stay small.
mod command; // construction of a command, and its arguments
mod strings; // SET, GET and related commands
mod bits; //    bits of strings
mod hashes; //  HSET, HGET and related commands
mod lists; //   LPUSH, LPOP and related commands
mod sorted_sets; // ZADD, ZRANGE and related commands
mod sets; //    SADD, SMEMBERS and related commands
mod keys; //    keys, expiry, DUMP and RESTORE
mod session; // transactions, channels, connections
mod node; //    queries about the server itself

use e2e::Rng;

use crate::lockstep::{Args, Step, Who};
use command::Gen;

pub(crate) fn sequence(seed: u64, len: usize) -> Vec<Step> {
    let mut g = Gen::new(Rng::new(seed));
    (0..len).map(|_| step(&mut g)).collect()
}

fn step(g: &mut Gen) -> Step {
    match g.below(100) {
        0..86 => call(g),
        86..88 => Step::ScanAll { options: keys::scan_options(g) },
        88..90 => Step::Swap { from: g.key(), to: g.key() },
        90..94 => Step::Burst { who: Who::Listener, commands: vec![session::listening(g)] },
        94..96 => Step::Burst { who: Who::Second, commands: session::unanswered(g) },
        96 => Step::Quit { who: Who::Second },
        _ => Step::Call { who: Who::First, args: session::publishing(g) },
    }
}

fn call(g: &mut Gen) -> Step {
    let who = if g.one_in(4) { Who::Second } else { Who::First };
    let args = match g.below(126) {
        0..26 => strings::command(g),
        26..38 => bits::command(g),
        38..46 => hashes::command(g),
        46..56 => sets::command(g),
        56..76 => keys::command(g),
        76..90 => session::command(g),
        90..98 => node::command(g),
        98..112 => sorted_sets::command(g),
        112..124 => lists::command(g),
        _ => g.wrong_arity(),
    };
    Step::Call { who, args: with_common_count(spoiled(g, args)) }
}

/// Replaces the smallest number of all as the count of LREM: Redis 7.0 accepts it, later versions refuse it, as we do.
fn with_common_count(mut args: Args) -> Args {
    let smallest = i64::MIN.to_string().into_bytes();
    if args[0].eq_ignore_ascii_case(b"LREM") && args.get(2) == Some(&smallest) {
        args[2] = b"-1".to_vec();
    }
    args
}

/// Sometimes removes an argument, adds one, or replaces one by a wrong one.
fn spoiled(g: &mut Gen, mut args: Args) -> Args {
    // A very long pause would never end, and SPOP without its count removes a random member.
    let may_pause = args[0] == b"CLIENT" && args.get(1).is_some_and(|sub| sub == b"PAUSE");
    let must_stay = args[0] == b"SPOP" || sorted_sets::is_to_stay(&args);
    if args.len() < 2 || may_pause || must_stay || !g.one_in(14) {
        return args;
    }
    match g.below(3) {
        0 => drop(args.pop()),
        1 => args.push(g.nonsense()),
        _ => {
            let index = 1 + g.index(args.len() - 1);
            args[index] = g.nonsense();
        }
    }
    args
}
