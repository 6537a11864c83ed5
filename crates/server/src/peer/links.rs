//! The control links: non-blocking sockets, one for each other process. Owned by the control
//! thread.
//!
//! Messages are not numbered and may be lost with their link; Raft and leases tolerate that. A link on
//! which nothing arrives for a while is closed and made again, so that a network that was cut and healed
//! is used again at once, without waiting for TCP's retransmission. An empty frame is the keep-alive.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Duration;

use cluster::Moment;
use cluster::control::Message;
use cluster::map::{NodeId, Peer};
use mio::{Registry, Token};
use net::{SendBuffer, Stream};

use super::frame::{self, BadPeerFrame, CONTROL_BYTES_MAX, Unframer};

/// Interval of keep-alives on a link on which nothing else is sent.
const SAY_EVERY: Duration = Duration::from_millis(500);
/// Timeout after which a silent link is closed.
const SILENT_MAX: Duration = Duration::from_secs(3);
/// Number of unsent bytes above which messages are dropped: two maps of the largest kind.
const UNSENT_BYTES_MAX: usize = 2 * CONTROL_BYTES_MAX;
/// Maximum capacity that the empty send buffer of a link keeps.
const KEPT_BYTES_MAX: usize = 256 << 10;
const READ_BYTES: usize = 64 << 10;
/// Maximum number of bytes read from one link before the others have their turn.
const TURN_BYTES: usize = 1 << 20;

/// The process, of the two, that has made a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MadeBy {
    Me,
    Them,
}

#[derive(Default)]
pub(super) struct ControlLinks {
    links: BTreeMap<NodeId, ControlLink>,
    /// Token of the next link. No token is used twice, so that a late event is not taken for another link's.
    next_token: usize,
}

struct ControlLink {
    peer: Peer,
    made_by: MadeBy,
    token: Token,
    stream: Stream,
    unframer: Unframer,
    unsent: SendBuffer<KEPT_BYTES_MAX>,
    heard: Moment,
    said: Moment,
}

/// The reason why a link was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LinkFailure {
    Lost,
    /// The bytes that came were no message.
    Garbled,
    Silent,
}

impl ControlLinks {
    /// Takes over a new link. If two nodes have dialed each other, the link made by the one with the
    /// lower id stays. Returns false if the new link was not wanted.
    pub(super) fn add(
        &mut self,
        now: Moment,
        me: NodeId,
        peer: Peer,
        made_by: MadeBy,
        stream: TcpStream,
        registry: &Registry,
    ) -> io::Result<bool> {
        let lower = if me < peer.id { MadeBy::Me } else { MadeBy::Them };
        let known = self.links.get(&peer.id).filter(|known| known.peer == peer);
        if known.is_some_and(|known| known.made_by == lower && made_by != lower) {
            return Ok(false);
        }
        stream.set_nonblocking(true)?;
        let mut stream = Stream::from(mio::net::TcpStream::from_std(stream));
        let token = Token(self.next_token);
        stream.register(registry, token)?;
        self.next_token += 1;
        let (unframer, unsent) = (Unframer::default(), SendBuffer::default());
        let (heard, said) = (now, now);
        self.links.insert(
            peer.id,
            ControlLink { peer, made_by, token, stream, unframer, unsent, heard, said },
        );
        Ok(true)
    }

    /// Closes a link, and returns the peer at its other end.
    pub(super) fn remove(&mut self, node: NodeId) -> Option<Peer> {
        self.links.remove(&node).map(|link| link.peer)
    }

    pub(super) fn by_token(&self, token: Token) -> Option<NodeId> {
        self.links.values().find(|link| link.token == token).map(|link| link.peer.id)
    }

    pub(super) fn peers(&self) -> Vec<Peer> {
        self.links.values().map(|link| link.peer).collect()
    }

    /// Queues a message. Without a link, or with too many unsent bytes, it is lost.
    pub(super) fn send(&mut self, to: NodeId, message: &Message) -> Result<(), BadPeerFrame> {
        let Some(link) = self.links.get_mut(&to) else { return Ok(()) };
        if link.unsent.len() > UNSENT_BYTES_MAX {
            return Ok(());
        }
        frame::put(message, CONTROL_BYTES_MAX, link.unsent.bytes_mut())
    }

    /// Reads at most `TURN_BYTES`. Returns true if there may be more.
    pub(super) fn read(
        &mut self,
        now: Moment,
        node: NodeId,
        mut each: impl FnMut(Peer, Message),
    ) -> Result<bool, LinkFailure> {
        let Some(link) = self.links.get_mut(&node) else { return Ok(false) };
        let mut buffer = [0; READ_BYTES];
        let mut turn = 0;
        while turn < TURN_BYTES {
            match link.stream.read(&mut buffer) {
                Ok(0) => return Err(LinkFailure::Lost),
                Ok(count) => {
                    turn += count;
                    link.heard = now;
                    link.unframer.push(&buffer[..count]);
                    let taken = take_messages(&mut link.unframer, |it| each(link.peer, it));
                    taken.map_err(|_| LinkFailure::Garbled)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(_) => return Err(LinkFailure::Lost),
            }
        }
        Ok(true)
    }

    /// Sends as much as the sockets take, on all links. Returns the links that broke.
    pub(super) fn flush(&mut self, now: Moment) -> Vec<(Peer, LinkFailure)> {
        let mut broken = Vec::new();
        for link in self.links.values_mut() {
            if link.flush(now).is_err() {
                broken.push((link.peer, LinkFailure::Lost));
            }
        }
        broken
    }

    /// Queues keep-alives on links on which nothing was sent for a while. Returns the silent links.
    pub(super) fn keep_alive(&mut self, now: Moment) -> Vec<(Peer, LinkFailure)> {
        for link in self.links.values_mut() {
            if now >= link.said + SAY_EVERY && link.unsent.is_empty() {
                link.unsent.bytes_mut().extend_from_slice(&0_u32.to_le_bytes());
            }
        }
        let silent = self.links.values().filter(|link| now >= link.heard + SILENT_MAX);
        silent.map(|link| (link.peer, LinkFailure::Silent)).collect()
    }

    /// Returns the time at which `keep_alive` has something to do.
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.links.values().map(ControlLink::next_due).min()
    }
}

/// Passes on all messages that have come completely. Stops at the first frame that is no message.
fn take_messages(
    unframer: &mut Unframer,
    mut each: impl FnMut(Message),
) -> Result<(), BadPeerFrame> {
    while let Some(body) = unframer.next(CONTROL_BYTES_MAX)? {
        if !body.is_empty() {
            each(frame::read_body(body)?);
        }
    }
    unframer.compact();
    Ok(())
}

impl ControlLink {
    fn next_due(&self) -> Moment {
        let silent = self.heard + SILENT_MAX;
        if self.unsent.is_empty() { silent.min(self.said + SAY_EVERY) } else { silent }
    }

    fn flush(&mut self, now: Moment) -> io::Result<()> {
        if self.unsent.flush(&mut self.stream)? > 0 {
            self.said = now;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
