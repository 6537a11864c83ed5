//! Takes the members with the lowest or highest scores out: ZPOPMIN, ZPOPMAX, ZMPOP; and with a B in front, waits until
//! there is one.

use core::ops::Range;

use cluster::serving::Wanted;
use resp::{Protocol, Reply};
use store::{Key, ScoredMember, SortedSetValue};

use super::remove::Removal;
use super::{reply_element, sorted_of};
use crate::Error;
use crate::blocking::{first_ready, timeout, wait};
use crate::context::Context;

/// The end from which members are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PoppedEnd {
    Min,
    Max,
}

impl PoppedEnd {
    fn event(self) -> &'static str {
        match self {
            PoppedEnd::Min => "zpopmin",
            PoppedEnd::Max => "zpopmax",
        }
    }

    /// Returns the ranks of up to `count` members at this end.
    fn ranks(self, set: SortedSetValue<'_>, count: usize) -> Range<usize> {
        let len = set.len();
        match self {
            PoppedEnd::Min => 0..count.min(len),
            PoppedEnd::Max => len.saturating_sub(count)..len,
        }
    }

    /// Calls `visit` for the members of a range of ranks, from this end on.
    fn for_each(
        self,
        set: SortedSetValue<'_>,
        ranks: Range<usize>,
        visit: impl FnMut(ScoredMember<'_>),
    ) {
        match self {
            PoppedEnd::Min => set.iter_from(ranks.start).take(ranks.len()).for_each(visit),
            PoppedEnd::Max => set.iter_back_from(ranks.end).take(ranks.len()).for_each(visit),
        }
    }
}

pub(super) fn zpopmin(context: &mut Context<'_>) -> Result<(), Error> {
    pop_one_key(context, PoppedEnd::Min)
}

pub(super) fn zpopmax(context: &mut Context<'_>) -> Result<(), Error> {
    pop_one_key(context, PoppedEnd::Max)
}

fn pop_one_key(context: &mut Context<'_>, end: PoppedEnd) -> Result<(), Error> {
    const NOT_A_COUNT: Error = Error::fixed("ERR value is out of range, must be positive");
    let args = context.args;
    if args.len() > 3 {
        return Err(Error::SYNTAX);
    }
    let count = match args.get(2) {
        Some(text) => Some(positive(text, 0).ok_or(NOT_A_COUNT)?),
        None => None,
    };
    let key = context.key(1);
    let in_pairs = context.reply.protocol == Protocol::Resp3 && count.is_some();
    let Some(set) = context.keys.find(&key).map(|found| sorted_of(&found)).transpose()? else {
        context.reply.array(0);
        return Ok(());
    };
    let ranks = end.ranks(set, count.unwrap_or(1));
    if ranks.is_empty() {
        context.reply.array(0);
        return Ok(());
    }
    let removal = Removal::of_ranks(set, ranks.clone())?;
    context.reply.array(if in_pairs { ranks.len() } else { ranks.len() * 2 });
    end.for_each(set, ranks, |it| reply_pair(&mut context.reply, it, in_pairs));
    removal.apply(&mut context.keys, key, end.event());
    Ok(())
}

fn reply_pair(reply: &mut Reply<'_>, it: ScoredMember<'_>, in_pairs: bool) {
    if in_pairs {
        reply.array(2);
    }
    reply_element(reply, it.member);
    reply.double(it.score.get());
}

/// Returns a number of at least `min`.
fn positive(text: &[u8], min: usize) -> Option<usize> {
    let number = resp::parse_integer(text).and_then(|number| usize::try_from(number).ok());
    number.filter(|number| *number >= min)
}

/// The arguments of ZMPOP behind its keys.
struct PopOptions {
    keys: Range<usize>,
    end: PoppedEnd,
    count: usize,
}

