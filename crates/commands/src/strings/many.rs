//! MGET, MSET, MSETNX: several keys at once.

use settings::NotifyClasses;

use super::{put, reply_string, text_value};
use crate::Error;
use crate::context::Context;

pub(super) fn mget(context: &mut Context<'_>) -> Result<(), Error> {
    let count = context.args.len();
    context.reply.array(count - 1);
    for index in 1..count {
        let key = context.key(index);
        match context.keys.read(&key).and_then(|found| found.string()) {
            Some(value) => reply_string(&mut context.reply, value),
            // Also for a key of another type.
            None => context.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn mset(context: &mut Context<'_>) -> Result<(), Error> {
    check_pairs(context)?;
    set_pairs(context);
    context.reply.ok();
    Ok(())
}

pub(super) fn msetnx(context: &mut Context<'_>) -> Result<(), Error> {
    check_pairs(context)?;
    for index in (1..context.args.len()).step_by(2) {
        let key = context.key(index);
        if context.keys.find(&key).is_some() {
            context.reply.integer(0);
            return Ok(());
        }
    }
    set_pairs(context);
    context.reply.integer(1);
    Ok(())
}

fn check_pairs(context: &Context<'_>) -> Result<(), Error> {
    let whole = context.args.len() % 2 == 1;
    if whole { Ok(()) } else { Err(Error::wrong_arity(context.spec.full_name)) }
}

/// Sets each pair by its own effect, in order: if a key is given twice, the last value stays.
fn set_pairs(context: &mut Context<'_>) {
    for index in (1..context.args.len()).step_by(2) {
        let key = context.key(index);
        put(&mut context.keys, &key, text_value(context.args.at(index + 1)), None);
        context.keys.notify(NotifyClasses::STRING, "set", key.bytes());
    }
}
