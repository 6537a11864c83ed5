//! One connection to a node on behalf of one client, without its socket: bytes to send, bytes received,
//! and the replies that are due.

use std::collections::VecDeque;
use std::sync::Arc;

use resp::{Output, SHARED_BYTES_MIN};

use super::framing::{Framer, Malformed};
use super::routes::NodeAddress;

/// Names a connection to a node. Never used twice for one client.
pub(super) type UpstreamId = u64;

/// The use of a connection. A node has at most one of each for a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Commands in the client's order, and transactions.
    Main,
    /// The oldest unanswered command after a redirection. Its reply must not stand behind those of
    /// younger commands, which are read later.
    Retry,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Health {
    Open,
    /// It could not be made: nothing of what is due was sent.
    Unreachable,
    /// It broke: nobody knows which of the commands have run.
    Lost,
}

/// A reply that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// It belongs to a request of the client.
    Answer,
    /// Nobody needs it: an introduction, DISCARD, ASKING.
    Ignored,
    /// Nobody needs it, but what follows is wrong if it is an error: MULTI.
    Accepted,
}

/// A piece of the reply that is due first.
pub(super) struct Piece {
    pub due: Due,
    pub bytes: Vec<u8>,
    /// True if the whole reply is an error.
    pub is_error: bool,
    pub ends: bool,
}

pub(super) struct Upstream {
    pub address: NodeAddress,
    pub purpose: Use,
    pub health: Health,
    pub unsent: Output,
    due: VecDeque<Due>,
    unread: Vec<u8>,
    /// The number of bytes of `unread` that are taken.
    taken: usize,
    framer: Framer,
    /// Set from the first byte of a reply to its last.
    is_error: Option<bool>,
}

impl Upstream {
    pub(super) fn new(address: NodeAddress, purpose: Use) -> Upstream {
        Upstream {
            address,
            purpose,
            health: Health::Open,
            unsent: Output::default(),
            due: VecDeque::new(),
            unread: Vec::new(),
            taken: 0,
            framer: Framer::default(),
            is_error: None,
        }
    }

    /// Appends a command. Large ones are shared with the request that keeps them for a retry.
    pub(super) fn send(&mut self, command: &Arc<Vec<u8>>, due: Due) {
        self.send_raw(command);
        self.due.push_back(due);
    }

    /// Appends bytes whose replies nobody waits for.
    pub(super) fn send_raw(&mut self, bytes: &Arc<Vec<u8>>) {
        if bytes.len() >= SHARED_BYTES_MIN {
            self.unsent.push_shared(bytes);
        } else {
            self.unsent.extend_from_slice(bytes);
        }
    }

    /// Expects one more reply to the last command.
    pub(super) fn expect_another(&mut self) {
        self.due.push_back(Due::Answer);
    }

    /// Expects fewer replies: an error has come in place of several.
    pub(super) fn expect_less(&mut self, count: usize) {
        for _ in 0..count {
            self.due.pop_front();
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.due.is_empty()
    }

    /// True if a reply is due that somebody needs.
    pub(super) fn owes(&self) -> bool {
        self.due.iter().any(|due| *due != Due::Ignored)
    }

    /// Takes bytes that the node has sent, and drops replies that nobody needs.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.unread.extend_from_slice(bytes);
        while self.due.front() == Some(&Due::Ignored) {
            if self.take_piece()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the next piece of the reply that is due, or `None` if more bytes are needed.
    pub(super) fn take_piece(&mut self) -> Result<Option<Piece>, Malformed> {
        let bytes = &self.unread[self.taken..];
        let Some(first) = bytes.first() else { return Ok(None) };
        let due = *self.due.front().ok_or(Malformed)?;
        let is_error = *self.is_error.get_or_insert(matches!(first, b'-' | b'!'));
        let fed = self.framer.feed(bytes)?;
        let bytes = bytes[..fed.used].to_vec();
        self.taken += fed.used;
        if self.taken == self.unread.len() {
            self.unread.clear();
            self.taken = 0;
        }
        if fed.whole {
            self.is_error = None;
            self.due.pop_front();
        }
        Ok(Some(Piece { due, bytes, is_error, ends: fed.whole }))
    }

    /// Takes the bytes that have come and that no reply has claimed.
    pub(super) fn take_unread(&mut self) -> Vec<u8> {
        self.unread.drain(..self.taken);
        self.taken = 0;
        core::mem::take(&mut self.unread)
    }

    /// The memory held for received bytes.
    #[cfg(test)]
    pub(super) fn unread_bytes(&self) -> usize {
        self.unread.len()
    }
}
