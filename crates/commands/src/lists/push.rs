//! LPUSH, RPUSH, LPUSHX, RPUSHX.

use settings::NotifyClasses;
use store::{Effect, Key};

use super::{End, list_of, reply_count};
use crate::Error;
use crate::context::Context;
use crate::hashes::row_of;
use crate::keys::Keys;

pub(super) fn lpush(context: &mut Context<'_>) -> Result<(), Error> {
    push(context, End::Left, true)
}

pub(super) fn rpush(context: &mut Context<'_>) -> Result<(), Error> {
    push(context, End::Right, true)
}

pub(super) fn lpushx(context: &mut Context<'_>) -> Result<(), Error> {
    push(context, End::Left, false)
}

pub(super) fn rpushx(context: &mut Context<'_>) -> Result<(), Error> {
    push(context, End::Right, false)
}

fn push(context: &mut Context<'_>, end: End, creates: bool) -> Result<(), Error> {
    let key = context.key(1);
    let list = context.keys.find(&key).map(|found| list_of(&found)).transpose()?;
    let len = match list {
        Some(list) => list.len(),
        None if creates => 0,
        None => {
            context.reply.integer(0);
            return Ok(());
        }
    };
    let elements = match end {
        // The last one given becomes the first.
        End::Left => row_of((2..context.args.len()).rev().map(|index| context.args.at(index))),
        End::Right => row_of(context.args.from(2)),
    };
    insert_at_end(&mut context.keys, key, len, end, &elements);
    reply_count(&mut context.reply, len + context.args.len() - 2);
    Ok(())
}

/// Inserts elements at an end of a list of `len` elements, and publishes the event.
pub(super) fn insert_at_end(
    keys: &mut Keys<'_>,
    key: Key<'_>,
    len: usize,
    end: End,
    elements: &[u8],
) {
    let index = match end {
        End::Left => 0,
        End::Right => len,
    };
    keys.apply(&Effect::InsertElements { key, index, elements });
    let event = match end {
        End::Left => "lpush",
        End::Right => "rpush",
    };
    keys.notify(NotifyClasses::LIST, event, key.bytes());
}
