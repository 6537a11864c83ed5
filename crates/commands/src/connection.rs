//! Commands about the connection itself.

use crate::Error;
use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "ping",
    full_name: "ping",
    summary: "Answers PONG, or the message it is given.",
    group: Group::Connection,
    arity: -1,
    flags: Flags::of(&[Flag::Fast, Flag::InSubscribed]),
    run: Some(ping),
    ..BLANK
}];

fn ping(context: &mut Context<'_>) -> Result<(), Error> {
    match context.args.get(1) {
        None => context.reply.pong(),
        Some(message) => context.reply.bulk(message),
    }
    Ok(())
}
