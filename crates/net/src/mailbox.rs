//! Messages from other threads to the thread of an event loop: a queue, and a way to wake that thread.

use mio::Waker;
use parking_lot::{Mutex, MutexGuard};

/// A queue of messages for one thread, which sleeps in its poll.
pub struct Mailbox<M> {
    mail: Mutex<Vec<M>>,
    waker: Waker,
}

impl<M> Mailbox<M> {
    pub fn new(waker: Waker) -> Mailbox<M> {
        Mailbox { mail: Mutex::new(Vec::new()), waker }
    }

    /// Queues a message. The first one wakes the thread, which may be asleep; it finds later ones along with
    /// the first.
    pub fn send(&self, message: M) {
        let is_first = {
            let mut mail = self.mail.lock();
            mail.push(message);
            mail.len() == 1
        };
        if is_first {
            self.wake();
        }
    }

    /// Takes all messages out.
    pub fn take(&self) -> Vec<M> {
        std::mem::take(&mut self.mail.lock())
    }

    /// Locks the queue, for senders that queue several messages at once. They wake the thread themselves if
    /// the queue was empty.
    pub fn lock(&self) -> MutexGuard<'_, Vec<M>> {
        self.mail.lock()
    }

    /// Wakes the thread without a message.
    pub fn wake(&self) {
        // This fails only if the poll is gone, and then there is no thread to wake.
        let _ = self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mio::{Events, Poll, Token};

    use super::*;

    /// A mailbox and the poll of its thread.
    struct Receiver {
        poll: Poll,
        mailbox: Mailbox<u32>,
    }

    impl Receiver {
        fn new() -> Receiver {
            let poll = Poll::new().unwrap();
            let waker = Waker::new(poll.registry(), Token(0)).unwrap();
            Receiver { poll, mailbox: Mailbox::new(waker) }
        }

        /// Returns whether something has woken the thread since the last call.
        fn was_woken(&mut self) -> bool {
            let mut events = Events::with_capacity(4);
            self.poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
            !events.is_empty()
        }
    }

    #[test]
    fn only_the_first_message_wakes_and_all_are_taken_in_order() {
        let mut receiver = Receiver::new();
        assert!(!receiver.was_woken());
        receiver.mailbox.send(1);
        assert!(receiver.was_woken());
        receiver.mailbox.send(2);
        assert!(!receiver.was_woken(), "the second message needs no wake-up");
        assert_eq!(receiver.mailbox.take(), [1, 2]);
        assert_eq!(receiver.mailbox.take(), []);
        receiver.mailbox.send(3);
        assert!(receiver.was_woken(), "the queue was empty again");
    }

    #[test]
    fn a_thread_can_be_woken_without_a_message() {
        let mut receiver = Receiver::new();
        receiver.mailbox.wake();
        assert!(receiver.was_woken());
        assert_eq!(receiver.mailbox.take(), []);
    }

    #[test]
    fn no_message_is_lost_or_left_without_a_wake_up() {
        const SENDERS: u32 = 4;
        const EACH: u32 = 2_000;
        let mut receiver = Receiver::new();
        let mut got = Vec::new();
        std::thread::scope(|scope| {
            let mailbox = &receiver.mailbox;
            for sender in 0..SENDERS {
                scope.spawn(move || {
                    (0..EACH).for_each(|number| mailbox.send(sender * EACH + number));
                });
            }
            let mut events = Events::with_capacity(4);
            while got.len() < (SENDERS * EACH) as usize {
                let limit = Some(Duration::from_secs(30));
                receiver.poll.poll(&mut events, limit).unwrap();
                assert!(!events.is_empty(), "nobody woke the receiver");
                got.extend(mailbox.take());
            }
        });
        let mut sorted = got.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..SENDERS * EACH));
        for sender in 0..SENDERS {
            let from = got.iter().filter(|number| **number / EACH == sender);
            assert!(from.is_sorted(), "messages of one sender keep their order");
        }
    }
}
