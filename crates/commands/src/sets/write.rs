//! Adds, removes and moves members: SADD, SREM, SMOVE.

use std::collections::BTreeSet;

use settings::NotifyClasses;
use store::{Cause, Effect, Element, Key};

use super::set_of;
use crate::context::Context;
use crate::keys::Keys;
use crate::{Args, Error};

pub(super) fn sadd(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let set = context.keys.find(&key).map(|found| set_of(&found)).transpose()?;
    let is_new = |member: Element<'_>| set.is_none_or(|set| !set.contains(member, seed));
    let members = distinct(context.args, is_new);
    if members.count > 0 {
        context.keys.apply(&Effect::AddMembers { key, members: &members.row });
        context.keys.notify(NotifyClasses::SET, "sadd", key.bytes());
    }
    context.reply.integer(members.count.cast_signed() as i64);
    Ok(())
}

pub(super) fn srem(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let Some(set) = context.keys.find(&key).map(|found| set_of(&found)).transpose()? else {
        context.reply.integer(0);
        return Ok(());
    };
    let members = distinct(context.args, |member| set.contains(member, seed));
    let is_emptied = members.count == set.len();
    if members.count > 0 {
        remove(&mut context.keys, &key, &members.row, is_emptied, "srem");
    }
    context.reply.integer(members.count.cast_signed() as i64);
    Ok(())
}

/// Members in a row.
struct Members {
    row: Vec<u8>,
    count: usize,
}

/// Returns the members among the arguments that `is_wanted` accepts, each once.
fn distinct(args: Args<'_>, is_wanted: impl Fn(Element<'_>) -> bool) -> Members {
    let mut members = Members { row: Vec::new(), count: 0 };
    let mut seen = BTreeSet::new();
    for text in args.from(2) {
        let member = Element::of(text);
        if is_wanted(member) && (args.len() == 3 || seen.insert(text)) {
            member.write(&mut members.row);
            members.count += 1;
        }
    }
    members
}

/// Removes members that the set has, and the key if they are all of them. Publishes the events.
pub(super) fn remove(
    keys: &mut Keys<'_>,
    key: &Key<'_>,
    members: &[u8],
    is_emptied: bool,
    event: &'static str,
) {
    if is_emptied {
        keys.apply(&Effect::Remove { key: *key, cause: Cause::Deleted });
    } else {
        keys.apply(&Effect::RemoveMembers { key: *key, members });
    }
    keys.notify(NotifyClasses::SET, event, key.bytes());
    if is_emptied {
        keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
    }
}

pub(super) fn smove(context: &mut Context<'_>) -> Result<(), Error> {
    let (from, to) = (context.key(1), context.key(2));
    let seed = &context.keys.env().seed;
    let member = Element::of(context.args.at(3));
    let Some(source) = context.keys.find(&from) else {
        context.reply.integer(0);
        return Ok(());
    };
    let source = set_of(&source)?;
    let (is_member, is_last) = (source.contains(member, seed), source.len() == 1);
    let target = context.keys.find(&to).map(|found| set_of(&found)).transpose()?;
    let is_there = target.is_some_and(|target| target.contains(member, seed));
    if is_member && from.bytes() != to.bytes() {
        let mut row = Vec::new();
        member.write(&mut row);
        remove(&mut context.keys, &from, &row, is_last, "srem");
        if !is_there {
            context.keys.apply(&Effect::AddMembers { key: to, members: &row });
            context.keys.notify(NotifyClasses::SET, "sadd", to.bytes());
        }
    }
    context.reply.integer(is_member.into());
    Ok(())
}
