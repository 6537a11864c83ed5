//! Finds the end of a reply without building it. The load generator and the proxy count replies with it;
//! `reply_parser.rs` reads the same items and builds values from them.

use crate::error::ProtocolError;
use crate::number::parse_integer;
use memchr::memchr;

/// Maximum length of a line in a reply: errors and simple strings are short.
const LINE_BYTES_MAX: usize = 64 * 1024;
pub(crate) const BULK_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Returns the end of the reply that begins at `at`, or `None` if it is incomplete. Starts from the reply's first
/// byte each time; [`ReplySkipper`] does not.
#[inline]
pub fn skip_reply(buf: &[u8], at: usize) -> Result<Option<usize>, ProtocolError> {
    ReplySkipper::default().next(buf, at)
}

/// Finds the ends of successive replies, and keeps its position in an incomplete one.
#[derive(Debug, Default)]
pub struct ReplySkipper {
    /// Items still missing from the current reply. Zero: no reply has begun.
    items_left: u64,
    /// Number of bytes of the reply that are parsed.
    done: usize,
}

impl ReplySkipper {
    /// Returns the end of the reply that begins at `at`, or `None` if it is incomplete. Then call again with more
    /// bytes; the reply may have moved to another position in the meantime.
    #[inline]
    pub fn next(&mut self, buf: &[u8], at: usize) -> Result<Option<usize>, ProtocolError> {
        let reply = &buf[at..];
        if self.items_left == 0 {
            *self = ReplySkipper { items_left: 1, done: 0 };
        }
        while self.items_left > 0 {
            let Some(item) = ReplyItem::read(&reply[self.done..])? else {
                return Ok(None);
            };
            self.done += item.len;
            self.items_left = (self.items_left - 1)
                .checked_add(item.kind.children())
                .ok_or(ProtocolError::TooBigReply)?;
        }
        Ok(Some(at + self.done))
    }
}

