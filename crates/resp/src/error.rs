//! What the other side can get wrong, in Redis's own words where Redis has words for it.
//!
//! After any of these the stream has lost its framing: the connection can only be answered with
//! [`ProtocolError::reply`] and closed. The parser that returned it must not be used again.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// `*` was followed by something that is no number, or by too large a one.
    InvalidMultibulkLength,
    /// `$` was followed by something that is no length, or by too large a one.
    InvalidBulkLength,
    /// An argument did not begin with `$` but with this byte.
    ExpectedDollar(u8),
    TooBigInlineRequest,
    UnbalancedQuotes,
    TooBigMultibulkCount,
    TooBigBulkCount,
    /// More arguments than a client may send before it has authenticated.
    UnauthenticatedMultibulkLength,
    /// A longer argument than a client may send before it has authenticated.
    UnauthenticatedBulkLength,
    /// A request of 4 GiB or more: its arguments' places no longer fit a [`Span`](crate::Span).
    TooBigRequest,
    /// A reply began with a byte that names no type of reply.
    UnknownReplyType(u8),
    /// A reply's line or length could not be read.
    InvalidReply,
    /// A reply was nested deeper, or held more, than the client is willing to take.
    TooBigReply,
}

impl ProtocolError {
    /// The error reply to send before closing: the text with its code, without the leading `-`.
    /// Bytes, not a string: the byte found instead of `$` stands in it as it came.
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
