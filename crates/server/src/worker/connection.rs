//! What a connection keeps between its turns. An idle one holds no buffers.

use std::net::SocketAddr;

use commands::Session;
use mio::net::TcpStream;
use resp::{Output, RequestParser};
use store::UnixMillis;

use crate::accept::Accepted;
use crate::gate::Gate;

pub(crate) struct Connection {
    pub stream: TcpStream,
    pub address: SocketAddr,
    pub session: Session,
    pub parser: RequestParser,
    /// The beginning of a request whose end has not come yet, or requests put off.
    pub input: Vec<u8>,
    /// Replies that the client has not taken yet.
    pub output: Output,
    pub gate: Gate,
    /// More may be waiting in the socket: the last read filled its buffer.
    pub readable: bool,
    pub last_active: UnixMillis,
}

impl Connection {
    pub(crate) fn new(accepted: Accepted, now: UnixMillis) -> Connection {
        Connection {
            stream: accepted.stream,
            address: accepted.address,
            session: Session::new(accepted.id),
            parser: RequestParser::default(),
            input: Vec::new(),
            output: Output::default(),
            gate: Gate::default(),
            readable: true,
            last_active: now,
        }
    }
}
