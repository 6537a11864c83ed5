//! CLIENT: settings and queries of a connection about itself. `list.rs` lists connections, `kill.rs` closes them;
//! both use the node's interface in `host.rs`.
mod kill;
mod list;

use crate::context::Context;
use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};
use crate::{Error, Pause, PauseScope, ReplyMode, Unblock};

const PLAIN: Flags = Flags::of(&[Flag::NoScript, Flag::Loading, Flag::Stale]);
const ADMIN: Flags = Flags::of(&[Flag::Admin, Flag::NoScript, Flag::Loading, Flag::Stale]);

const CONNECTION: Spec = Spec { group: Group::Connection, flags: PLAIN, ..BLANK };
const OF_CLIENTS: &str = "O(N) where N is the number of client connections";

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "client",
    full_name: "client",
    summary: "Shows and controls client connections.",
    since: "2.4.0",
    complexity: "Depends on subcommand.",
    arity: -2,
    flags: Flags::NONE,
    subcommands: SUBCOMMANDS,
    ..CONNECTION
}];

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "caching",
        full_name: "client|caching",
        summary: "Refused: client-side caching is not supported.",
        syntax: "<YES | NO>",
        since: "6.0.0",
        arity: 3,
        run: Some(caching),
        ..CONNECTION
    },
    Spec {
        name: "getname",
        full_name: "client|getname",
        summary: "Returns the name of the connection.",
        since: "2.6.9",
        arity: 2,
        run: Some(get_name),
        ..CONNECTION
    },
    Spec {
        name: "getredir",
        full_name: "client|getredir",
        summary: "Returns -1: client-side caching is not supported.",
        since: "6.0.0",
        arity: 2,
        run: Some(get_redirection),
        ..CONNECTION
    },
    Spec {
        name: "help",
        full_name: "client|help",
        summary: "Shows this text.",
        since: "5.0.0",
        arity: 2,
        flags: Flags::of(&[Flag::Loading, Flag::Stale]),
        run: Some(help),
        ..CONNECTION
    },
    Spec {
        name: "id",
        full_name: "client|id",
        summary: "Returns the id of the connection, unique until the node restarts.",
        since: "5.0.0",
        arity: 2,
        run: Some(id),
        ..CONNECTION
    },
    Spec {
        name: "info",
        full_name: "client|info",
        summary: "Describes the connection.",
        since: "6.2.0",
        arity: 2,
        run: Some(list::info),
        ..CONNECTION
    },
    Spec {
        name: "kill",
        full_name: "client|kill",
        summary: "Closes connections.",
        syntax: "<ip:port | <[ID client-id] [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] \
                 [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME <YES | NO>] \
                 [MAXAGE seconds]>>",
        since: "2.4.0",
        complexity: OF_CLIENTS,
        arity: -3,
        flags: ADMIN,
        run: Some(kill::kill),
        ..CONNECTION
    },
    Spec {
        name: "list",
        full_name: "client|list",
        summary: "Lists connections, one per line.",
        syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
        since: "2.4.0",
        complexity: OF_CLIENTS,
        arity: -2,
        flags: ADMIN,
        run: Some(list::list),
        ..CONNECTION
    },
    Spec {
        name: "no-evict",
        full_name: "client|no-evict",
        summary: "Exempts the connection from being closed when memory is short.",
        syntax: "<ON | OFF>",
        since: "7.0.0",
        arity: 3,
        flags: ADMIN,
        run: Some(no_evict),
        ..CONNECTION
    },
    Spec {
        name: "no-touch",
        full_name: "client|no-touch",
        summary: "Sets whether commands of this connection update the access time of keys.",
        syntax: "<ON | OFF>",
        since: "7.2.0",
        arity: 3,
        run: Some(no_touch),
        ..CONNECTION
    },
    Spec {
        name: "pause",
        full_name: "client|pause",
        summary: "Stops running commands, or only writes, for some milliseconds.",
        syntax: "timeout [WRITE | ALL]",
        since: "2.9.50",
        arity: -3,
        flags: ADMIN,
        run: Some(pause),
        ..CONNECTION
    },
    Spec {
        name: "reply",
        full_name: "client|reply",
        summary: "Sets whether the node replies to the connection's commands.",
        syntax: "<ON | OFF | SKIP>",
        since: "3.2.0",
        arity: 3,
        run: Some(reply),
        ..CONNECTION
    },
    Spec {
        name: "setinfo",
        full_name: "client|setinfo",
        summary: "Sets the name or version of the client's library.",
        syntax: "<LIB-NAME libname | LIB-VER libver>",
        since: "7.2.0",
        arity: 4,
        run: Some(set_info),
        ..CONNECTION
    },
    Spec {
        name: "setname",
        full_name: "client|setname",
        summary: "Names the connection; an empty name removes the name.",
        syntax: "connection-name",
        since: "2.6.9",
        arity: 3,
        run: Some(set_name),
        ..CONNECTION
    },
    Spec {
        name: "tracking",
        full_name: "client|tracking",
        summary: "Accepts OFF and refuses ON: client-side caching is not supported.",
        syntax: "<ON | OFF>",
        since: "6.0.0",
        arity: -3,
        run: Some(tracking),
        ..CONNECTION
    },
    Spec {
        name: "trackinginfo",
        full_name: "client|trackinginfo",
        summary: "Reports that client-side caching is off.",
        since: "6.2.0",
        arity: 2,
        run: Some(tracking_info),
        ..CONNECTION
    },
    Spec {
        name: "unblock",
        full_name: "client|unblock",
        summary: "Ends the wait of a connection that is blocked in a command.",
        syntax: "client-id [TIMEOUT | ERROR]",
        since: "5.0.0",
        complexity: "O(log N) where N is the number of client connections",
        arity: -3,
        flags: ADMIN,
        run: Some(unblock),
        ..CONNECTION
    },
    Spec {
        name: "unpause",
        full_name: "client|unpause",
        summary: "Ends a pause.",
        since: "6.2.0",
        complexity: "O(N) Where N is the number of paused clients",
        arity: 2,
        flags: ADMIN,
        run: Some(unpause),
        ..CONNECTION
    },
];

