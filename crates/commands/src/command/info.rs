//! COMMAND and COMMAND INFO: an entry of ten parts for each command.

use resp::Reply;

use super::{facts, find};
use crate::context::Context;
use crate::spec::{BEHIND_STREAMS, KeySpec, Spec, Table};
use crate::{Error, Flag};

pub(super) fn all(context: &mut Context<'_>) -> Result<(), Error> {
    let table = Table::default();
    context.reply.array(table.len());
    table.iter().for_each(|spec| entry(&mut context.reply, spec));
    Ok(())
}

pub(super) fn info(context: &mut Context<'_>) -> Result<(), Error> {
    if context.args.len() == 2 {
        return all(context);
    }
    let table = Table::default();
    let names = context.args.from(2);
    context.reply.array(names.len());
    for name in names {
        match find(&table, name) {
            Some(spec) => entry(&mut context.reply, spec),
            None => context.reply.null(),
        }
    }
    Ok(())
}

fn entry(reply: &mut Reply<'_>, spec: &Spec) {
    reply.array(10);
    reply.bulk(spec.full_name.as_bytes());
    reply.integer(i64::from(spec.arity));
    let flags = facts::flag_names(spec);
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    let KeySpec { first, last, step } = spec.keys;
    reply.integer(i64::try_from(first).unwrap_or(0));
    reply.integer(i64::from(last));
    reply.integer(i64::try_from(step).unwrap_or(0));
    let categories = facts::categories(spec);
    reply.set(categories.len());
    categories.iter().for_each(|category| reply.simple(&format!("@{category}")));
    let tips = facts::tips(spec);
    reply.set(tips.len());
    tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    key_specs(reply, spec);
    if spec.subcommands.is_empty() {
        reply.set(0);
    } else {
        reply.array(spec.subcommands.len());
        spec.subcommands.iter().for_each(|sub| entry(reply, sub));
    }
}

/// A run of keys with the same access to all of them.
struct KeyRun {
    first: usize,
    /// Relative to the first, or to the end if negative.
    last: i32,
    step: usize,
    access: &'static [&'static str],
}

/// Returns the positions of the keys. If the first key's access differs from the others', it is a run of its own.
fn key_runs(spec: &Spec) -> Vec<KeyRun> {
    let KeySpec { first, last, step } = spec.keys;
    if spec.keys.is_none() {
        return Vec::new();
    }
    let second = facts::key_access(spec, 1);
    let begins_apart = facts::key_access(spec, 0) != second;
    let count = if last < 0 { None } else { usize::try_from(last).ok().map(|last| last - first) };
    let run = |first, last, access| KeyRun { first, last, step, access };
    let rest_last = |from: usize| match count {
        None => last,
        Some(count) => i32::try_from(count + first - from).unwrap_or(0),
    };
    if begins_apart && count != Some(0) {
        return vec![
            run(first, 0, facts::key_access(spec, 0)),
            run(first + step, rest_last(first + step), second),
        ];
    }
    vec![run(first, rest_last(first), facts::key_access(spec, 0))]
}

fn key_specs(reply: &mut Reply<'_>, spec: &Spec) {
    let runs = key_runs(spec);
    let has_count = spec.key_count_at > 0;
    let movable = movable_keys(spec);
    reply.set(runs.len() + usize::from(has_count) + movable.len());
    let is_first = runs.is_empty();
    for run in runs {
        let note = note(spec);
        reply.map(if note.is_some() { 4 } else { 3 });
        if let Some(note) = note {
            reply.bulk(b"notes");
            reply.bulk(note.as_bytes());
        }
        reply.bulk(b"flags");
        reply.set(run.access.len());
        run.access.iter().for_each(|word| reply.simple(word));

        reply.bulk(b"begin_search");
        search(reply, "index", &[("index", i64::try_from(run.first).unwrap_or(0))]);
        reply.bulk(b"find_keys");
        let range = [
            ("lastkey", i64::from(run.last)),
            ("keystep", i64::try_from(run.step).unwrap_or(1)),
            ("limit", 0),
        ];
        search(reply, "range", &range);
    }
    if has_count {
        counted_keys(reply, spec, usize::from(!is_first));
    }
    movable.iter().for_each(|key| movable_key(reply, spec, key));
}

