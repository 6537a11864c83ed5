//! The way out to one other node: frames are appended by whoever holds a slot's lock, and written to
//! the socket by the worker that comes to it at the end of a round. Answers are read by one worker.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use cluster::data::Refusals;
use cluster::map::Peer;
use cluster::replication::{BadFrame, Forgotten, Frame, FrameNumber, LinkId, Outbox};
use parking_lot::Mutex;
use placement::Slot;

/// A backup that is behind by so much is dropped, and filled again.
const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;

pub(crate) struct Link {
    pub id: LinkId,
    pub peer: Peer,
    sending: Mutex<Sending>,
    acked: AtomicU64,
    /// There is something to write.
    dirty: AtomicBool,
    /// The process at the other end is no member any more.
    gone: AtomicBool,
    any_refused: AtomicBool,
    refused: Mutex<Refusals>,
}

struct Sending {
    outbox: Outbox,
    stream: Option<TcpStream>,
    /// Since when something has not been acknowledged: counted anew with every acknowledgement.
    waiting_since: Instant,
}

impl Link {
    pub(crate) fn new(id: LinkId, peer: Peer) -> Link {
        let waiting_since = Instant::now();
        Link {
            id,
            peer,
            sending: Mutex::new(Sending { outbox: Outbox::default(), stream: None, waiting_since }),
            acked: AtomicU64::new(0),
            dirty: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            any_refused: AtomicBool::new(false),
            refused: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn push(&self, frame: &Frame<'_>) -> FrameNumber {
        self.with_outbox(|outbox| outbox.push(frame))
    }

    /// Lets `work` append frames; they are written at the next `flush`.
    #[inline]
    pub(crate) fn with_outbox<R>(&self, work: impl FnOnce(&mut Outbox) -> R) -> R {
        let mut sending = self.sending.lock();
        if sending.outbox.last() == sending.outbox.acked() {
            sending.waiting_since = Instant::now();
        }
        let result = work(&mut sending.outbox);
        if self.is_gone() {
            sending.outbox.forget();
        }
        drop(sending);
        if !self.dirty.load(Ordering::Relaxed) {
            self.dirty.store(true, Ordering::Release);
        }
        result
    }

    #[inline]
    pub(crate) fn acked(&self) -> FrameNumber {
        FrameNumber(self.acked.load(Ordering::Acquire))
    }

    /// The other end has refused something of this slot.
    pub(crate) fn refuse(&self, slot: Slot) {
        self.refused.lock().note(slot);
        self.any_refused.store(true, Ordering::Release);
    }

    /// Slots of which something was refused, perhaps without consequence by now.
    pub(crate) fn refused(&self) -> Vec<Slot> {
        if self.any_refused.load(Ordering::Acquire) {
            self.refused.lock().slots().collect()
        } else {
            Vec::new()
        }
    }

    /// What was refused of this slot is of no consequence any more.
    pub(crate) fn forget_refusal(&self, slot: Slot) {
        let mut refused = self.refused.lock();
        refused.forget(slot);
        self.any_refused.store(!refused.is_empty(), Ordering::Release);
    }

    /// The other end has applied everything up to this frame.
    pub(crate) fn acknowledge(&self, through: FrameNumber) -> Result<(), BadFrame> {
        let mut sending = self.sending.lock();
        sending.outbox.acknowledge(through).map_err(|_| BadFrame::BadAck)?;
        sending.waiting_since = Instant::now();
        self.acked.store(sending.outbox.acked().0, Ordering::Release);
        Ok(())
    }

    /// A new connection, to an end that wants this frame first.
    pub(crate) fn connect(&self, stream: TcpStream, next: FrameNumber) -> Result<(), Forgotten> {
        let mut sending = self.sending.lock();
        sending.outbox.resume(next)?;
        sending.stream = Some(stream);
        drop(sending);
        self.dirty.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn disconnect(&self) {
        self.sending.lock().stream = None;
    }

    /// Writes what there is, if anything was appended since the last time.
    #[inline]
    pub(crate) fn flush(&self) {
        if self.dirty.load(Ordering::Relaxed) && self.dirty.swap(false, Ordering::AcqRel) {
            self.write();
        }
    }

    pub(crate) fn is_unwritten(&self) -> bool {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Writes as much as the system takes.
    pub(crate) fn write(&self) {
        let mut sending = self.sending.lock();
        let Sending { outbox, stream, .. } = &mut *sending;
        let Some(socket) = stream else { return };
        while let Some(bytes) = outbox.unsent() {
            match socket.write(bytes) {
                Ok(count) => outbox.sent(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The worker that reads the answers is told when it goes on.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    *stream = None; // Who reads the answers notices, too, and dials again.
                    return;
                }
            }
        }
    }

    /// Bytes that are not acknowledged yet.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.sending.lock().outbox.kept_bytes()
    }

    pub(crate) fn last(&self) -> FrameNumber {
        self.sending.lock().outbox.last()
    }

    /// Whether the other end has acknowledged nothing for `long` although there is something to
    /// acknowledge, or is too far behind.
    pub(crate) fn is_stuck(&self, long: Duration) -> bool {
        let sending = self.sending.lock();
        let waits = sending.outbox.last() > sending.outbox.acked();
        let late = waits && sending.waiting_since.elapsed() > long;
        late || sending.outbox.kept_bytes() > KEPT_BYTES_MAX
    }

    pub(crate) fn mark_gone(&self) {
        self.gone.store(true, Ordering::Release);
        let mut sending = self.sending.lock();
        sending.stream = None;
        sending.outbox.forget();
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}
