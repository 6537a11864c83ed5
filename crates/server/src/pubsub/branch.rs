//! One worker's part of pub/sub: its connections' subscriptions, and the incoming and outgoing messages. Only
//! its worker touches it, so it needs no locks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use commands::SubscriptionKind;

use super::PubsubOutbox;
use crate::data::Links;
use crate::mailbox::Mailboxes;
use crate::published::{PublishedBody, PublishedMessage};

/// Counts the messages received in a worker's mailbox. A connection does not receive messages published before
/// it subscribed, even if they are still in flight.
pub(crate) type Number = u64;

/// Connections by index in the worker, with the first message each may receive.
type Listeners = BTreeMap<usize, Number>;

pub(crate) struct Branch {
    channels: HashMap<Arc<[u8]>, Listeners>,
    patterns: HashMap<Arc<[u8]>, Listeners>,
    shard_channels: HashMap<Arc<[u8]>, Listeners>,
    /// Messages received and not yet delivered.
    inbox: VecDeque<Arc<PublishedMessage>>,
    /// The number of the next message to deliver.
    next: Number,
    pub outbox: PubsubOutbox,
    /// True if the worker has posted something to itself.
    pub own_mail: bool,
}

impl Branch {
    pub(crate) fn new(workers: usize) -> Branch {
        Branch {
            channels: HashMap::new(),
            patterns: HashMap::new(),
            shard_channels: HashMap::new(),
            inbox: VecDeque::new(),
            next: 0,
            outbox: PubsubOutbox::new(workers),
            own_mail: false,
        }
    }

    /// Returns true if there is nothing to do without new mail.
    pub(crate) fn is_quiet(&self) -> bool {
        self.inbox.is_empty() && !self.own_mail
    }

    /// Posts the messages that its own worker has published.
    #[inline]
    pub(crate) fn post(&mut self, links: &Links, mailboxes: &Mailboxes, worker: usize) {
        if !self.outbox.is_empty() {
            self.own_mail |= self.outbox.post(links, mailboxes, Some(worker));
        }
    }

    pub(crate) fn subscribe(
        &mut self,
        connection: usize,
        kind: SubscriptionKind,
        name: &Arc<[u8]>,
        from: Number,
    ) {
        let listeners = self.names(kind).entry(Arc::clone(name)).or_default();
        let before = listeners.insert(connection, from);
        assert!(before.is_none(), "a connection subscribes to a name once");
    }

    pub(crate) fn unsubscribe(&mut self, connection: usize, kind: SubscriptionKind, name: &[u8]) {
        let names = self.names(kind);
        let listeners = names.get_mut(name).expect("somebody listens");
        listeners.remove(&connection).expect("this connection does");
        if listeners.is_empty() {
            names.remove(name);
        }
    }

    /// Returns the subscribers of shard channels that this node does not serve.
    pub(crate) fn strangers(&self, is_mine: impl Fn(&[u8]) -> bool) -> Vec<(usize, Arc<[u8]>)> {
        let strange = self.shard_channels.iter().filter(|(name, _)| !is_mine(name));
        let each = strange.flat_map(|(name, listeners)| {
            listeners.keys().map(move |connection| (*connection, Arc::clone(name)))
        });
        each.collect()
    }

    pub(crate) fn receive(&mut self, message: Arc<PublishedMessage>) {
        self.inbox.push_back(message);
    }

    /// Returns the next message to deliver, with its number.
    pub(crate) fn next(&mut self) -> Option<(Arc<PublishedMessage>, Number)> {
        let message = self.inbox.pop_front()?;
        let number = self.next;
        self.next += 1;
        Some((message, number))
    }

    /// Returns the connections that get this message, each with the form that it gets.
    pub(crate) fn receivers<'a>(
        &'a self,
        message: &'a PublishedMessage,
        number: Number,
    ) -> impl Iterator<Item = (usize, &'a PublishedBody)> {
        self.listeners(message).flat_map(move |(listeners, body)| {
            let may_hear = listeners.iter().filter(move |(_, from)| **from <= number);
            may_hear.map(move |(connection, _)| (*connection, body))
        })
    }

    /// Returns the forms in which one connection gets this message.
    pub(crate) fn heard_by<'a>(
        &'a self,
        connection: usize,
        message: &'a PublishedMessage,
    ) -> impl Iterator<Item = &'a PublishedBody> {
        let all = self.listeners(message);
        all.filter(move |(listeners, _)| listeners.contains_key(&connection)).map(|(_, body)| body)
    }

    fn listeners<'a>(
        &'a self,
        message: &'a PublishedMessage,
    ) -> impl Iterator<Item = (&'a Listeners, &'a PublishedBody)> {
        let channels = match message.space.kind() {
            SubscriptionKind::Channel | SubscriptionKind::Pattern => &self.channels,
            SubscriptionKind::ShardChannel => &self.shard_channels,
        };
        let by_name = message
            .by_name
            .iter()
            .filter_map(|body| channels.get(&*message.channel).map(|listeners| (listeners, body)));
        let by_pattern = message.by_pattern.iter().filter_map(|(pattern, body)| {
            self.patterns.get(pattern).map(|listeners| (listeners, body))
        });
        by_name.chain(by_pattern)
    }

    fn names(&mut self, kind: SubscriptionKind) -> &mut HashMap<Arc<[u8]>, Listeners> {
        match kind {
            SubscriptionKind::Channel => &mut self.channels,
            SubscriptionKind::Pattern => &mut self.patterns,
            SubscriptionKind::ShardChannel => &mut self.shard_channels,
        }
    }
}
