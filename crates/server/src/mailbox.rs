//! How threads talk to a worker: a list of mail and a way to wake it up.

use mio::Waker;
use parking_lot::Mutex;

use crate::accept::Accepted;

/// Something for a worker to do on its own connections.
pub(crate) enum Mail {
    /// Take this connection over.
    Adopt(Accepted),
    /// Close this connection, if it is still the one with this id.
    Close { id: u64, index: usize },
}

pub(crate) struct Mailbox {
    mail: Mutex<Vec<Mail>>,
    waker: Waker,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Mailbox {
        Mailbox { mail: Mutex::default(), waker }
    }

    /// Leaves mail, and wakes the worker if it may be asleep: the first letter does, those behind it
    /// are found with it.
    pub(crate) fn send(&self, mail: Mail) {
        let first = {
            let mut waiting = self.mail.lock();
            waiting.push(mail);
            waiting.len() == 1
        };
        if first {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        // It can only fail when the poll is gone, and then nobody is there to wake.
        let _ = self.waker.wake();
    }

    pub(crate) fn take(&self) -> Vec<Mail> {
        core::mem::take(&mut *self.mail.lock())
    }
}
