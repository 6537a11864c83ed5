//! Splits an inline request into words as Redis does, and unquotes them in place.
//!
//! Called by `request.rs` with a whole line. Words are separated by white space; `"..."` supports
//! `\n \r \t \b \a \xHH` and takes any other escaped byte literally; `'...'` supports only `\'`. A quote may begin
//! inside a word but must end it.

use super::Span;
use crate::error::ProtocolError;

/// Pushes the words' positions in `line` and returns their number. On an error `spans` is unchanged, and the line
/// is partly rewritten.
pub(super) fn split(line: &mut [u8], spans: &mut Vec<Span>) -> Result<usize, ProtocolError> {
    let spans_before = spans.len();
    let mut words = InlineWords { line, read: 0, written: 0 };
    loop {
        words.skip_blanks();
        if words.read == words.line.len() {
            return Ok(spans.len() - spans_before);
        }
        let Some(word) = words.take_word() else {
            spans.truncate(spans_before);
            return Err(ProtocolError::UnbalancedQuotes);
        };
        spans.push(word);
    }
}

/// Reads and writes the same line: an unquoted word is never longer than the quoted one, so `written` never
/// overtakes `read`.
struct InlineWords<'l> {
    line: &'l mut [u8],
    read: usize,
    written: usize,
}

impl InlineWords<'_> {
    fn skip_blanks(&mut self) {
        while self.peek(0).is_some_and(is_blank) {
            self.read += 1;
        }
    }

    fn take_word(&mut self) -> Option<Span> {
        // A plain word is not moved.
        self.written = self.read;
        let start = self.read;
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => break,
                b'"' => {
                    self.read += 1;
                    self.take_double_quoted()?;
                    break;
                }
                b'\'' => {
                    self.read += 1;
                    self.take_single_quoted()?;
                    break;
                }
                plain => self.put(plain, 1),
            }
        }
        Some(Span::new(start, self.written - start))
    }

    fn take_double_quoted(&mut self) -> Option<()> {
        loop {
            match (self.peek(0)?, self.peek(1)) {
                (b'"', _) => return self.close_quote(),
                (b'\\', Some(b'x')) => match self.hex_byte() {
                    Some(byte) => self.put(byte, 4),
                    None => self.put(b'x', 2),
                },
                (b'\\', Some(escaped)) => self.put(unescape(escaped), 2),
                (plain, _) => self.put(plain, 1),
            }
        }
    }

    fn take_single_quoted(&mut self) -> Option<()> {
        loop {
            match (self.peek(0)?, self.peek(1)) {
                (b'\'', _) => return self.close_quote(),
                (b'\\', Some(b'\'')) => self.put(b'\'', 2),
                (plain, _) => self.put(plain, 1),
            }
        }
    }

    /// Ends a quoted part. `"a"b` is refused: its intended meaning is unknown.
    fn close_quote(&mut self) -> Option<()> {
        self.read += 1;
        self.peek(0).is_none_or(is_blank).then_some(())
    }

    fn hex_byte(&self) -> Option<u8> {
        let digit = |offset| char::from(self.peek(offset)?).to_digit(16);
        u8::try_from(digit(2)? * 16 + digit(3)?).ok()
    }

    fn peek(&self, offset: usize) -> Option<u8> {
        self.line.get(self.read + offset).copied()
    }

    fn put(&mut self, byte: u8, bytes_read: usize) {
        self.line[self.written] = byte;
        self.written += 1;
        self.read += bytes_read;
    }
}

/// Same as C's `isspace`, which includes the vertical tab. However, `\v` and `\f` do not end a word.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}
