//! How threads talk to a worker: a list of mail and a way to wake it up.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use cluster::map::Peer;
use cluster::replication::LinkId;
use mio::Waker;
use mio::net::{TcpListener, TcpStream};
use parking_lot::Mutex;

use crate::accept::Accepted;
use crate::pubsub::Message;

/// Something for a worker to do on its own connections.
pub(crate) enum Mail {
    /// Accept clients from now on.
    Listen(TcpListener),
    /// Take this connection over.
    Adopt(Accepted),
    /// Close this connection, if it is still the one with this id.
    Close { id: u64, index: usize },
    /// The answer that this connection waits for has come.
    Resume { id: u64, index: usize },
    /// Show this line to the monitor with this id.
    Show { id: u64, index: usize, line: Arc<[u8]> },
    /// Bring this to those who listen.
    Deliver(Arc<Message>),
    /// Read the answers of this link.
    AdoptLink(LinkId, TcpStream),
    /// Read what this node sends.
    AdoptIntake { peer: Peer, stream: TcpStream, connection: u64 },
}

/// Above this, whoever publishes waits: a worker with many listeners is slower than one publisher.
const BACKLOG_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) struct Mailbox {
    waiting: Mutex<Waiting>,
    /// Bytes of messages left here and not yet delivered.
    backlog: AtomicUsize,
    waker: Waker,
}

#[derive(Default)]
struct Waiting {
    mail: Vec<Mail>,
    /// Messages ever left here.
    messages: u64,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Mailbox {
        Mailbox { waiting: Mutex::default(), backlog: AtomicUsize::new(0), waker }
    }

    /// Leaves mail, and wakes the worker if it may be asleep: the first letter does, those behind it
    /// are found with it.
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

    /// Leaves published messages, and empties the list. True if the worker may be asleep.
    pub(crate) fn leave(&self, messages: &mut Vec<Arc<Message>>) -> bool {
        let bytes = messages.iter().map(|message| message.bytes()).sum();
        self.backlog.fetch_add(bytes, Relaxed);
        let mut waiting = self.waiting.lock();
        let first = waiting.mail.is_empty();
        waiting.messages += messages.len() as u64;
        waiting.mail.extend(messages.drain(..).map(Mail::Deliver));
        first
    }

    /// How many messages were ever left here: the number of the next one.
    pub(crate) fn messages(&self) -> u64 {
        self.waiting.lock().messages
    }

    /// A message was delivered.
    pub(crate) fn delivered(&self, message: &Message) {
        self.backlog.fetch_sub(message.bytes(), Relaxed);
    }

    /// Whoever publishes should wait until the worker has caught up.
    pub(crate) fn is_full(&self) -> bool {
        self.backlog.load(Relaxed) > BACKLOG_BYTES_MAX
    }

    pub(crate) fn wake(&self) {
        // It can only fail when the poll is gone, and then nobody is there to wake.
        let _ = self.waker.wake();
    }

    pub(crate) fn take(&self) -> Vec<Mail> {
        core::mem::take(&mut self.waiting.lock().mail)
    }
}
