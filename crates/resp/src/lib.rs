//! The Redis wire protocol, RESP2 and RESP3, both directions. Bytes in, bytes out; no I/O.
//!
//! A server reads requests with [`RequestParser`] and writes replies through [`Reply`] into an [`Output`]; a client
//! writes requests with [`encode_command`] and reads replies with [`ReplyParser`], or only finds their ends with
//! [`skip_reply`]. This crate does not know the meaning of commands: see `commands`.

mod request; //      Start here: finds the arguments of a request in a client's bytes.
mod output; //       A connection's unsent bytes; large values are shared, not copied.
mod reply; //        Replies, written in either version of the protocol.
mod value; //        A reply as a client holds it.
mod reply_parser; // Parses incoming replies incrementally.
mod skip; //         Finds the end of a reply without building it.
mod command; //      Encodes outgoing requests.
mod number; //       Integers and floating-point numbers as Redis reads and writes them.
mod error; //        Protocol errors the peer can make.

pub use command::encode_command;
pub use error::ProtocolError;
pub use number::{parse_integer, write_double};
pub use output::{Chunks, Mark, Output};
pub use reply::{Reply, SHARED_BYTES_MIN};
pub use reply_parser::{ReplyLimits, ReplyParser};
pub use request::{Limits, Parsed, RequestParser, Sender, Span};
pub use skip::{ReplySkipper, skip_reply};
pub use value::Value;

/// Returns whether a request's first word begins a line of an HTTP request: a web page made a browser connect to us,
/// and the commands in the request's body must not run. Every port closes such a connection without a reply.
pub fn is_http(first_word: &[u8]) -> bool {
    first_word.eq_ignore_ascii_case(b"post") || first_word.eq_ignore_ascii_case(b"host:")
}

/// The version of the protocol a connection speaks. A connection starts with RESP2; `HELLO 3` changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}
