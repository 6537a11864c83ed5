//! LPOP, RPOP, LMPOP.

use core::ops::Range;

use settings::NotifyClasses;
use store::{Cause, Effect, Key, ListRanges, ListValue};

use super::{End, list_of, reply_element};
use crate::context::Context;
use crate::keys::Keys;
use crate::{Args, Error};

pub(super) fn lpop(context: &mut Context<'_>) -> Result<(), Error> {
    pop(context, End::Left)
}

pub(super) fn rpop(context: &mut Context<'_>) -> Result<(), Error> {
    pop(context, End::Right)
}

fn pop(context: &mut Context<'_>, end: End) -> Result<(), Error> {
    const NOT_POSITIVE: Error = Error::fixed("ERR value is out of range, must be positive");
    if context.args.len() > 3 {
        return Err(Error::wrong_arity(context.spec.full_name));
    }
    let count = match context.args.get(2) {
        Some(text) => Some(number_from(text, 0).ok_or(NOT_POSITIVE)?),
        None => None,
    };
    let key = context.key(1);
    let Some(found) = context.keys.find(&key) else {
        match count {
            Some(_) => context.reply.null_array(),
            None => context.reply.null(),
        }
        return Ok(());
    };
    let list = list_of(&found)?;
    if count == Some(0) {
        context.reply.array(0);
        return Ok(());
    }
    let taken = Taken::of(list, end, count.unwrap_or(1));
    if count.is_some() {
        context.reply.array(taken.range.len());
    }
    taken.reply(list, &mut context.reply);
    taken.remove(&mut context.keys, key);
    Ok(())
}

/// The elements that a command takes from an end of a list.
pub(super) struct Taken {
    pub(super) end: End,
    pub(super) len: usize,
    pub(super) range: Range<usize>,
}

impl Taken {
    pub(super) fn of(list: ListValue<'_>, end: End, count: usize) -> Taken {
        let len = list.len();
        let count = count.min(len);
        let range = match end {
            End::Left => 0..count,
            End::Right => len - count..len,
        };
        Taken { end, len, range }
    }

    /// Writes the elements, those nearest to the end first.
    pub(super) fn reply(&self, list: ListValue<'_>, reply: &mut resp::Reply<'_>) {
        match self.end {
            End::Left => {
                let elements = list.iter_from(0).take(self.range.len());
                elements.for_each(|element| reply_element(reply, element));
            }
            End::Right => {
                let elements = list.iter_back_from(self.len).take(self.range.len());
                elements.for_each(|element| reply_element(reply, element));
            }
        }
    }

    /// Removes the elements, and publishes the events.
    pub(super) fn remove(&self, keys: &mut Keys<'_>, key: Key<'_>) {
        let is_emptied = self.range.len() == self.len;
        let mut ranges = ListRanges::default();
        ranges.push(self.range.clone());
        let event = match self.end {
            End::Left => "lpop",
            End::Right => "rpop",
        };
        remove_ranges(keys, key, &ranges, is_emptied, event);
    }
}

/// Removes elements, or the key if no element is left, and publishes the events.
pub(super) fn remove_ranges(
    keys: &mut Keys<'_>,
    key: Key<'_>,
    ranges: &ListRanges,
    is_emptied: bool,
    event: &'static str,
) {
    if is_emptied {
        keys.apply(&Effect::Remove { key, cause: Cause::Deleted });
    } else {
        keys.apply(&Effect::RemoveElements { key, ranges: ranges.row() });
    }
    keys.notify(NotifyClasses::LIST, event, key.bytes());
    if is_emptied {
        keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
    }
}

pub(super) fn lmpop(context: &mut Context<'_>) -> Result<(), Error> {
    let request = PopFromFirst::parse(context.args, 1)?;
    if !request.run(context)? {
        context.reply.null_array();
    }
    Ok(())
}

/// The arguments of LMPOP from the number of keys on.
pub(super) struct PopFromFirst {
    /// The indices of the keys.
    pub(super) keys: Range<usize>,
    end: End,
    count: usize,
}

impl PopFromFirst {
    /// Parses the arguments from the number of keys on, which is at `numkeys`.
    pub(super) fn parse(args: Args<'_>, numkeys: usize) -> Result<PopFromFirst, Error> {
        let count = number_from(args.at(numkeys), 1)
            .ok_or(const { Error::fixed("ERR numkeys should be greater than 0") })?;
        let first = numkeys + 1;
        let behind = first.saturating_add(count);
        let end = End::parse(args.get(behind).ok_or(Error::SYNTAX)?)?;
        let keys = first..behind;
        let count = match (args.get(behind + 1), args.get(behind + 2), args.get(behind + 3)) {
            (None, ..) => 1,
            (Some(word), Some(count), rest) if word.eq_ignore_ascii_case(b"count") => {
                let count = number_from(count, 1)
                    .ok_or(const { Error::fixed("ERR count should be greater than 0") })?;
                if rest.is_some() {
                    return Err(Error::SYNTAX);
                }
                count
            }
            (Some(_), ..) => return Err(Error::SYNTAX),
        };
        Ok(PopFromFirst { keys, end, count })
    }

    /// Pops from the first key that has a list, and replies with it. Returns false if there is none.
    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<bool, Error> {
        for index in self.keys.clone() {
            let key = context.key(index);
            let Some(found) = context.keys.find(&key) else { continue };
            let list = list_of(&found)?;
            let taken = Taken::of(list, self.end, self.count);
            context.reply.array(2);
            context.reply.bulk(key.bytes());
            context.reply.array(taken.range.len());
            taken.reply(list, &mut context.reply);
            taken.remove(&mut context.keys, key);
            return Ok(true);
        }
        Ok(false)
    }
}

/// Parses a number that is at least `min`.
fn number_from(text: &[u8], min: i64) -> Option<usize> {
    let number = resp::parse_integer(text).filter(|number| *number >= min)?;
    usize::try_from(number).ok()
}
