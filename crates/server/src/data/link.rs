//! The sending end of the link to one other node. The holder of a slot's lock appends frames; the first
//! worker that ends its round writes them to the socket. One worker reads the answers.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use cluster::data::Refusals;
use cluster::map::Peer;
use cluster::replication::{Backlog, BadFrame, Forgotten, Frame, FrameNumber, LinkId, Outbox};
use parking_lot::Mutex;
use placement::Slot;

use super::boottime::now;

pub(crate) struct Link {
    pub id: LinkId,
    pub peer: Peer,
    sending: Mutex<SendState>,
    acked: AtomicU64,
    /// True if there is something to write.
    dirty: AtomicBool,
    /// True if the process at the other end is no member any more.
    gone: AtomicBool,
    has_refusals: AtomicBool,
    refusals: Mutex<Refusals>,
    /// True if writers wait for the other end. Changed under the lock of `sending`.
    congested: AtomicBool,
    /// Number of congested links of this node.
    congestion: Arc<AtomicUsize>,
}

struct SendState {
    backlog: Backlog,
    stream: Option<TcpStream>,
}

impl Link {
    pub(crate) fn new(id: LinkId, peer: Peer, congestion: Arc<AtomicUsize>) -> Link {
        Link {
            id,
            peer,
            sending: Mutex::new(SendState { backlog: Backlog::new(now()), stream: None }),
            acked: AtomicU64::new(0),
            dirty: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            has_refusals: AtomicBool::new(false),
            refusals: Mutex::default(),
            congested: AtomicBool::new(false),
            congestion,
        }
    }

    #[inline]
    pub(crate) fn push(&self, frame: &Frame<'_>) -> FrameNumber {
        if !frame.is_long() {
            return self.with_outbox(|outbox| outbox.push(frame));
        }
        // Copied before the lock is taken: writes of other threads wait for that lock.
        let mut draft = Outbox::default();
        draft.push(frame);
        self.with_outbox(|outbox| {
            outbox.append(&mut draft);
            outbox.last()
        })
    }

    /// Lets `work` append frames; they are written at the next `flush`.
    #[inline]
    pub(crate) fn with_outbox<R>(&self, work: impl FnOnce(&mut Outbox) -> R) -> R {
        let mut sending = self.sending.lock();
        let result = sending.backlog.append(now, work);
        if self.is_gone() {
            sending.backlog.forget();
        }
        self.note_congestion(&sending);
        drop(sending);
        if !self.dirty.load(Ordering::Relaxed) {
            self.dirty.store(true, Ordering::Release);
        }
        result
    }

    /// Publishes whether the link is congested, for threads that are about to write.
    #[inline]
    fn note_congestion(&self, sending: &SendState) {
        let is_congested = sending.backlog.is_congested();
        if self.congested.load(Ordering::Relaxed) != is_congested {
            self.congested.store(is_congested, Ordering::Release);
            if is_congested {
                self.congestion.fetch_add(1, Ordering::AcqRel);
            } else {
                self.congestion.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// Returns whether so many bytes are unacknowledged that nobody should add to them.
    pub(crate) fn is_congested(&self) -> bool {
        self.congested.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn acked(&self) -> FrameNumber {
        FrameNumber(self.acked.load(Ordering::Acquire))
    }

    /// Records that the other end has refused a frame of this slot.
    pub(crate) fn refuse(&self, slot: Slot) {
        self.refusals.lock().note(slot);
        self.has_refusals.store(true, Ordering::Release);
    }

    /// Returns the slots of which a frame was refused; some refusals may not matter any more.
    pub(crate) fn refused_slots(&self) -> Vec<Slot> {
        if self.has_refusals.load(Ordering::Acquire) {
            self.refusals.lock().slots().collect()
        } else {
            Vec::new()
        }
    }

    /// Forgets the refusals of this slot: they do not matter any more.
    pub(crate) fn forget_refusal(&self, slot: Slot) {
        let mut refused = self.refusals.lock();
        refused.forget(slot);
        self.has_refusals.store(!refused.is_empty(), Ordering::Release);
    }

    /// Records that the other end has processed (applied or refused) every frame up to this one.
    pub(crate) fn acknowledge(&self, through: FrameNumber) -> Result<(), BadFrame> {
        let mut sending = self.sending.lock();
        sending.backlog.acknowledge(now(), through).map_err(|_| BadFrame::BadAck)?;
        self.acked.store(sending.backlog.outbox().acked().0, Ordering::Release);
        self.note_congestion(&sending);
        Ok(())
    }

    /// Takes over a new connection, whose other end expects this frame first.
    pub(crate) fn connect(&self, stream: TcpStream, next: FrameNumber) -> Result<(), Forgotten> {
        let mut sending = self.sending.lock();
        sending.backlog.outbox_mut().resume(next)?;
        sending.stream = Some(stream);
        drop(sending);
        self.dirty.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn disconnect(&self) {
        self.sending.lock().stream = None;
    }

    /// Writes what the outbox has not sent, if anything was appended since the last time.
    #[inline]
    pub(crate) fn flush(&self) {
        if self.dirty.load(Ordering::Relaxed) && self.dirty.swap(false, Ordering::AcqRel) {
            self.write();
        }
    }

    pub(crate) fn is_unwritten(&self) -> bool {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Writes as much as the socket takes.
    pub(crate) fn write(&self) {
        let mut sending = self.sending.lock();
        let SendState { backlog, stream } = &mut *sending;
        let outbox = backlog.outbox_mut();
        let Some(socket) = stream else { return };
        while let Some(bytes) = outbox.unsent() {
            match socket.write(bytes) {
                Ok(count) => outbox.sent(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // epoll tells the worker that reads the answers when the socket is writable again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    *stream = None; // The reader of the answers notices it too, and has it dialed again.
                    return;
                }
            }
        }
    }

    /// Returns the number of unacknowledged bytes.
    pub(crate) fn unacknowledged_bytes(&self) -> usize {
        self.sending.lock().backlog.outbox().unacknowledged_bytes()
    }

    /// Returns the memory that unacknowledged frames take up.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.sending.lock().backlog.outbox().allocated_bytes()
    }

    pub(crate) fn last(&self) -> FrameNumber {
        self.sending.lock().backlog.outbox().last()
    }

    /// Returns whether the other end has acknowledged nothing for `timeout` although something is due.
    pub(crate) fn is_stuck(&self, timeout: Duration) -> bool {
        self.sending.lock().backlog.is_stuck(now(), timeout)
    }

    pub(crate) fn mark_gone(&self) {
        self.gone.store(true, Ordering::Release);
        let mut sending = self.sending.lock();
        sending.stream = None;
        sending.backlog.forget();
        self.note_congestion(&sending);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}
