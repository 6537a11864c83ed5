//! The Redis wire protocol, RESP2 and RESP3, both directions. Bytes in, bytes out; no I/O.
//!
//! A server reads requests with [`RequestParser`] and answers through [`Reply`] into an [`Output`];
//! a client writes requests with [`encode_command`] and reads answers with [`ReplyParser`], or only
//! finds their ends with [`skip_reply`]. Nothing here knows what a command means: that is
//! `commands`.

mod request; //      Start here: a client's bytes become the places of its arguments.
mod output; //       What a connection has yet to send, with large values shared.
mod reply; //        Answers, written in either version of the protocol.
mod value; //        An answer as a client holds it.
mod reply_parser; // Answers coming in, piece by piece.
mod skip; //         Where an answer ends, without building it.
mod command; //      Requests going out.
mod number; //       Integers and floating-point numbers as Redis reads and writes them.
mod error; //        What the other side can get wrong.

pub use command::encode_command;
pub use error::ProtocolError;
pub use number::{parse_integer, write_double};
pub use output::{Chunks, Mark, Output};
pub use reply::{Reply, SHARED_BYTES_MIN};
pub use reply_parser::{ReplyLimits, ReplyParser};
pub use request::{Limits, Parsed, RequestParser, Sender, Span};
pub use skip::{ReplySkipper, skip_reply};
pub use value::Value;

/// The version of the protocol a connection speaks. It begins with RESP2; `HELLO 3` changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}
