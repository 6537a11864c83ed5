//! XRANGE, XREVRANGE, XLEN.

use store::Stream;

use super::ids::{parse_end, parse_start};
use super::{reply_count, reply_entries, stream_of};
use crate::Error;
use crate::context::Context;

pub(super) fn xlen(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let stream = context.keys.read(&key).map(|found| stream_of(&found)).transpose()?;
    reply_count(&mut context.reply, stream.map_or(0, Stream::len));
    Ok(())
}

pub(super) fn xrange(context: &mut Context<'_>) -> Result<(), Error> {
    range(context, false)
}

pub(super) fn xrevrange(context: &mut Context<'_>) -> Result<(), Error> {
    range(context, true)
}

fn range(context: &mut Context<'_>, is_reverse: bool) -> Result<(), Error> {
    let (first, second) = (context.args.at(2), context.args.at(3));
    let (start, end) = if is_reverse { (second, first) } else { (first, second) };
    let (start, end) = (parse_start(start)?, parse_end(end)?);
    let count = parse_count(context)?;
    let key = context.key(1);
    let stream = context.keys.read(&key).map(|found| stream_of(&found)).transpose()?;
    let reply = &mut context.reply;
    let Some(stream) = stream else {
        reply.array(0);
        return Ok(());
    };
    let count = count.unwrap_or(usize::MAX);
    if count == 0 {
        reply.null_array();
    } else if is_reverse {
        let entries = stream.iter_back_from(end).take_while(|entry| entry.id() >= start);
        reply_entries(reply, entries.take(count));
    } else {
        let entries = stream.iter_from(start).take_while(|entry| entry.id() <= end);
        reply_entries(reply, entries.take(count));
    }
    Ok(())
}

/// Parses COUNT; the last one counts. A negative number is 0.
fn parse_count(context: &Context<'_>) -> Result<Option<usize>, Error> {
    let mut count = None;
    let mut index = 4;
    while let Some(word) = context.args.get(index) {
        if !word.eq_ignore_ascii_case(b"count") || index + 1 == context.args.len() {
            return Err(Error::SYNTAX);
        }
        count = Some(usize::try_from(context.integer(index + 1)?).unwrap_or(0));
        index += 2;
    }
    Ok(count)
}
