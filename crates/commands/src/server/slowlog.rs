//! SLOWLOG: the slowest commands, the newest first.

use super::{ADMIN_ALSO_IN_SCRIPTS, LOADING_STALE, SERVER};
use crate::Error;
use crate::context::Context;
use crate::help::help;
use crate::spec::Spec;

pub(super) const SPEC: Spec = Spec {
    name: "slowlog",
    full_name: "slowlog",
    summary: "Shows which commands were slow.",
    since: "2.2.12",
    complexity: "Depends on subcommand.",
    arity: -2,
    subcommands: SUBCOMMANDS,
    ..SERVER
};

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "get",
        full_name: "slowlog|get",
        summary: "Returns the newest entries, by default ten, -1 for all.",
        syntax: "[count]",
        since: "2.2.12",
        complexity: "O(N) where N is the number of entries returned",
        arity: -2,
        flags: ADMIN_ALSO_IN_SCRIPTS,
        run: Some(get),
        ..SERVER
    },
    Spec {
        name: "help",
        full_name: "slowlog|help",
        summary: "Shows this text.",
        since: "6.2.0",
        arity: 2,
        flags: LOADING_STALE,
        run: Some(help),
        ..SERVER
    },
    Spec {
        name: "len",
        full_name: "slowlog|len",
        summary: "Returns the number of entries.",
        since: "2.2.12",
        arity: 2,
        flags: ADMIN_ALSO_IN_SCRIPTS,
        run: Some(len),
        ..SERVER
    },
    Spec {
        name: "reset",
        full_name: "slowlog|reset",
        summary: "Forgets all entries.",
        since: "2.2.12",
        complexity: "O(N) where N is the number of entries in the slowlog",
        arity: 2,
        flags: ADMIN_ALSO_IN_SCRIPTS,
        run: Some(reset),
        ..SERVER
    },
];

const COUNT_DEFAULT: usize = 10;

fn get(context: &mut Context<'_>) -> Result<(), Error> {
    let wrong = Error::fixed("ERR count should be greater than or equal to -1");
    let count = match context.args.get(2) {
        _ if context.args.len() > 3 => {
            return Err(Error::wrong_subcommand_arity("SLOWLOG", context.args.at(1)));
        }
        None => COUNT_DEFAULT,
        Some(text) => match resp::parse_integer(text) {
            Some(-1) => usize::MAX,
            Some(count) => usize::try_from(count).map_err(|_| wrong)?,
            None => return Err(wrong),
        },
    };
    let entries = context.host.slow_commands(count);
    let reply = &mut context.reply;
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.integer(entry.id.cast_signed());
        reply.integer(entry.unix_seconds.cast_signed());
        reply.integer(entry.micros.cast_signed());
        let args = entry.args.args();
        reply.array(args.len());
        args.iter().for_each(|arg| reply.bulk(arg));
        reply.bulk(entry.client_address.as_bytes());
        reply.bulk(&entry.client_name);
    }
    Ok(())
}

fn len(context: &mut Context<'_>) -> Result<(), Error> {
    let count = context.host.slow_command_count();
    context.reply.integer(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

fn reset(context: &mut Context<'_>) -> Result<(), Error> {
    context.host.forget_slow_commands();
    context.reply.ok();
    Ok(())
}
