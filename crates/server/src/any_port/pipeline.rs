//! One client's requests, from their bytes to the replies in order, without sockets, clock or threads.
//! `session.rs` carries bytes to and from it; tests do the same with simulated nodes.
//!
//! The replies are the same for any batching of the same requests, because:
//! - Requests are sent in the client's order, and answered in that order.
//! - One command per slot is in flight at a time. A redirected command is sent again before the next command of
//!   its slot is sent at all.
//! - Commands without a key, commands that may wait for keys (BLPOP), WATCH, MULTI, and everything that changes the
//!   connection wait for all requests before them, and all requests after them wait. The commands of a transaction are in flight together, on
//!   one connection, and with no others.
//!
//! Memory is bounded: replies are read only for the oldest unanswered request, and stream through while the
//! client reads; all other replies stay at the nodes. Requests wait unread in the client's socket.
//!
//! A command whose connection breaks, or that has run only in part, has no correct reply: the client gets the
//! replies before it and is disconnected. Nothing is sent twice unless a node has said that it did not run.

mod deliver;
mod start;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use commands::{Args, Table};
use placement::Slot;
use resp::{Output, encode_command};

use super::forwarded::{Forwarded, QueuedReply};
use super::introduction::Introduction;
use super::plan::{ForwardPlan, plan};
use super::routes::{NodeAddress, Redirect, Routes};
use super::upstream::{Due, Upstream, UpstreamHealth, UpstreamId, Use};

/// Maximum number of requests in flight.
pub(super) const REQUESTS_MAX: usize = 1024;
/// Maximum bytes of requests in flight; above this, no request is taken.
pub(super) const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum bytes waiting for the client; above this, no request is taken and no node is read from.
pub(super) const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

const WATCH_ONE_NODE: &str = "ERR all watched keys must live on one node; use a hash tag";

/// The state of a client's transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Transaction {
    None,
    /// WATCH has fixed the node of the next transaction.
    Watching(NodeAddress),
    /// MULTI is open at this node, which the client is connected to; the first key decides on which node the
    /// transaction runs.
    Open(NodeAddress),
    /// The transaction runs on this node.
    At(NodeAddress),
}

/// A parsed request.
struct ForwardRequest {
    plan: ForwardPlan,
    /// The encoding that is sent to a node.
    command: Arc<Vec<u8>>,
}

/// The end of a client's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Closing {
    /// The connection goes on.
    Open,
    /// No more requests are taken; those in flight are answered.
    AfterAnswers,
    /// Requests in flight are not answered.
    Now,
}

pub(super) struct Pipeline {
    /// Replies that are due, in the client's order.
    answers: VecDeque<QueuedReply>,
    /// A request that must wait for some of them.
    waiting: Option<ForwardRequest>,
    /// The slots of the requests in flight.
    busy: BTreeSet<Slot>,
    /// Number of exclusive requests in flight; below, the bytes of all.
    exclusive: usize,
    request_bytes: usize,
    upstreams: BTreeMap<UpstreamId, Upstream>,
    next_upstream: UpstreamId,
    /// Connections that are wanted and not established yet.
    unconnected: VecDeque<UpstreamId>,
    introduction: Introduction,
    transaction: Transaction,
    /// True if a command of the transaction was refused here: EXEC must not run the rest.
    is_broken: bool,
    /// Set while the oldest request waits to be sent again.
    retry: Option<Redirect>,
    /// Set for a subscribed client: bytes pass unparsed between it and this connection.
    tied: Option<UpstreamId>,
    closing: Closing,
    answered: u64,
    /// Bytes for the client.
    pub output: Output,
}

impl Default for Pipeline {
    fn default() -> Pipeline {
        Pipeline {
            answers: VecDeque::new(),
            waiting: None,
            busy: BTreeSet::new(),
            exclusive: 0,
            request_bytes: 0,
            upstreams: BTreeMap::new(),
            next_upstream: 1,
            unconnected: VecDeque::new(),
            introduction: Introduction::default(),
            transaction: Transaction::None,
            is_broken: false,
            retry: None,
            tied: None,
            closing: Closing::Open,
            answered: 0,
            output: Output::default(),
        }
    }
}

impl Pipeline {
    /// Returns true if the next request may be given to [`Pipeline::request`].
    pub(super) fn wants_request(&self) -> bool {
        self.closing == Closing::Open
            && self.tied.is_none()
            && self.waiting.is_none()
            && self.output.len() < OUTPUT_BYTES_MAX
            && self.answers.len() < REQUESTS_MAX
            && self.request_bytes < REQUEST_BYTES_MAX
    }

    /// Takes the client's next request.
    pub(super) fn request(&mut self, table: &Table, args: Args<'_>, routes: &impl Routes) {
        debug_assert!(self.wants_request(), "one request at a time waits");
        let words: Vec<&[u8]> = args.iter().collect();
        let plan = plan(table, args);
        self.waiting = Some(ForwardRequest { plan, command: command(&words) });
        self.advance(routes);
    }

