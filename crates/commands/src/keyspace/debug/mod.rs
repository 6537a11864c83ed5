//! DEBUG, as far as it helps to test clients and to compare servers. Nothing in it crashes a node or harms its
//! data.
mod digest; //   Fingerprints of the content.
mod protocol; // A reply of every type.
mod sha1; //     The hash behind the fingerprints.

use core::net::SocketAddr;
use core::time::Duration;

use settings::DebugClients;

use crate::context::Context;
use crate::glob::glob_matches;
use crate::keyspace::object::reference_count;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};
use crate::{ActiveExpiry, Error, rdb};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "debug",
    full_name: "debug",
    summary: "Tests and compares servers.",
    syntax: "subcommand [arg [arg ...]]",
    group: Group::Server,
    complexity: "Depends on subcommand.",
    arity: -2,
    flags: Flags::of(&[
        Flag::Admin,
        Flag::NoScript,
        Flag::Loading,
        Flag::Stale,
        Flag::Dangerous,
        Flag::WholeKeyspace,
    ]),
    run: Some(debug),
    ..BLANK
}];

/// Runs DEBUG. As in Redis, its subcommands are not subcommands of the table: `COMMAND` does not list them, and one
/// with too few arguments counts as unknown.
fn debug(context: &mut Context<'_>) -> Result<(), Error> {
    check_allowed(context)?;
    let name = context.args.at(1);
    match (name.to_ascii_lowercase().as_slice(), context.args.len()) {
        (b"digest", 2) => digest::digest(context),
        (b"digest-value", 2..) => digest::digest_value(context),
        (b"help", 2) => help(context),
        (b"object", 3) => object(context),
        (b"object", 4) if context.args.at(3).eq_ignore_ascii_case(b"fast") => object(context),
        (b"protocol", 3) => protocol::protocol(context),
        (b"set-active-expire", 3) => set_active_expire(context),
        (b"sleep", 3) => sleep(context),
        (b"stringmatch-len", 4) => stringmatch(context),
        _ => Err(Error::wrong_subcommand_arity("DEBUG", name)),
    }
}

/// Refuses DEBUG unless the setting allows it to this client.
fn check_allowed(context: &Context<'_>) -> Result<(), Error> {
    let is_local = || {
        let address = context.host.this_client(context.session).address;
        address.parse().is_ok_and(|address: SocketAddr| address.ip().to_canonical().is_loopback())
    };
    let is_allowed = match context.host.settings().enable_debug_command {
        DebugClients::Nobody => false,
        DebugClients::Local => is_local(),
        DebugClients::All => true,
    };
    if is_allowed { Ok(()) } else { Err(NOT_ALLOWED) }
}

/// Redis's words.
const NOT_ALLOWED: Error = Error::fixed(
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you \
     can run it from a local connection, otherwise you need to set this option in the \
     configuration file, and then restart the server.",
);

const HELP: &[&str] = &[
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DIGEST",
    "    A fingerprint of all keys; the same on a Redis server with the same keys.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    A fingerprint of each key's value.",
    "OBJECT <key>",
    "    Shows how a value is stored and when it was accessed.",
    "PROTOCOL <type>",
    "    A reply of this type: string, integer, double, bignum, null, array, set, map,",
    "    attrib, push, verbatim, true, false.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    0: expired keys are removed only when they are accessed. 1: at once.",
    "SLEEP <seconds>",
    "    Stop serving for some seconds. Decimals allowed.",
    "STRINGMATCH-LEN <pattern> <text>",
    "    Reports whether the text matches the pattern.",
    "HELP",
    "    Prints this help.",
];

fn help(context: &mut Context<'_>) -> Result<(), Error> {
    context.reply.array(HELP.len());
    HELP.iter().for_each(|line| context.reply.simple(line));
    Ok(())
}

fn object(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(2);
    let now = context.keys.now();
    let found = context.keys.peek(&key).ok_or(Error::NO_SUCH_KEY)?;
    let idle = u64::from(found.item.mark().idle_seconds(now));
    let told = format!(
        "Value at:slot-{} refcount:{} encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
        key.slot().number(),
        reference_count(&found),
        found.item.encoding().name(),
        rdb::serialized_len(found.value()),
        (now.0 / 1_000).wrapping_sub(idle) & 0x00FF_FFFF,
        idle,
    );
    context.reply.simple(&told);
    Ok(())
}

fn set_active_expire(context: &mut Context<'_>) -> Result<(), Error> {
    // Anything that is not a number counts as 0, as in Redis.
    let number = context.integer(2).unwrap_or(0);
    context.host.set_active_expiry(if number == 0 { ActiveExpiry::Off } else { ActiveExpiry::On });
    context.reply.ok();
    Ok(())
}

fn sleep(context: &mut Context<'_>) -> Result<(), Error> {
    let seconds = core::str::from_utf8(context.args.at(2)).ok().and_then(|text| text.parse().ok());
    let pause = Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default();
    context.host.sleep(pause);
    context.reply.ok();
    Ok(())
}

fn stringmatch(context: &mut Context<'_>) -> Result<(), Error> {
    let matches = glob_matches(context.args.at(2), context.args.at(3));
    context.reply.integer(i64::from(matches));
    Ok(())
}

#[cfg(test)]
mod tests;
