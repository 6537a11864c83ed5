//! SET, SETNX, SETEX, PSETEX, GETSET.

use settings::NotifyClasses;
use store::Effect;

use super::options::{Deadline, DeadlineUnit, Lifetime, SetOptions};
use super::{put, reply_string, string_of, text_value};
use crate::Error;
use crate::context::Context;

pub(super) fn set(context: &mut Context<'_>) -> Result<(), Error> {
    if context.args.len() > 3 {
        return set_with_options(context);
    }
    let key = context.key(1);
    put(&mut context.keys, &key, text_value(context.args.at(2)), None);
    context.keys.notify(NotifyClasses::STRING, "set", key.bytes());
    context.reply.ok();
    Ok(())
}

fn set_with_options(context: &mut Context<'_>) -> Result<(), Error> {
    let options = SetOptions::parse(context.args, 3)?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let deadline = options.lifetime.resolve(now, context.spec.full_name)?;
    if options.returns_old {
        reply_old(context)?;
    }
    // `Some` if the key exists; inside, its expiry if it has one.
    let found = context.keys.find(&key);
    let is_allowed = options.condition.allows(found.as_ref())?;
    let present = found.map(|found| found.expires_at);
    if !is_allowed {
        if !options.returns_old {
            context.reply.null();
        }
        return Ok(());
    }
    let expires_at = match options.lifetime {
        Lifetime::Keep => present.flatten(),
        Lifetime::Unsaid | Lifetime::Persist | Lifetime::Until(_) => deadline,
    };
    let value = text_value(context.args.at(2));
    context.keys.apply(&Effect::Put { key, value, expires_at });
    context.keys.notify(NotifyClasses::STRING, "set", key.bytes());
    if deadline.is_some() {
        context.keys.notify(NotifyClasses::GENERIC, "expire", key.bytes());
    }
    if !options.returns_old {
        context.reply.ok();
    }
    Ok(())
}

pub(super) fn setnx(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    if context.keys.find(&key).is_some() {
        context.reply.integer(0);
        return Ok(());
    }
    let value = text_value(context.args.at(2));
    context.keys.apply(&Effect::Put { key, value, expires_at: None });
    context.keys.notify(NotifyClasses::STRING, "set", key.bytes());
    context.reply.integer(1);
    Ok(())
}

pub(super) fn setex(context: &mut Context<'_>) -> Result<(), Error> {
    set_for(context, DeadlineUnit::Seconds)
}

pub(super) fn psetex(context: &mut Context<'_>) -> Result<(), Error> {
    set_for(context, DeadlineUnit::Millis)
}

/// Runs `SETEX key lifetime value`.
fn set_for(context: &mut Context<'_>, clock: DeadlineUnit) -> Result<(), Error> {
    let deadline = Deadline { clock, number: context.args.at(2) };
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let expires_at = deadline.resolve(now, context.spec.full_name)?;
    put(&mut context.keys, &key, text_value(context.args.at(3)), Some(expires_at));
    context.keys.notify(NotifyClasses::STRING, "set", key.bytes());
    context.keys.notify(NotifyClasses::GENERIC, "expire", key.bytes());
    context.reply.ok();
    Ok(())
}

pub(super) fn getset(context: &mut Context<'_>) -> Result<(), Error> {
    reply_old(context)?;
    let key = context.key(1);
    put(&mut context.keys, &key, text_value(context.args.at(2)), None);
    context.keys.notify(NotifyClasses::STRING, "set", key.bytes());
    Ok(())
}

fn reply_old(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    match context.keys.read(&key) {
        Some(found) => reply_string(&mut context.reply, string_of(&found)?),
        None => context.reply.null(),
    }
    Ok(())
}