/// Keys that are not at fixed positions, besides those that an argument counts.
enum MovableKey {
    /// Behind this option.
    Option(&'static str),
    /// At positions that cannot be described.
    Unknown { note: &'static str, access: &'static [&'static str] },
}

const DERIVED_KEYS: &str = "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive \
                            from the content of the key we sort";
const STORED_KEY: &str = "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear \
                          anywhere in the argument array";

fn movable_keys(spec: &Spec) -> Vec<MovableKey> {
    let mut keys = Vec::new();
    if spec.has(Flag::DerivesKeys) {
        keys.push(MovableKey::Unknown { note: DERIVED_KEYS, access: facts::key_access(spec, 0) });
    }
    if spec.stored_from > 0 && spec.has(Flag::DerivesKeys) {
        keys.push(MovableKey::Unknown { note: STORED_KEY, access: facts::key_access(spec, 1) });
    } else if spec.stored_from > 0 {
        keys.extend([MovableKey::Option("STORE"), MovableKey::Option("STOREDIST")]);
    }
    keys
}

fn movable_key(reply: &mut Reply<'_>, spec: &Spec, key: &MovableKey) {
    let (note, access) = match key {
        MovableKey::Option(_) => (None, facts::key_access(spec, 1)),
        MovableKey::Unknown { note, access } => (Some(*note), *access),
    };
    reply.map(if note.is_some() { 4 } else { 3 });
    if let Some(note) = note {
        reply.bulk(b"notes");
        reply.bulk(note.as_bytes());
    }
    reply.bulk(b"flags");
    reply.set(access.len());
    access.iter().for_each(|word| reply.simple(word));
    reply.bulk(b"begin_search");
    match key {
        MovableKey::Option(word) => {
            keyword(reply, word, spec.stored_from);
            reply.bulk(b"find_keys");
            search(reply, "range", &[("lastkey", 0), ("keystep", 1), ("limit", 0)]);
        }
        MovableKey::Unknown { .. } => {
            search(reply, "unknown", &[]);
            reply.bulk(b"find_keys");
            search(reply, "unknown", &[]);
        }
    }
}

fn keyword(reply: &mut Reply<'_>, word: &str, from: usize) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(b"keyword");
    reply.bulk(b"spec");
    reply.map(2);
    reply.bulk(b"keyword");
    reply.bulk(word.as_bytes());
    reply.bulk(b"startfrom");
    reply.integer(i64::try_from(from).unwrap_or(0));
}

/// Writes the position of the keys that an argument counts; `number` is that of the first among all keys.
fn counted_keys(reply: &mut Reply<'_>, spec: &Spec, number: usize) {
    let access = facts::key_access(spec, number);
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(access.len());
    access.iter().for_each(|word| reply.simple(word));
    reply.bulk(b"begin_search");
    if spec.key_count_at == BEHIND_STREAMS {
        reply.map(2);
        reply.bulk(b"type");
        reply.bulk(b"keyword");
        reply.bulk(b"spec");
        reply.map(2);
        reply.bulk(b"keyword");
        reply.bulk(b"STREAMS");
        reply.bulk(b"startfrom");
        // Behind the words of GROUP, which may be this word, too.
        reply.integer(if spec.name == "xreadgroup" { 4 } else { 1 });
        reply.bulk(b"find_keys");
        return search(reply, "range", &[("lastkey", -1), ("keystep", 1), ("limit", 2)]);
    }
    search(reply, "index", &[("index", i64::try_from(spec.key_count_at).unwrap_or(0))]);
    reply.bulk(b"find_keys");
    let key_step = i64::try_from(spec.key_step).unwrap_or(1);
    search(reply, "keynum", &[("keynumidx", 0), ("firstkey", 1), ("keystep", key_step)]);
}

fn search(reply: &mut Reply<'_>, kind: &str, numbers: &[(&str, i64)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(*number);
    }
}

/// Returns an explanation of the key flags where they are not obvious.
fn note(spec: &Spec) -> Option<&'static str> {
    match spec.full_name {
        "set" if spec.has(Flag::Write) => Some("RW and ACCESS due to the optional `GET` argument"),
        "pfcount" => Some(
            "RW because it may change the internal representation of the key, and propagate to \
             replicas",
        ),
        "getex" => Some("RW and UPDATE because it changes the TTL"),
        "xadd" => Some("UPDATE instead of INSERT because of the optional trimming feature"),
        "bitfield" => Some("This command allows both access and modification of the key"),
        _ => None,
    }
}
