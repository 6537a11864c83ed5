//! Publishes the key events of a connection's commands, and the messages that PUBLISH has left in the
//! outbox (`host.rs`). `deliver.rs` is the receiving end.

use std::sync::Arc;

use cluster::map::Peer;
use cluster::serving::Tickets;
use commands::{Post, Session, Space, SubscriptionKind, dismiss};
use placement::Slot;
use resp::{Mark, Output, Protocol, Reply};

use super::Worker;
use super::connection::Connection;
use crate::published::Author;
use crate::pubsub::{EventRules, PubsubMessage, stop_listening};

impl Worker<'_> {
    /// Publishes the key events of a command. Messages that its own connection has subscribed to go before
    /// the reply, which began at `start`.
    pub(super) fn publish_events(&mut self, index: usize, output: &mut Output, start: Mark) {
        let connection = &mut self.connections[index];
        let author = Some(Author(connection.session.id));
        let (rules, events) = (EventRules::of(&self.settings), &mut self.outcome.events);
        self.branch.outbox.tell(&self.shared.exchange, author, rules, events);
        connection.published = true;
        if connection.session.subscriptions.is_empty() {
            return;
        }
        let mut heard = Output::default();
        for message in self.branch.outbox.to_worker(self.number) {
            for body in self.branch.heard_by(index, message) {
                body.write(&mut heard, connection.session.protocol);
            }
        }
        let heard: Vec<u8> = heard.chunks(heard.mark()).flatten().copied().collect();
        match connection.session.protocol {
            Protocol::Resp3 => output.insert(start, &heard),
            // The client has subscribed in the same EXEC, and expects no message before its reply.
            Protocol::Resp2 => output.extend_from_slice(&heard),
        }
        // Empties the outbox, so that the next command of the batch does not get them again.
        self.post();
    }

    /// Unsubscribes clients from shard channels of slots that another node serves now.
    pub(super) fn drop_foreign_shard_subscriptions(&mut self) {
        let cluster = Arc::clone(&self.env.cluster);
        if cluster.serves_all() {
            return;
        }
        for (index, name) in self.branch.strangers(|name| cluster.is_mine(Slot::of(name))) {
            let Connection { session, output, .. } = &mut self.connections[index];
            let protocol = session.protocol;
            dismiss(session, &name, &mut Reply::new(output, protocol));
            let (exchange, links) = (&self.shared.exchange, &self.shared.data.links);
            let kind = SubscriptionKind::ShardChannel;
            stop_listening(exchange, links, self.number, session, kind, &name);
            self.branch.unsubscribe(index, kind, &name);
            self.to_send.push(index);
        }
    }

    /// Handles a pub/sub frame from another node.
    pub(super) fn on_pubsub_frame(&mut self, from: Peer, bytes: &[u8]) {
        match PubsubMessage::read(bytes) {
            Some(PubsubMessage::Post { channel, payload, audience }) => {
                let post = Post { space: Space::Global, channel, payload };
                self.branch.outbox.publish_here(&self.shared.exchange, None, post, audience);
                self.post();
            }
            Some(
                interest @ (PubsubMessage::Listen(_)
                | PubsubMessage::Stop(_)
                | PubsubMessage::AllTold),
            ) => {
                self.shared.exchange.remote.note(from, interest);
            }
            None => {}
        }
    }

    /// Defers the events of a write that no backup has acknowledged yet; they wait as its reply does.
    pub(super) fn put_off_events(&mut self, tickets: &Tickets) {
        if !self.outcome.events.is_empty() {
            self.later.put_off(tickets.clone(), core::mem::take(&mut self.outcome.events));
        }
    }

    /// Publishes the events of writes that are acknowledged by now. Called before their replies are sent: if this
    /// process is killed after a reply, the event is on its way to the other nodes and to subscribers of this worker.
    pub(super) fn publish_safe_events(&mut self) {
        let mut events = self.later.ripe(&self.shared.data);
        if events.is_empty() {
            return;
        }
        let (rules, links) = (EventRules::of(&self.settings), &self.shared.data.links);
        self.branch.outbox.tell(&self.shared.exchange, None, rules, &mut events);
        self.branch.post(links, &self.shared.mailboxes, self.number);
        links.flush();
        if self.branch.own_mail {
            self.deliver_published();
        }
    }

    /// Posts the messages published since the last call. Called before the replies are sent, so that a
    /// client that sees a reply can rely on the message being under way.
    #[inline]
    pub(super) fn post(&mut self) {
        if !self.outcome.events.is_empty() {
            // Keys were evicted for a command that was then refused.
            let (rules, events) = (EventRules::of(&self.settings), &mut self.outcome.events);
            self.branch.outbox.tell(&self.shared.exchange, None, rules, events);
        }
        self.branch.post(&self.shared.data.links, &self.shared.mailboxes, self.number);
    }

    /// Returns whether a connection that has just published must wait for the delivering workers to catch up.
    pub(super) fn must_wait(&mut self, index: usize) -> bool {
        let connection = &mut self.connections[index];
        if connection.published {
            connection.published = self.shared.mailboxes.iter().any(|mailbox| mailbox.is_full());
        }
        connection.published
    }

    /// Removes all subscriptions of a connection that is gone.
    pub(super) fn end_subscriptions(&mut self, index: usize, session: &Session) {
        if session.subscriptions.is_empty() {
            return;
        }
        let (exchange, links) = (&self.shared.exchange, &self.shared.data.links);
        for kind in SubscriptionKind::ALL {
            for name in session.subscriptions.list(kind) {
                stop_listening(exchange, links, self.number, session, kind, &name);
                self.branch.unsubscribe(index, kind, &name);
            }
        }
    }
}
