//! HyperLogLogs: PFADD, PFCOUNT, PFMERGE. They estimate a number of distinct elements from a string of at most 12 KiB,
//! byte for byte as Redis keeps it, so GET and SET exchange it with Redis (docs/decisions/0033).
mod sketch; //   The string: header and form.
mod dense; //    All registers.
mod sparse; //   Runs of registers.
mod hash; //     The hash of elements.
mod estimate; // The number of elements from the registers.
mod debug; //    PFDEBUG, PFSELFTEST.

use settings::NotifyClasses;
use store::{Effect, Found, Key, NewValue, UnixMillis};

use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};
use crate::strings::{put, string_of, with_bytes};
use crate::{Args, Error};
use dense::{DENSE_BYTES, DenseChanges};
use estimate::estimate;
use sketch::{Corrupted, ESTIMATE_AT, Form, REGISTERS, Registers, Sketch, register_of};

/// Upper bound of the bytes that one command records besides its key.
pub(crate) const RECORDED_BYTES_MAX: usize = 2 * DENSE_BYTES;
/// Bytes that an effect takes besides its key and its content, approximately.
const EFFECT_BYTES: usize = 32;

const COMMAND: Spec = Spec {
    group: Group::HyperLogLog,
    since: "2.8.9",
    arity: -2,
    flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
    keys: KeySpec::ALL,
    ..BLANK
};

const INTERNAL: Spec = Spec {
    complexity: "O(N) where N is the number of registers",
    flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Admin]),
    ..COMMAND
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
        complexity: "O(N) where N is the number of keys; O(1) for one key that has not changed since the last call",
        flags: Flags::of(&[Flag::ReadOnly]),
        run: Some(pfcount),
        ..COMMAND
    },
    Spec {
        name: "pfdebug",
        full_name: "pfdebug",
        syntax: "subcommand key",
        summary: "Shows or converts the registers of a HyperLogLog, for tests.",
        arity: 3,
        keys: KeySpec::SECOND,
        run: Some(debug::pfdebug),
        ..INTERNAL
    },
    Spec {
        name: "pfmerge",
        full_name: "pfmerge",
        syntax: "destkey [sourcekey [sourcekey ...]]",
        summary: "Merges HyperLogLogs into one.",
        complexity: "O(N) where N is the number of keys",
        run: Some(pfmerge),
        ..COMMAND
    },
    Spec {
        name: "pfselftest",
        full_name: "pfselftest",
        summary: "Tests the node's implementation of HyperLogLogs.",
        arity: 1,
        flags: Flags::of(&[Flag::Admin]),
        keys: KeySpec::NONE,
        run: Some(debug::pfselftest),
        ..INTERNAL
    },
];

fn pfadd(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, args) = (context.key(1), context.args);
    let (change, expires_at) = match context.keys.find(&key) {
        Some(found) => {
            let change = with_bytes(string_of(&found)?, |bytes| Change::of_adding(bytes, args))?;
            (change, found.expires_at)
        }
        None => (Change::of_new(args)?, None),
    };
    let is_changed = change.is_some();
    match change {
        None => {}
        Some(Change::Whole(sketch)) => {
            store(context, &key, &sketch, expires_at);
        }
        Some(Change::Ranges(ranges)) => {
            for (offset, bytes) in &ranges {
                context.keys.apply(&Effect::Overwrite { key, offset: *offset, bytes });
            }
        }
    }
    if is_changed {
        context.keys.notify(NotifyClasses::STRING, "pfadd", key.bytes());
    }
    context.reply.integer(is_changed.into());
    Ok(())
}

/// A change of a HyperLogLog.
enum Change {
    /// The new value.
    Whole(Sketch),
    /// Bytes to overwrite, by their offsets: of a dense HyperLogLog.
    Ranges(Vec<(usize, Vec<u8>)>),
}

