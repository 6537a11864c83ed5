//! The worker's side of links: it reads and acknowledges frames from other nodes (`data/intake.rs`), and
//! reads the answers to frames that this node has sent.

use core::sync::atomic::Ordering::{AcqRel, Acquire};
use std::io::ErrorKind;
use std::sync::Arc;
use std::thread;

use cluster::data::{FrameOutcome, Intake, MoverInput};
use cluster::map::Peer;
use cluster::replication::{BackFrame, BadFrame, Frame, LinkId, first_answer};
use mio::Token;
use mio::event::Event;
use net::{Readiness, SendBuffer, Stream};

use super::Worker;
use crate::data::apply_context;

/// Tokens from here on are links, by their id; below them, from `INTAKES` on, are incoming streams.
pub(super) const LINKS: usize = 1 << 62;
pub(super) const INTAKES: usize = 1 << 61;
/// Maximum number of bytes read from one link before others have their turn: other links, clients, and other
/// threads that want this core.
const TURN_BYTES: usize = 16 * 1024;

/// The answers to frames that were sent on one link.
pub(super) struct LinkAnswers {
    id: LinkId,
    stream: Stream,
    readiness: Readiness,
    unread: Vec<u8>,
}

/// An incoming stream of frames from another node.
pub(super) struct Incoming {
    peer: Peer,
    stream: Stream,
    intake: Arc<parking_lot::Mutex<Intake>>,
    connection: u64,
    readiness: Readiness,
    unread: Vec<u8>,
    back: SendBuffer<TURN_BYTES>,
    /// True if its next frame waits for a newer map.
    waits: bool,
}

/// The state of a stream after a turn of reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Open,
    /// The other end has closed it, and everything is read.
    Closed,
}

/// The connection is broken and must be closed.
struct BrokenConnection;

/// Returns the link that a token belongs to.
pub(super) fn link_of(token: usize) -> LinkId {
    LinkId(u32::try_from(token - LINKS).expect("tokens of links are made from their ids"))
}

