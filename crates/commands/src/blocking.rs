//! Commands that wait for keys: BLPOP, BZPOPMIN and others.
//!
//! A command that has to wait has not run: [`wait`] puts its connection in the lines of its keys and ends it without a
//! reply ([`Ending::Waiting`](crate::Ending)). The server parks the request and runs it again, from the start, when a key
//! may be ready or the slot has moved away. A timeout and CLIENT UNBLOCK end the wait without running it.

use core::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use cluster::serving::{WaitNumber, Wanted};
use store::StreamId;

use crate::context::Context;
use crate::strings::Extended;
use crate::{Args, Block, Error, Flag, Spec};

/// The reply to a command whose wait CLIENT UNBLOCK has ended with an error.
pub const UNBLOCKED: Error = Error::fixed("UNBLOCKED client unblocked via CLIENT UNBLOCK");

/// A connection's wait for keys, from its command's first run until its answer.
#[derive(Clone, Debug)]
pub struct KeyWait {
    /// The connection's place in the lines of all its keys.
    pub number: WaitNumber,
    pub wanted: Wanted,
    /// The names of the keys (`Key::name`).
    pub keys: Box<[Arc<[u8]>]>,
    /// The maximum duration of the wait, from the first run on.
    pub block: Block,
    /// For XREAD, the ids behind which the wait began, one for each key: `$` means another id later.
    pub after: Box<[StreamId]>,
}

/// Returns the index of the first of these keys that has a value of the wanted type, and for which no other connection
/// has waited for longer. A key of another type is an error, unless it became that while the command waited.
pub(crate) fn first_ready(
    context: &mut Context<'_>,
    wanted: Wanted,
    keys: Range<usize>,
) -> Result<Option<usize>, Error> {
    let number = context.session.key_wait.as_ref().map(|wait| wait.number);
    for index in keys {
        let key = context.key(index);
        let Some(found) = context.keys.peek(&key) else { continue };
        if Wanted::of(&found.value()) != Some(wanted) {
            if number.is_none() {
                return Err(Error::WRONG_TYPE);
            }
            continue;
        }
        if context.session.in_exec || !context.keys.slots.is_behind(&key, wanted, number) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Lets the connection wait for one of these keys; the caller returns the result. In a transaction nothing waits: the
/// reply is that of a timeout.
pub(crate) fn wait(
    context: &mut Context<'_>,
    wanted: Wanted,
    keys: Range<usize>,
    block: Block,
) -> Result<(), Error> {
    if context.session.in_exec {
        context.reply.null_array();
        return Ok(());
    }
    let waiter = context.host.waiter();
    if context.session.key_wait.is_none() {
        let keys = keys.map(|index| Arc::from(&*context.key(index).name())).collect();
        let (number, after) = (context.host.next_wait_number(), Box::default());
        context.session.key_wait = Some(Box::new(KeyWait { number, wanted, keys, block, after }));
    }
    let wait = context.session.key_wait.as_ref().expect("it waits by now");
    for bytes in &wait.keys {
        let slot = context.keys.env().seed.named(bytes).slot();
        context.keys.slots.enter_line(slot, bytes, wanted, (wait.number, waiter));
    }
    Err(Error::WAITING)
}

/// Parses a timeout in seconds; 0 is no limit.
pub(crate) fn timeout(text: &[u8]) -> Result<Block, Error> {
    const NOT_A_FLOAT: Error = Error::fixed("ERR timeout is not a float or out of range");
    const OUT_OF_RANGE: Error = Error::fixed("ERR timeout is out of range");
    /// The end of a longer wait would not be a time.
    const MILLIS_MAX: f64 = 9.2e18;
    let seconds = Extended::parse(text).ok_or(NOT_A_FLOAT)?.approximate();
    let millis = (seconds * 1_000.0).ceil();
    if millis > MILLIS_MAX {
        return Err(OUT_OF_RANGE);
    }
    if millis < 0.0 {
        return Err(Error::fixed("ERR timeout is negative"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and MILLIS_MAX"
    )]
    let millis = millis as u64;
    Ok(if millis == 0 { Block::ForEver } else { Block::For(Duration::from_millis(millis)) })
}

/// Returns the index of the timeout among the arguments of a command that may wait for keys.
pub fn timeout_index(spec: &Spec, args: Args<'_>) -> Option<usize> {
    let index = match spec.full_name {
        "blmpop" | "bzmpop" => 1,
        _ => args.len().checked_sub(1)?,
    };
    spec.has(Flag::Blocking).then_some(index)
}

/// Returns the text of a timeout that is shorter by the time already waited, but at least a millisecond. `None` if the
/// text is no time, or no limit.
pub fn remaining_timeout(text: &[u8], waited: Duration) -> Option<String> {
    let Ok(Block::For(timeout)) = timeout(text) else { return None };
    let rest = timeout.saturating_sub(waited).max(Duration::from_millis(1));
    Some(format!("{}.{:03}", rest.as_secs(), rest.subsec_millis()))
}

#[cfg(test)]
mod tests;
