//! State of a client between its turns.

use std::io;
use std::time::Instant;

use net::{Readiness, Stream};
use resp::{Protocol, RequestParser};

use super::own::Waits;
use super::pubsub::Subscriptions;
use super::replies::Replies;
use super::transaction::Transaction;

pub(crate) struct Client {
    pub stream: Stream,
    pub id: u64,
    pub parser: RequestParser,
    /// The beginning of an incomplete request, or requests that have to wait.
    pub input: Vec<u8>,
    pub replies: Replies,
    pub protocol: Protocol,
    pub authenticated: bool,
    pub name: Vec<u8>,
    pub transaction: Transaction,
    pub subscriptions: Subscriptions,
    /// The link that this client owns now, because it holds a WATCH or a blocking command there.
    pub own: Option<usize>,
    /// The blocking request on that link.
    pub waits: Option<Waits>,
    /// Reason why the preparation of the next request failed; it becomes that request's answer.
    pub failed: Option<String>,
    /// Time since which its next request has been waiting for a server or a switch of maps.
    pub waiting_since: Option<Instant>,
    /// True while a request holds up those behind it: it changes their meaning, or must be done first.
    pub busy: bool,
    /// True if `input` has requests that could not run yet.
    pub put_off: bool,
    pub readiness: Readiness,
    /// True if no more requests are accepted; the connection is closed when all answers are sent.
    pub closing: bool,
    /// True if its socket is closed. The client stays until every awaited answer has arrived and was
    /// discarded, so that none is taken for a successor's.
    pub gone: bool,
    /// True if it is in the list of clients to be flushed.
    pub touched: bool,
    /// Last round in which it had its turn.
    pub round: u64,
}

impl Client {
    pub(crate) fn new(stream: Stream, id: u64, authenticated: bool) -> Client {
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
            readiness: Readiness::unknown(),
            closing: false,
            gone: false,
            touched: false,
            round: 0,
        }
    }

    /// Returns whether its requests run normally: it is authenticated, has no open transaction and no subscriptions.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.authenticated && !self.transaction.is_open() && self.subscriptions.is_empty()
    }

    /// Reads what fits. Nothing to read is not an error; the end of the stream is.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read_noting(into, &mut self.readiness)
    }

    /// Sends what the socket accepts.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.replies.output.flush(&mut self.stream).map(drop)
    }
}
