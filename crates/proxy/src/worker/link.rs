//! A worker's connection to one server: the bytes to send, and the receivers of the answers.
//!
//! Answers come in the order of the commands, so the link is two queues. It greets first (`greeting.rs`) and
//! takes commands only when it is up; `deliver.rs` passes its answers on.

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use fleet::{Epoch, Server};
use net::Readiness;
use resp::{Protocol, ReplySkipper};

use super::replies::Ticket;
use crate::stream::{ServerBuffer, ServerStream};

/// Receiver of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaiter {
    /// This request of this client; the bytes are forwarded unchanged.
    Client { client: u32, ticket: Ticket },
    /// A part of a request that runs on several servers.
    Gather { gather: u32, part: u32 },
    /// A job's ask with this number; its answers are parsed.
    Job { job: u32, serial: u32 },
    /// A client in a blocking command (BLPOP and similar), which waits for nothing else.
    Waited { client: u32 },
    /// A client that waits for its WATCH.
    Watched { client: u32 },
    /// Like `Client`; then the link, which the client owned, is free.
    Executed { client: u32, ticket: Ticket },
    /// The greeting, or a change of our connection name.
    Greeting(Hello),
    /// Nobody: an OK before the answer that matters.
    Nobody,
}

/// A command of the greeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hello {
    Auth,
    Protocol,
    Name,
    Id,
    Config,
}

/// Owner of an own link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    Job(u32),
    Client(u32),
}

/// Purpose of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Carries the commands of all clients.
    Shared,
    /// Serves one job or one client at a time.
    Own,
    /// Receives the channels to which clients of this worker are subscribed.
    Listening,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkState {
    /// The connection is being established, or the greeting is in flight.
    Greeting,
    Up,
}

pub(crate) struct Link {
    pub stream: ServerStream,
    pub server: Server,
    pub protocol: Protocol,
    pub purpose: Purpose,
    pub state: LinkState,
    /// The epoch in its name, once it is up.
    pub epoch: Epoch,
    /// The epoch of a map that the server knows and we do not: the link waits until we have caught up.
    pub ahead: Option<Epoch>,
    /// The owner, if it is an own link.
    pub holder: Option<Holder>,
    /// The server's ID of this connection, if the server reported it: for CLIENT UNBLOCK.
    pub client_id: Option<i64>,
    pub awaiting: VecDeque<Awaiter>,
    output: ServerBuffer,
    /// The beginning of an incomplete answer.
    pub input: Vec<u8>,
    pub skipper: ReplySkipper,
    pub readiness: Readiness,
    /// True if it is in the list of links to be flushed.
    pub touched: bool,
    /// Time of the last question to an idle server, or of the last bytes from a busy one.
    pub since: Instant,
    /// True if it may be silent for any time: a command blocks there.
    pub patient: bool,
}

impl Link {
    pub(crate) fn new(stream: ServerStream, to: LinkTo, now: Instant) -> Link {
        Link {
            stream,
            server: to.server,
            protocol: to.protocol,
            purpose: to.purpose,
            state: LinkState::Greeting,
            epoch: Epoch::NONE,
            ahead: None,
            holder: None,
            client_id: None,
            awaiting: VecDeque::new(),
            output: ServerBuffer::default(),
            input: Vec::new(),
            skipper: ReplySkipper::default(),
            readiness: Readiness { readable: false, hung_up: false },
            touched: false,
            since: now,
            patient: false,
        }
    }

    /// Appends a command in wire format; `awaiter` gets its answer.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, bytes: &[u8], awaiter: Awaiter) {
        if self.awaiting.is_empty() {
            self.since = now;
        }
        self.output.bytes_mut().extend_from_slice(bytes);
        self.awaiting.push_back(awaiter);
    }

    pub(crate) fn push_command(&mut self, now: Instant, args: &[&[u8]], awaiter: Awaiter) {
        if self.awaiting.is_empty() {
            self.since = now;
        }
        resp::encode_command(self.output.bytes_mut(), args);
        self.awaiting.push_back(awaiter);
    }

    /// Appends several commands like `push`; the same awaiter gets each answer.
    pub(crate) fn push_several(
        &mut self,
        now: Instant,
        bytes: &[u8],
        count: usize,
        awaiter: Awaiter,
    ) {
        if self.awaiting.is_empty() {
            self.since = now;
        }
        self.output.bytes_mut().extend_from_slice(bytes);
        self.awaiting.extend(std::iter::repeat_n(awaiter, count));
    }

    /// Appends a command on a listening link, where the answers themselves say what they are about.
    pub(crate) fn push_unanswered(&mut self, args: &[&[u8]]) {
        resp::encode_command(self.output.bytes_mut(), args);
    }

    /// Returns the number of bytes the server has not accepted.
    pub(crate) fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Sends what the socket accepts.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.output.flush(&mut self.stream).map(drop)
    }
}

/// Target of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkTo {
    pub server: Server,
    pub protocol: Protocol,
    pub purpose: Purpose,
}
