//! Commands about the node as a whole: TIME, ROLE, MONITOR, SHUTDOWN; `slowlog.rs` and `latency.rs` report slow
//! operations, `lolwut.rs` draws. CONFIG and INFO have files of their own beside this folder.
mod latency;
mod lolwut;
mod slowlog;

use crate::Error;
use crate::cluster::own_master;
use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};

const SERVER: Spec = Spec { group: Group::Server, ..BLANK };
const LOADING_STALE: Flags = Flags::of(&[Flag::Loading, Flag::Stale]);
const ADMIN: Flags = Flags::of(&[Flag::Admin, Flag::NoScript, Flag::Loading, Flag::Stale]);
const ADMIN_ALSO_IN_SCRIPTS: Flags = Flags::of(&[Flag::Admin, Flag::Loading, Flag::Stale]);

pub(crate) const SPECS: &[Spec] = &[
    latency::SPEC,
    lolwut::SPEC,
    Spec {
        name: "monitor",
        full_name: "monitor",
        summary: "Shows every command that the node runs, until the connection ends.",
        arity: 1,
        flags: ADMIN,
        run: Some(monitor),
        ..SERVER
    },
    Spec {
        name: "role",
        full_name: "role",
        summary: "Returns the node's role in replication.",
        since: "2.8.12",
        arity: 1,
        flags: Flags::of(&[Flag::NoScript, Flag::Fast]).and(LOADING_STALE),
        run: Some(role),
        ..SERVER
    },
    Spec {
        name: "shutdown",
        full_name: "shutdown",
        summary: "Stops the node.",
        syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
        complexity: "O(N) when saving, where N is the total number of keys in all databases when \
                     saving data, otherwise O(1)",
        arity: -1,
        flags: Flags::of(&[Flag::NoMulti, Flag::AllowBusy]).and(ADMIN),
        run: Some(shutdown),
        ..SERVER
    },
    slowlog::SPEC,
    Spec {
        name: "time",
        full_name: "time",
        summary: "Returns the time of day: seconds since 1970, and microseconds.",
        since: "2.6.0",
        arity: 1,
        flags: Flags::of(&[Flag::Fast]).and(LOADING_STALE),
        run: Some(time),
        ..SERVER
    },
];

fn time(context: &mut Context<'_>) -> Result<(), Error> {
    let now = context.host.time_of_day();
    context.reply.array(2);
    context.reply.bulk(now.as_secs().to_string().as_bytes());
    context.reply.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(())
}

fn role(context: &mut Context<'_>) -> Result<(), Error> {
    if let Some(master) = own_master(context) {
        let reply = &mut context.reply;
        reply.array(5);
        reply.bulk(b"slave");
        reply.bulk(master.at.host.as_bytes());
        reply.integer(i64::from(master.at.client));
        reply.bulk(b"connected");
        reply.integer(0);
        return Ok(());
    }
    context.reply.array(3);
    context.reply.bulk(b"master");
    context.reply.integer(0);
    context.reply.array(0);
    Ok(())
}

fn monitor(context: &mut Context<'_>) -> Result<(), Error> {
    context.host.start_monitor(context.session);
    context.reply.ok();
    Ok(())
}

/// The options of SHUTDOWN.
#[derive(Default)]
struct ShutdownOptions {
    save: bool,
    no_save: bool,
    /// NOW or FORCE; both have no effect: there is nothing to wait for and nothing that can fail.
    haste: bool,
    abort: bool,
}

fn shutdown(context: &mut Context<'_>) -> Result<(), Error> {
    let mut options = ShutdownOptions::default();
    for word in context.args.from(1) {
        match word.to_ascii_lowercase().as_slice() {
            b"save" => options.save = true,
            b"nosave" => options.no_save = true,
            b"now" | b"force" => options.haste = true,
            b"abort" => options.abort = true,
            _ => return Err(Error::SYNTAX),
        }
    }
    let ShutdownOptions { save, no_save, haste, abort } = options;
    if (abort && (save || no_save || haste)) || (save && no_save) {
        return Err(Error::SYNTAX);
    }
    if abort {
        return Err(Error::fixed("ERR No shutdown in progress."));
    }
    if save {
        return Err(Error::fixed(
            "ERR Errors trying to SHUTDOWN: data is in memory only and cannot be saved; \
             SHUTDOWN NOSAVE stops the node without it",
        ));
    }
    context.host.shut_down();
    context.session.closing = true;
    Ok(())
}

#[cfg(test)]
mod tests;