impl Worker<'_> {
    /// Starts reading the answers of this link.
    pub(super) fn adopt_link(&mut self, id: LinkId, mut stream: Stream) {
        let token = Token(LINKS + id.0 as usize);
        self.link_answers.retain(|answers| answers.id != id);
        if stream.register(self.poller.registry(), token).is_ok() {
            let readiness = Readiness::unknown();
            self.link_answers.push(LinkAnswers { id, stream, readiness, unread: Vec::new() });
        }
    }

    /// Starts reading from `peer`; an older connection from it is dropped.
    pub(super) fn adopt_intake(&mut self, peer: Peer, mut stream: Stream, connection: u64) {
        let intake = self.shared.data.intake(peer);
        self.incoming.retain(|_, incoming| incoming.peer != peer);
        let entry = self.incoming.vacant_entry();
        let token = Token(INTAKES + entry.key());
        if stream.register(self.poller.registry(), token).is_ok() {
            entry.insert(Incoming {
                peer,
                stream,
                intake,
                connection,
                readiness: Readiness::unknown(),
                unread: Vec::new(),
                back: SendBuffer::default(),
                waits: false,
            });
        }
    }

    /// Handles an event of a link: it is writable again, has answered, or was closed by the other end.
    pub(super) fn on_link(&mut self, id: LinkId, event: &Event) {
        let link = self.shared.data.links.get(id);
        if let Some(link) = &link {
            link.write();
        }
        let Some(place) = self.link_answers.iter().position(|answers| answers.id == id) else {
            return;
        };
        self.link_answers[place].readiness.note(event);
        if self.read_answers(place).is_err() {
            let answers = self.link_answers.swap_remove(place);
            if let Some(link) = link {
                link.disconnect();
            }
            self.shared.data.link_broke(id);
            drop(answers);
        }
    }

    fn read_answers(&mut self, place: usize) -> Result<(), BrokenConnection> {
        let shared = self.shared;
        let answers = &mut self.link_answers[place];
        let LinkAnswers { stream, readiness, unread, .. } = answers;
        let after = read_all(stream, readiness, unread, &mut self.buffer, usize::MAX)?;
        let link = shared.data.links.get(answers.id).ok_or(BrokenConnection)?;
        let mut at = 0;
        let mut acked = false;
        while let Some((answer, length)) = first_answer(&answers.unread[at..]).map_err(broken)? {
            at += length;
            match answer {
                BackFrame::Ack(through) => {
                    link.acknowledge(through).map_err(broken)?;
                    acked = true;
                }
                BackFrame::Refused { frame, slot, reign } => {
                    if shared.data.keyspace.lock_one(slot).note_refused(link.id, frame) {
                        link.refuse(slot);
                    }
                    shared.data.next_ack_epoch(); // Before the acknowledgement that covers it.
                    shared.data.note_newer_reign(slot, reign);
                }
                BackFrame::FillRefused { fill } => {
                    shared.data.tell_mover(MoverInput::FillRefused { fill });
                }
                BackFrame::StaleCopy { fill, slot, position } => {
                    shared.data.tell_mover(MoverInput::StaleCopy { fill, slot, position });
                }
            }
        }
        answers.unread.drain(..at);
        if acked {
            shared.data.tell_mover_if_moving(MoverInput::Acked);
            self.wake_awaiting_acks();
        }
        if after == After::Closed { Err(BrokenConnection) } else { Ok(()) }
    }

    /// Returns whether an incoming stream is to be tried again.
    pub(super) fn has_intakes_to_retry(&self) -> bool {
        !self.intakes_again.is_empty()
    }

    /// Returns whether one of these streams only has to be read: clients may wait for the frames behind.
    pub(super) fn has_unread_intakes(&self) -> bool {
        let has_more = |incoming: &Incoming| incoming.readiness.readable && !incoming.waits;
        self.intakes_again.iter().any(|key| self.incoming.get(*key).is_some_and(has_more))
    }

    /// Wakes the other workers that hold replies, some of which may leave now.
    fn wake_awaiting_acks(&self) {
        for (number, awaiting_acks) in self.shared.data.awaiting_acks.iter().enumerate() {
            if number != self.number && awaiting_acks.load(Acquire) {
                self.shared.mailboxes[number].wake();
            }
        }
    }

    /// Applies the frames that another node has sent, and acknowledges them. There is no event if the stream
    /// is only tried again.
    pub(super) fn on_intake(&mut self, key: usize, event: Option<&Event>) {
        let Some(mut incoming) = self.incoming.try_remove(key) else { return };
        if let Some(event) = event {
            incoming.readiness.note(event);
        }
        let went_on = self.take_in(&mut incoming);
        match went_on {
            Ok(()) => {
                let index = self.incoming.insert(incoming);
                debug_assert_eq!(index, key, "the place was freed a moment ago");
                if self.incoming[index].waits || self.incoming[index].readiness.readable {
                    self.intakes_again.push(index);
                }
            }
            Err(BrokenConnection) => {
                incoming.stream.deregister(self.poller.registry());
            }
        }
    }

    fn take_in(&mut self, incoming: &mut Incoming) -> Result<(), BrokenConnection> {
        // The limit grows with the unread bytes: a whole frame must fit, however large it is.
        let max = if incoming.waits { TURN_BYTES } else { incoming.unread.len() + TURN_BYTES };
        let Incoming { stream, readiness, unread, .. } = incoming;
        let buffer = &mut self.buffer[..TURN_BYTES];
        let after = read_all(stream, readiness, unread, buffer, max)?;
        let intake = Arc::clone(&incoming.intake);
        let mut intake = intake.lock();
        if intake.connection != incoming.connection {
            return Err(BrokenConnection); // There is a newer connection.
        }
        incoming.waits = false;
        let mut at = 0;
        let grown_before = self.outcome.grown_bytes;
        let shared = self.shared;
        let (now, access) = (self.env.now, self.env.access);
        loop {
            let unread = &incoming.unread[at..];
            let Some((number, frame, length)) = intake.inbox.peek(unread).map_err(broken)? else {
                break;
            };
            if matches!(frame, Frame::FillEnd { .. }) {
                shared.data.kept.forget(); // From here on this node holds a copy that counts.
            }
            let mut apply_context = apply_context(&shared.data, now, access, &mut self.outcome);
            let taken = intake.take(number, &frame, &mut apply_context);
            drop(apply_context);
            match taken {
                FrameOutcome::Done => {}
                FrameOutcome::AnnouncePromotion { bucket, epoch } => {
                    // Before the acknowledgement leaves: the other node redirects to this one then.
                    shared.data.roles_ahead.fetch_add(1, AcqRel);
                    shared.data.tell_mover(MoverInput::AnnouncePromotion { bucket, epoch });
                }
                FrameOutcome::Pubsub(bytes) => self.on_pubsub_frame(incoming.peer, &bytes),
                FrameOutcome::Garbled => return Err(BrokenConnection),
                FrameOutcome::NotYet => {
                    incoming.waits = true;
                    break;
                }
            }
            intake.inbox.done();
            at += length;
        }
        // Backups of other nodes are no growth of this node's own keys.
        let grown = core::mem::replace(&mut self.outcome.grown_bytes, grown_before) - grown_before;
        shared.data.keyspace.memory.grow_by_others(grown);
        incoming.unread.drain(..at);
        if at > 0 {
            shared.data.note_heard(incoming.peer.id);
        }
        intake.answer(incoming.back.bytes_mut());
        drop(intake);
        let Incoming { stream, back, .. } = incoming;
        back.flush(stream).map_err(|_| BrokenConnection)?;
        if at >= TURN_BYTES {
            // That many bytes at once are a fill: no client waits for it, but another thread may wait
            // for this core.
            thread::yield_now();
        }
        if after == After::Closed { Err(BrokenConnection) } else { Ok(()) }
    }
}

fn broken(_: BadFrame) -> BrokenConnection {
    BrokenConnection
}

/// Reads from the socket until it is empty or there are about `max` unread bytes.
fn read_all(
    stream: &mut Stream,
    readiness: &mut Readiness,
    unread: &mut Vec<u8>,
    buffer: &mut [u8],
    max: usize,
) -> Result<After, BrokenConnection> {
    while readiness.readable && unread.len() < max {
        match stream.read_noting(buffer, readiness) {
            Ok(count) => unread.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(After::Closed),
            Err(_) => return Err(BrokenConnection),
        }
    }
    Ok(After::Open)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_end_of_a_stream_is_found_although_it_comes_with_the_last_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let mut peer = TcpStream::connect(address).expect("it listens");
        let (here, _) = listener.accept().expect("it has connected");
        here.set_nonblocking(true).expect("a socket");
        let mut here = Stream::from(mio::net::TcpStream::from_std(here));
        peer.write_all(b"last").expect("room");
        drop(peer);
        std::thread::sleep(std::time::Duration::from_millis(50)); // Both are there before the first read.
        let (mut unread, mut buffer) = (Vec::new(), [0; 64]);
        let mut readiness = Readiness { readable: true, hung_up: true };
        let after = read_all(&mut here, &mut readiness, &mut unread, &mut buffer, usize::MAX);
        assert!(matches!(after, Ok(After::Closed)));
        assert_eq!(unread, b"last");
    }
}
