//! What a connection keeps between its turns. An idle one holds no buffers.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Instant;

use cluster::replication::LinkId;
use commands::{CommandId, Session};
use mio::net::TcpStream;
use resp::{Output, RequestParser};
use store::UnixMillis;

use super::unread::Unread;
use crate::accept::Accepted;
use crate::clients::{ClientCard, Place, TurnEnd};
use crate::data::Data;
use crate::gate::Gate;
use crate::timers::Question;

/// A client that leaves so many bytes of replies unread is not served further until it reads.
const UNREAD_BYTES_MAX: usize = 32 * 1024 * 1024;

pub(crate) struct Connection {
    pub stream: TcpStream,
    pub session: Session,
    pub parser: RequestParser,
    /// The beginning of a request whose end has not come yet, or requests put off.
    pub input: Vec<u8>,
    /// Replies that the client has not taken yet.
    pub output: Output,
    pub gate: Gate,
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
    /// It waits for a pause to end (CLIENT PAUSE).
    pub held_back: bool,
    /// Requests that wait for their bucket to be handed over.
    pub parked: Vec<u8>,
    pub parked_since: Option<Instant>,
    /// They wait for a backup that is far behind.
    pub behind: Option<Behind>,
    /// What it has asked the timers; its command waits for the answer.
    pub question: Option<Question>,
    /// What it has been told, or is about to be, is true only if this node may serve.
    pub relies_on_lease: bool,
    pub unread: Unread,
    /// It left too much unread, and is closed at the end of the round.
    pub is_cut_off: bool,
}

/// A link whose backlog a connection waits for, and the map by which it does.
#[derive(Clone, Copy)]
pub(crate) struct Behind {
    pub link: LinkId,
    pub map_number: u64,
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
            gate: Gate::default(),
            readable: true,
            hung_up: false,
            round: 0,
            last_active: now,
            last_command: CommandId::NONE,
            card: Arc::new(card),
            spoke: false,
            heard: false,
            held_back: false,
            parked: Vec::new(),
            parked_since: None,
            behind: None,
            question: None,
            relies_on_lease: false,
            unread: Unread::default(),
            is_cut_off: false,
        }
    }

    /// It does not read its replies: it is not served further until it does.
    pub(crate) fn has_much_unread(&self) -> bool {
        self.output.len() >= UNREAD_BYTES_MAX
    }

    /// Its command waits for an answer that has not come yet.
    pub(crate) fn awaits_answer(&mut self) -> bool {
        self.question.as_mut().is_some_and(Question::is_open)
    }

    /// Its command would add to a backlog that has not shrunk yet.
    pub(crate) fn waits_for_backlog(&mut self, data: &Data) -> bool {
        let waits = |behind: &mut Behind| {
            behind.map_number == data.map_number() && data.links.is_congested(behind.link)
        };
        self.behind.take_if(|behind| !waits(behind));
        self.behind.is_some()
    }

    /// Lets others know how it is after its turn.
    pub(crate) fn update_card(&mut self, now: UnixMillis) {
        let turn = TurnEnd { now, last_command: self.last_command, input_bytes: self.input.len() };
        self.card.update(&mut self.session, &turn);
    }
}
