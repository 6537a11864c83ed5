//! Authentication: AUTH and HELLO. There is one user, `default`, and its password is `requirepass`.

use resp::Protocol;
use subtle::ConstantTimeEq;

use crate::Error;
use crate::client::checked_name;
use crate::cluster::own_master;
use crate::context::Context;

/// The version of Redis that we are compatible with; clients query it to know which features they may use.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

const USER: &[u8] = b"default";
const WRONG_PASSWORD: Error =
    Error::fixed("WRONGPASS invalid username-password pair or user is disabled.");

/// The password was not looked at.
const TOO_MANY_WRONG: Error =
    Error::fixed("ERR too many wrong passwords from this address, wait ten seconds");

/// The user name and password a client presents.
struct Credentials<'a> {
    user: &'a [u8],
    password: &'a [u8],
}

pub(super) fn auth(context: &mut Context<'_>) -> Result<(), Error> {
    let args = context.args;
    let credentials = match args.len() {
        2 => {
            if context.host.settings().requirepass.is_empty() {
                return Err(Error::fixed(
                    "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?",
                ));
            }
            Credentials { user: USER, password: args.at(1) }
        }
        3 => Credentials { user: args.at(1), password: args.at(2) },
        _ => return Err(Error::SYNTAX),
    };
    log_in(context, &credentials)?;
    context.reply.ok();
    Ok(())
}

fn log_in(context: &mut Context<'_>, credentials: &Credentials<'_>) -> Result<(), Error> {
    let settings = context.host.settings();
    let wanted = settings.requirepass.expose().as_bytes();
    if !wanted.is_empty() && !context.host.may_log_in() {
        context.session.closing = true;
        return Err(TOO_MANY_WRONG);
    }
    // Compared in constant time, so that the response time does not reveal how much of a guess was right.
    let right = wanted.is_empty() || bool::from(wanted.ct_eq(credentials.password));
    if credentials.user != USER || !right {
        if !wanted.is_empty() {
            context.host.note_wrong_password();
        }
        return Err(WRONG_PASSWORD);
    }
    context.session.authenticated = true;
    Ok(())
}

pub(super) fn hello(context: &mut Context<'_>) -> Result<(), Error> {
    let wanted = wanted_protocol(context)?;
    let mut credentials = None;
    let mut name = None;
    let mut at = 2;
    while let Some(option) = context.args.get(at) {
        let behind = |distance: usize| context.args.get(at + distance);
        if let (true, Some(user), Some(password)) =
            (option.eq_ignore_ascii_case(b"auth"), behind(1), behind(2))
        {
            credentials = Some(Credentials { user, password });
            at += 3;
        } else if let (true, Some(given)) = (option.eq_ignore_ascii_case(b"setname"), behind(1)) {
            name = Some(checked_name(given)?);
            at += 2;
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(Error::new(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if let Some(credentials) = credentials {
        log_in(context, &credentials)?;
    }
    if context.keys.env().password_required && !context.session.authenticated {
        return Err(Error::fixed(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        context.session.name = name;
        context.session.texts_changed = true;
    }
    if let Some(protocol) = wanted {
        context.session.protocol = protocol;
    }
    reply_hello(context);
    Ok(())
}

fn wanted_protocol(context: &Context<'_>) -> Result<Option<Protocol>, Error> {
    let Some(version) = context.args.get(1) else { return Ok(None) };
    match resp::parse_integer(version) {
        Some(2) => Ok(Some(Protocol::Resp2)),
        Some(3) => Ok(Some(Protocol::Resp3)),
        Some(_) => Err(Error::fixed("NOPROTO unsupported protocol version")),
        None => Err(Error::fixed("ERR Protocol version is not an integer or out of range")),
    }
}

fn reply_hello(context: &mut Context<'_>) {
    let role = if own_master(context).is_some() { "replica" } else { "master" };
    let reply = &mut context.reply;
    reply.protocol = context.session.protocol;
    let mode = if context.keys.env().one_slot_only { "cluster" } else { "standalone" };
    reply.map(7);
    for (key, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(match context.session.protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    });
    reply.bulk(b"id");
    reply.integer(context.session.id.cast_signed());
    for (key, value) in [("mode", mode), ("role", role)] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}
