//! The expiry of fields: HEXPIRE and its variants set it, HTTL and its variants read it, HPERSIST removes it.

use std::collections::BTreeMap;

use store::{LiveHash, UnixMillis};

use super::fields::{FieldsClause, expire_fields, parse_deadline, remove_fields};
use super::hash_of;
use crate::Error;
use crate::context::Context;
use crate::keyspace::ExpireCondition;
use crate::strings::DeadlineUnit;

/// Replies about one field.
const NO_FIELD: i64 = -2;
const NO_DEADLINE: i64 = -1;
const CONDITION_FAILED: i64 = 0;
const CHANGED: i64 = 1;
/// The time was not in the future, so the field was removed.
const REMOVED: i64 = 2;

pub(super) fn hexpire(context: &mut Context<'_>) -> Result<(), Error> {
    set_deadlines(context, DeadlineUnit::Seconds)
}

pub(super) fn hpexpire(context: &mut Context<'_>) -> Result<(), Error> {
    set_deadlines(context, DeadlineUnit::Millis)
}

pub(super) fn hexpireat(context: &mut Context<'_>) -> Result<(), Error> {
    set_deadlines(context, DeadlineUnit::UnixSeconds)
}

pub(super) fn hpexpireat(context: &mut Context<'_>) -> Result<(), Error> {
    set_deadlines(context, DeadlineUnit::UnixMillis)
}

/// The presence and the deadline of a field.
type FieldState = Option<Option<UnixMillis>>;

fn set_deadlines(context: &mut Context<'_>, unit: DeadlineUnit) -> Result<(), Error> {
    let (args, seed) = (context.args, &context.keys.env().seed);
    let clause = FieldsClause::find(context, 3)?;
    let condition = ExpireCondition::parse(args.from(3).take(clause.at - 3))?;
    clause.check(context, 1)?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let at = parse_deadline(args.at(2), unit, now, context.spec.full_name)?;
    let hash = context.keys.find(&key).map(|found| hash_of(&found, now)).transpose()?;
    let is_past = at <= now;
    let mut changed: BTreeMap<&[u8], FieldState> = BTreeMap::new();
    let mut answers = Vec::with_capacity(args.len() - clause.first);
    for field in args.from(clause.first) {
        let present = changed.get(field).copied();
        let present = present.unwrap_or_else(|| hash.and_then(|hash| hash.deadline(field, seed)));
        answers.push(match present {
            None => NO_FIELD,
            Some(old) if !condition.allows(old, at.0.cast_signed()) => CONDITION_FAILED,
            Some(_) => {
                changed.insert(field, (!is_past).then_some(Some(at)));
                if is_past { REMOVED } else { CHANGED }
            }
        });
    }
    let fields = changed.into_keys().collect();
    if is_past {
        let len = hash.map_or(0, LiveHash::len);
        remove_fields(context, &fields, len, "hexpired");
    } else {
        expire_fields(context, &fields, Some(at));
    }
    reply(context, &answers);
    Ok(())
}

pub(super) fn hpersist(context: &mut Context<'_>) -> Result<(), Error> {
    let (args, seed) = (context.args, &context.keys.env().seed);
    let clause = FieldsClause::behind_key(context)?;
    clause.check(context, 1)?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let hash = context.keys.find(&key).map(|found| hash_of(&found, now)).transpose()?;
    let mut changed = std::collections::BTreeSet::new();
    let mut answers = Vec::with_capacity(args.len() - clause.first);
    for field in args.from(clause.first) {
        answers.push(match hash.and_then(|hash| hash.deadline(field, seed)) {
            None => NO_FIELD,
            Some(Some(_)) if changed.insert(field) => CHANGED,
            Some(_) => NO_DEADLINE,
        });
    }
    expire_fields(context, &changed, None);
    reply(context, &answers);
    Ok(())
}

pub(super) fn httl(context: &mut Context<'_>) -> Result<(), Error> {
    tell_deadlines(context, DeadlineUnit::Seconds)
}

pub(super) fn hpttl(context: &mut Context<'_>) -> Result<(), Error> {
    tell_deadlines(context, DeadlineUnit::Millis)
}

pub(super) fn hexpiretime(context: &mut Context<'_>) -> Result<(), Error> {
    tell_deadlines(context, DeadlineUnit::UnixSeconds)
}

pub(super) fn hpexpiretime(context: &mut Context<'_>) -> Result<(), Error> {
    tell_deadlines(context, DeadlineUnit::UnixMillis)
}

fn tell_deadlines(context: &mut Context<'_>, unit: DeadlineUnit) -> Result<(), Error> {
    let (args, seed) = (context.args, &context.keys.env().seed);
    let clause = FieldsClause::behind_key(context)?;
    clause.check_or(context, 1, Error::SYNTAX)?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let hash = context.keys.read(&key).map(|found| hash_of(&found, now)).transpose()?;
    let deadline = |field| hash.and_then(|hash| hash.deadline(field, seed));
    let answers: Vec<i64> = args
        .from(clause.first)
        .map(|field| match deadline(field) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(at)) => unit.number(at, now),
        })
        .collect();
    reply(context, &answers);
    Ok(())
}

fn reply(context: &mut Context<'_>, answers: &[i64]) {
    context.reply.array(answers.len());
    answers.iter().for_each(|answer| context.reply.integer(*answer));
}
