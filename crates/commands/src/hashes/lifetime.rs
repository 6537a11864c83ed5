//! Reads and writes fields together with their expiry: HGETEX, HSETEX, HGETDEL.

use std::collections::BTreeSet;

use settings::NotifyClasses;
use store::{Effect, Element, LiveHash, UnixMillis, write_field};

use super::fields::{FieldsClause, expire_fields, parse_deadline, remove_fields};
use super::{hash_of, reply_element};
use crate::Error;
use crate::context::Context;
use crate::strings::{Lifetime, deadline};

pub(super) fn hgetdel(context: &mut Context<'_>) -> Result<(), Error> {
    let clause = FieldsClause::behind_key(context)?;
    clause.check(context, 1)?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    take_fields(context, clause, now, "hdel")
}

/// Replies with fields, and removes them.
fn take_fields(
    context: &mut Context<'_>,
    clause: FieldsClause,
    now: UnixMillis,
    event: &'static str,
) -> Result<(), Error> {
    let (args, seed) = (context.args, &context.keys.env().seed);
    let key = context.key(1);
    let hash = context.keys.find(&key).map(|found| hash_of(&found, now)).transpose()?;
    let mut taken = BTreeSet::new();
    context.reply.array(args.len() - clause.first);
    for field in args.from(clause.first) {
        match hash.and_then(|hash| hash.get(field, seed)) {
            Some(value) if taken.insert(field) => reply_element(&mut context.reply, value),
            Some(_) | None => context.reply.null(),
        }
    }
    let len = hash.map_or(0, LiveHash::len);
    remove_fields(context, &taken, len, event);
    Ok(())
}

pub(super) fn hgetex(context: &mut Context<'_>) -> Result<(), Error> {
    let (args, seed) = (context.args, &context.keys.env().seed);
    let name = context.spec.full_name;
    let clause = FieldsClause::find(context, 2)?;
    let mut lifetime = Lifetime::Unsaid;
    let mut words = args.from(2).take(clause.at - 2);
    while let Some(word) = words.next() {
        let is_persist = word.eq_ignore_ascii_case(b"persist");
        lifetime.set(if is_persist { Lifetime::Persist } else { deadline(word, &mut words)? })?;
    }
    clause.check(context, 1)?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let hash = context.keys.read(&key).map(|found| hash_of(&found, now)).transpose()?;
    let until = match lifetime {
        Lifetime::Until(deadline) => {
            Some(parse_deadline(deadline.number, deadline.clock, now, name)?)
        }
        Lifetime::Unsaid | Lifetime::Keep | Lifetime::Persist => None,
    };
    if until.is_some_and(|until| until <= now) {
        return take_fields(context, clause, now, "hexpired");
    }
    let mut changed = BTreeSet::new();
    context.reply.array(args.len() - clause.first);
    for field in args.from(clause.first) {
        match hash.and_then(|hash| hash.get(field, seed)) {
            Some(value) => {
                let has_deadline = hash.and_then(|hash| hash.deadline(field, seed)?).is_some();
                if until.is_some() || has_deadline {
                    changed.insert(field);
                }
                reply_element(&mut context.reply, value);
            }
            None => context.reply.null(),
        }
    }
    if lifetime != Lifetime::Unsaid {
        expire_fields(context, &changed, until);
    }
    Ok(())
}

/// The conditions of HSETEX.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    Any,
    Missing,
    Present,
}

impl Presence {
    /// Adds a condition. It may be repeated, but not contradict another one.
    fn set(&mut self, new: Presence) -> Result<(), Error> {
        let agrees = *self == Presence::Any || *self == new;
        *self = new;
        if agrees { Ok(()) } else { Err(Error::SYNTAX) }
    }

    fn allows(self, is_present: bool) -> bool {
        match self {
            Presence::Any => true,
            Presence::Missing => !is_present,
            Presence::Present => is_present,
        }
    }
}

struct SetOptions<'a> {
    key: Presence,
    fields: Presence,
    lifetime: Lifetime<'a>,
}

impl<'a> SetOptions<'a> {
    fn parse(mut words: impl Iterator<Item = &'a [u8]>) -> Result<SetOptions<'a>, Error> {
        let mut options =
            SetOptions { key: Presence::Any, fields: Presence::Any, lifetime: Lifetime::Unsaid };
        while let Some(word) = words.next() {
            match word.to_ascii_lowercase().as_slice() {
                b"nx" => options.key.set(Presence::Missing)?,
                b"xx" => options.key.set(Presence::Present)?,
                b"fnx" => options.fields.set(Presence::Missing)?,
                b"fxx" => options.fields.set(Presence::Present)?,
                b"keepttl" => options.lifetime.set(Lifetime::Keep)?,
                _ => options.lifetime.set(deadline(word, &mut words)?)?,
            }
        }
        Ok(options)
    }
}

pub(super) fn hsetex(context: &mut Context<'_>) -> Result<(), Error> {
    let (args, seed) = (context.args, &context.keys.env().seed);
    let name = context.spec.full_name;
    let clause = FieldsClause::find(context, 2)?;
    let options = SetOptions::parse(args.from(2).take(clause.at - 2))?;
    clause.check(context, 2)?;
    let key = context.key(1);
    let now = context.keys.now_in(key.slot());
    let hash = context.keys.find(&key).map(|found| hash_of(&found, now)).transpose()?;
    let fields = args.from(clause.first).step_by(2);
    let has = |field: &[u8]| hash.is_some_and(|hash| hash.get(field, seed).is_some());
    let until = match options.lifetime {
        Lifetime::Until(deadline) if options.key.allows(hash.is_some()) => {
            Some(parse_deadline(deadline.number, deadline.clock, now, name)?)
        }
        Lifetime::Until(_) | Lifetime::Unsaid | Lifetime::Keep | Lifetime::Persist => None,
    };
    let is_allowed = options.key.allows(hash.is_some())
        && fields.clone().all(|field| options.fields.allows(has(field)));
    if !is_allowed {
        context.reply.integer(0);
        return Ok(());
    }
    if until.is_some_and(|until| until <= now) {
        let present = fields.filter(|field| has(field)).collect();
        let len = hash.map_or(0, LiveHash::len);
        remove_fields(context, &present, len, "hexpired");
    } else {
        let keeps = options.lifetime == Lifetime::Keep;
        let mut pairs = Vec::new();
        // A field may be given twice; its last value stays.
        for (field, value) in fields.zip(args.from(clause.first + 1).step_by(2)) {
            let kept = hash.filter(|_| keeps).and_then(|hash| hash.deadline(field, seed)?);
            let until = until.or(kept).map(|at| at.0);
            write_field(Element::of(field), until, Element::of(value), &mut pairs);
        }
        context.keys.apply(&Effect::SetFields { key, pairs: &pairs });
        context.keys.notify(NotifyClasses::HASH, "hset", key.bytes());
        if until.is_some() {
            context.keys.notify(NotifyClasses::HASH, "hexpire", key.bytes());
        }
    }
    context.reply.integer(1);
    Ok(())
}
