//! Finds the arguments of a request in a client's bytes.
//!
//! The server reads into a buffer and calls [`RequestParser::next`] until it returns `Incomplete`; arguments are
//! [`Span`]s of that buffer, so nothing is copied. A request comes in one of two forms: an array of bulk strings,
//! which every client library sends, or one line of words ("inline"), which people type; `request/inline.rs` splits
//! the latter.
//!
//! There are two code paths for an array. `whole_array` takes one that is complete and ordinary, which is nearly
//! every one, and keeps no state. Anything else (incomplete, malformed, oddly terminated) goes through
//! `RequestParser::resume_array`, which remembers where it stopped, so that each byte is examined a bounded number
//! of times however the bytes arrive.
//!
//! We accept and refuse exactly what Redis 7.0 does, lenience included: it never checks the byte after a length's
//! `\r`, nor the two bytes after an argument. There are two differences: an array of more than 1,048,576 arguments
//! is refused, and a zero byte in a line is a byte like any other (Redis stops reading the line there and waits
//! forever).

mod inline;
#[cfg(test)]
mod tests;

use crate::error::ProtocolError;
use crate::number::parse_integer;
use memchr::memchr;

/// The position of an argument in the parsed buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    #[inline]
    pub fn of(self, buf: &[u8]) -> &[u8] {
        &buf[self.start as usize..][..self.len as usize]
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "`next` refuses buffers beyond u32")]
    fn new(start: usize, len: usize) -> Span {
        Span { start: start as u32, len: len as u32 }
    }
}

/// The authentication state of the client. Unauthenticated clients get small limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    Authenticated,
    Unauthenticated,
}

/// Limits on the memory a client may make us hold for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bulk_bytes_max: usize,
    pub args_max: usize,
    /// Applies to an inline request, and to the line that holds a length.
    pub inline_bytes_max: usize,
    pub sender: Sender,
}

impl Limits {
    pub const FULL: Limits = Limits {
        bulk_bytes_max: 512 * 1024 * 1024,
        args_max: 1024 * 1024,
        inline_bytes_max: 64 * 1024,
        sender: Sender::Authenticated,
    };
    pub const BEFORE_AUTH: Limits = Limits { sender: Sender::Unauthenticated, ..Limits::FULL };

    const UNAUTHENTICATED_ARGS_MAX: usize = 10;
    const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16 * 1024;

