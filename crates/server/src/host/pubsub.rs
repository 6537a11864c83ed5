//! Subscriptions, for commands, on the worker's thread.

use std::sync::Arc;

use commands::{Event, Kind, Post, PubSub, Session, Space};

use super::NodeHost;
use crate::published::Author;
use crate::pubsub::{News, announce};

impl PubSub for NodeHost<'_> {
    fn subscribe(&mut self, _: &Session, kind: Kind, name: &Arc<[u8]>) {
        // The connection must not receive what it published before.
        let (links, mailboxes) = (&self.shared.data.links, &self.shared.mailboxes);
        self.branch.post(links, mailboxes, self.card.place.worker);
        // Read the number before the entry: in between, the connection may receive too much, never too little.
        let from = self.shared.mailboxes[self.card.place.worker].messages();
        if self.shared.exchange.enter(self.card.place.worker, kind, name) {
            announce(&self.shared.data.links, News::Listen(kind, name));
        }
        self.branch.subscribe(self.card.place.index, kind, name, from);
    }

    fn unsubscribe(&mut self, _: &Session, kind: Kind, name: &[u8]) {
        if self.shared.exchange.strike(self.card.place.worker, kind, name) {
            announce(&self.shared.data.links, News::Stop(kind, name));
        }
        self.branch.unsubscribe(self.card.place.index, kind, name);
    }

    fn publish(&mut self, session: &Session, post: Post<'_>) -> usize {
        let author = Some(Author(session.id));
        self.branch.outbox.publish(&self.shared.exchange, author, post)
    }

    fn tell(&mut self, session: &Session, events: &mut Vec<Event>) {
        let author = Some(Author(session.id));
        self.branch.outbox.tell(&self.shared.exchange, author, self.notify, events);
    }

    fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        self.shared.exchange.channels(space, pattern)
    }

    fn subscribers(&self, space: Space, channel: &[u8]) -> usize {
        self.shared.exchange.subscribers(space, channel)
    }

    fn patterns(&self) -> usize {
        self.shared.exchange.names(Kind::Pattern)
    }
}
