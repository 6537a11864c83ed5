//! Connections to other nodes as they come and go, and notices to the control thread. Called by `peer`,
//! which makes the connections.

use std::io;
use std::net::TcpStream;

use cluster::balance::{MemoryReport, SizeReport, Vitals};
use cluster::data::Report;
use cluster::map::{LogIndex, Peer};
use cluster::replication::{FrameNumber, LinkId};
use net::Stream;
use placement::Slot;

use super::Data;
use crate::mailbox::Mail;

/// The connection was not taken: the two ends do not agree on the next frame, or the peer is no member.
#[derive(Debug)]
pub(crate) struct Unwanted;

/// A notice from the data plane to the control thread.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// The connection that this node had made to a process is broken: a new one is needed.
    LinkBroke(Peer),
    /// Another node knows a later reign of a slot.
    NewerReignSeen {
        slot: Slot,
        reign: LogIndex,
    },
    Report(Report),
    /// A client has asked for something that this node may not serve.
    ClientDemand,
    Vitals(Vitals),
    Memory(MemoryReport),
    /// Sizes of the buckets that this node serves.
    Sizes(SizeReport),
}

impl Data {
    /// Returns the number of the frame that is expected next from a process.
    pub(crate) fn expected_from(&self, peer: Peer) -> u64 {
        self.intake(peer).lock().inbox.next().0
    }

    pub(crate) fn notify(&self, notice: Notice) {
        if let Notice::Report(report) = &notice {
            self.fills.note(report);
        }
        if let Some(notify) = self.notice.get() {
            notify(notice);
        }
    }

    pub(crate) fn link_broke(&self, id: LinkId) {
        if let Some(link) = self.links.get(id).filter(|link| !link.is_gone()) {
            self.notify(Notice::LinkBroke(link.peer));
        }
    }

    pub(crate) fn note_newer_reign(&self, slot: Slot, reign: LogIndex) {
        self.notify(Notice::NewerReignSeen { slot, reign });
    }

    /// Takes over a connection that this node has made to a process, which expects frame `next` first.
    pub(crate) fn outgoing(
        &self,
        peer: Peer,
        stream: TcpStream,
        next: u64,
    ) -> Result<(), Unwanted> {
        let link = self.links.to(peer).ok_or(Unwanted)?;
        let other_end = prepare(&stream).map_err(|_| Unwanted)?;
        link.connect(other_end, FrameNumber(next)).map_err(|_| Unwanted)?;
        let stream = Stream::from(mio::net::TcpStream::from_std(stream));
        self.mailboxes[self.worker_of(peer.id)].send(Mail::AdoptLink(link.id, stream));
        Ok(())
    }

    /// Takes over a connection that a process has made to this node, after it was told that frame `announced`
    /// is expected next.
    pub(crate) fn incoming(
        &self,
        peer: Peer,
        stream: TcpStream,
        announced: u64,
    ) -> Result<(), Unwanted> {
        prepare(&stream).map_err(|_| Unwanted)?;
        let intake = self.intake(peer);
        let mut intake = intake.lock();
        if intake.inbox.next().0 != announced {
            return Err(Unwanted); // The previous connection has brought more meanwhile.
        }
        let connection = intake.connect();
        let stream = Stream::from(mio::net::TcpStream::from_std(stream));
        let mail = Mail::AdoptIntake { peer, stream, connection };
        self.mailboxes[self.worker_of(peer.id)].send(mail);
        Ok(())
    }
}

/// Returns another handle of the socket, and makes both non-blocking, without delay of small writes.
fn prepare(stream: &TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    stream.try_clone()
}
