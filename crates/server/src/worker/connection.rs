//! What a connection keeps between its turns. An idle one holds no buffers.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Instant;

use cluster::serving::{ReplyGate, WrittenSlots};
use commands::{CommandId, Session};
use mio::net::TcpStream;
use resp::{Mark, Output, RequestParser};
use store::UnixMillis;

use super::unread::Unread;
use super::waiting::Waiting;
use crate::accept::Accepted;
use crate::clients::{ClientCard, Place, TurnEnd};
use crate::timers::Question;
use crate::wait_until::WaitUntil;

/// A client that leaves so many bytes of replies unread is not served further until it reads.
const UNREAD_BYTES_MAX: usize = 32 * 1024 * 1024;

pub(crate) struct Connection {
    pub stream: TcpStream,
    pub session: Session,
    pub parser: RequestParser,
    /// The beginning of a request whose end has not come yet, or requests behind those that wait.
    pub input: Vec<u8>,
    /// Replies that the client has not taken yet.
    pub output: Output,
    pub gate: ReplyGate<Mark>,
    /// More may be waiting in the socket: the last read filled its buffer.
    pub readable: bool,
    /// The client sends no more: once all is read, the stream is at its end. The system says so
    /// only once, and perhaps together with the last bytes.
    pub hung_up: bool,
    /// The last round it had its turn in.
    pub round: u64,
    pub last_active: UnixMillis,
    /// The last command of the present turn.
    pub last_command: CommandId,
    /// What others may know of it.
    pub card: Arc<ClientCard>,
    /// It has published, and may have to wait for those who deliver.
    pub spoke: bool,
    /// It got messages in this round that are not sent yet.
    pub heard: bool,
    /// Requests that cannot run yet; nothing more is read meanwhile.
    pub waiting: Option<Box<Waiting>>,
    /// Since when the request that runs now has waited for a handover.
    pub parked_since: Option<Instant>,
    /// What it has asked the timers; its command waits for the answer.
    pub question: Option<Question>,
    /// Slots it has written, for WAIT.
    pub written: WrittenSlots,
    /// Until when its WAIT waits.
    pub wait_until: Option<WaitUntil>,
    pub unread: Unread,
    /// It left too much unread, and is closed at the end of the round.
    pub is_cut_off: bool,
}

impl Connection {
    pub(crate) fn new(accepted: Accepted, place: Place, now: UnixMillis) -> Connection {
        let mut card = ClientCard::new(accepted.id, place, accepted.address, now);
        card.descriptor = i64::from(accepted.stream.as_raw_fd());
        if let Ok(local) = accepted.stream.local_addr() {
            card.local_address = local;
        }
        Connection {
            stream: accepted.stream,
            session: Session::new(accepted.id),
            parser: RequestParser::default(),
            input: Vec::new(),
            output: Output::default(),
            gate: ReplyGate::default(),
            readable: true,
            hung_up: false,
            round: 0,
            last_active: now,
            last_command: CommandId::NONE,
            card: Arc::new(card),
            spoke: false,
            heard: false,
            waiting: None,
            parked_since: None,
            question: None,
            written: WrittenSlots::default(),
            wait_until: None,
            unread: Unread::default(),
            is_cut_off: false,
        }
    }

    /// It does not read its replies: it is not served further until it does.
    pub(crate) fn has_much_unread(&self) -> bool {
        self.output.len() >= UNREAD_BYTES_MAX
    }

    fn input_bytes(&self) -> usize {
        self.input.len() + self.waiting.as_ref().map_or(0, |waiting| waiting.bytes())
    }

    /// Lets others know how it is after its turn.
    pub(crate) fn update_card(&mut self, now: UnixMillis) {
        let turn =
            TurnEnd { now, last_command: self.last_command, input_bytes: self.input_bytes() };
        self.card.update(&mut self.session, &turn);
    }
}