fn id(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.integer(context.session.id.cast_signed());
    Ok(())
}

fn get_name(context: &mut Context<'_>) -> Result<(), Error> {
    match context.session.name.as_slice() {
        [] => context.reply.null(),
        name => context.reply.bulk(name),
    }
    Ok(())
}

fn set_name(context: &mut Context<'_>) -> Result<(), Error> {
    context.session.name = checked_name(context.args.at(2))?;
    context.session.texts_changed = true;
    context.reply.ok();
    Ok(())
}

/// Returns whether the text is printable and has no spaces, so that a line of CLIENT LIST can be parsed again.
fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

/// Maximum length of a client's name, its library's name and version: they are copied into every entry of the slow log.
const TEXT_BYTES_MAX: usize = 256;

pub(crate) fn checked_name(name: &[u8]) -> Result<Vec<u8>, Error> {
    if name.len() > TEXT_BYTES_MAX {
        return Err(Error::fixed("ERR Client names cannot be longer than 256 bytes."));
    }
    if !is_plain(name) {
        return Err(Error::fixed(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    Ok(name.to_vec())
}

fn set_info(context: &mut Context<'_>) -> Result<(), Error> {
    let (option, value) = (context.args.at(2), context.args.at(3));
    let session = &mut *context.session;
    let (field, name) = if option.eq_ignore_ascii_case(b"lib-name") {
        (&mut session.library_name, "lib-name")
    } else if option.eq_ignore_ascii_case(b"lib-ver") {
        (&mut session.library_version, "lib-ver")
    } else {
        let option = String::from_utf8_lossy(option);
        return Err(Error::new(format!("ERR Unrecognized option '{option}'")));
    };
    if value.len() > TEXT_BYTES_MAX {
        return Err(Error::new(format!("ERR {name} cannot be longer than 256 bytes.")));
    }
    if !is_plain(value) {
        return Err(Error::new(format!(
            "ERR {name} cannot contain spaces, newlines or special characters."
        )));
    }
    *field = value.to_vec();
    session.texts_changed = true;
    context.reply.ok();
    Ok(())
}

/// Parses the third argument as ON or OFF.
fn on_or_off(context: &Context<'_>) -> Result<bool, Error> {
    match context.args.at(2) {
        word if word.eq_ignore_ascii_case(b"on") => Ok(true),
        word if word.eq_ignore_ascii_case(b"off") => Ok(false),
        _ => Err(Error::SYNTAX),
    }
}

fn no_evict(context: &mut Context<'_>) -> Result<(), Error> {
    context.session.no_evict = on_or_off(context)?;
    context.reply.ok();
    Ok(())
}

fn no_touch(context: &mut Context<'_>) -> Result<(), Error> {
    context.session.no_touch = on_or_off(context)?;
    context.reply.ok();
    Ok(())
}

fn reply(context: &mut Context<'_>) -> Result<(), Error> {
    let word = context.args.at(2).to_ascii_lowercase();
    let was_off = context.session.replies == ReplyMode::Off;
    match word.as_slice() {
        b"on" => {
            context.session.replies = ReplyMode::Sent;
            context.reply.ok();
        }
        b"off" => context.session.replies = ReplyMode::Off,
        b"skip" if was_off => {}
        b"skip" => context.session.replies = ReplyMode::SkipNext,
        _ => return Err(Error::SYNTAX),
    }
    Ok(())
}

/// Checks the maximum number of arguments: the arity in the table is only a minimum.
fn at_most_four(context: &Context<'_>) -> Result<(), Error> {
    if context.args.len() > 4 {
        return Err(Error::wrong_subcommand_arity("CLIENT", context.args.at(1)));
    }
    Ok(())
}

fn pause(context: &mut Context<'_>) -> Result<(), Error> {
    at_most_four(context)?;
    let scope = match context.args.get(3) {
        None => PauseScope::All,
        Some(word) if word.eq_ignore_ascii_case(b"write") => PauseScope::Writes,
        Some(word) if word.eq_ignore_ascii_case(b"all") => PauseScope::All,
        Some(_) => return Err(Error::fixed("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout = resp::parse_integer(context.args.at(2))
        .ok_or(Error::fixed("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| Error::fixed("ERR timeout is negative"))?;
    let mut until = context.keys.now();
    until.0 = until.0.saturating_add(timeout);
    context.host.pause_clients(Pause { until, scope });
    context.reply.ok();
    Ok(())
}

fn unpause(context: &mut Context<'_>) -> Result<(), Error> {
    context.host.unpause_clients();
    context.reply.ok();
    Ok(())
}

fn unblock(context: &mut Context<'_>) -> Result<(), Error> {
    at_most_four(context)?;
    let how = match context.args.get(3) {
        None => Unblock::AsTimeout,
        Some(word) if word.eq_ignore_ascii_case(b"timeout") => Unblock::AsTimeout,
        Some(word) if word.eq_ignore_ascii_case(b"error") => Unblock::WithError,
        Some(_) => {
            return Err(Error::fixed("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
    };
    let id = context.integer(2)?;
    let unblocked = u64::try_from(id).is_ok_and(|id| context.host.unblock_client(id, how));
    context.reply.integer(i64::from(unblocked));
    Ok(())
}

fn tracking(context: &mut Context<'_>) -> Result<(), Error> {
    if on_or_off(context)? {
        return Err(Error::fixed("ERR client tracking is not supported"));
    }
    context.reply.ok();
    Ok(())
}

fn tracking_info(context: &mut Context<'_>) -> Result<(), Error> {
    let reply = &mut context.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.integer(-1);
    reply.bulk(b"prefixes");
    reply.array(0);
    Ok(())
}

fn get_redirection(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.integer(-1);
    Ok(())
}

fn caching(_: &mut Context<'_>) -> Result<(), Error> {
    Err(Error::fixed(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    ))
}

#[cfg(test)]
mod tests;
