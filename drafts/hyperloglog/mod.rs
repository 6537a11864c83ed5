//! HyperLogLogs: PFADD, PFCOUNT, PFMERGE. They estimate a number of distinct elements from a string of at most 12 KiB,
//! byte for byte as Redis keeps it, so GET and SET exchange it with Redis.
//!
//! Unlike Redis, PFCOUNT does not write its result into the string: here a command that reads changes nothing.
mod sketch; //   The string: header, dense registers.
mod sparse; //   Runs of registers.
mod hash; //     The hash of elements.
mod estimate; // The number of elements from the registers.

use settings::NotifyClasses;
use store::{Effect, Found, Key, NewValue, UnixMillis};

use crate::Error;
use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};
use crate::strings::{put, string_of, with_bytes};
use estimate::estimate;
use sketch::{Corrupted, REGISTERS, Registers, Sketch};

/// Maximum length of the string.
pub(crate) const SKETCH_BYTES_MAX: usize = 12_304;
/// Changes of a string that are no further apart go as one.
const GAP_BYTES_MAX: usize = 32;

const COMMAND: Spec = Spec {
    group: Group::HyperLogLog,
    since: "2.8.9",
    arity: -2,
    flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
    keys: KeySpec::ALL,
    ..BLANK
};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "pfadd",
        full_name: "pfadd",
        syntax: "key [element [element ...]]",
        summary: "Adds elements to a HyperLogLog; a missing key becomes a new one.",
        complexity: "O(1) for every element",
        flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Fast]),
        keys: KeySpec::FIRST,
        run: Some(pfadd),
        ..COMMAND
    },
    Spec {
        name: "pfcount",
        full_name: "pfcount",
        syntax: "key [key ...]",
        summary: "Returns the approximate number of distinct elements of HyperLogLogs together.",
        complexity: "O(N) where N is the number of keys, with a large constant",
        flags: Flags::of(&[Flag::ReadOnly, Flag::MayReplicate]),
        run: Some(pfcount),
        ..COMMAND
    },
    Spec {
        name: "pfmerge",
        full_name: "pfmerge",
        syntax: "destkey [sourcekey [sourcekey ...]]",
        summary: "Merges HyperLogLogs into one.",
        complexity: "O(N) where N is the number of keys, with a large constant",
        run: Some(pfmerge),
        ..COMMAND
    },
];

fn pfadd(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let found = context.keys.find(&key);
    let expires_at = found.and_then(|found| found.expires_at);
    let old = found.map(|found| sketch_of(&found)).transpose()?;
    let mut new = old.clone().unwrap_or_else(Sketch::new);
    let mut is_changed = old.is_none();
    for element in context.args.from(2) {
        is_changed |= new.add(element).map_err(corrupted)?;
    }
    if is_changed {
        new.invalidate_estimate();
        store(context, &key, old.as_ref(), &new, expires_at);
    }
    context.reply.integer(is_changed.into());
    Ok(())
}

fn pfcount(context: &mut Context<'_>) -> Result<(), Error> {
    let count = if context.args.len() == 2 {
        let key = context.key(1);
        let sketch = context.keys.read(&key).map(|found| sketch_of(&found)).transpose()?;
        match sketch {
            Some(sketch) => match sketch.kept_estimate() {
                Some(count) => count,
                None => estimate(&*sketch.registers().map_err(corrupted)?),
            },
            None => 0,
        }
    } else {
        estimate(&merged(context)?.registers)
    };
    context.reply.integer(count.cast_signed());
    Ok(())
}

fn pfmerge(context: &mut Context<'_>) -> Result<(), Error> {
    let Merged { registers, is_dense } = merged(context)?;
    let key = context.key(1);
    let found = context.keys.find(&key);
    let expires_at = found.and_then(|found| found.expires_at);
    let old = found.map(|found| sketch_of(&found)).transpose()?;
    let mut new = old.clone().unwrap_or_else(Sketch::new);
    if is_dense {
        new.make_dense().map_err(corrupted)?;
    }
    for (index, value) in registers.iter().enumerate().filter(|(_, value)| **value > 0) {
        new.raise(index, *value).map_err(corrupted)?;
    }
    new.invalidate_estimate();
    store(context, &key, old.as_ref(), &new, expires_at);
    context.reply.ok();
    Ok(())
}

/// The highest registers of all keys of a command.
struct Merged {
    registers: Box<Registers>,
    /// True if any of them is dense.
    is_dense: bool,
}

fn merged(context: &mut Context<'_>) -> Result<Merged, Error> {
    let mut merged = Merged { registers: Box::new([0; REGISTERS]), is_dense: false };
    for index in 1..context.args.len() {
        let key = context.key(index);
        let Some(found) = context.keys.read(&key) else { continue };
        let sketch = sketch_of(&found)?;
        merged.is_dense |= sketch.is_dense();
        let registers = sketch.registers().map_err(corrupted)?;
        for (highest, register) in merged.registers.iter_mut().zip(registers.iter()) {
            *highest = (*highest).max(*register);
        }
    }
    Ok(merged)
}

fn sketch_of(found: &Found<'_>) -> Result<Sketch, Error> {
    let sketch = with_bytes(string_of(found)?, Sketch::of);
    sketch.ok_or(Error::fixed("WRONGTYPE Key is not a valid HyperLogLog string value."))
}

fn corrupted(_: Corrupted) -> Error {
    Error::fixed("INVALIDOBJ Corrupted HLL object detected")
}

/// Stores a HyperLogLog, and publishes the event. Of one that has kept its length, only the changed bytes are recorded.
fn store(
    context: &mut Context<'_>,
    key: &Key<'_>,
    old: Option<&Sketch>,
    new: &Sketch,
    expires_at: Option<UnixMillis>,
) {
    match old.filter(|old| old.bytes().len() == new.bytes().len()) {
        Some(old) => {
            for (start, end) in differences(old.bytes(), new.bytes()) {
                let bytes = &new.bytes()[start..end];
                context.keys.apply(&Effect::Overwrite { key: *key, offset: start, bytes });
            }
        }
        None => put(&mut context.keys, key, NewValue::Raw(new.bytes()), expires_at),
    }
    context.keys.notify(NotifyClasses::STRING, "pfadd", key.bytes());
}

/// Returns the ranges in which two strings of the same length differ.
fn differences(old: &[u8], new: &[u8]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (at, _) in old.iter().zip(new).enumerate().filter(|(_, (old, new))| old != new) {
        match ranges.last_mut() {
            Some((_, end)) if at - *end <= GAP_BYTES_MAX => *end = at + 1,
            Some(_) | None => ranges.push((at, at + 1)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests;
