//! Combines sets: SINTER, SUNION, SDIFF, their STORE forms, SINTERCARD.
//!
//! Only one key can be borrowed at a time, because each may be in a slot of its own. So a combination begins with a copy
//! of one set's members, and looks at one further set after the other.

use core::ops::Range;

use settings::NotifyClasses;
use store::{Element, Key, NewValue, Row, Seed, SetValue, Table, TablePosition};

use super::{MEMBER, reply_set, set_of};
use crate::Error;
use crate::context::Context;
use crate::strings::put;
use crate::transactions::EFFECT_BYTES_MAX;

/// Number of members that SINTERCARD looks up in the other sets at a time.
const CHUNK_LEN: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

pub(super) fn sinter(context: &mut Context<'_>) -> Result<(), Error> {
    reply_combined(context, Operation::Intersection)
}

pub(super) fn sunion(context: &mut Context<'_>) -> Result<(), Error> {
    reply_combined(context, Operation::Union)
}

pub(super) fn sdiff(context: &mut Context<'_>) -> Result<(), Error> {
    reply_combined(context, Operation::Difference)
}

pub(super) fn sinterstore(context: &mut Context<'_>) -> Result<(), Error> {
    store_combined(context, Operation::Intersection, "sinterstore")
}

pub(super) fn sunionstore(context: &mut Context<'_>) -> Result<(), Error> {
    store_combined(context, Operation::Union, "sunionstore")
}

pub(super) fn sdiffstore(context: &mut Context<'_>) -> Result<(), Error> {
    store_combined(context, Operation::Difference, "sdiffstore")
}

pub(super) fn sintercard(context: &mut Context<'_>) -> Result<(), Error> {
    let (keys, limit) = card_options(context)?;
    let sources = sources(context, keys)?;
    let len = match &sources[..] {
        [only] => only.len.min(limit),
        _ => intersection_len(context, sources, limit),
    };
    context.reply.integer(len.cast_signed() as i64);
    Ok(())
}

/// Returns the positions of SINTERCARD's keys, and its limit.
fn card_options(context: &Context<'_>) -> Result<(Range<usize>, usize), Error> {
    let args = context.args;
    let count = context.integer(1).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0);
    let count = count.ok_or(Error::fixed("ERR numkeys should be greater than 0"))?;
    if count > args.len() - 2 {
        return Err(Error::fixed("ERR Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    for index in (2 + count..args.len()).step_by(2) {
        if !args.at(index).eq_ignore_ascii_case(b"limit") || index + 1 == args.len() {
            return Err(Error::SYNTAX);
        }
        let number = context.integer(index + 1).ok().and_then(|it| usize::try_from(it).ok());
        limit = number.ok_or(Error::fixed("ERR LIMIT can't be negative"))?;
    }
    Ok((2..2 + count, if limit == 0 { usize::MAX } else { limit }))
}

fn reply_combined(context: &mut Context<'_>, operation: Operation) -> Result<(), Error> {
    let row = combined(context, operation, 1..context.args.len())?;
    let len = Row::new(&row, MEMBER).len();
    reply_set(&mut context.reply, &row, len);
    Ok(())
}

fn store_combined(
    context: &mut Context<'_>,
    operation: Operation,
    event: &'static str,
) -> Result<(), Error> {
    let row = combined(context, operation, 2..context.args.len())?;
    if row.len() > EFFECT_BYTES_MAX / 2 {
        let bytes = row.len();
        return Err(Error::new(format!(
            "ERR the set would have {bytes} bytes, too many to be stored at once"
        )));
    }
    let target = context.key(1);
    if !row.is_empty() {
        put(&mut context.keys, &target, NewValue::Set(&row), None);
        context.keys.notify(NotifyClasses::SET, event, target.bytes());
    } else if context.keys.remove(&target) {
        context.keys.notify(NotifyClasses::GENERIC, "del", target.bytes());
    }
    context.reply.integer(Row::new(&row, MEMBER).len().cast_signed() as i64);
    Ok(())
}

/// A set named by a command: its key, and its number of members; none if the key is missing.
struct Source<'a> {
    key: Key<'a>,
    len: usize,
}

/// Returns the members of the combination of these arguments in a row.
fn combined(
    context: &mut Context<'_>,
    operation: Operation,
    keys: Range<usize>,
) -> Result<Vec<u8>, Error> {
    let sources = sources(context, keys)?;
    Ok(match operation {
        Operation::Intersection => intersection(context, sources),
        Operation::Union => union(context, &sources),
        Operation::Difference => difference(context, sources),
    })
}

/// Looks up all sets. An error if any key holds another type, even if the result would be empty anyway.
fn sources<'a>(context: &mut Context<'a>, keys: Range<usize>) -> Result<Vec<Source<'a>>, Error> {
    keys.map(|index| {
        let key = context.key(index);
        let set = context.keys.read(&key).map(|found| set_of(&found)).transpose()?;
        Ok(Source { key, len: set.map_or(0, SetValue::len) })
    })
    .collect()
}

