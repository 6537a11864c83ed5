//! A connection's state between its turns. An idle connection holds no buffers.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use cluster::serving::{ReplyGate, WrittenSlots};
use commands::{CommandId, Session};
use net::{Readiness, Stream};
use resp::{Mark, Output, RequestParser};
use store::UnixMillis;

use super::unread::Unread;
use super::waiting::{SlotWait, Waiting};
use crate::accept::Accepted;
use crate::clients::{ClientInfo, ConnectionRef, TurnEnd};
use crate::question::Question;
use crate::wait_until::WaitUntil;

/// Number of unread reply bytes from which on a client is not served further until it reads.
const UNREAD_BYTES_MAX: usize = 32 * 1024 * 1024;

pub(crate) struct Connection {
    pub stream: Stream,
    pub session: Session,
    pub parser: RequestParser,
    /// The beginning of an incomplete request, or requests behind those that wait.
    pub input: Vec<u8>,
    /// Replies that the client's socket has not taken yet.
    pub output: Output,
    pub gate: ReplyGate<Mark>,
    pub readiness: Readiness,
    /// The last round in which the connection had its turn.
    pub round: u64,
    pub last_active: UnixMillis,
    /// The last command of the current turn.
    pub last_command: CommandId,
    /// The facts about the connection that other threads may read.
    pub client: Arc<ClientInfo>,
    /// True if the client has published, and may have to wait for the delivering workers.
    pub published: bool,
    /// True if it got messages in this round that are not sent yet.
    pub heard: bool,
    /// Requests that cannot run yet; nothing more is read meanwhile.
    pub waiting: Option<Box<Waiting>>,
    /// The wait for a slot that the current request has behind it.
    pub slot_wait: Option<SlotWait>,
    /// The question whose answer its command waits for.
    pub question: Option<Question>,
    /// Slots it has written, for WAIT.
    pub written: WrittenSlots,
    /// The deadline of its WAIT.
    pub wait_until: Option<WaitUntil>,
    /// The deadline of its wait for keys, if it waits.
    pub key_wait_until: Option<WaitUntil>,
    pub unread: Unread,
    /// True if it left too much unread, and is closed at the end of the round.
    pub is_cut_off: bool,
}

impl Connection {
    pub(crate) fn new(accepted: Accepted, place: ConnectionRef, now: UnixMillis) -> Connection {
        let mut client = ClientInfo::new(accepted.id, place, accepted.address, now);
        client.descriptor = i64::from(accepted.stream.as_raw_fd());
        if let Ok(local) = accepted.stream.local_addr() {
            client.local_address = local;
        }
        Connection {
            stream: accepted.stream,
            session: Session::on(accepted.port, accepted.id),
            parser: RequestParser::default(),
            input: Vec::new(),
            output: Output::default(),
            gate: ReplyGate::default(),
            readiness: Readiness::unknown(),
            round: 0,
            last_active: now,
            last_command: CommandId::NONE,
            client: Arc::new(client),
            published: false,
            heard: false,
            waiting: None,
            slot_wait: None,
            question: None,
            written: WrittenSlots::default(),
            wait_until: None,
            key_wait_until: None,
            unread: Unread::default(),
            is_cut_off: false,
        }
    }

    /// Returns whether the client leaves its replies unread, and is not served further until it reads.
    pub(crate) fn has_much_unread(&self) -> bool {
        self.output.len() >= UNREAD_BYTES_MAX
    }

    /// Returns whether replies wait to be sent, here or in the stream.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.output.is_empty() || self.stream.has_unsent()
    }

    fn input_bytes(&self) -> usize {
        self.input.len() + self.waiting.as_ref().map_or(0, |waiting| waiting.bytes())
    }

    /// Publishes the connection's state after its turn to other threads.
    pub(crate) fn update_card(&mut self, now: UnixMillis) {
        let turn =
            TurnEnd { now, last_command: self.last_command, input_bytes: self.input_bytes() };
        self.client.update(&mut self.session, &turn);
    }
}
