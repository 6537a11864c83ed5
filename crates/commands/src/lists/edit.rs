//! LSET, LINSERT, LREM, LTRIM.

use settings::NotifyClasses;
use store::{Effect, Element, ListRanges, ListValue};

use super::pop::remove_ranges;
use super::{index_in, integer_above_min, list_of, range_in, reply_count};
use crate::Error;
use crate::context::Context;
use crate::hashes::row_of;

pub(super) fn lset(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, index) = (context.key(1), context.integer(2));
    let found = context.keys.find(&key).ok_or(Error::NO_SUCH_KEY)?;
    let list = list_of(&found)?;
    let index =
        index_in(index?, list.len()).ok_or(const { Error::fixed("ERR index out of range") })?;
    let element = row_of([context.args.at(3)].into_iter());
    context.keys.apply(&Effect::SetElement { key, index, element: &element });
    context.keys.notify(NotifyClasses::LIST, "lset", key.bytes());
    context.reply.ok();
    Ok(())
}

pub(super) fn linsert(context: &mut Context<'_>) -> Result<(), Error> {
    let place = context.args.at(2);
    let distance = if place.eq_ignore_ascii_case(b"before") {
        0
    } else if place.eq_ignore_ascii_case(b"after") {
        1
    } else {
        return Err(Error::SYNTAX);
    };
    let (key, pivot) = (context.key(1), Element::of(context.args.at(3)));
    let Some(found) = context.keys.find(&key) else {
        context.reply.integer(0);
        return Ok(());
    };
    let list = list_of(&found)?;
    let Some(found) = list.iter_from(0).position(|element| element == pivot) else {
        context.reply.integer(-1);
        return Ok(());
    };
    let (len, index) = (list.len(), found + distance);
    let elements = row_of([context.args.at(4)].into_iter());
    context.keys.apply(&Effect::InsertElements { key, index, elements: &elements });
    context.keys.notify(NotifyClasses::LIST, "linsert", key.bytes());
    reply_count(&mut context.reply, len + 1);
    Ok(())
}

pub(super) fn lrem(context: &mut Context<'_>) -> Result<(), Error> {
    let count = integer_above_min(context.args.at(2))?;
    let (key, element) = (context.key(1), Element::of(context.args.at(3)));
    let Some(found) = context.keys.find(&key) else {
        context.reply.integer(0);
        return Ok(());
    };
    let list = list_of(&found)?;
    let (len, indices) = (list.len(), equal_indices(list, element, count));
    if !indices.is_empty() {
        let (ranges, is_emptied) = (ranges_of(&indices), indices.len() == len);
        remove_ranges(&mut context.keys, key, &ranges, is_emptied, "lrem");
    }
    reply_count(&mut context.reply, indices.len());
    Ok(())
}

/// Returns the ascending indices of the first equal elements; of the last ones if `count` is negative, of all if it is
/// 0.
fn equal_indices(list: ListValue<'_>, wanted: Element<'_>, count: i64) -> Vec<usize> {
    let most = match count.unsigned_abs() {
        0 => usize::MAX,
        count => usize::try_from(count).unwrap_or(usize::MAX),
    };
    let is_equal = |(_, element): &(usize, Element<'_>)| *element == wanted;
    if count >= 0 {
        let equal = (0..).zip(list.iter_from(0)).filter(is_equal);
        return equal.map(|(index, _)| index).take(most).collect();
    }
    let len = list.len();
    let equal = (0..len).rev().zip(list.iter_back_from(len)).filter(is_equal);
    let mut indices: Vec<usize> = equal.map(|(index, _)| index).take(most).collect();
    indices.reverse();
    indices
}

/// Returns ascending indices as ranges, neighbours in one.
fn ranges_of(indices: &[usize]) -> ListRanges {
    let mut ranges = ListRanges::default();
    for run in indices.chunk_by(|one, next| one + 1 == *next) {
        ranges.push(run[0]..run[0] + run.len());
    }
    ranges
}

pub(super) fn ltrim(context: &mut Context<'_>) -> Result<(), Error> {
    let (start, end) = (context.integer(2)?, context.integer(3)?);
    let key = context.key(1);
    let Some(found) = context.keys.find(&key) else {
        context.reply.ok();
        return Ok(());
    };
    let len = list_of(&found)?.len();
    let kept = range_in(start, end, len);
    if kept.len() == len {
        // It changes nothing, but it is a write: WATCH notices it.
        context.keys.apply(&Effect::InsertElements { key, index: 0, elements: &[] });
        context.keys.notify(NotifyClasses::LIST, "ltrim", key.bytes());
    } else {
        let mut ranges = ListRanges::default();
        ranges.push(0..kept.start);
        ranges.push(kept.end..len);
        remove_ranges(&mut context.keys, key, &ranges, kept.is_empty(), "ltrim");
    }
    context.reply.ok();
    Ok(())
}
