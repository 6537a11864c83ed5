//! Answers that a client has yet to receive, in the order of its requests.
//!
//! A client's requests run on several servers at once and are answered in any order. Each has a [`Ticket`];
//! an answer whose turn it is goes straight to the output, an early one waits in the stash, so that no answer
//! costs an allocation.

use std::collections::VecDeque;

/// Sequence number of a request of a client. Wraps around; only nearby ones are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u32);

#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// One slot per request that is not yet answered in its turn, the oldest first.
    slots: VecDeque<Slot>,
    /// Ticket of the first slot.
    first: u32,
    /// Early answers, concatenated. Cleared when none is left waiting.
    stash: Vec<u8>,
    /// Number of slots whose answer is in the stash.
    stashed: usize,
    /// Answers in order; the first `sent` bytes have been sent.
    output: Vec<u8>,
    sent: usize,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Awaited,
    /// The answer is in the stash.
    Early {
        start: usize,
        end: usize,
    },
}

/// Maximum capacity that empty buffers keep.
const KEPT_BYTES_MAX: usize = 64 * 1024;

impl Replies {
    /// Registers a request whose answer will come.
    #[inline]
    pub(crate) fn expect(&mut self) -> Ticket {
        let ticket = Ticket(self.first.wrapping_add(self.slots.len() as u32));
        self.slots.push_back(Slot::Awaited);
        ticket
    }

    /// Takes the answer to the request with this ticket, which has none yet.
    #[inline]
    pub(crate) fn answer(&mut self, ticket: Ticket, reply: &[u8]) {
        let place = ticket.0.wrapping_sub(self.first) as usize;
        if place > 0 {
            let start = self.stash.len();
            self.stash.extend_from_slice(reply);
            self.slots[place] = Slot::Early { start, end: self.stash.len() };
            self.stashed += 1;
            return;
        }
        self.output.extend_from_slice(reply);
        self.pass_first();
        if self.stashed > 0 {
            self.release_early();
        }
    }

    #[inline]
    fn pass_first(&mut self) {
        self.slots.pop_front();
        self.first = self.first.wrapping_add(1);
    }

    /// Outputs the stashed answers whose turn has come.
    fn release_early(&mut self) {
        while let Some(&Slot::Early { start, end }) = self.slots.front() {
            self.output.extend_from_slice(&self.stash[start..end]);
            self.stashed -= 1;
            self.pass_first();
        }
        if self.stashed == 0 {
            self.stash.clear();
            self.stash.shrink_to(KEPT_BYTES_MAX);
        }
    }

    /// Appends a message of a channel, which nobody asked for. It follows all answers given so far.
    pub(crate) fn push(&mut self, message: &[u8]) {
        self.output.extend_from_slice(message);
    }

    /// Returns the number of requests whose answers are not in the output yet.
    #[inline]
    pub(crate) fn awaited(&self) -> usize {
        self.slots.len()
    }

    /// Returns the bytes held for the client: those it has not accepted, and those that may not be sent yet.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        self.output.len() - self.sent + self.stash.len()
    }

    #[inline]
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Records that the socket has accepted this many bytes.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.output.len() {
            self.output.clear();
            self.output.shrink_to(KEPT_BYTES_MAX);
            self.sent = 0;
        } else if self.sent >= KEPT_BYTES_MAX && self.sent >= self.output.len() / 2 {
            // A client that is always a little behind must not make the buffer grow forever.
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Discards the output of a client that is gone; tickets stay valid.
    pub(crate) fn forget(&mut self) {
        self.output = Vec::new();
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_go_out_in_the_order_of_the_requests() {
        let mut replies = Replies::default();
        let tickets = [replies.expect(), replies.expect(), replies.expect(), replies.expect()];
        replies.answer(tickets[2], b"2");
        replies.answer(tickets[1], b"1");
        assert_eq!((replies.unsent(), replies.held_bytes()), (&b""[..], 2));
        replies.answer(tickets[0], b"0");
        assert_eq!(replies.unsent(), b"012");
        let later = replies.expect();
        replies.answer(later, b"4");
        replies.answer(tickets[3], b"3");
        assert_eq!((replies.unsent(), replies.awaited()), (&b"01234"[..], 0));
    }

    #[test]
    fn the_stash_is_empty_when_nothing_waits_in_it() {
        let mut replies = Replies::default();
        for _ in 0..3 {
            let (first, second) = (replies.expect(), replies.expect());
            replies.answer(second, b"bb");
            replies.answer(first, b"a");
            assert_eq!((replies.unsent(), replies.held_bytes()), (&b"abb"[..], 3));
            replies.advance(3);
            assert_eq!(replies.held_bytes(), 0);
        }
    }

    #[test]
    fn tickets_wrap_around() {
        let mut replies = Replies { first: u32::MAX, ..Replies::default() };
        let (first, second) = (replies.expect(), replies.expect());
        assert_eq!((first, second), (Ticket(u32::MAX), Ticket(0)));
        replies.answer(second, b"2");
        replies.answer(first, b"1");
        assert_eq!(replies.unsent(), b"12");
    }

    #[test]
    fn a_slow_reader_does_not_make_the_buffer_grow() {
        let mut replies = Replies::default();
        for _ in 0..100 {
            let ticket = replies.expect();
            replies.answer(ticket, &[b'x'; 10_000]);
            replies.advance(9_900);
        }
        assert_eq!(replies.unsent().len(), 10_000);
        assert!(replies.output.len() < 200_000);
    }
}
