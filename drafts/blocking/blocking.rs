//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP: they wait until one of their keys has a list, and then do what the command
//! without B does.
//!
//! A command that waits has not run: it is parked, and runs again from the start when a key may be ready, when its time
//! is over, or when the slot moves away.

use core::ops::Range;
use std::time::Duration;

use super::moves::move_element;
use super::pop::{PopFromFirst, Taken};
use super::{End, list_of};
use crate::context::Context;
use crate::strings::Extended;
use crate::{Block, Error, KeyWait, Wanted};

const UNBLOCKED: Error = Error::fixed("UNBLOCKED client unblocked via CLIENT UNBLOCK");

pub(super) fn blpop(context: &mut Context<'_>) -> Result<(), Error> {
    pop_or_wait(context, End::Left)
}

pub(super) fn brpop(context: &mut Context<'_>) -> Result<(), Error> {
    pop_or_wait(context, End::Right)
}

fn pop_or_wait(context: &mut Context<'_>, end: End) -> Result<(), Error> {
    let last = context.args.len() - 1;
    let block = timeout(context.args.at(last))?;
    let Some(index) = first_ready(context, 1..last)? else { return wait(context, 1..last, block) };
    let key = context.key(index);
    let Some(found) = context.keys.find(&key) else { return wait(context, 1..last, block) };
    let list = list_of(&found)?;
    let taken = Taken::of(list, end, 1);
    context.reply.array(2);
    context.reply.bulk(key.bytes());
    taken.reply(list, &mut context.reply);
    taken.remove(&mut context.keys, key);
    Ok(())
}

pub(super) fn blmpop(context: &mut Context<'_>) -> Result<(), Error> {
    let request = PopFromFirst::parse(context.args, 2)?;
    let block = timeout(context.args.at(1))?;
    let keys = request.keys();
    match first_ready(context, keys.clone())? {
        Some(index) => {
            request.run_on(context, index..index + 1)?;
            Ok(())
        }
        None => wait(context, keys, block),
    }
}

pub(super) fn blmove(context: &mut Context<'_>) -> Result<(), Error> {
    let ends = (End::parse(context.args.at(3))?, End::parse(context.args.at(4))?);
    let block = timeout(context.args.at(5))?;
    move_or_wait(context, ends, block)
}

pub(super) fn brpoplpush(context: &mut Context<'_>) -> Result<(), Error> {
    let block = timeout(context.args.at(3))?;
    move_or_wait(context, (End::Right, End::Left), block)
}

fn move_or_wait(context: &mut Context<'_>, ends: (End, End), block: Block) -> Result<(), Error> {
    if first_ready(context, 1..2)?.is_some() {
        move_element(context, ends)?;
        return Ok(());
    }
    if context.session.in_exec {
        context.reply.null();
        return Ok(());
    }
    wait(context, 1..2, block)
}

/// Returns the first key that has a list for which no other connection has waited for longer. A key of another type is an
/// error, unless it became that while the command waited.
fn first_ready(context: &mut Context<'_>, keys: Range<usize>) -> Result<Option<usize>, Error> {
    for index in keys {
        let key = context.key(index);
        let Some(found) = context.keys.find(&key) else { continue };
        match list_of(&found) {
            Err(_) if context.host.has_waited() => {}
            Err(error) => return Err(error),
            Ok(_) => {
                let takes_its_turn = context.session.in_exec
                    || !context.host.is_behind_others(Wanted::List, key.bytes());
                if takes_its_turn {
                    return Ok(Some(index));
                }
            }
        }
    }
    Ok(None)
}

/// Lets the connection wait for one of these keys, or replies that the time is over.
fn wait(context: &mut Context<'_>, keys: Range<usize>, block: Block) -> Result<(), Error> {
    let block = if context.session.in_exec { Block::Not } else { block };
    let keys: Vec<&[u8]> = keys.map(|index| context.args.at(index)).collect();
    match context.host.wait_for_keys(Wanted::List, &keys, block) {
        KeyWait::Waiting => {}
        KeyWait::TimedOut => context.reply.null_array(),
        KeyWait::Unblocked => return Err(UNBLOCKED),
    }
    Ok(())
}

/// Parses a timeout in seconds; 0: no limit.
fn timeout(text: &[u8]) -> Result<Block, Error> {
    const NOT_A_FLOAT: Error = Error::fixed("ERR timeout is not a float or out of range");
    const OUT_OF_RANGE: Error = Error::fixed("ERR timeout is out of range");
    /// Greatest number of milliseconds whose end is still a time.
    const MILLIS_MAX: f64 = 9.0e18;
    Extended::parse(text).ok_or(NOT_A_FLOAT)?;
    let text = core::str::from_utf8(text).map_err(|_| NOT_A_FLOAT)?;
    let seconds: f64 = text.parse().map_err(|_| NOT_A_FLOAT)?;
    let millis = (seconds * 1_000.0).ceil();
    if millis.is_nan() {
        return Err(NOT_A_FLOAT);
    }
    if millis > MILLIS_MAX {
        return Err(OUT_OF_RANGE);
    }
    if millis < 0.0 {
        return Err(Error::fixed("ERR timeout is negative"));
    }
    if millis == 0.0 {
        return Ok(Block::ForEver);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 9e18"
    )]
    Ok(Block::For(Duration::from_millis(millis as u64)))
}
