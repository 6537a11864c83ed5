//! MEMORY: memory use of keys and of the node as a whole.
mod doctor; // Explains the figures.
mod stats; //  The figures.

use store::Found;

use crate::Error;
use crate::context::Context;
use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "memory",
    full_name: "memory",
    summary: "Shows memory usage.",
    complexity: "Depends on subcommand.",
    arity: -2,
    subcommands: SUBCOMMANDS,
    ..USUAL
}];

const USUAL: Spec = Spec { since: "4.0.0", group: Group::Server, arity: 2, ..BLANK };

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "doctor",
        full_name: "memory|doctor",
        summary: "Reports problems of memory usage as text.",
        flags: Flags::of(&[Flag::WholeKeyspace]),
        run: Some(doctor::doctor),
        ..USUAL
    },
    Spec {
        name: "help",
        full_name: "memory|help",
        summary: "Lists the subcommands.",
        flags: Flags::of(&[Flag::Loading, Flag::Stale]),
        run: Some(help),
        ..USUAL
    },
    Spec {
        name: "stats",
        full_name: "memory|stats",
        summary: "Returns details of the node's memory usage.",
        flags: Flags::of(&[Flag::WholeKeyspace]),
        run: Some(stats::stats),
        ..USUAL
    },
    Spec {
        name: "usage",
        full_name: "memory|usage",
        summary: "Returns the bytes that a key and its value use.",
        syntax: "key [SAMPLES count]",
        arity: -3,
        flags: Flags::of(&[Flag::ReadOnly]),
        keys: KeySpec::SECOND,
        run: Some(usage),
        ..USUAL
    },
];

fn usage(context: &mut Context<'_>) -> Result<(), Error> {
    check_samples(context)?;
    let key = context.key(2);
    match context.keys.peek(&key) {
        Some(found) => context.reply.integer(bytes_of(&found).cast_signed()),
        None => context.reply.null(),
    }
    Ok(())
}

/// Checks the SAMPLES option. It has no other effect: strings are always measured completely.
fn check_samples(context: &Context<'_>) -> Result<(), Error> {
    let args = context.args;
    for index in (3..args.len()).step_by(2) {
        if !args.at(index).eq_ignore_ascii_case(b"samples") || index + 1 == args.len() {
            return Err(Error::SYNTAX);
        }
        if context.integer(index + 1)? < 0 {
            return Err(Error::SYNTAX);
        }
    }
    Ok(())
}

/// Returns the item's memory in the allocator and its entries in the slot's table.
fn bytes_of(found: &Found<'_>) -> u64 {
    const PLACE_BYTES: usize = 8;
    let places = 1 + usize::from(found.expires_at.is_some());
    (found.item.bytes() + places * PLACE_BYTES) as u64
}

#[cfg(test)]
mod tests;
