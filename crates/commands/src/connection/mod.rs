//! Commands about the connection itself: PING, ECHO, SELECT, QUIT, RESET; `auth.rs` has AUTH and HELLO. CLIENT, in
//! `client/`, is about other connections too.
mod auth;

pub(crate) use auth::REDIS_VERSION;

use store::Database;

use crate::Error;
use crate::context::Context;
use crate::pubsub;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};

/// Flags of commands that any connection may run at any time, such as at its beginning and end.
const ANYTIME: Flags = Flags::of(&[
    Flag::NoScript,
    Flag::Loading,
    Flag::Stale,
    Flag::Fast,
    Flag::NoAuth,
    Flag::AllowBusy,
]);
const LOADING_STALE_FAST: Flags = Flags::of(&[Flag::Loading, Flag::Stale, Flag::Fast]);

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "auth",
        full_name: "auth",
        summary: "Authenticates the connection.",
        syntax: "[username] password",
        group: Group::Connection,
        complexity: "O(N) where N is the number of passwords defined for the user",
        arity: -2,
        flags: ANYTIME,
        run: Some(auth::auth),
        ..BLANK
    },
    Spec {
        name: "echo",
        full_name: "echo",
        summary: "Returns the given message.",
        syntax: "message",
        group: Group::Connection,
        arity: 2,
        flags: LOADING_STALE_FAST,
        run: Some(echo),
        ..BLANK
    },
    Spec {
        name: "hello",
        full_name: "hello",
        summary: "Chooses the protocol version; optionally authenticates and names the connection.",
        syntax: "[protover [AUTH username password] [SETNAME clientname]]",
        since: "6.0.0",
        group: Group::Connection,
        arity: -1,
        flags: ANYTIME,
        run: Some(auth::hello),
        ..BLANK
    },
    Spec {
        name: "ping",
        full_name: "ping",
        summary: "Returns PONG, or the given message.",
        syntax: "[message]",
        group: Group::Connection,
        arity: -1,
        flags: Flags::of(&[Flag::Fast, Flag::InSubscribed]),
        run: Some(ping),
        ..BLANK
    },
    Spec {
        name: "quit",
        full_name: "quit",
        summary: "Closes the connection once its replies are sent.",
        group: Group::Connection,
        arity: -1,
        flags: Flags::of(&[Flag::InSubscribed, Flag::NotQueued]).and(ANYTIME),
        run: Some(quit),
        ..BLANK
    },
    Spec {
        name: "reset",
        full_name: "reset",
        summary: "Resets the connection to its initial state.",
        since: "6.2.0",
        group: Group::Connection,
        arity: 1,
        flags: Flags::of(&[Flag::InSubscribed, Flag::NotQueued]).and(ANYTIME),
        run: Some(reset),
        ..BLANK
    },
    Spec {
        name: "select",
        full_name: "select",
        summary: "Chooses the database of the connection.",
        syntax: "index",
        group: Group::Connection,
        arity: 2,
        flags: LOADING_STALE_FAST,
        run: Some(select),
        ..BLANK
    },
];

fn ping(context: &mut Context<'_>) -> Result<(), Error> {
    if context.args.len() > 2 {
        return Err(Error::wrong_arity(context.spec.full_name));
    }
    let message = context.args.get(1);
    // A subscribed RESP2 client cannot tell a plain reply from a message: both are arrays there.
    if context.session.hears_only() {
        context.reply.array(2);
        context.reply.bulk(b"pong");
        context.reply.bulk(message.unwrap_or_default());
        return Ok(());
    }
    match message {
        None => context.reply.pong(),
        Some(message) => context.reply.bulk(message),
    }
    Ok(())
}

fn echo(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.bulk(context.args.at(1));
    Ok(())
}

fn quit(context: &mut Context<'_>) -> Result<(), Error> {
    context.session.closing = true;
    context.reply.ok();
    Ok(())
}

fn reset(context: &mut Context<'_>) -> Result<(), Error> {
    pubsub::silence(context.session, context.host);
    context.session.reset();
    context.session.authenticated = !context.keys.env().password_required;
    context.reply.simple("RESET");
    Ok(())
}

fn select(context: &mut Context<'_>) -> Result<(), Error> {
    context.session.database = database_at(context, 1)?;
    context.reply.ok();
    Ok(())
}

/// Returns the argument at `index` as the number of a database.
pub(crate) fn database_at(context: &Context<'_>, index: usize) -> Result<Database, Error> {
    let number = i32::try_from(context.integer(index)?).map_err(|_| Error::NOT_AN_I32)?;
    database_of(context, number)
}

/// Returns the database of a number, if there are so many (setting `databases`).
pub(crate) fn database_of(context: &Context<'_>, number: i32) -> Result<Database, Error> {
    let number = u16::try_from(number).ok().filter(|it| *it < context.host.settings().databases);
    number.and_then(Database::new).ok_or(Error::fixed("ERR DB index is out of range"))
}

#[cfg(test)]
mod tests;
