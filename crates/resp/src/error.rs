//! Errors the peer can make in the protocol, in Redis's own words where Redis has a text for them.
//!
//! After any of these errors the stream has lost its framing: reply with [`ProtocolError::reply`] and close the
//! connection. The parser that returned the error must not be used again.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// `*` was followed by something that is not a number, or by a number that is too large.
    InvalidMultibulkLength,
    /// `$` was followed by something that is not a length, or by a length that is too large.
    InvalidBulkLength,
    /// An argument began with this byte instead of `$`.
    ExpectedDollar(u8),
    TooBigInlineRequest,
    UnbalancedQuotes,
    TooBigMultibulkCount,
    TooBigBulkCount,
    /// The request has more arguments than an unauthenticated client may send.
    UnauthenticatedMultibulkLength,
    /// An argument is longer than an unauthenticated client may send.
    UnauthenticatedBulkLength,
    /// A request of 4 GiB or more: the positions of its arguments no longer fit a [`Span`](crate::Span).
    TooBigRequest,
    /// A reply began with a byte that is not a reply type.
    UnknownReplyType(u8),
    /// A reply's line or length could not be read.
    InvalidReply,
    /// A reply was nested deeper, or had more items, than the client accepts.
    TooBigReply,
}

impl ProtocolError {
    /// Returns the error reply to send before closing: the text with its code, without the leading `-`. Returns
    /// bytes, not a string: the byte found instead of `$` is included unchanged.
    pub fn reply(self) -> Vec<u8> {
        if let ProtocolError::ExpectedDollar(got) = self {
            let mut text = b"ERR Protocol error: expected '$', got '".to_vec();
            text.extend_from_slice(&[got, b'\'']);
            return text;
        }
        format!("ERR {self}").into_bytes()
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            ProtocolError::InvalidMultibulkLength => f.write_str("invalid multibulk length"),
            ProtocolError::InvalidBulkLength => f.write_str("invalid bulk length"),
            ProtocolError::ExpectedDollar(got) => {
                write!(f, "expected '$', got '{}'", char::from(*got).escape_default())
            }
            ProtocolError::TooBigInlineRequest => f.write_str("too big inline request"),
            ProtocolError::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            ProtocolError::TooBigMultibulkCount => f.write_str("too big mbulk count string"),
            ProtocolError::TooBigBulkCount => f.write_str("too big bulk count string"),
            ProtocolError::UnauthenticatedMultibulkLength => {
                f.write_str("unauthenticated multibulk length")
            }
            ProtocolError::UnauthenticatedBulkLength => f.write_str("unauthenticated bulk length"),
            ProtocolError::TooBigRequest => f.write_str("too big request"),
            ProtocolError::UnknownReplyType(got) => {
                write!(f, "unknown reply type '{}'", char::from(*got).escape_default())
            }
            ProtocolError::InvalidReply => f.write_str("invalid reply"),
            ProtocolError::TooBigReply => f.write_str("too big reply"),
        }
    }
}

impl std::error::Error for ProtocolError {}
