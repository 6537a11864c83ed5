//! Parts of strings: APPEND, GETRANGE, SETRANGE. Also the clamping of ranges as in Redis, used for bits too.

use core::ops::Range;

use settings::NotifyClasses;
use store::Effect;

use super::{reply_string, string_of, text_value, with_bytes};
use crate::Error;
use crate::context::Context;

/// First and last position as a client gave them: both inclusive, counted from the end if negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    pub(crate) start: i64,
    pub(crate) end: i64,
}

impl Bounds {
    /// Returns whether both are counted from the end, in the wrong order. [`clamp`] alone would select the first
    /// position for some of these, since it moves positions before the beginning there.
    pub(crate) fn are_crossed_from_end(self) -> bool {
        self.start < 0 && self.end < 0 && self.start > self.end
    }
}

/// Returns the positions of `bounds` within `len`; `None` if there are none. A position before the beginning
/// becomes the first one: `GETRANGE abc 0 -9` is `a`, and clients rely on it.
pub(crate) fn clamp(bounds: Bounds, len: usize) -> Option<Range<usize>> {
    let len = len.cast_signed() as i64;
    let from_front = |place: i64| if place < 0 { (place + len).max(0) } else { place };
    let (start, end) = (from_front(bounds.start), from_front(bounds.end).min(len - 1));
    if start > end {
        return None;
    }
    let place = |at: i64| usize::try_from(at).expect("between 0 and a length");
    Some(place(start)..place(end) + 1)
}

pub(super) fn getrange(context: &mut Context<'_>) -> Result<(), Error> {
    let bounds = Bounds { start: context.integer(2)?, end: context.integer(3)? };
    let key = context.key(1);
    let Some(found) = context.keys.read(&key) else {
        context.reply.bulk(b"");
        return Ok(());
    };
    let value = string_of(&found)?;
    let len = value.len();
    match clamp(bounds, len).filter(|_| !bounds.are_crossed_from_end()) {
        None => context.reply.bulk(b""),
        Some(part) if part.len() == len => reply_string(&mut context.reply, value),
        Some(part) => with_bytes(value, |bytes| context.reply.bulk(&bytes[part])),
    }
    Ok(())
}

pub(super) fn setrange(context: &mut Context<'_>) -> Result<(), Error> {
    let offset = usize::try_from(context.integer(2)?)
        .map_err(|_| Error::fixed("ERR offset is out of range"))?;
    let bytes = context.args.at(3);
    let key = context.key(1);
    let old_len = present_len(context)?;
    let len = if bytes.is_empty() {
        old_len.unwrap_or(0)
    } else {
        let end = string_len(context, offset, bytes.len())?;
        context.keys.apply(&Effect::Overwrite { key, offset, bytes });
        context.keys.notify(NotifyClasses::STRING, "setrange", key.bytes());
        end.max(old_len.unwrap_or(0))
    };
    context.reply.integer(len.cast_signed() as i64);
    Ok(())
}

pub(super) fn append(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let tail = context.args.at(2);
    let len = match present_len(context)? {
        Some(old_len) => {
            let len = string_len(context, old_len, tail.len())?;
            context.keys.apply(&Effect::Append { key, tail });
            len
        }
        None => {
            let value = text_value(tail);
            context.keys.apply(&Effect::Put { key, value, expires_at: None });
            tail.len()
        }
    };
    context.keys.notify(NotifyClasses::STRING, "append", key.bytes());
    context.reply.integer(len.cast_signed() as i64);
    Ok(())
}

/// Returns the length of the string that the first key holds.
fn present_len(context: &mut Context<'_>) -> Result<Option<usize>, Error> {
    let key = context.key(1);
    let found = context.keys.find(&key);
    found.map(|found| Ok(string_of(&found)?.len())).transpose()
}

/// Returns the length of a string of `len` bytes with `more` bytes appended, if a string may be that long.
fn string_len(context: &Context<'_>, len: usize, more: usize) -> Result<usize, Error> {
    let bytes_max = context.keys.env().string_bytes_max;
    len.checked_add(more).filter(|sum| *sum <= bytes_max).ok_or(Error::STRING_TOO_LONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_as_redis_cuts_it() {
        let cut = |start, end, len| clamp(Bounds { start, end }, len);
        assert_eq!(cut(0, -1, 3), Some(0..3));
        assert_eq!(cut(-2, -1, 3), Some(1..3));
        assert_eq!(cut(1, i64::MAX, 3), Some(1..3));
        assert_eq!(cut(i64::MIN, i64::MIN, 3), Some(0..1));
        assert_eq!(cut(0, -9, 3), Some(0..1));
        assert_eq!(cut(2, 1, 3), None);
        assert_eq!(cut(3, 9, 3), None);
        assert_eq!(cut(0, 0, 0), None);
        assert_eq!(cut(-1, -1, 0), None);
    }
}
