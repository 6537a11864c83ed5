//! What a worker keeps of a client between its turns.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

use mio::net::TcpStream;
use resp::{Protocol, RequestParser};

use super::own::Waits;
use super::pubsub::Subscriptions;
use super::replies::Replies;
use super::transaction::Transaction;

pub(crate) struct Client {
    pub stream: TcpStream,
    pub id: u64,
    pub parser: RequestParser,
    /// The beginning of a request whose end has not come yet, or requests that have to wait.
    pub input: Vec<u8>,
    pub replies: Replies,
    pub protocol: Protocol,
    pub authenticated: bool,
    pub name: Vec<u8>,
    pub transaction: Transaction,
    pub subscriptions: Subscriptions,
    /// A link that is its own just now: a WATCH holds there, or a command waits there.
    pub own: Option<usize>,
    /// The request that waits there.
    pub waits: Option<Waits>,
    /// Why what its next request needed could not be done; that request's answer.
    pub failed: Option<String>,
    /// Since when its next request has been waiting for a server or a switch of maps.
    pub waiting_since: Option<Instant>,
    /// A request that holds up those behind it: it changes what they mean, or must be done first.
    pub busy: bool,
    /// `input` has requests that could not run yet.
    pub put_off: bool,
    /// More may be waiting in the socket.
    pub readable: bool,
    /// It sends no more: once all is read, the stream is at its end.
    pub hung_up: bool,
    /// It has said its last word; it is closed when it has been told everything.
    pub closing: bool,
    /// Its socket is closed. It stays until every answer it awaited has come and was thrown away, so
    /// that none is taken for a successor's.
    pub gone: bool,
    /// It is in the list of those to be flushed.
    pub touched: bool,
    /// The last round it had its turn in.
    pub round: u64,
}

impl Client {
    pub(crate) fn new(stream: TcpStream, id: u64, authenticated: bool) -> Client {
        Client {
            stream,
            id,
            parser: RequestParser::default(),
            input: Vec::new(),
            replies: Replies::default(),
            protocol: Protocol::Resp2,
            authenticated,
            name: Vec::new(),
            transaction: Transaction::default(),
            subscriptions: Subscriptions::default(),
            own: None,
            waits: None,
            failed: None,
            waiting_since: None,
            busy: false,
            put_off: false,
            readable: true,
            hung_up: false,
            closing: false,
            gone: false,
            touched: false,
            round: 0,
        }
    }

    /// Whether its requests mean what they say: nothing is queued, and it has shown who it is.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.authenticated && !self.transaction.is_open() && self.subscriptions.is_empty()
    }

    /// Reads what fits. Nothing to read is no fault, the end of the stream is.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let filled = loop {
            match self.stream.read(into) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(filled) => break filled,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break 0,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        self.readable = filled == into.len() || self.hung_up;
        Ok(filled)
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while !self.replies.unsent().is_empty() {
            match self.stream.write(self.replies.unsent()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.replies.advance(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