    fn check_args(&self, count: usize) -> Result<(), ProtocolError> {
        if count > self.args_max {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        match self.sender {
            Sender::Unauthenticated if count > Self::UNAUTHENTICATED_ARGS_MAX => {
                Err(ProtocolError::UnauthenticatedMultibulkLength)
            }
            Sender::Unauthenticated | Sender::Authenticated => Ok(()),
        }
    }

    fn check_bulk(&self, len: usize) -> Result<(), ProtocolError> {
        if len > self.bulk_bytes_max {
            return Err(ProtocolError::InvalidBulkLength);
        }
        match self.sender {
            Sender::Unauthenticated if len > Self::UNAUTHENTICATED_BULK_BYTES_MAX => {
                Err(ProtocolError::UnauthenticatedBulkLength)
            }
            Sender::Unauthenticated | Sender::Authenticated => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A request ends at `end`; its `args` spans were pushed. An empty line or an empty array is a request without
    /// arguments; the caller skips it without a reply.
    Request { end: usize, args: usize },
    /// The request is incomplete: at least `missing_hint` more bytes are needed.
    Incomplete { missing_hint: usize },
}

/// Parses the requests of one connection. Keeps its position in an incomplete request.
#[derive(Debug, Default)]
pub struct RequestParser {
    progress: ParseState,
    /// Arguments of the incomplete array, relative to its first byte: the caller may move the bytes to another
    /// buffer before it continues.
    partial: Vec<Span>,
}

/// The position in an incomplete request. Offsets are relative to the request's first byte.
#[derive(Clone, Copy, Debug, Default)]
enum ParseState {
    /// Between two requests.
    #[default]
    Fresh,
    /// Inside an inline request; the first `scanned` bytes hold no newline.
    Line { scanned: usize },
    /// Inside the line that holds the number of arguments.
    Count { scanned: usize },
    /// Inside the line, beginning at `at`, that holds the length of the next argument.
    Length { at: usize, scanned: usize, args_left: usize },
    /// Inside an argument of `len` bytes that begins at `at`.
    Bulk { at: usize, len: usize, args_left: usize },
}

impl RequestParser {
    /// Parses the next request in `buf[at..]`, where `at` is the end of the last one, and pushes its arguments'
    /// spans, relative to the start of `buf`.
    ///
    /// On `Incomplete` call again with more bytes; the bytes from `at` on may have moved to another position in the
    /// meantime. Inline requests are unquoted in place, which is why `buf` is mutable.
    #[inline]
    pub fn next(
        &mut self,
        buf: &mut [u8],
        at: usize,
        limits: &Limits,
        spans: &mut Vec<Span>,
    ) -> Result<Parsed, ProtocolError> {
        if matches!(self.progress, ParseState::Fresh) {
            let spans_before = spans.len();
            if let Some(end) = whole_array(buf, at, limits, spans) {
                return Ok(Parsed::Request { end, args: spans.len() - spans_before });
            }
            spans.truncate(spans_before);
        }
        self.resume(buf, at, limits, spans)
    }

    #[inline(never)]
    fn resume(
        &mut self,
        buf: &mut [u8],
        at: usize,
        limits: &Limits,
        spans: &mut Vec<Span>,
    ) -> Result<Parsed, ProtocolError> {
        if u32::try_from(buf.len()).is_err() {
            return Err(ProtocolError::TooBigRequest);
        }
        let request = &mut buf[at..];
        if matches!(self.progress, ParseState::Fresh) {
            self.progress = match request.first() {
                None => return Ok(Parsed::Incomplete { missing_hint: 1 }),
                Some(b'*') => ParseState::Count { scanned: 1 },
                Some(_) => ParseState::Line { scanned: 0 },
            };
        }
        let parsed = match self.progress {
            ParseState::Line { scanned } => self.resume_line(request, scanned, limits, spans)?,
            ParseState::Fresh
            | ParseState::Count { .. }
            | ParseState::Length { .. }
            | ParseState::Bulk { .. } => self.resume_array(request, limits, spans)?,
        };
        Ok(match parsed {
            Parsed::Incomplete { .. } => parsed,
            Parsed::Request { end, args } => {
                self.progress = ParseState::Fresh;
                let first = spans.len() - args;
                for span in &mut spans[first..] {
                    *span = Span::new(at + span.start as usize, span.len as usize);
                }
                Parsed::Request { end: at + end, args }
            }
        })
    }

    fn resume_line(
        &mut self,
        request: &mut [u8],
        scanned: usize,
        limits: &Limits,
        spans: &mut Vec<Span>,
    ) -> Result<Parsed, ProtocolError> {
        let Some(newline) = find(b'\n', request, scanned, limits.inline_bytes_max) else {
            if request.len() > limits.inline_bytes_max {
                return Err(ProtocolError::TooBigInlineRequest);
            }
            self.progress = ParseState::Line { scanned: request.len() };
            return Ok(Parsed::Incomplete { missing_hint: 1 });
        };
        let line = &mut request[..newline];
        let line_len = line.strip_suffix(b"\r").map_or(newline, <[u8]>::len);
        let args = inline::split(&mut line[..line_len], spans)?;
        Ok(Parsed::Request { end: newline + 1, args })
    }

    fn resume_array(
        &mut self,
        request: &[u8],
        limits: &Limits,
        spans: &mut Vec<Span>,
    ) -> Result<Parsed, ProtocolError> {
        loop {
            self.progress = match self.progress {
                ParseState::Count { scanned } => match read_count(request, scanned, limits)? {
                    CountLine::Read { number: 0, end } => {
                        return Ok(Parsed::Request { end, args: 0 });
                    }
                    CountLine::Read { number, end } => {
                        ParseState::Length { at: end, scanned: 0, args_left: number }
                    }
                    CountLine::Incomplete { scanned } => {
                        self.progress = ParseState::Count { scanned };
                        return Ok(Parsed::Incomplete { missing_hint: 1 });
                    }
                },
                ParseState::Length { at, scanned, args_left } => {
                    match read_length(&request[at..], scanned, limits)? {
                        CountLine::Read { number, end } => {
                            ParseState::Bulk { at: at + end, len: number, args_left }
                        }
                        CountLine::Incomplete { scanned } => {
                            self.progress = ParseState::Length { at, scanned, args_left };
                            return Ok(Parsed::Incomplete { missing_hint: 1 });
                        }
                    }
                }
                ParseState::Bulk { at, len, args_left } => {
                    let end = at + len + 2;
                    if end > request.len() {
                        return Ok(Parsed::Incomplete { missing_hint: end - request.len() });
                    }
                    self.partial.push(Span::new(at, len));
                    if args_left == 1 {
                        return Ok(self.finish_array(end, spans));
                    }
                    ParseState::Length { at: end, scanned: 0, args_left: args_left - 1 }
                }
                ParseState::Fresh | ParseState::Line { .. } => {
                    unreachable!("an array is under way")
                }
            };
        }
    }

    fn finish_array(&mut self, end: usize, spans: &mut Vec<Span>) -> Parsed {
        // A connection that once sent a huge request must not keep the memory for it.
        const PARTIAL_KEPT: usize = 64;
        let args = self.partial.len();
        spans.append(&mut self.partial);
        self.partial.shrink_to(PARTIAL_KEPT);
        Parsed::Request { end, args }
    }
}

/// Parses an array that is complete and written the way client libraries write it: pushes its arguments and returns
/// its end. `None` means that the slow path must decide; some spans may have been pushed.
#[inline]
fn whole_array(buf: &[u8], at: usize, limits: &Limits, spans: &mut Vec<Span>) -> Option<usize> {
    if *buf.get(at)? != b'*' || u32::try_from(buf.len()).is_err() {
        return None;
    }
    let (count, mut at) = short_number(buf, at + 1)?;
    limits.check_args(count).ok()?;
    for _ in 0..count {
        if *buf.get(at)? != b'$' {
            return None;
        }
        let (len, start) = short_number(buf, at + 1)?;
        limits.check_bulk(len).ok()?;
        at = start + len + 2;
        if at > buf.len() {
            return None;
        }
        spans.push(Span::new(start, len));
    }
    Some(at)
}

/// Reads a number of up to nine digits and its `\r\n`; returns the number and the position after it.
#[inline]
fn short_number(buf: &[u8], at: usize) -> Option<(usize, usize)> {
    // Two digits are enough for most counts, names, keys and small values.
    let &[first, second, third, fourth] = buf.get(at..)?.first_chunk::<4>()?;
    let units = usize::from(first.wrapping_sub(b'0'));
    if units > 9 {
        return None;
    }
    if second == b'\r' && third == b'\n' {
        return Some((units, at + 3));
    }
    let ones = usize::from(second.wrapping_sub(b'0'));
    if units == 0 || ones > 9 {
        return None;
    }
    let number = units * 10 + ones;
    if third == b'\r' && fourth == b'\n' {
        return Some((number, at + 4));
    }
    longer_number(buf, at + 2, number)
}

fn longer_number(buf: &[u8], at: usize, mut number: usize) -> Option<(usize, usize)> {
    const MORE_DIGITS_MAX: usize = 7;
    let rest = &buf[at..];
    for (seen, &byte) in rest.iter().enumerate().take(MORE_DIGITS_MAX + 1) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return rest[seen..].starts_with(b"\r\n").then_some((number, at + seen + 2));
        }
        number = number * 10 + usize::from(digit);
    }
    None
}

/// The result of reading a line that holds a number. Offsets are relative to the line.
enum CountLine {
    Read { number: usize, end: usize },
    Incomplete { scanned: usize },
}

fn read_count(line: &[u8], scanned: usize, limits: &Limits) -> Result<CountLine, ProtocolError> {
    let Some(text_end) = find(b'\r', line, scanned, limits.inline_bytes_max) else {
        return unfinished(line, limits, ProtocolError::TooBigMultibulkCount);
    };
    if line.len() < text_end + 2 {
        return Ok(CountLine::Incomplete { scanned: text_end });
    }
    let count = parse_integer(&line[1..text_end]).ok_or(ProtocolError::InvalidMultibulkLength)?;
    // `*-1` is an empty request, as `*0` is.
    let number =
        usize::try_from(count.max(0)).map_err(|_| ProtocolError::InvalidMultibulkLength)?;
    limits.check_args(number)?;
    Ok(CountLine::Read { number, end: text_end + 2 })
}

fn read_length(line: &[u8], scanned: usize, limits: &Limits) -> Result<CountLine, ProtocolError> {
    let Some(text_end) = find(b'\r', line, scanned, limits.inline_bytes_max) else {
        return unfinished(line, limits, ProtocolError::TooBigBulkCount);
    };
    if line.len() < text_end + 2 {
        return Ok(CountLine::Incomplete { scanned: text_end });
    }
    if line[0] != b'$' {
        return Err(ProtocolError::ExpectedDollar(line[0]));
    }
    let number = parse_integer(&line[1..text_end])
        .and_then(|len| usize::try_from(len).ok())
        .ok_or(ProtocolError::InvalidBulkLength)?;
    limits.check_bulk(number)?;
    Ok(CountLine::Read { number, end: text_end + 2 })
}

fn unfinished(
    line: &[u8],
    limits: &Limits,
    too_big: ProtocolError,
) -> Result<CountLine, ProtocolError> {
    if line.len() > limits.inline_bytes_max {
        return Err(too_big);
    }
    Ok(CountLine::Incomplete { scanned: line.len() })
}

/// Finds `byte` after the first `scanned` bytes and within the limit. Redis checks a line's length only while it
/// waits for the end, so its result depends on how the bytes arrive; ours does not.
fn find(byte: u8, line: &[u8], scanned: usize, bytes_max: usize) -> Option<usize> {
    let end = line.len().min(bytes_max + 1);
    memchr(byte, line.get(scanned..end)?).map(|found| scanned + found)
}