impl Change {
    /// Returns the value of a new key after PFADD with these arguments.
    fn of_new(args: Args<'_>) -> Result<Option<Change>, Error> {
        let mut sketch = Sketch::new();
        for element in args.from(2) {
            sketch.add(element).map_err(corrupted)?;
        }
        sketch.invalidate_estimate();
        Ok(Some(Change::Whole(sketch)))
    }

    /// Returns the change that PFADD makes to this string; `None` if no register changes.
    fn of_adding(bytes: &[u8], args: Args<'_>) -> Result<Option<Change>, Error> {
        if Form::of(bytes) == Some(Form::Dense) {
            let mut changes = DenseChanges::new(bytes);
            for element in args.from(2) {
                let (index, value) = register_of(element);
                changes.raise(index, value);
            }
            let ranges = changes.into_ranges(EFFECT_BYTES + args.at(1).len());
            return Ok((!ranges.is_empty()).then_some(Change::Ranges(ranges)));
        }
        let mut sketch = sketch_of(bytes)?;
        let mut is_changed = false;
        for element in args.from(2) {
            is_changed |= sketch.add(element).map_err(corrupted)?;
        }
        sketch.invalidate_estimate();
        Ok(is_changed.then_some(Change::Whole(sketch)))
    }
}

fn pfcount(context: &mut Context<'_>) -> Result<(), Error> {
    let count = if context.args.len() == 2 {
        count_one(context)?
    } else {
        estimate(&merged(context)?.registers)
    };
    context.reply.integer(count.cast_signed());
    Ok(())
}

/// Returns the estimate of the first key. As in Redis, it is kept in the string, if this node may change the slot.
fn count_one(context: &mut Context<'_>) -> Result<u64, Error> {
    let key = context.key(1);
    let Some(found) = context.keys.read(&key) else { return Ok(0) };
    let sketch = found_sketch(&found)?;
    if let Some(count) = sketch.kept_estimate() {
        return Ok(count);
    }
    let count = estimate(&*sketch.registers().map_err(corrupted)?);
    if context.keys.may_change(&key) {
        let bytes = &count.to_le_bytes();
        context.keys.apply(&Effect::Overwrite { key, offset: ESTIMATE_AT, bytes });
    }
    Ok(count)
}

fn pfmerge(context: &mut Context<'_>) -> Result<(), Error> {
    let Merged { registers, is_dense } = merged(context)?;
    let key = context.key(1);
    let (mut sketch, expires_at) = match context.keys.find(&key) {
        Some(found) => (found_sketch(&found)?, found.expires_at),
        None => (Sketch::new(), None),
    };
    if is_dense {
        sketch.make_dense().map_err(corrupted)?;
    }
    for (index, value) in registers.iter().enumerate().filter(|(_, value)| **value > 0) {
        sketch.raise(index, *value).map_err(corrupted)?;
    }
    sketch.invalidate_estimate();
    store(context, &key, &sketch, expires_at);
    context.keys.notify(NotifyClasses::STRING, "pfadd", key.bytes());
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
        let sketch = found_sketch(&found)?;
        merged.is_dense |= sketch.is_dense();
        let registers = sketch.registers().map_err(corrupted)?;
        for (highest, register) in merged.registers.iter_mut().zip(registers.iter()) {
            *highest = (*highest).max(*register);
        }
    }
    Ok(merged)
}

fn found_sketch(found: &Found<'_>) -> Result<Sketch, Error> {
    with_bytes(string_of(found)?, sketch_of)
}

fn sketch_of(bytes: &[u8]) -> Result<Sketch, Error> {
    Sketch::of(bytes).ok_or(Error::fixed("WRONGTYPE Key is not a valid HyperLogLog string value."))
}

fn corrupted(_: Corrupted) -> Error {
    Error::fixed("INVALIDOBJ Corrupted HLL object detected")
}

fn store(
    context: &mut Context<'_>,
    key: &Key<'_>,
    sketch: &Sketch,
    expires_at: Option<UnixMillis>,
) {
    put(&mut context.keys, key, NewValue::Raw(sketch.bytes()), expires_at);
}

#[cfg(test)]
mod tests;
