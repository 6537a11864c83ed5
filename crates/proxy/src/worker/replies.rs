//! Answers that a client has yet to receive, in the order of its requests.
//!
//! A client's requests run on several servers at once and are answered in any order. Each has a [`Ticket`];
//! an answer whose turn it is goes straight to the output, an early one waits in the stash, so that no answer
//! costs an allocation.

use std::collections::VecDeque;

use net::SendBuffer;

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
    /// Answers in order.
    pub output: SendBuffer<KEPT_BYTES_MAX>,
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
        self.output.bytes_mut().extend_from_slice(reply);
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
            self.output.bytes_mut().extend_from_slice(&self.stash[start..end]);
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
        self.output.bytes_mut().extend_from_slice(message);
    }

    /// Returns the number of requests whose answers are not in the output yet.
    #[inline]
    pub(crate) fn awaited(&self) -> usize {
        self.slots.len()
    }

    /// Returns the bytes held for the client: those it has not accepted, and those that may not be sent yet.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        self.output.len() + self.stash.len()
    }

    /// Discards the output of a client that is gone; tickets stay valid.
    pub(crate) fn forget(&mut self) {
        self.output.discard();
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
        assert_eq!((replies.output.unsent(), replies.held_bytes()), (&b""[..], 2));
        replies.answer(tickets[0], b"0");
        assert_eq!(replies.output.unsent(), b"012");
        let later = replies.expect();
        replies.answer(later, b"4");
        replies.answer(tickets[3], b"3");
        assert_eq!((replies.output.unsent(), replies.awaited()), (&b"01234"[..], 0));
    }

    #[test]
    fn the_stash_is_empty_when_nothing_waits_in_it() {
        let mut replies = Replies::default();
        for _ in 0..3 {
            let (first, second) = (replies.expect(), replies.expect());
            replies.answer(second, b"bb");
            replies.answer(first, b"a");
            assert_eq!((replies.output.unsent(), replies.held_bytes()), (&b"abb"[..], 3));
            replies.output.advance(3);
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
        assert_eq!(replies.output.unsent(), b"12");
    }
}
