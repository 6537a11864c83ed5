//! A client's bytes become the places of its arguments.
//!
//! The server reads into a buffer and calls [`RequestParser::next`] until it answers `Incomplete`;
//! arguments are [`Span`]s of that buffer, so nothing is copied. A request comes in one of two
//! forms: an array of bulk strings, which every client library sends, or one line of words
//! ("inline"), which people type; `request/inline.rs` splits the latter.
//!
//! There are two ways through an array. `whole_array` takes one that is all there and ordinary,
//! which is nearly every one, and keeps no state. Anything else (cut off, malformed, oddly
//! terminated) goes through `RequestParser::resume_array`, which remembers where it stopped, so
//! that each byte is looked at a bounded number of times however the bytes arrive.
//!
//! We accept and refuse exactly what Redis 7.0 does, lenience included: it never looks at the byte
//! after a length's `\r`, nor at the two bytes after an argument. Two things differ: an array of
//! more than 1,048,576 arguments is refused, and a zero byte in a line is a byte like any other
//! (Redis stops reading the line there and waits for ever).

mod inline;
#[cfg(test)]
mod tests;

use crate::error::ProtocolError;
use crate::number::parse_integer;
use memchr::memchr;

/// Where an argument stands in the buffer that was parsed.
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

/// Whether the client has shown who it is. Until then it may not make us hold much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    Authenticated,
    Unauthenticated,
}

/// How much a client may ask us to hold for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bulk_bytes_max: usize,
    pub args_max: usize,
    /// For a line of words, and for the line that holds a length.
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
    /// A request ends at `end`; its `args` spans were pushed. An empty line or an empty array is a
    /// request without arguments, to be passed over in silence.
    Request { end: usize, args: usize },
    /// The rest has not come yet: at least `missing_hint` bytes more.
    Incomplete { missing_hint: usize },
}

/// Reads one connection's requests. Remembers how far it came in a request that is cut off.
#[derive(Debug, Default)]
pub struct RequestParser {
    progress: Progress,
    /// Arguments of the cut-off array, relative to its first byte: the caller may move the bytes
    /// to another buffer before it reads on.
    partial: Vec<Span>,
}

/// Offsets are relative to the request's first byte.
#[derive(Clone, Copy, Debug, Default)]
enum Progress {
    /// Between two requests.
    #[default]
    Fresh,
    /// Inside a line of words; the first `scanned` bytes hold no newline.
    Line { scanned: usize },
    /// Inside the line that says how many arguments follow.
    Count { scanned: usize },
    /// Inside the line, beginning at `at`, that says how long the next argument is.
    Length { at: usize, scanned: usize, args_left: usize },
    /// Inside an argument of `len` bytes that begins at `at`.
    Bulk { at: usize, len: usize, args_left: usize },
}