impl PopOptions {
    fn parse(context: &Context<'_>) -> Result<PopOptions, Error> {
        const NO_KEYS: Error = Error::fixed("ERR numkeys should be greater than 0");
        const NO_COUNT: Error = Error::fixed("ERR count should be greater than 0");
        let args = context.args;
        positive(args.at(context.spec.key_count_at), 1).ok_or(NO_KEYS)?;
        let keys = context.spec.counted_keys(args);
        let word = args.get(keys.end).filter(|_| !keys.is_empty()).ok_or(Error::SYNTAX)?;
        let end = match word.to_ascii_lowercase().as_slice() {
            b"min" => PoppedEnd::Min,
            b"max" => PoppedEnd::Max,
            _ => return Err(Error::SYNTAX),
        };
        let rest = args.tail(keys.end + 1);
        let count = match (rest.get(0), rest.get(1)) {
            (None, _) => 1,
            (Some(word), Some(count)) if word.eq_ignore_ascii_case(b"count") => {
                positive(count, 1).ok_or(NO_COUNT)?
            }
            _ => return Err(Error::SYNTAX),
        };
        if rest.len() > 2 {
            return Err(Error::SYNTAX);
        }
        Ok(PopOptions { keys, end, count })
    }
}

pub(super) fn zmpop(context: &mut Context<'_>) -> Result<(), Error> {
    let PopOptions { keys, end, count } = PopOptions::parse(context)?;
    for index in keys {
        let key = context.key(index);
        if pop_from(context, key, end, count)? {
            return Ok(());
        }
    }
    context.reply.null_array();
    Ok(())
}

pub(super) fn bzpopmin(context: &mut Context<'_>) -> Result<(), Error> {
    pop_one_or_wait(context, PoppedEnd::Min)
}

pub(super) fn bzpopmax(context: &mut Context<'_>) -> Result<(), Error> {
    pop_one_or_wait(context, PoppedEnd::Max)
}

/// Takes one member out of the first set, or waits for one, and replies with the key, the member and its score.
fn pop_one_or_wait(context: &mut Context<'_>, end: PoppedEnd) -> Result<(), Error> {
    let last = context.args.len() - 1;
    let block = timeout(context.args.at(last))?;
    let Some(index) = first_ready(context, Wanted::SortedSet, 1..last)? else {
        return wait(context, Wanted::SortedSet, 1..last, block);
    };
    let key = context.key(index);
    let found = context.keys.find(&key).ok_or(Error::NO_SUCH_KEY)?;
    let set = sorted_of(&found)?;
    let ranks = end.ranks(set, 1);
    let removal = Removal::of_ranks(set, ranks.clone())?;
    context.reply.array(3);
    context.reply.bulk(key.bytes());
    end.for_each(set, ranks, |it| reply_pair(&mut context.reply, it, false));
    removal.apply(&mut context.keys, key, end.event());
    Ok(())
}

pub(super) fn bzmpop(context: &mut Context<'_>) -> Result<(), Error> {
    let PopOptions { keys, end, count } = PopOptions::parse(context)?;
    let block = timeout(context.args.at(1))?;
    let Some(index) = first_ready(context, Wanted::SortedSet, keys.clone())? else {
        return wait(context, Wanted::SortedSet, keys, block);
    };
    let key = context.key(index);
    pop_from(context, key, end, count).map(|_| ())
}

/// Takes members out of a set, and replies with them. Returns false if there is no such set.
fn pop_from(
    context: &mut Context<'_>,
    key: Key<'_>,
    end: PoppedEnd,
    count: usize,
) -> Result<bool, Error> {
    let Some(set) = context.keys.find(&key).map(|found| sorted_of(&found)).transpose()? else {
        return Ok(false);
    };
    let ranks = end.ranks(set, count);
    let removal = Removal::of_ranks(set, ranks.clone())?;
    context.reply.array(2);
    context.reply.bulk(key.bytes());
    context.reply.array(ranks.len());
    end.for_each(set, ranks, |it| reply_pair(&mut context.reply, it, true));
    removal.apply(&mut context.keys, key, end.event());
    Ok(true)
}
