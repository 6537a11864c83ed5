//! Replies, written in either version of the protocol.
//!
//! `commands` calls one method for each reply or part of one. Types that RESP2 lacks are written as Redis writes
//! them: a map as a flat array, a double as a bulk string, a boolean as 0 or 1. A `Reply` is created for each
//! command, since `HELLO` may change the protocol between two commands.

use crate::output::{Mark, Output};
use crate::{Protocol, write_double};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Smaller values are copied: that costs less than another piece in the gathered write.
pub const SHARED_BYTES_MIN: usize = 16 * 1024;

#[derive(Debug)]
pub struct Reply<'o> {
    out: &'o mut Output,
    pub protocol: Protocol,
}

impl<'o> Reply<'o> {
    #[inline]
    pub fn new(out: &'o mut Output, protocol: Protocol) -> Reply<'o> {
        Reply { out, protocol }
    }

    /// Returns the underlying output, for marks and for bytes that are already encoded.
    #[inline]
    pub fn output(&mut self) -> &mut Output {
        self.out
    }

    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    #[inline]
    pub fn pong(&mut self) {
        self.out.extend_from_slice(b"+PONG\r\n");
    }

    #[inline]
    pub fn queued(&mut self) {
        self.out.extend_from_slice(b"+QUEUED\r\n");
    }

    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes an error. `text` begins with its code (`ERR ...`), without the `-`.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        self.line(b'-', text.as_ref());
    }

    #[inline]
    pub fn integer(&mut self, number: i64) {
        // Most integer replies are counts and truth values.
        match number {
            0 => self.out.extend_from_slice(b":0\r\n"),
            1 => self.out.extend_from_slice(b":1\r\n"),
            _ => self.header(b':', itoa::Buffer::new().format(number)),
        }
    }

    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        let bytes = self.out.bytes_mut();
        bytes.reserve(HEADER_BYTES_MAX + value.len() + 2);
        put_length(bytes, b'$', value.len());
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }

    /// Like `bulk`, without copying the value when it is large.
    pub fn bulk_shared(&mut self, value: &Arc<Vec<u8>>) {
        if value.len() < SHARED_BYTES_MIN {
            return self.bulk(value);
        }
        put_length(self.out.bytes_mut(), b'$', value.len());
        self.out.push_shared(value);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes a number as a bulk string, like the reply of `GET` on a counter.
    #[inline]
    pub fn bulk_integer(&mut self, number: i64) {
        self.bulk(itoa::Buffer::new().format(number).as_bytes());
    }

    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes a null where the client expects an array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Begins an array; `len` replies must follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        put_length(self.out.bytes_mut(), b'*', len);
    }

    /// Begins a map; `pairs` pairs of key and value must follow.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => put_length(self.out.bytes_mut(), b'*', pairs * 2),
            Protocol::Resp3 => put_length(self.out.bytes_mut(), b'%', pairs),
        }
    }

    /// Begins a set; `len` replies must follow.
    pub fn set(&mut self, len: usize) {
        self.aggregate(b'~', len);
    }

    /// Begins a push message; `len` replies must follow.
    pub fn push(&mut self, len: usize) {
        self.aggregate(b'>', len);
    }

    /// Begins an attribute of the reply after it; `pairs` pairs of key and value must follow. Only for RESP3: RESP2
    /// has no attributes.
    pub fn attribute(&mut self, pairs: usize) {
        assert_eq!(self.protocol, Protocol::Resp3, "RESP2 has no attributes");
        put_length(self.out.bytes_mut(), b'|', pairs);
    }

    /// Makes an array of the `len` replies written since `mark`, for callers that did not know the number in
    /// advance. Costs a move of those bytes.
    pub fn array_since(&mut self, mark: Mark, len: usize) {
        let mut header = Vec::with_capacity(HEADER_BYTES_MAX);
        put_length(&mut header, b'*', len);
        self.out.insert(mark, &header);
    }

    /// Makes a map of the `pairs` pairs of replies written since `mark`, as [`Reply::array_since`] an array. In RESP2
    /// an array of what was written since then, whose number of replies is `len`.
    pub fn map_since(&mut self, mark: Mark, pairs: usize, len: usize) {
        let mut header = Vec::with_capacity(HEADER_BYTES_MAX);
        match self.protocol {
            Protocol::Resp2 => put_length(&mut header, b'*', len),
            Protocol::Resp3 => put_length(&mut header, b'%', pairs),
        }
        self.out.insert(mark, &header);
    }

    pub fn double(&mut self, number: f64) {
        match self.protocol {
            Protocol::Resp2 => {
                let mut text = Vec::with_capacity(24);
                write_double(&mut text, number);
                self.bulk(&text);
            }
            Protocol::Resp3 => {
                let bytes = self.out.bytes_mut();
                bytes.push(b',');
                write_double(bytes, number);
                bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Writes a floating-point number given as text. Only for RESP3: RESP2 has no such numbers.
    pub fn double_text(&mut self, text: &str) {
        assert_eq!(self.protocol, Protocol::Resp3, "RESP2 has no floating-point numbers");
        self.line(b',', text.as_bytes());
    }

    pub fn boolean(&mut self, truth: bool) {
        self.out.extend_from_slice(match (self.protocol, truth) {
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
        });
    }

    /// Writes an integer of any size, in decimal digits.
    pub fn big_number(&mut self, digits: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(digits.as_bytes()),
            Protocol::Resp3 => self.line(b'(', digits.as_bytes()),
        }
    }

    /// Writes text for people, with a format of three letters: `txt` or `mkd`.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        assert_eq!(format.len(), 3, "a verbatim format has three letters");
        if self.protocol == Protocol::Resp2 {
            return self.bulk(text);
        }
        let bytes = self.out.bytes_mut();
        put_length(bytes, b'=', format.len() + 1 + text.len());
        bytes.extend_from_slice(format.as_bytes());
        bytes.push(b':');
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(b"\r\n");
    }

    fn aggregate(&mut self, resp3_type: u8, len: usize) {
        let kind = match self.protocol {
            Protocol::Resp2 => b'*',
            Protocol::Resp3 => resp3_type,
        };
        put_length(self.out.bytes_mut(), kind, len);
    }

    fn header(&mut self, kind: u8, digits: &str) {
        let bytes = self.out.bytes_mut();
        bytes.reserve(HEADER_BYTES_MAX);
        bytes.push(kind);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }

    /// Writes one line. Line breaks in `text` become spaces: texts quote what clients sent, and a line break would
    /// let the client end the reply early.
    fn line(&mut self, kind: u8, text: &[u8]) {
        let bytes = self.out.bytes_mut();
        bytes.reserve(text.len() + 3);
        bytes.push(kind);
        let is_break = |byte: u8| byte == b'\r' || byte == b'\n';
        bytes.extend(text.iter().map(|&byte| if is_break(byte) { b' ' } else { byte }));
        bytes.extend_from_slice(b"\r\n");
    }
}

/// The size of a type byte, up to 20 digits, and a line break.
const HEADER_BYTES_MAX: usize = 23;

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a digit fits a byte")]
fn put_length(bytes: &mut Vec<u8>, kind: u8, len: usize) {
    match len {
        0..10 => bytes.extend_from_slice(&[kind, b'0' + len as u8, b'\r', b'\n']),
        10..100 => {
            let (tens, ones) = (b'0' + (len / 10) as u8, b'0' + (len % 10) as u8);
            bytes.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']);
        }
        _ => {
            bytes.push(kind);
            bytes.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
    }
}
