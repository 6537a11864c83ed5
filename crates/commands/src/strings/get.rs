//! GET, and the commands that read a string and then change its key.

use settings::NotifyClasses;
use store::{Cause, Effect};

use super::options::is_equal;
use super::options::{Lifetime, getex_lifetime};
use super::{reply_string, string_of};
use crate::Error;
use crate::context::Context;

pub(super) fn get(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    match context.keys.read(&key) {
        Some(found) => reply_string(&mut context.reply, string_of(&found)?),
        None => context.reply.null(),
    }
    Ok(())
}

pub(super) fn strlen(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let len = match context.keys.read(&key) {
        Some(found) => string_of(&found)?.len(),
        None => 0,
    };
    context.reply.integer(len.cast_signed() as i64);
    Ok(())
}

pub(super) fn getdel(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let Some(found) = context.keys.read(&key) else {
        context.reply.null();
        return Ok(());
    };
    reply_string(&mut context.reply, string_of(&found)?);
    delete(context);
    Ok(())
}

pub(super) fn delifeq(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, args) = (context.key(1), context.args);
    let found = context.keys.find(&key);
    let is_equal = found.map_or(Ok(false), |found| is_equal(&found, args.at(2)))?;
    if is_equal {
        delete(context);
    }
    context.reply.integer(is_equal.into());
    Ok(())
}

pub(super) fn getex(context: &mut Context<'_>) -> Result<(), Error> {
    let lifetime = getex_lifetime(context.args)?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let Some(found) = context.keys.read(&key) else {
        context.reply.null();
        return Ok(());
    };
    let value = string_of(&found)?;
    // Only now, as in Redis: for a missing key it does not report a bad number.
    let deadline = lifetime.resolve(now, context.spec.full_name)?;
    let expires = found.expires_at.is_some();
    reply_string(&mut context.reply, value);
    match lifetime {
        Lifetime::Until(_) if deadline.is_some_and(|at| at <= now) => delete(context),
        Lifetime::Until(_) => {
            context.keys.apply(&Effect::Expire { key, at: deadline });
            context.keys.notify(NotifyClasses::GENERIC, "expire", key.bytes());
        }
        Lifetime::Persist if expires => {
            context.keys.apply(&Effect::Expire { key, at: None });
            context.keys.notify(NotifyClasses::GENERIC, "persist", key.bytes());
        }
        Lifetime::Persist | Lifetime::Keep | Lifetime::Unsaid => {}
    }
    Ok(())
}

/// Removes the first key, which exists.
fn delete(context: &mut Context<'_>) {
    let key = context.key(1);
    context.keys.apply(&Effect::Remove { key, cause: Cause::Deleted });
    context.keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
}
