//! PFADD, PFCOUNT and related commands.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(20) {
        0..8 => add(g),
        8..12 => cmd("PFCOUNT").args(keys(g)).done(),
        12..15 => cmd("PFMERGE").args(keys(g)).done(),
        15 => cmd("PFDEBUG").arg(g.cased("DECODE")).arg(key(g)).done(),
        16 => cmd("PFDEBUG").words("ENCODING").arg(key(g)).done(),
        17 => cmd("PFDEBUG").words("TODENSE").arg(key(g)).done(),
        18 => cmd("PFDEBUG").arg(g.nonsense()).arg(key(g)).done(),
        // The bytes are those of Redis.
        _ => cmd("GET").arg(key(g)).done(),
    }
}

/// Returns a key that is often a HyperLogLog.
fn key(g: &mut Gen) -> Vec<u8> {
    if g.one_in(8) { g.key() } else { g.pick(&["p1", "p2", "{t}p"]).as_bytes().to_vec() }
}

fn keys(g: &mut Gen) -> Args {
    let count = 1 + g.index(3);
    (0..count).map(|_| key(g)).collect()
}

/// Adds a few elements, or about as many as make a HyperLogLog dense.
fn add(g: &mut Gen) -> Args {
    let command = cmd("PFADD").arg(key(g));
    let count = match g.below(10) {
        0 => 0,
        1 => g.below(2_500),
        2..4 => g.below(300),
        _ => 1 + g.below(4),
    };
    let first = g.below(5_000);
    let numbers = (first..first + count).map(|number| number.to_string().into_bytes());
    let command = command.args(numbers.collect::<Args>());
    if g.one_in(4) { command.arg(g.value()).done() } else { command.done() }
}
