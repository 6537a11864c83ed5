//! A connection of a worker to one server: what is to be sent, and who awaits which answer.
//!
//! Answers come in the order of the commands, so the link is two queues. It greets first
//! (`greeting.rs`) and takes commands only when it is up; `deliver.rs` hands its answers on.

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use fleet::{Epoch, Server};
use resp::{Protocol, ReplySkipper};

use super::replies::Ticket;
use crate::stream::{Outbox, Stream};

/// Who gets an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaiter {
    /// This request of this client, as the bytes came.
    Client { client: u32, ticket: Ticket },
    /// A part of a request that runs on several servers.
    Gather { gather: u32, part: u32 },
    /// A job's ask with this number; its answers are read.
    Job { job: u32, serial: u32 },
    /// A client that waits for nothing else (BLPOP and its like).
    Waited { client: u32 },
    /// A client that waits for its WATCH.
    Watched { client: u32 },
    /// As `Client`; then the link, which was its own, is free.
    Executed { client: u32, ticket: Ticket },
    /// Our own greeting, or a change of our name.
    Greeting(Hello),
    /// Nobody: an OK before the answer that counts.
    Nobody,
}

/// What was said to a server before it was sent commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hello {
    Auth,
    Protocol,
    Name,
    Id,
    Config,
}

/// Who has a link of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    Job(u32),
    Client(u32),
}

/// What a link is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// For the commands of all clients.
    Shared,
    /// For one job or one client at a time.
    Own,
    /// For the channels that clients of this worker listen to.
    Listening,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkState {
    /// The connection is being made, or the greeting is under way.
    Greeting,
    Up,
}

pub(crate) struct Link {
    pub stream: Stream,
    pub server: Server,
    pub protocol: Protocol,
    pub purpose: Purpose,
    pub state: LinkState,
    /// The epoch in its name, once it is up.
    pub epoch: Epoch,
    /// The epoch of a map that its server knows of and we do not: it waits for us to catch up.
    pub ahead: Option<Epoch>,
    /// Whose it is, if it is one's own.
    pub holder: Option<Holder>,
    /// The server's number for this connection, if it told: for CLIENT UNBLOCK.
    pub client_id: Option<i64>,
    pub awaiting: VecDeque<Awaiter>,
    output: Outbox,
    /// The beginning of an answer whose end has not come yet.
    pub input: Vec<u8>,
    pub skipper: ReplySkipper,
    /// More may be waiting in the socket.
    pub readable: bool,
    pub hung_up: bool,
    /// It is in the list of those to be flushed.
    pub touched: bool,
    /// When something was last asked of an idle server, or last heard of a busy one.
    pub since: Instant,
    /// It may be silent for as long as it likes: a command waits there.
    pub patient: bool,
}

impl Link {
    pub(crate) fn new(stream: Stream, to: LinkTo, now: Instant) -> Link {
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
            output: Outbox::default(),
            input: Vec::new(),
            skipper: ReplySkipper::default(),
            readable: false,
            hung_up: false,
            touched: false,
            since: now,
            patient: false,
        }
    }

    /// Appends commands in the protocol; `awaiter` gets the answer to each of them.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, bytes: &[u8], awaiter: Awaiter) {
        if self.awaiting.is_empty() {
            self.since = now;
        }
        self.output.bytes().extend_from_slice(bytes);
        self.awaiting.push_back(awaiter);
    }

    pub(crate) fn push_command(&mut self, now: Instant, args: &[&[u8]], awaiter: Awaiter) {
        if self.awaiting.is_empty() {
            self.since = now;
        }
        resp::encode_command(self.output.bytes(), args);
        self.awaiting.push_back(awaiter);
    }

    /// As `push`, of several commands: each answer goes to the same awaiter.
    pub(crate) fn push_several(
        &mut self,
        now: Instant,
        bytes: &[u8],
        (count, awaiter): (usize, Awaiter),
    ) {
        if self.awaiting.is_empty() {
            self.since = now;
        }
        self.output.bytes().extend_from_slice(bytes);
        self.awaiting.extend(std::iter::repeat_n(awaiter, count));
    }

    /// A command on a listening link, where answers tell themselves what they are about.
    pub(crate) fn push_unanswered(&mut self, args: &[&[u8]]) {
        resp::encode_command(self.output.bytes(), args);
    }

    /// Bytes the server has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.output.unsent()
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.output.flush(&mut self.stream)
    }
}

/// Where a link leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkTo {
    pub server: Server,
    pub protocol: Protocol,
    pub purpose: Purpose,
}