impl RequestParser {
    /// Parses the next request in `buf[at..]`, where `at` is where the last one ended, and pushes
    /// its arguments' spans, relative to the start of `buf`.
    ///
    /// On `Incomplete` call again when more bytes have come; they and those from `at` on may have
    /// moved to another place meanwhile. Lines of words are unquoted in place, which is why `buf`
    /// is mutable.
    #[inline]
    pub fn next(
        &mut self,
        buf: &mut [u8],
        at: usize,
        limits: &Limits,
        spans: &mut Vec<Span>,
    ) -> Result<Parsed, ProtocolError> {
        if matches!(self.progress, Progress::Fresh) {
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
        if matches!(self.progress, Progress::Fresh) {
            self.progress = match request.first() {
                None => return Ok(Parsed::Incomplete { missing_hint: 1 }),
                Some(b'*') => Progress::Count { scanned: 1 },
                Some(_) => Progress::Line { scanned: 0 },
            };
        }
        let parsed = match self.progress {
            Progress::Line { scanned } => self.resume_line(request, scanned, limits, spans)?,
            Progress::Fresh
            | Progress::Count { .. }
            | Progress::Length { .. }
            | Progress::Bulk { .. } => self.resume_array(request, limits, spans)?,
        };
        Ok(match parsed {
            Parsed::Incomplete { .. } => parsed,
            Parsed::Request { end, args } => {
                self.progress = Progress::Fresh;
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
            self.progress = Progress::Line { scanned: request.len() };
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
                Progress::Count { scanned } => match read_count(request, scanned, limits)? {
                    Line::Read { number: 0, end } => {
                        return Ok(Parsed::Request { end, args: 0 });
                    }
                    Line::Read { number, end } => {
                        Progress::Length { at: end, scanned: 0, args_left: number }
                    }
                    Line::Incomplete { scanned } => {
                        self.progress = Progress::Count { scanned };
                        return Ok(Parsed::Incomplete { missing_hint: 1 });
                    }
                },
                Progress::Length { at, scanned, args_left } => {
                    match read_length(&request[at..], scanned, limits)? {
                        Line::Read { number, end } => {
                            Progress::Bulk { at: at + end, len: number, args_left }
                        }
                        Line::Incomplete { scanned } => {
                            self.progress = Progress::Length { at, scanned, args_left };
                            return Ok(Parsed::Incomplete { missing_hint: 1 });
                        }
                    }
                }
                Progress::Bulk { at, len, args_left } => {
                    let end = at + len + 2;
                    if end > request.len() {
                        return Ok(Parsed::Incomplete { missing_hint: end - request.len() });
                    }
                    self.partial.push(Span::new(at, len));
                    if args_left == 1 {
                        return Ok(self.finish_array(end, spans));
                    }
                    Progress::Length { at: end, scanned: 0, args_left: args_left - 1 }
                }
                Progress::Fresh | Progress::Line { .. } => {
                    unreachable!("an array is under way")
                }
            };
        }
    }

    fn finish_array(&mut self, end: usize, spans: &mut Vec<Span>) -> Parsed {
        // A connection that once sent a huge request does not keep the room for it.
        const PARTIAL_KEPT: usize = 64;
        let args = self.partial.len();
        spans.append(&mut self.partial);
        self.partial.shrink_to(PARTIAL_KEPT);
        Parsed::Request { end, args }
    }
}

/// Takes an array that is all there and as every client library writes it: pushes its arguments and
/// returns its end. `None` means "look closer", with some spans perhaps pushed.
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

/// Reads a number of up to nine digits and its `\r\n`; returns it and what follows it.
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

/// What became of a line that holds a number. Offsets are relative to the line.
enum Line {
    Read { number: usize, end: usize },
    Incomplete { scanned: usize },
}

fn read_count(line: &[u8], scanned: usize, limits: &Limits) -> Result<Line, ProtocolError> {
    let Some(text_end) = find(b'\r', line, scanned, limits.inline_bytes_max) else {
        return unfinished(line, limits, ProtocolError::TooBigMultibulkCount);
    };
    if line.len() < text_end + 2 {
        return Ok(Line::Incomplete { scanned: text_end });
    }
    let count = parse_integer(&line[1..text_end]).ok_or(ProtocolError::InvalidMultibulkLength)?;
    // `*-1` is an empty request, as `*0` is.
    let number =
        usize::try_from(count.max(0)).map_err(|_| ProtocolError::InvalidMultibulkLength)?;
    limits.check_args(number)?;
    Ok(Line::Read { number, end: text_end + 2 })
}

fn read_length(line: &[u8], scanned: usize, limits: &Limits) -> Result<Line, ProtocolError> {
    let Some(text_end) = find(b'\r', line, scanned, limits.inline_bytes_max) else {
        return unfinished(line, limits, ProtocolError::TooBigBulkCount);
    };
    if line.len() < text_end + 2 {
        return Ok(Line::Incomplete { scanned: text_end });
    }
    if line[0] != b'$' {
        return Err(ProtocolError::ExpectedDollar(line[0]));
    }
    let number = parse_integer(&line[1..text_end])
        .and_then(|len| usize::try_from(len).ok())
        .ok_or(ProtocolError::InvalidBulkLength)?;
    limits.check_bulk(number)?;
    Ok(Line::Read { number, end: text_end + 2 })
}

fn unfinished(line: &[u8], limits: &Limits, too_big: ProtocolError) -> Result<Line, ProtocolError> {
    if line.len() > limits.inline_bytes_max {
        return Err(too_big);
    }
    Ok(Line::Incomplete { scanned: line.len() })
}

/// Finds `byte` behind the `scanned` bytes and not beyond the limit. Redis tests a line's length
/// only while it waits for the end, so there it depends on how the bytes were cut; here it does
/// not.
fn find(byte: u8, line: &[u8], scanned: usize, bytes_max: usize) -> Option<usize> {
    let end = line.len().min(bytes_max + 1);
    memchr(byte, line.get(scanned..end)?).map(|found| scanned + found)
}