/// Lets `look` read a set again, if its key exists.
fn with_set<R>(
    context: &mut Context<'_>,
    source: &Source<'_>,
    look: impl FnOnce(SetValue<'_>, &Seed) -> R,
) -> Option<R> {
    let seed = &context.keys.env().seed;
    let found = context.keys.peek(&source.key)?;
    set_of(&found).ok().map(|set| look(set, seed))
}

/// Returns the members that are in all sets.
fn intersection(context: &mut Context<'_>, mut sources: Vec<Source<'_>>) -> Vec<u8> {
    sources.sort_by_key(|source| source.len);
    let Some((smallest, others)) = sources.split_first().filter(|(first, _)| first.len > 0) else {
        return Vec::new();
    };
    let row = with_set(context, smallest, |set, _| set.to_row()).unwrap_or_default();
    in_all(context, row, others)
}

/// Returns the number of members that are in all sets, but not more than `limit`. Looks at the smallest set in chunks,
/// and ends when enough are found.
fn intersection_len(
    context: &mut Context<'_>,
    mut sources: Vec<Source<'_>>,
    limit: usize,
) -> usize {
    sources.sort_by_key(|source| source.len);
    let Some((smallest, others)) = sources.split_first() else { return 0 };
    let (mut count, mut from) = (0, Some(TablePosition::START));
    while let Some(position) = from.filter(|_| count < limit) {
        let chunk = with_set(context, smallest, |set, seed| chunk(set, seed, position));
        let Some((row, next)) = chunk else { return 0 };
        count += Row::new(&in_all(context, row, others), MEMBER).len();
        from = next;
    }
    count.min(limit)
}

/// Returns some members in a row, and the position of those after them.
fn chunk(set: SetValue<'_>, seed: &Seed, from: TablePosition) -> (Vec<u8>, Option<TablePosition>) {
    let (mut row, mut len) = (Vec::new(), 0);
    let next = set.scan(seed, from, |member| {
        member.write(&mut row);
        len += 1;
        len < CHUNK_LEN
    });
    (row, next)
}

/// Returns the members of a row that are in all of these sets.
fn in_all(context: &mut Context<'_>, row: Vec<u8>, sets: &[Source<'_>]) -> Vec<u8> {
    sets.iter().fold(row, |row, set| {
        with_set(context, set, |set, seed| select(&row, |member| set.contains(member, seed)))
            .unwrap_or_default()
    })
}

/// Returns the members of a row that `is_wanted` accepts.
fn select(row: &[u8], is_wanted: impl Fn(Element<'_>) -> bool) -> Vec<u8> {
    let row = Row::new(row, MEMBER);
    let entries = row.entries().zip(row.elements());
    let wanted = entries.filter(|(_, member)| is_wanted(*member));
    wanted.fold(Vec::new(), |mut selected, (entry, _)| {
        selected.extend_from_slice(entry);
        selected
    })
}

fn union(context: &mut Context<'_>, sources: &[Source<'_>]) -> Vec<u8> {
    if let [only] = sources {
        return with_set(context, only, |set, _| set.to_row()).unwrap_or_default();
    }
    let mut seen = Table::new(MEMBER);
    let mut row = Vec::new();
    for source in sources {
        with_set(context, source, |set, seed| {
            for entry in set.entries() {
                if seen.put_entry(seed, entry) {
                    row.extend_from_slice(entry);
                }
            }
        });
    }
    row
}

/// Returns the members of the first set that are in none of the others: looks up each of them in the others, or removes
/// the others' members from them, whichever takes less.
fn difference(context: &mut Context<'_>, mut sources: Vec<Source<'_>>) -> Vec<u8> {
    let others_len: usize = sources.iter().skip(1).map(|source| source.len).sum();
    let Some((first, others)) = sources.split_first_mut() else { return Vec::new() };
    let row = with_set(context, first, |set, _| set.to_row()).unwrap_or_default();
    // A large set is likely to have many of the members.
    others.sort_by_key(|source| core::cmp::Reverse(source.len));
    if first.len * others.len() / 2 <= first.len + others_len {
        others.iter().fold(row, |row, other| {
            if row.is_empty() {
                return row;
            }
            let left = with_set(context, other, |set, seed| {
                select(&row, |member| !set.contains(member, seed))
            });
            left.unwrap_or(row)
        })
    } else {
        without_all(context, &row, others)
    }
}

/// Returns the members of a row that are in none of these sets, at a cost of all of their members.
fn without_all(context: &mut Context<'_>, row: &[u8], others: &[Source<'_>]) -> Vec<u8> {
    let seed = &context.keys.env().seed;
    let mut left = Table::new(MEMBER);
    for entry in Row::new(row, MEMBER).entries() {
        left.put_entry(seed, entry);
    }
    for other in others {
        with_set(context, other, |set, seed| {
            for member in set.members() {
                left.remove(seed, member);
            }
        });
    }
    select(row, |member| left.contains(seed, member))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_set_is_read_in_chunks() {
        let seed = Seed::new(5);
        let mut table = Table::new(MEMBER);
        for number in 0..5_000 {
            let mut entry = Vec::new();
            Element::Integer(number).write(&mut entry);
            table.put_entry(&seed, &entry);
        }
        let (mut members, mut from) = (Vec::new(), Some(TablePosition::START));
        while let Some(position) = from {
            let (row, next) = chunk(SetValue::Table(&table), &seed, position);
            assert_eq!(Row::new(&row, MEMBER).len(), CHUNK_LEN.min(5_000 - members.len()));
            members.extend(Row::new(&row, MEMBER).elements().map(|it| it.to_text().into_owned()));
            from = next;
        }
        members.sort();
        members.dedup();
        assert_eq!(members.len(), 5_000, "every member once");
    }
}
