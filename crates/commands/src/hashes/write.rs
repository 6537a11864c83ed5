//! Changes fields: HSET, HSETNX, HMSET, HDEL, HINCRBY, HINCRBYFLOAT. They keep the key's expiry. HSET removes the deadline
//! of a field, HINCRBY keeps it.

use std::collections::BTreeSet;

use settings::NotifyClasses;
use store::{Effect, Element, LiveHash, UnixMillis, write_field};

use super::fields::{number, remove_fields};
use super::hash_of;
use crate::Error;
use crate::context::Context;
use crate::strings::Extended;

pub(super) fn hset(context: &mut Context<'_>) -> Result<(), Error> {
    let created = set_pairs(context)?;
    context.reply.integer(created);
    Ok(())
}

pub(super) fn hmset(context: &mut Context<'_>) -> Result<(), Error> {
    set_pairs(context)?;
    context.reply.ok();
    Ok(())
}

/// Sets all pairs of arguments. Returns the number of fields that are new.
fn set_pairs(context: &mut Context<'_>) -> Result<i64, Error> {
    let args = context.args;
    if !args.len().is_multiple_of(2) {
        return Err(Error::wrong_arity(context.spec.full_name));
    }
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let now = context.keys.now_in(key.slot());
    let hash = context.keys.find(&key).map(|found| hash_of(&found, now)).transpose()?;
    let is_missing = |field: &[u8]| hash.is_none_or(|hash| hash.get(field, seed).is_none());
    let fields = args.from(2).step_by(2);
    let created = if args.len() == 4 {
        usize::from(is_missing(args.at(2)))
    } else {
        // A field may be given twice; its last value stays.
        fields.filter(|field| is_missing(field)).collect::<BTreeSet<_>>().len()
    };
    let pairs = row_of(args.from(2));
    context.keys.apply(&Effect::SetFields { key, pairs: &pairs });
    context.keys.notify(NotifyClasses::HASH, "hset", key.bytes());
    Ok(number(created))
}

pub(super) fn hsetnx(context: &mut Context<'_>) -> Result<(), Error> {
    let (value, is_new) = (context.args.at(3), value_of(context)?.is_none());
    if is_new {
        set_one(context, value, None, "hset");
    }
    context.reply.integer(is_new.into());
    Ok(())
}

pub(super) fn hdel(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let now = context.keys.now_in(key.slot());
    let Some(hash) = context.keys.find(&key).map(|found| hash_of(&found, now)).transpose()? else {
        context.reply.integer(0);
        return Ok(());
    };
    let present = context.args.from(2).filter(|field| hash.get(field, seed).is_some());
    let present: BTreeSet<&[u8]> = present.collect();
    let len = hash.len();
    remove_fields(context, &present, len, "hdel");
    context.reply.integer(number(present.len()));
    Ok(())
}

pub(super) fn hincrby(context: &mut Context<'_>) -> Result<(), Error> {
    let amount = context.integer(3)?;
    let (old, deadline) = match value_of(context)? {
        Some((Element::Integer(number), deadline)) => (number, deadline),
        Some((Element::Bytes(_), _)) => {
            return Err(Error::fixed("ERR hash value is not an integer"));
        }
        None => (0, None),
    };
    let sum = old.checked_add(amount).ok_or(Error::OVERFLOW)?;
    set_one(context, itoa::Buffer::new().format(sum).as_bytes(), deadline, "hincrby");
    context.reply.integer(sum);
    Ok(())
}

pub(super) fn hincrbyfloat(context: &mut Context<'_>) -> Result<(), Error> {
    let amount = Extended::parse(context.args.at(3)).ok_or(Error::NOT_A_FLOAT)?;
    if !amount.is_finite() {
        return Err(Error::fixed("ERR value is NaN or Infinity"));
    }
    let (old, deadline) = match value_of(context)? {
        Some((value, deadline)) => {
            let parsed = value.with_text(Extended::parse);
            (parsed.ok_or(const { Error::fixed("ERR hash value is not a float") })?, deadline)
        }
        None => (Extended::ZERO, None),
    };
    let sum = old
        .plus(amount)
        .filter(|sum| sum.is_finite())
        .ok_or(const { Error::fixed("ERR increment would produce NaN or Infinity") })?;
    let text = sum.to_text();
    set_one(context, text.as_bytes(), deadline, "hincrbyfloat");
    context.reply.bulk(text.as_bytes());
    Ok(())
}

/// Returns the value of the field named by the second argument, and its deadline, for a command that is about to write
/// it.
fn value_of<'c>(
    context: &'c mut Context<'_>,
) -> Result<Option<(Element<'c>, Option<UnixMillis>)>, Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let now = context.keys.now_in(key.slot());
    let field = context.args.at(2);
    let hash: Option<LiveHash<'c>> =
        context.keys.find(&key).map(|found| hash_of(&found, now)).transpose()?;
    Ok(hash.and_then(|hash| Some((hash.get(field, seed)?, hash.deadline(field, seed)?))))
}

/// Sets the field named by the second argument, and publishes the event.
fn set_one(
    context: &mut Context<'_>,
    value: &[u8],
    deadline: Option<UnixMillis>,
    event: &'static str,
) {
    let key = context.key(1);
    let mut pairs = Vec::new();
    let (field, value) = (Element::of(context.args.at(2)), Element::of(value));
    write_field(field, deadline.map(|at| at.0), value, &mut pairs);
    context.keys.apply(&Effect::SetFields { key, pairs: &pairs });
    context.keys.notify(NotifyClasses::HASH, event, key.bytes());
}

/// Returns these texts as elements in a row.
pub(crate) fn row_of<'a>(texts: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    // An element's head takes up to five bytes; most take one or two.
    let bytes: usize = texts.clone().map(|text| text.len() + 2).sum();
    let mut row = Vec::with_capacity(bytes);
    texts.for_each(|text| Element::of(text).write(&mut row));
    row
}
