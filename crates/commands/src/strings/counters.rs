//! Strings that are numbers: INCR and its variants. They keep the key's expiry.

use settings::NotifyClasses;
use store::{Effect, NewValue, StringValue};

use super::extended::Extended;
use super::{string_of, with_bytes};
use crate::Error;
use crate::context::Context;

pub(super) fn incr(context: &mut Context<'_>) -> Result<(), Error> {
    add(context, 1)
}

pub(super) fn decr(context: &mut Context<'_>) -> Result<(), Error> {
    add(context, -1)
}

pub(super) fn incrby(context: &mut Context<'_>) -> Result<(), Error> {
    let amount = context.integer(2)?;
    add(context, amount)
}

pub(super) fn decrby(context: &mut Context<'_>) -> Result<(), Error> {
    let amount = context.integer(2)?;
    let amount =
        amount.checked_neg().ok_or(const { Error::fixed("ERR decrement would overflow") })?;
    add(context, amount)
}

fn add(context: &mut Context<'_>, amount: i64) -> Result<(), Error> {
    let key = context.key(1);
    let present = match context.keys.find(&key) {
        Some(found) => Some((integer_of(string_of(&found)?)?, found.expires_at)),
        None => None,
    };
    let (old, expires_at) = present.unwrap_or((0, None));
    let sum = old.checked_add(amount).ok_or(Error::OVERFLOW)?;
    context.keys.apply(&Effect::Put { key, value: NewValue::Integer(sum), expires_at });
    context.keys.notify(NotifyClasses::STRING, "incrby", key.bytes());
    context.reply.integer(sum);
    Ok(())
}

/// Returns the value as a number. A string computed by a command may be a number too.
fn integer_of(value: StringValue<'_>) -> Result<i64, Error> {
    match value {
        StringValue::Integer(number) => Ok(number),
        StringValue::Bytes(bytes) => resp::parse_integer(bytes).ok_or(Error::NOT_AN_INTEGER),
        StringValue::Shared(_) => Err(Error::NOT_AN_INTEGER),
    }
}

pub(super) fn incrbyfloat(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let present = match context.keys.find(&key) {
        Some(found) => {
            let number = with_bytes(string_of(&found)?, Extended::parse);
            Some((number.ok_or(Error::NOT_A_FLOAT)?, found.expires_at))
        }
        None => None,
    };
    let (old, expires_at) = present.unwrap_or((Extended::ZERO, None));
    let amount = Extended::parse(context.args.at(2)).ok_or(Error::NOT_A_FLOAT)?;
    let sum = old
        .plus(amount)
        .filter(|sum| sum.is_finite())
        .ok_or(const { Error::fixed("ERR increment would produce NaN or Infinity") })?;
    let text = sum.to_text();
    // Never stored as a number, even if it is one: Redis does not either, and OBJECT ENCODING shows it.
    let value = NewValue::Plain(text.as_bytes());
    context.keys.apply(&Effect::Put { key, value, expires_at });
    context.keys.notify(NotifyClasses::STRING, "incrbyfloat", key.bytes());
    context.reply.bulk(text.as_bytes());
    Ok(())
}
