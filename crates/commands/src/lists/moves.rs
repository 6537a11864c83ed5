//! LMOVE, RPOPLPUSH.

use store::Key;

use super::pop::Taken;
use super::push::insert_at_end;
use super::{End, list_of};
use crate::Error;
use crate::context::Context;
use crate::hashes::row_of;

pub(super) fn lmove(context: &mut Context<'_>) -> Result<(), Error> {
    let ends = (End::parse(context.args.at(3))?, End::parse(context.args.at(4))?);
    move_or_null(context, ends)
}

pub(super) fn rpoplpush(context: &mut Context<'_>) -> Result<(), Error> {
    move_or_null(context, (End::Right, End::Left))
}

fn move_or_null(context: &mut Context<'_>, ends: (End, End)) -> Result<(), Error> {
    if !move_element(context, ends)? {
        context.reply.null();
    }
    Ok(())
}

/// Moves an element from an end of the first key's list to an end of the second's, and replies with it. Returns false
/// if there is no first list.
pub(super) fn move_element(
    context: &mut Context<'_>,
    (from, to): (End, End),
) -> Result<bool, Error> {
    let (source, target) = (context.key(1), context.key(2));
    let Some(found) = context.keys.find(&source) else { return Ok(false) };
    let list = list_of(&found)?;
    let taken = Taken::of(list, from, 1);
    let element = list.get(taken.range.start).ok_or(Error::NO_SUCH_KEY)?.to_text().into_owned();
    let found = context.keys.find(&target);
    let len = found.map(|found| list_of(&found)).transpose()?.map_or(0, |list| list.len());
    // The insertion comes first: the list must not become empty in between, if both are the same.
    insert_at_end(&mut context.keys, target, len, to, &row_of([element.as_slice()].into_iter()));
    take_out(context, source, target, taken, to);
    context.reply.bulk(&element);
    Ok(true)
}

/// Removes the element from its old place. If both keys are the same, the insertion has moved it.
fn take_out(context: &mut Context<'_>, source: Key<'_>, target: Key<'_>, taken: Taken, to: End) {
    let mut taken = taken;
    if source.bytes() == target.bytes() {
        taken.len += 1;
        if to == End::Left {
            taken.range = taken.range.start + 1..taken.range.end + 1;
        }
    }
    taken.remove(&mut context.keys, source);
}
