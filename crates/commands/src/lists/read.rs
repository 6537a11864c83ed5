//! LLEN, LINDEX, LRANGE.

use store::ListValue;

use super::{index_in, list_of, range_in, reply_count, reply_element};
use crate::Error;
use crate::context::Context;

pub(super) fn llen(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let list = context.keys.read(&key).map(|found| list_of(&found)).transpose()?;
    reply_count(&mut context.reply, list.map_or(0, ListValue::len));
    Ok(())
}

pub(super) fn lindex(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, index) = (context.key(1), context.integer(2));
    let Some(found) = context.keys.read(&key) else {
        context.reply.null();
        return Ok(());
    };
    let list = list_of(&found)?;
    let index = match index? {
        // The length of a packed list takes a walk.
        index @ 0.. => usize::try_from(index).ok(),
        index => index_in(index, list.len()),
    };
    match index.and_then(|index| list.get(index)) {
        Some(element) => reply_element(&mut context.reply, element),
        None => context.reply.null(),
    }
    Ok(())
}

pub(super) fn lrange(context: &mut Context<'_>) -> Result<(), Error> {
    let (start, end) = (context.integer(2)?, context.integer(3)?);
    let key = context.key(1);
    let Some(found) = context.keys.read(&key) else {
        context.reply.array(0);
        return Ok(());
    };
    let list = list_of(&found)?;
    let range = range_in(start, end, list.len());
    context.reply.array(range.len());
    for element in list.iter_from(range.start).take(range.len()) {
        reply_element(&mut context.reply, element);
    }
    Ok(())
}
