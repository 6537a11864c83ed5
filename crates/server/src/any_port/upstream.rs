//! One connection to a node on behalf of one client, without its socket: bytes to send, bytes received, and the
//! replies that are due.

use std::collections::VecDeque;
use std::sync::Arc;

use resp::{Output, SHARED_BYTES_MIN};

use super::framing::{Framer, Malformed};
use super::routes::NodeAddress;

/// Identifies a connection to a node. Never reused for the same client.
pub(super) type UpstreamId = u64;

/// The purpose of a connection. A client has at most one of each kind to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Commands in the client's order, and transactions.
    Main,
    /// The oldest unanswered command after a redirect. Its reply must not queue behind those of younger
    /// commands, which are read later.
    Retry,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UpstreamHealth {
    Open,
    /// The connection could not be established: nothing that is due was sent.
    Unreachable,
    /// The connection broke: it is unknown which of the commands have run.
    Lost,
}

/// A reply that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// The reply belongs to a request of the client.
    Answer,
    /// The reply is not needed: an introduction, DISCARD, ASKING.
    Ignored,
    /// The reply is not needed, but if it is an error, everything after it is wrong: MULTI.
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
    pub health: UpstreamHealth,
    pub unsent: Output,
    due: VecDeque<Due>,
    unread: Vec<u8>,
    /// Number of bytes of `unread` that are consumed.
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
            health: UpstreamHealth::Open,
            unsent: Output::default(),
            due: VecDeque::new(),
            unread: Vec::new(),
            taken: 0,
            framer: Framer::default(),
            is_error: None,
        }
    }

    /// Appends a command. A large one is shared with the request, which keeps it for a retry.
    pub(super) fn send(&mut self, command: &Arc<Vec<u8>>, due: Due) {
        self.send_raw(command);
        self.due.push_back(due);
    }

    /// Appends bytes whose replies are not waited for.
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

    /// Expects fewer replies: one error replaces several replies.
    pub(super) fn expect_less(&mut self, count: usize) {
        for _ in 0..count {
            self.due.pop_front();
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.due.is_empty()
    }

    /// Returns true if a reply is due that is needed.
    pub(super) fn owes(&self) -> bool {
        self.due.iter().any(|due| *due != Due::Ignored)
    }

    /// Takes bytes received from the node, and drops replies that are not needed.
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

    /// Takes the received bytes that belong to no expected reply.
    pub(super) fn take_unread(&mut self) -> Vec<u8> {
        self.unread.drain(..self.taken);
        self.taken = 0;
        core::mem::take(&mut self.unread)
    }

    /// Returns the memory held for received bytes.
    #[cfg(test)]
    pub(super) fn unread_bytes(&self) -> usize {
        self.unread.len()
    }
}