/// One item of a reply: a whole scalar, or the header of an aggregate whose items follow.
pub(crate) struct ReplyItem<'b> {
    pub(crate) kind: ItemKind<'b>,
    /// Its length in the buffer, in bytes.
    pub(crate) len: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum ItemKind<'b> {
    Simple(&'b [u8]),
    Error(&'b [u8]),
    Integer(i64),
    Bulk(&'b [u8]),
    Null,
    Double(&'b [u8]),
    Boolean(bool),
    BigNumber(&'b [u8]),
    Verbatim(&'b [u8]),
    Array(u64),
    Set(u64),
    Push(u64),
    /// Number of pairs.
    Map(u64),
    /// Number of pairs; the reply they describe follows them.
    Attribute(u64),
}

impl ItemKind<'_> {
    /// Returns the number of items that follow as parts of this one, including the reply an attribute describes.
    #[inline]
    pub(crate) fn children(self) -> u64 {
        match self {
            ItemKind::Simple(_)
            | ItemKind::Error(_)
            | ItemKind::Integer(_)
            | ItemKind::Bulk(_)
            | ItemKind::Null
            | ItemKind::Double(_)
            | ItemKind::Boolean(_)
            | ItemKind::BigNumber(_)
            | ItemKind::Verbatim(_) => 0,
            ItemKind::Array(len) | ItemKind::Set(len) | ItemKind::Push(len) => len,
            ItemKind::Map(pairs) => pairs * 2,
            ItemKind::Attribute(pairs) => pairs * 2 + 1,
        }
    }
}

impl<'b> ReplyItem<'b> {
    /// Reads the item at the start of `buf`, or returns `None` if it is incomplete.
    #[inline]
    pub(crate) fn read(buf: &'b [u8]) -> Result<Option<ReplyItem<'b>>, ProtocolError> {
        let Some((&first, _)) = buf.split_first() else { return Ok(None) };
        let Some(text) = read_line(buf)? else { return Ok(None) };
        let after_line = text.len() + 3;
        let kind = match first {
            b'+' => ItemKind::Simple(text),
            b'-' => ItemKind::Error(text),
            b':' => ItemKind::Integer(integer(text)?),
            b'$' | b'!' | b'=' => return read_bulk(buf, first, text),
            b'*' if text == b"-1" => ItemKind::Null,
            b'*' => ItemKind::Array(length(text)?),
            b'%' => ItemKind::Map(length(text)?),
            b'~' => ItemKind::Set(length(text)?),
            b'>' => ItemKind::Push(length(text)?),
            b'|' => ItemKind::Attribute(length(text)?),
            b'_' if text.is_empty() => ItemKind::Null,
            b'#' if text == b"t" => ItemKind::Boolean(true),
            b'#' if text == b"f" => ItemKind::Boolean(false),
            b',' => ItemKind::Double(text),
            b'(' => ItemKind::BigNumber(text),
            b'_' | b'#' => return Err(ProtocolError::InvalidReply),
            other => return Err(ProtocolError::UnknownReplyType(other)),
        };
        Ok(Some(ReplyItem { kind, len: after_line }))
    }
}

fn read_bulk<'b>(
    buf: &'b [u8],
    first: u8,
    text: &'b [u8],
) -> Result<Option<ReplyItem<'b>>, ProtocolError> {
    let start = text.len() + 3;
    if text == b"-1" && first == b'$' {
        return Ok(Some(ReplyItem { kind: ItemKind::Null, len: start }));
    }
    let len = usize::try_from(length(text)?).map_err(|_| ProtocolError::InvalidReply)?;
    if len > BULK_BYTES_MAX {
        return Err(ProtocolError::TooBigReply);
    }
    let Some(content) = buf.get(start..start + len + 2) else { return Ok(None) };
    let Some(content) = content.strip_suffix(b"\r\n") else {
        return Err(ProtocolError::InvalidReply);
    };
    let kind = match first {
        b'$' => ItemKind::Bulk(content),
        b'!' => ItemKind::Error(content),
        _ if content.get(3) == Some(&b':') => ItemKind::Verbatim(content),
        _ => return Err(ProtocolError::InvalidReply),
    };
    Ok(Some(ReplyItem { kind, len: start + len + 2 }))
}

/// Returns the text between the type byte and the line break.
#[inline]
fn read_line(buf: &[u8]) -> Result<Option<&[u8]>, ProtocolError> {
    // Lengths and short numbers end within a few bytes, where calling memchr does not pay.
    const NEAR: usize = 8;
    let near = buf[1..].iter().take(NEAR).position(|&byte| byte == b'\r');
    let found = match near {
        Some(found) => Some(found),
        None => memchr(b'\r', &buf[1..buf.len().min(LINE_BYTES_MAX)]),
    };
    let Some(len) = found else {
        let too_long = buf.len() >= LINE_BYTES_MAX;
        return if too_long { Err(ProtocolError::TooBigReply) } else { Ok(None) };
    };
    match buf.get(len + 2) {
        None => Ok(None),
        Some(b'\n') => Ok(Some(&buf[1..=len])),
        Some(_) => Err(ProtocolError::InvalidReply),
    }
}

fn integer(text: &[u8]) -> Result<i64, ProtocolError> {
    parse_integer(text).ok_or(ProtocolError::InvalidReply)
}

#[inline]
fn length(text: &[u8]) -> Result<u64, ProtocolError> {
    // The largest length that can still be doubled for a map's keys and values.
    const LENGTH_MAX: u64 = u32::MAX as u64;
    let number = match text {
        [digit @ b'0'..=b'9'] => return Ok(u64::from(digit - b'0')),
        longer => integer(longer)?,
    };
    let length = u64::try_from(number).map_err(|_| ProtocolError::InvalidReply)?;
    if length > LENGTH_MAX { Err(ProtocolError::TooBigReply) } else { Ok(length) }
}
