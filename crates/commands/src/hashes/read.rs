//! Reads fields: HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HSTRLEN, HEXISTS.

use resp::Reply;
use store::{Element, LiveHash};

use super::{hash_of, reply_element};
use crate::Error;
use crate::context::Context;

pub(super) fn hget(context: &mut Context<'_>) -> Result<(), Error> {
    with_field(context, reply_or_null)
}

pub(super) fn hstrlen(context: &mut Context<'_>) -> Result<(), Error> {
    with_field(context, |reply, value| {
        reply.integer(value.map_or(0, Element::len).cast_signed() as i64);
    })
}

pub(super) fn hexists(context: &mut Context<'_>) -> Result<(), Error> {
    with_field(context, |reply, value| reply.integer(value.is_some().into()))
}

/// Looks up the field named by the second argument, and lets `answer` write the reply.
fn with_field(
    context: &mut Context<'_>,
    answer: impl FnOnce(&mut Reply<'_>, Option<Element<'_>>),
) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let now = context.keys.now_in(key.slot());
    match context.keys.read(&key) {
        Some(found) => {
            let value = hash_of(&found, now)?.get(context.args.at(2), seed);
            answer(&mut context.reply, value);
        }
        None => answer(&mut context.reply, None),
    }
    Ok(())
}

fn reply_or_null(reply: &mut Reply<'_>, value: Option<Element<'_>>) {
    match value {
        Some(value) => reply_element(reply, value),
        None => reply.null(),
    }
}

pub(super) fn hmget(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let now = context.keys.now_in(key.slot());
    let hash = context.keys.read(&key).map(|found| hash_of(&found, now)).transpose()?;
    context.reply.array(context.args.len() - 2);
    for field in context.args.from(2) {
        reply_or_null(&mut context.reply, hash.and_then(|hash| hash.get(field, seed)));
    }
    Ok(())
}

pub(super) fn hlen(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let hash = context.keys.read(&key).map(|found| hash_of(&found, now)).transpose()?;
    context.reply.integer(hash.map_or(0, LiveHash::len).cast_signed() as i64);
    Ok(())
}

pub(super) fn hgetall(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let Some(found) = context.keys.read(&key) else {
        context.reply.map(0);
        return Ok(());
    };
    let hash = hash_of(&found, now)?;
    context.reply.map(hash.len());
    for (field, value) in hash.pairs() {
        reply_element(&mut context.reply, field);
        reply_element(&mut context.reply, value);
    }
    Ok(())
}

pub(super) fn hkeys(context: &mut Context<'_>) -> Result<(), Error> {
    list(context, |(field, _)| field)
}

pub(super) fn hvals(context: &mut Context<'_>) -> Result<(), Error> {
    list(context, |(_, value)| value)
}

/// Replies with one element of each pair.
fn list(
    context: &mut Context<'_>,
    choose: impl for<'e> Fn((Element<'e>, Element<'e>)) -> Element<'e>,
) -> Result<(), Error> {
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let Some(found) = context.keys.read(&key) else {
        context.reply.array(0);
        return Ok(());
    };
    let hash = hash_of(&found, now)?;
    context.reply.array(hash.len());
    for pair in hash.pairs() {
        reply_element(&mut context.reply, choose(pair));
    }
    Ok(())
}
