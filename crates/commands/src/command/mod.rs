//! COMMAND: describes the table of commands to clients. Everything here comes from [`Table`].
//!
//! `info.rs` has the facts for client libraries (arity, flags, keys), `docs.rs` those for people, `syntax.rs`
//! parses a command's syntax for it, `facts.rs` has Redis's facts about some commands that our flags do not cover.
mod docs;
mod facts;
mod info;
mod syntax;

use crate::context::Context;
use crate::glob::glob_matches;
use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, Group, Spec, Table};
use crate::{Args, Error};

const LOADING_STALE: Flags = Flags::of(&[Flag::Loading, Flag::Stale]);
const SERVER: Spec = Spec { group: Group::Server, flags: LOADING_STALE, ..BLANK };
const OF_LOOKED_UP: &str = "O(N) where N is the number of commands to look up";
const OF_ALL: &str = "O(N) where N is the total number of Redis commands";
const OF_ARGUMENTS: &str = "O(N) where N is the number of arguments to the command";

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "command",
    full_name: "command",
    summary: "Describes all commands.",
    since: "2.8.13",
    complexity: OF_ALL,
    arity: -1,
    subcommands: SUBCOMMANDS,
    run: Some(info::all),
    ..SERVER
}];

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "count",
        full_name: "command|count",
        summary: "Returns the number of commands.",
        since: "2.8.13",
        arity: 2,
        run: Some(count),
        ..SERVER
    },
    Spec {
        name: "docs",
        full_name: "command|docs",
        summary: "Documents commands: what they do and which arguments they take.",
        syntax: "[command-name [command-name ...]]",
        since: "7.0.0",
        complexity: OF_LOOKED_UP,
        arity: -2,
        run: Some(docs::docs),
        ..SERVER
    },
    Spec {
        name: "getkeys",
        full_name: "command|getkeys",
        summary: "Returns the keys of a full command.",
        syntax: "command [arg [arg ...]]",
        since: "2.8.13",
        complexity: OF_ARGUMENTS,
        arity: -4,
        run: Some(get_keys),
        ..SERVER
    },
    Spec {
        name: "getkeysandflags",
        full_name: "command|getkeysandflags",
        summary: "Returns the keys of a full command, and what it would do to each.",
        syntax: "command [arg [arg ...]]",
        since: "7.0.0",
        complexity: OF_ARGUMENTS,
        arity: -4,
        run: Some(get_keys_and_flags),
        ..SERVER
    },
    Spec {
        name: "help",
        full_name: "command|help",
        summary: "Shows this text.",
        since: "5.0.0",
        arity: 2,
        run: Some(help),
        ..SERVER
    },
    Spec {
        name: "info",
        full_name: "command|info",
        summary: "Describes some commands, or all.",
        syntax: "[command-name [command-name ...]]",
        since: "2.8.13",
        complexity: OF_LOOKED_UP,
        arity: -2,
        run: Some(info::info),
        ..SERVER
    },
    Spec {
        name: "list",
        full_name: "command|list",
        summary: "Returns the names of all commands, or of those that match a filter.",
        syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
        since: "7.0.0",
        complexity: OF_ALL,
        arity: -2,
        run: Some(list),
        ..SERVER
    },
];

/// Returns the command with this name in the form that clients write: `get`, or `client|list`.
fn find(table: &Table, name: &[u8]) -> Option<&'static Spec> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let spec = table.find(parts.next().unwrap_or_default())?;
    match parts.next() {
        None => Some(spec),
        Some(sub) => spec.subcommand(sub),
    }
}

fn count(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.integer(i64::try_from(Table::default().len()).unwrap_or(i64::MAX));
    Ok(())
}

fn list(context: &mut Context<'_>) -> Result<(), Error> {
    let fits = list_filter(context.args)?;
    let table = Table::default();
    // Without a filter only commands are listed, with a filter also their subcommands.
    let all = context.args.len() == 2;
    let specs = table.specs().iter();
    let names: Vec<&str> = specs
        .filter(|spec| if all { !spec.full_name.contains('|') } else { fits(spec) })
        .map(|spec| spec.full_name)
        .collect();
    context.reply.array(names.len());
    for name in names {
        context.reply.bulk(name.as_bytes());
    }
    Ok(())
}

type Fits<'a> = Box<dyn Fn(&Spec) -> bool + 'a>;

fn list_filter(args: Args<'_>) -> Result<Fits<'_>, Error> {
    if args.len() == 2 {
        return Ok(Box::new(|_| true));
    }
    if args.len() != 5 || !args.at(2).eq_ignore_ascii_case(b"filterby") {
        return Err(Error::SYNTAX);
    }
    let value = args.at(4);
    match args.at(3).to_ascii_lowercase().as_slice() {
        b"module" => Ok(Box::new(|_| false)),
        b"aclcat" => {
            let wanted = value.to_ascii_lowercase();
            Ok(Box::new(move |spec| {
                facts::categories(spec).iter().any(|category| category.as_bytes() == wanted)
            }))
        }
        b"pattern" => {
            let pattern = value.to_ascii_lowercase();
            Ok(Box::new(move |spec| glob_matches(&pattern, spec.full_name.as_bytes())))
        }
        _ => Err(Error::SYNTAX),
    }
}

/// Returns the command whose keys are requested, and their indices among all arguments.
fn keys_of(args: Args<'_>) -> Result<(&'static Spec, Vec<usize>), Error> {
    /// The index of the command, after COMMAND GETKEYS.
    const START: usize = 2;
    let table = Table::default();
    let spec = table.find(args.at(START)).and_then(|spec| {
        if spec.subcommands.is_empty() {
            return Some(spec);
        }
        args.get(START + 1).map_or(Some(spec), |name| spec.subcommand(name))
    });
    let spec = spec.ok_or(Error::fixed("ERR Invalid command specified"))?;
    if !spec.has_keys() || spec.has(Flag::NotKeys) {
        return Err(Error::fixed("ERR The command has no key arguments"));
    }
    if !spec.accepts(args.len() - START) {
        return Err(Error::fixed("ERR Invalid number of arguments specified for command"));
    }
    let command = args.tail(START);
    if spec.key_count_at > 0 && spec.counted_keys(command).is_empty() {
        return Err(Error::fixed("ERR Invalid arguments specified for command"));
    }
    let indices = spec.key_indices(command).map(|index| index + START).collect();
    Ok((spec, indices))
}

fn get_keys(context: &mut Context<'_>) -> Result<(), Error> {
    let (_, indices) = keys_of(context.args)?;
    context.reply.array(indices.len());
    for index in indices {
        context.reply.bulk(context.args.at(index));
    }
    Ok(())
}

fn get_keys_and_flags(context: &mut Context<'_>) -> Result<(), Error> {
    let (spec, indices) = keys_of(context.args)?;
    context.reply.array(indices.len());
    for (number, index) in indices.into_iter().enumerate() {
        let access = facts::key_access_of(spec, number, context.args);
        context.reply.array(2);
        context.reply.bulk(context.args.at(index));
        context.reply.set(access.len());
        access.iter().for_each(|word| context.reply.simple(word));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
