//! Random members: SPOP removes them, SRANDMEMBER only returns them, with or without repetition.

use placement::SplitMix64;
use settings::NotifyClasses;
use store::{Effect, Element, Key, NewValue, SetValue, UnixMillis};

use super::write::remove;
use super::{reply_set, set_of};
use crate::Error;
use crate::context::Context;
use crate::hashes::reply_element;
use crate::sample::{Selection, draw_different};

/// Maximum number of members that one call may repeat: they are not limited by the size of the set.
const REPEATED_MAX: i64 = 1 << 24;
/// SPOP replaces the set, instead of removing members, if it removes this many times what it leaves. As in Redis, the
/// set is small again afterwards if it fits.
const REPLACED_FROM: usize = 5;

pub(super) fn srandmember(context: &mut Context<'_>) -> Result<(), Error> {
    let count = match context.args.len() {
        2 => None,
        3 => Some(random_count(context)?),
        _ => return Err(Error::SYNTAX),
    };
    let key = context.key(1);
    let mut rng = SplitMix64::new(context.keys.roll());
    let found = context.keys.read(&key);
    let set = found.map(|found| set_of(&found)).transpose()?;
    match (count, set) {
        (None, None) => context.reply.null(),
        (Some(_), None) => context.reply.array(0),
        (None, Some(set)) => match set.random(|| rng.draw()) {
            Some(member) => reply_element(&mut context.reply, member),
            None => context.reply.null(),
        },
        (Some(count), Some(set)) => {
            let members = sample(set, count, &mut rng);
            context.reply.array(members.len());
            members.iter().for_each(|member| reply_element(&mut context.reply, *member));
        }
    }
    Ok(())
}

/// Returns the count of SRANDMEMBER. If it is negative, members may be repeated.
fn random_count(context: &Context<'_>) -> Result<i64, Error> {
    let count = context.integer(2)?;
    if count == i64::MIN {
        return Err(Error::fixed(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        ));
    }
    if count < -REPEATED_MAX { Err(Error::OUT_OF_RANGE) } else { Ok(count) }
}

fn sample<'a>(set: SetValue<'a>, count: i64, rng: &mut SplitMix64) -> Vec<Element<'a>> {
    let Ok(count) = usize::try_from(count) else {
        let draws = 0..count.unsigned_abs();
        return draws.filter_map(|_| set.random(|| rng.draw())).collect();
    };
    let len = set.len();
    if count >= len {
        return set.members().collect();
    }
    if draws_one_by_one(set, count, len) {
        return draw_different(count, || set.random(|| rng.draw())).into_iter().collect();
    }
    let mut selection = Selection { wanted: count, left: len, rng };
    set.members().filter(|_| selection.takes_next()).collect()
}

/// Returns whether `count` members are so few that drawing them takes less time than a walk over the set.
fn draws_one_by_one(set: SetValue<'_>, count: usize, len: usize) -> bool {
    matches!(set, SetValue::Table(_)) && count < len / 3
}

pub(super) fn spop(context: &mut Context<'_>) -> Result<(), Error> {
    match context.args.len() {
        2 => pop_one(context),
        3 => pop_several(context),
        _ => Err(Error::SYNTAX),
    }
}

fn pop_one(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let mut rng = SplitMix64::new(context.keys.roll());
    let set = context.keys.find(&key).map(|found| set_of(&found)).transpose()?;
    let Some(member) = set.and_then(|set| set.random(|| rng.draw())) else {
        context.reply.null();
        return Ok(());
    };
    reply_element(&mut context.reply, member);
    let mut row = Vec::new();
    member.write(&mut row);
    let is_emptied = set.is_some_and(|set| set.len() == 1);
    remove(&mut context.keys, &key, &row, is_emptied, "spop");
    Ok(())
}

fn pop_several(context: &mut Context<'_>) -> Result<(), Error> {
    let count = context.integer(2).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(Error::fixed("ERR value is out of range, must be positive"))?;
    let key = context.key(1);
    let mut rng = SplitMix64::new(context.keys.roll());
    let Some(found) = context.keys.find(&key) else {
        context.reply.set(0);
        return Ok(());
    };
    let (set, expires_at) = (set_of(&found)?, found.expires_at);
    if count == 0 {
        context.reply.set(0);
        return Ok(());
    }
    let len = set.len();
    let popped = Popped::of(set, count, &mut rng);
    reply_set(&mut context.reply, &popped.members, count.min(len));
    match popped.left {
        Some(left) if (len - count) * REPLACED_FROM <= count => {
            replace(context, key, &left, expires_at);
        }
        Some(_) | None => {
            remove(&mut context.keys, &key, &popped.members, count >= len, "spop");
        }
    }
    Ok(())
}

/// Replaces the set by the few members that are left.
fn replace(context: &mut Context<'_>, key: Key<'_>, left: &[u8], expires_at: Option<UnixMillis>) {
    context.keys.apply(&Effect::Put { key, value: NewValue::Set(left), expires_at });
    context.keys.notify(NotifyClasses::SET, "spop", key.bytes());
}

/// Members that were drawn from a set, in a row.
struct Popped {
    members: Vec<u8>,
    /// The other members in a row, if they are known and there are any.
    left: Option<Vec<u8>>,
}

impl Popped {
    fn of(set: SetValue<'_>, count: usize, rng: &mut SplitMix64) -> Popped {
        let len = set.len();
        if count >= len {
            return Popped { members: set.to_row(), left: None };
        }
        let (mut members, mut left) = (Vec::new(), Vec::new());
        if draws_one_by_one(set, count, len) {
            let drawn = draw_different(count, || set.random(|| rng.draw()));
            drawn.into_iter().for_each(|member| member.write(&mut members));
            return Popped { members, left: None };
        }
        let mut selection = Selection { wanted: count, left: len, rng };
        for entry in set.entries() {
            let row = if selection.takes_next() { &mut members } else { &mut left };
            row.extend_from_slice(entry);
        }
        Popped { members, left: Some(left) }
    }
}
