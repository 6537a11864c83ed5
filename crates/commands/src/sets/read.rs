//! Reads members: SCARD, SISMEMBER, SMISMEMBER, SMEMBERS.

use store::{Element, SetValue};

use super::set_of;
use crate::Error;
use crate::context::Context;
use crate::hashes::reply_element;

pub(super) fn scard(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let set = context.keys.read(&key).map(|found| set_of(&found)).transpose()?;
    context.reply.integer(set.map_or(0, SetValue::len).cast_signed() as i64);
    Ok(())
}

pub(super) fn sismember(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let set = context.keys.read(&key).map(|found| set_of(&found)).transpose()?;
    let member = Element::of(context.args.at(2));
    context.reply.integer(set.is_some_and(|set| set.contains(member, seed)).into());
    Ok(())
}

pub(super) fn smismember(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let set = context.keys.read(&key).map(|found| set_of(&found)).transpose()?;
    context.reply.array(context.args.len() - 2);
    for text in context.args.from(2) {
        let is_member = set.is_some_and(|set| set.contains(Element::of(text), seed));
        context.reply.integer(is_member.into());
    }
    Ok(())
}

pub(super) fn smembers(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let Some(found) = context.keys.read(&key) else {
        context.reply.set(0);
        return Ok(());
    };
    let set = set_of(&found)?;
    context.reply.set(set.len());
    for member in set.members() {
        reply_element(&mut context.reply, member);
    }
    Ok(())
}
