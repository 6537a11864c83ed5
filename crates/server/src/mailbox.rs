//! Messages from other threads to a worker: a queue, and a way to wake the worker.

use core::ops::Deref;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use cluster::map::Peer;
use cluster::replication::LinkId;
use mio::Waker;
use mio::net::{TcpListener, TcpStream};
use parking_lot::Mutex;

use crate::accept::Accepted;
use crate::published::PublishedMessage;

/// A task for a worker on its own connections.
pub(crate) enum Mail {
    /// Accept clients from now on.
    Listen(TcpListener),
    /// Take this connection over.
    Adopt(Accepted),
    /// Close this connection, if it is still the one with this id.
    Close { id: u64, index: usize },
    /// The answer that this connection waits for is there.
    Resume { id: u64, index: usize },
    /// Send this line to the monitor with this id.
    Show { id: u64, index: usize, line: Arc<[u8]> },
    /// Deliver this message to its subscribers.
    Deliver(Arc<PublishedMessage>),
    /// Read the acknowledgements of this link.
    AdoptLink(LinkId, TcpStream),
    /// Read the frames that this peer sends.
    AdoptIntake { peer: Peer, stream: TcpStream, connection: u64 },
}

/// Above this, publishers wait: a worker with many subscribers is slower than one publisher.
const BACKLOG_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) struct Mailbox {
    waiting: Mutex<Waiting>,
    /// Bytes of messages queued here and not yet delivered.
    backlog: AtomicUsize,
    waker: Waker,
}

#[derive(Default)]
struct Waiting {
    mail: Vec<Mail>,
    /// Total number of messages ever queued here.
    messages: u64,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Mailbox {
        Mailbox { waiting: Mutex::default(), backlog: AtomicUsize::new(0), waker }
    }

    /// Queues mail. The first entry wakes the worker, which may be asleep; it finds later entries along with
    /// the first.
    pub(crate) fn send(&self, mail: Mail) {
        let first = {
            let mut waiting = self.waiting.lock();
            waiting.mail.push(mail);
            waiting.mail.len() == 1
        };
        if first {
            self.wake();
        }
    }

    /// Queues published messages and empties the list. Returns true if the worker may be asleep.
    pub(crate) fn leave(&self, messages: &mut Vec<Arc<PublishedMessage>>) -> bool {
        let bytes = messages.iter().map(|message| message.bytes()).sum();
        self.backlog.fetch_add(bytes, Relaxed);
        let mut waiting = self.waiting.lock();
        let first = waiting.mail.is_empty();
        waiting.messages += messages.len() as u64;
        waiting.mail.extend(messages.drain(..).map(Mail::Deliver));
        first
    }

    /// Returns the total number of messages ever queued here, which is the number of the next one.
    pub(crate) fn messages(&self) -> u64 {
        self.waiting.lock().messages
    }

    /// Subtracts a delivered message from the backlog.
    pub(crate) fn delivered(&self, message: &PublishedMessage) {
        self.backlog.fetch_sub(message.bytes(), Relaxed);
    }

    /// Returns whether publishers should wait until the worker has caught up.
    pub(crate) fn is_full(&self) -> bool {
        self.backlog.load(Relaxed) > BACKLOG_BYTES_MAX
    }

    pub(crate) fn wake(&self) {
        // This fails only if the poll is gone, and then there is no worker to wake.
        let _ = self.waker.wake();
    }

    pub(crate) fn take(&self) -> Vec<Mail> {
        core::mem::take(&mut self.waiting.lock().mail)
    }
}

/// The mailboxes of all workers. Clones are handles to the same mailboxes.
#[derive(Clone)]
pub(crate) struct Mailboxes(Arc<[Arc<Mailbox>]>);

impl Mailboxes {
    pub(crate) fn new(mailboxes: Vec<Mailbox>) -> Mailboxes {
        Mailboxes(mailboxes.into_iter().map(Arc::new).collect())
    }

    pub(crate) fn wake_all(&self) {
        self.0.iter().for_each(|mailbox| mailbox.wake());
    }
}

impl Deref for Mailboxes {
    type Target = [Arc<Mailbox>];

    fn deref(&self) -> &[Arc<Mailbox>] {
        &self.0
    }
}
