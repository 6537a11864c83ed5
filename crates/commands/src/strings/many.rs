//! MGET, MSET, MSETNX, MSETEX: several keys at once.

use settings::NotifyClasses;
use store::UnixMillis;

use super::options::{Lifetime, SetCondition, SetOptions};
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

pub(super) fn msetex(context: &mut Context<'_>) -> Result<(), Error> {
    let count = context.integer(context.spec.key_count_at).ok();
    let is_count = |count: &i64| (1..=i64::from(i32::MAX)).contains(count);
    if !count.is_some_and(|count| is_count(&count)) {
        return Err(Error::fixed("ERR invalid numkeys value or out of range"));
    }
    let pairs = context.spec.counted_keys(context.args);
    if pairs.is_empty() {
        return Err(Error::SYNTAX);
    }
    let options = SetOptions::parse(context.args, pairs.end)?;
    if options.returns_old || matches!(options.condition, SetCondition::IfEqual(_)) {
        return Err(Error::SYNTAX);
    }
    let keys = pairs.step_by(context.spec.key_step);
    let mut deadlines = Vec::with_capacity(keys.len());
    for index in keys.clone() {
        let now = context.keys.now_in(context.key(index).slot());
        deadlines.push(options.lifetime.resolve(now, context.spec.full_name)?);
    }
    for index in keys.clone() {
        let key = context.key(index);
        if !options.condition.allows(context.keys.find(&key).as_ref())? {
            context.reply.integer(0);
            return Ok(());
        }
    }
    for (index, deadline) in keys.zip(deadlines) {
        set_until(context, index, options.lifetime, deadline);
    }
    context.reply.integer(1);
    Ok(())
}

/// Sets the key at `index` to the string after it.
fn set_until(
    context: &mut Context<'_>,
    index: usize,
    lifetime: Lifetime<'_>,
    deadline: Option<UnixMillis>,
) {
    let key = context.key(index);
    let expires_at = match lifetime {
        Lifetime::Keep => context.keys.find(&key).and_then(|found| found.expires_at),
        Lifetime::Unsaid | Lifetime::Persist | Lifetime::Until(_) => deadline,
    };
    put(&mut context.keys, &key, text_value(context.args.at(index + 1)), expires_at);
    context.keys.notify(NotifyClasses::STRING, "set", key.bytes());
    if deadline.is_some() {
        context.keys.notify(NotifyClasses::GENERIC, "expire", key.bytes());
    }
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