    /// Answers bytes that are not a request; the client is closed after that.
    pub(super) fn refuse_rest(&mut self, reply: Vec<u8>, routes: &impl Routes) {
        self.answers.push_back(QueuedReply::Ready(reply));
        self.end_input();
        self.advance(routes);
    }

    /// Ends the connection without any reply.
    pub(super) fn abandon(&mut self) {
        self.closing = Closing::Now;
        self.output = Output::default();
    }

    /// Records that the client sends nothing more.
    pub(super) fn end_input(&mut self) {
        if self.closing == Closing::Open {
            self.closing = Closing::AfterAnswers;
        }
    }

    /// Returns true if `output` is complete: nothing will be added to it.
    pub(super) fn is_finished(&self) -> bool {
        match self.closing {
            Closing::Open => false,
            Closing::AfterAnswers => self.answers.is_empty() && self.waiting.is_none(),
            Closing::Now => true,
        }
    }

    /// Returns true if no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.answers.is_empty() && self.waiting.is_none()
    }

    /// Returns the connection whose bytes are needed now.
    pub(super) fn reads_from(&self) -> Option<UpstreamId> {
        if self.closing == Closing::Now || self.output.len() >= OUTPUT_BYTES_MAX {
            return None;
        }
        if self.tied.is_some() {
            return self.tied;
        }
        let Some(QueuedReply::Asked(request)) = self.answers.front() else { return None };
        if self.retry.is_some() {
            return None;
        }
        request.inquiries.get(request.current).map(|inquiry| inquiry.on)
    }

    /// Takes bytes received from a node.
    pub(super) fn receive(&mut self, id: UpstreamId, bytes: &[u8], routes: &impl Routes) {
        let Some(upstream) = self.upstreams.get_mut(&id) else { return };
        if upstream.receive(bytes).is_err() {
            return self.lost(id, routes);
        }
        if self.tied == Some(id) && upstream.is_idle() {
            // A subscribed client gets everything as it comes.
            self.output.extend_from_slice(&upstream.take_unread());
        }
        self.advance(routes);
    }

    /// Returns a connection to establish, and its node.
    pub(super) fn next_unconnected(&mut self) -> Option<(UpstreamId, NodeAddress)> {
        while let Some(id) = self.unconnected.pop_front() {
            if let Some(upstream) = self.upstreams.get(&id) {
                return Some((id, upstream.address.clone()));
            }
        }
        None
    }

    /// Records that a connection could not be established: nothing was sent on it.
    pub(super) fn unreachable(&mut self, id: UpstreamId, routes: &impl Routes) {
        self.end_upstream(id, UpstreamHealth::Unreachable);
        self.advance(routes);
    }

    /// Records that a connection broke.
    pub(super) fn lost(&mut self, id: UpstreamId, routes: &impl Routes) {
        self.end_upstream(id, UpstreamHealth::Lost);
        self.advance(routes);
    }

    fn end_upstream(&mut self, id: UpstreamId, health: UpstreamHealth) {
        let transaction_node = self.transaction_node().cloned();
        let Some(upstream) = self.upstreams.get_mut(&id) else { return };
        upstream.health = health;
        upstream.unsent.clear();
        // Queued commands and watched keys are lost with their connection.
        let was_transaction =
            upstream.purpose == Use::Main && transaction_node.as_ref() == Some(&upstream.address);
        let outcome_unknown = health == UpstreamHealth::Lost && upstream.owes();
        let was_tied = self.tied == Some(id);
        if upstream.is_idle() {
            self.upstreams.remove(&id);
        }
        if outcome_unknown || was_transaction || was_tied {
            self.waiting = None;
            self.end_input();
        }
    }

    /// Returns true if the oldest request waits for [`Pipeline::retry`].
    pub(super) fn is_pausing(&self) -> bool {
        self.retry.is_some()
    }

    /// Returns true if the oldest request may wait for keys: its reply may take any time.
    pub(super) fn is_blocked(&self) -> bool {
        let Some(QueuedReply::Asked(request)) = self.answers.front() else { return false };
        request.inquiries.first().is_some_and(|inquiry| inquiry.blocks.is_some())
    }

    /// Returns whether another node than the one asked serves the slot of the oldest request by now.
    pub(super) fn has_moved_on(&self, routes: &impl Routes) -> bool {
        let Some(QueuedReply::Asked(request)) = self.answers.front() else { return false };
        let Some(inquiry) = request.inquiries.get(request.current) else { return false };
        let asked = self.upstreams.get(&inquiry.on).map(|upstream| &upstream.address);
        inquiry.slot.is_some_and(|slot| asked != Some(&routes.node_of(slot)))
    }

    /// Sends the oldest request again, after a pause. If it may wait for keys, it has done so for `waited`.
    pub(super) fn retry(&mut self, waited: Duration, routes: &impl Routes) {
        if let Some(redirect) = self.retry.take() {
            self.shorten_timeout(waited);
            self.send_again(redirect, routes);
            self.advance(routes);
        }
    }

    fn shorten_timeout(&mut self, waited: Duration) {
        let Some(QueuedReply::Asked(request)) = self.answers.front_mut() else { return };
        self.request_bytes -= request.bytes();
        if let Some(inquiry) = request.inquiry()
            && let Some(blocks) = &inquiry.blocks
        {
            inquiry.command = Arc::new(blocks.after(waited));
        }
        self.request_bytes += request.bytes();
    }

    /// Answers the oldest request with its last redirect, instead of sending it again.
    pub(super) fn give_up(&mut self, routes: &impl Routes) {
        if self.retry.take().is_some() {
            if let Some(QueuedReply::Asked(request)) = self.answers.front_mut() {
                request.give_up();
            }
            self.advance(routes);
        }
    }

    /// Returns the number of requests that nodes have answered.
    pub(super) fn answered(&self) -> u64 {
        self.answered
    }

    /// Returns the connection that a subscribed client is tied to.
    pub(super) fn tied(&self) -> Option<UpstreamId> {
        self.tied
    }

    pub(super) fn upstream(&mut self, id: UpstreamId) -> Option<&mut Upstream> {
        self.upstreams.get_mut(&id)
    }

    /// Returns all connections that should exist.
    pub(super) fn upstreams(&self) -> impl Iterator<Item = (UpstreamId, &Upstream)> {
        let all = self.upstreams.iter().map(|(id, upstream)| (*id, upstream));
        all.filter(|(_, upstream)| upstream.health == UpstreamHealth::Open)
    }

    /// Returns true if a node has accepted the client's password.
    pub(super) fn has_credentials(&self) -> bool {
        self.introduction.has_credentials()
    }

    /// Makes all progress that is possible now.
    fn advance(&mut self, routes: &impl Routes) {
        loop {
            self.deliver(routes);
            if self.closing == Closing::Now || !self.start_waiting(routes) {
                break;
            }
        }
        if self.answers.is_empty() {
            self.upstreams.retain(|_, upstream| upstream.health == UpstreamHealth::Open);
        }
    }

    fn in_transaction(&self) -> bool {
        matches!(self.transaction, Transaction::Open(_) | Transaction::At(_))
    }

    /// Returns the node that has an open transaction or watched keys.
    fn transaction_node(&self) -> Option<&NodeAddress> {
        match &self.transaction {
            Transaction::None => None,
            Transaction::Open(node) | Transaction::Watching(node) | Transaction::At(node) => {
                Some(node)
            }
        }
    }

    /// Returns the node where the transaction must run.
    fn fixed_node(&self) -> Option<&NodeAddress> {
        self.transaction_node().filter(|_| !matches!(self.transaction, Transaction::Open(_)))
    }

    /// Sends a command on the connection of that kind, which is established if there is none.
    fn send(
        &mut self,
        to: &NodeAddress,
        purpose: Use,
        command: &Arc<Vec<u8>>,
        due: Due,
    ) -> UpstreamId {
        let id = self.connection(to, purpose);
        let upstream = self.upstreams.get_mut(&id).expect("it was found or made");
        upstream.send(command, due);
        id
    }

    fn connection(&mut self, to: &NodeAddress, purpose: Use) -> UpstreamId {
        let found = self.upstreams.iter().find(|(_, upstream)| {
            upstream.health == UpstreamHealth::Open
                && upstream.purpose == purpose
                && upstream.address == *to
        });
        if let Some((id, _)) = found {
            return *id;
        }
        let mut upstream = Upstream::new(to.clone(), purpose);
        for command in self.introduction.commands() {
            upstream.send(command, Due::Ignored);
        }
        let id = self.next_upstream;
        self.next_upstream += 1;
        self.upstreams.insert(id, upstream);
        self.unconnected.push_back(id);
        id
    }

    /// Counts a request that was sent, and records that its reply is due.
    fn push(&mut self, request: Forwarded) {
        self.busy.extend(request.slots());
        self.exclusive += usize::from(request.is_exclusive);
        self.request_bytes += request.bytes();
        self.answers.push_back(QueuedReply::Asked(request));
    }

    /// Returns the bytes held for the client, without its requests.
    #[cfg(test)]
    pub(super) fn reply_bytes(&self) -> usize {
        let unread: usize = self.upstreams.values().map(Upstream::unread_bytes).sum();
        self.output.len() + unread
    }
}

/// Encodes a command of our own.
fn command(words: &[&[u8]]) -> Arc<Vec<u8>> {
    let mut bytes = Vec::new();
    encode_command(&mut bytes, words);
    Arc::new(bytes)
}
