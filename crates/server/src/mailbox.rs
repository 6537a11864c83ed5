//! Messages from other threads to a worker, and the undelivered bytes of published messages among them.

use core::ops::Deref;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use cluster::map::Peer;
use cluster::replication::LinkId;
use cluster::serving::WaitNumber;
use commands::{ClientPort, Unblock};
use mio::Waker;
use mio::net::TcpListener;
use net::Stream;

use crate::accept::Accepted;
use crate::published::PublishedMessage;

/// A task for a worker on its own connections.
pub(crate) enum Mail {
    /// Accept clients of this port from now on.
    Listen(TcpListener, ClientPort),
    /// Take this connection over.
    Adopt(Accepted),
    /// Close this connection, if it is still the one with this id.
    Close { id: u64, index: usize },
    /// The answer that this connection waits for is there, or a key for which it waits may be ready.
    Resume { id: u64, index: usize },
    /// End the wait of this connection for keys, if it still has this place in line (CLIENT UNBLOCK).
    Unblock { index: usize, number: WaitNumber, how: Unblock },
    /// Send this line to the monitor with this id.
    Show { id: u64, index: usize, line: Arc<[u8]> },
    /// Deliver this message to its subscribers.
    Deliver(Arc<PublishedMessage>),
    /// Read the acknowledgements of this link.
    AdoptLink(LinkId, Stream),
    /// Read the frames that this peer sends.
    AdoptIntake { peer: Peer, stream: Stream, connection: u64 },
}

/// Above this, publishers wait: a worker with many subscribers is slower than one publisher.
const UNDELIVERED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A worker's mailbox, which also counts the published messages in it.
pub(crate) struct WorkerMailbox {
    mail: net::Mailbox<Mail>,
    /// Total number of messages ever queued here. Changed and read under the lock of `mail`.
    messages: AtomicU64,
    /// Bytes of messages queued here and not yet delivered.
    undelivered_bytes: AtomicUsize,
}

impl WorkerMailbox {
    pub(crate) fn new(waker: Waker) -> WorkerMailbox {
        let mail = net::Mailbox::new(waker);
        WorkerMailbox { mail, messages: AtomicU64::new(0), undelivered_bytes: AtomicUsize::new(0) }
    }

    pub(crate) fn send(&self, mail: Mail) {
        self.mail.send(mail);
    }

    /// Queues published messages and empties the list. Returns true if the worker may be asleep.
    pub(crate) fn leave(&self, messages: &mut Vec<Arc<PublishedMessage>>) -> bool {
        let bytes = messages.iter().map(|message| message.bytes()).sum();
        self.undelivered_bytes.fetch_add(bytes, Relaxed);
        let mut mail = self.mail.lock();
        let is_first = mail.is_empty();
        let count = self.messages.load(Relaxed) + messages.len() as u64;
        self.messages.store(count, Relaxed);
        mail.extend(messages.drain(..).map(Mail::Deliver));
        is_first
    }

    /// Returns the total number of messages ever queued here, which is the number of the next one.
    pub(crate) fn messages(&self) -> u64 {
        let _mail = self.mail.lock();
        self.messages.load(Relaxed)
    }

    /// Subtracts a delivered message from the undelivered bytes.
    pub(crate) fn delivered(&self, message: &PublishedMessage) {
        self.undelivered_bytes.fetch_sub(message.bytes(), Relaxed);
    }

    /// Returns whether publishers should wait until the worker has caught up.
    pub(crate) fn is_full(&self) -> bool {
        self.undelivered_bytes.load(Relaxed) > UNDELIVERED_BYTES_MAX
    }

    pub(crate) fn wake(&self) {
        self.mail.wake();
    }

    pub(crate) fn take(&self) -> Vec<Mail> {
        self.mail.take()
    }
}

/// The mailboxes of all workers. Clones are handles to the same mailboxes.
#[derive(Clone)]
pub(crate) struct Mailboxes(Arc<[Arc<WorkerMailbox>]>);

impl Mailboxes {
    pub(crate) fn new(mailboxes: Vec<WorkerMailbox>) -> Mailboxes {
        Mailboxes(mailboxes.into_iter().map(Arc::new).collect())
    }

    pub(crate) fn wake_all(&self) {
        self.0.iter().for_each(|mailbox| mailbox.wake());
    }
}

impl Deref for Mailboxes {
    type Target = [Arc<WorkerMailbox>];

    fn deref(&self) -> &[Arc<WorkerMailbox>] {
        &self.0
    }
}
