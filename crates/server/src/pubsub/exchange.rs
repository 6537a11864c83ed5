//! The node-wide subscription counts: the number of subscribed connections by name and worker. Read at every
//! publication, changed at every subscription; each lock is held for one look-up.

use core::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire};
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;
use std::sync::Arc;

use commands::{Space, SubscriptionKind, glob_matches};
use parking_lot::RwLock;

use super::RemoteSubscribers;
use super::message::Interest;
use crate::published::Audience;

/// Number of shards of a book, so that listing all names never blocks all subscribers.
const PARTS: usize = 16;

pub(crate) struct Exchange {
    global: Book,
    sharded: Book,
    /// In one part: a publication reads all of them anyway.
    patterns: Book,
    /// Those of the channels and patterns above whose subscribers hear events of the whole cluster.
    cluster_wide_channels: Book,
    cluster_wide_patterns: Book,
    workers: usize,
    /// Subscribers on other nodes.
    pub remote: RemoteSubscribers,
}

/// Names with the number of subscribed connections of each worker.
struct Book {
    parts: Box<[RwLock<SubscriberCounts>]>,
    hasher: RandomState,
    /// Number of names, readable without a lock.
    len: AtomicUsize,
}

type SubscriberCounts = HashMap<Arc<[u8]>, Counts>;

/// Number of subscribed connections, by worker.
type Counts = Box<[u32]>;

/// The destinations of a message.
#[derive(Debug, Default)]
pub(crate) struct Destinations {
    /// Number of times the message will be received.
    pub receivers: usize,
    /// True if a connection subscribes to the channel by its name.
    pub by_name: bool,
    /// The patterns that match the channel.
    pub patterns: Vec<Arc<[u8]>>,
    /// By worker: true if a connection of it gets the message.
    pub workers: Vec<bool>,
}

impl Exchange {
    pub(crate) fn new(workers: usize) -> Exchange {
        Exchange {
            global: Book::new(PARTS),
            sharded: Book::new(PARTS),
            patterns: Book::new(1),
            cluster_wide_channels: Book::new(1),
            cluster_wide_patterns: Book::new(1),
            workers,
            remote: RemoteSubscribers::default(),
        }
    }

    /// Adds a connection of this worker to a name. Calls `on_first` if it is the node's first, before another
    /// connection can change that.
    pub(super) fn enter(
        &self,
        worker: usize,
        audience: Audience,
        kind: SubscriptionKind,
        name: &Arc<[u8]>,
        on_first: impl FnOnce(),
    ) {
        self.book(audience, kind).enter(worker, name, self.workers, on_first);
    }

    /// Removes a connection from a name. Calls `on_last` if it was the node's last, before another connection can
    /// change that.
    pub(super) fn strike(
        &self,
        worker: usize,
        audience: Audience,
        kind: SubscriptionKind,
        name: &[u8],
        on_last: impl FnOnce(),
    ) {
        self.book(audience, kind).strike(worker, name, on_last);
    }

    /// Calls `see` for all names with subscribers that other nodes must know.
    pub(super) fn for_each_interest(&self, mut see: impl FnMut(Interest<'_>)) {
        for audience in [Audience::All, Audience::ClusterWide] {
            for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern] {
                let book = self.book(audience, kind);
                book.for_each(|name, _| see(Interest { kind, name, audience }));
            }
        }
    }

    /// Returns the destinations of a message on this channel; `None` if there are none.
    #[inline]
    pub(crate) fn route(&self, space: Space, channel: &[u8]) -> Option<Destinations> {
        let silent = match space {
            Space::Global => self.global.is_empty() && self.patterns.is_empty(),
            Space::Sharded => self.sharded.is_empty(),
        };
        if silent { None } else { self.find_route(space, channel) }
    }

    /// Returns true if no global channel has subscribers, here or elsewhere.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.global.is_empty() && self.patterns.is_empty() && self.remote.is_empty()
    }

    fn find_route(&self, space: Space, channel: &[u8]) -> Option<Destinations> {
        let mut route =
            Destinations { workers: vec![false; self.workers], ..Destinations::default() };
        let book = self.book(Audience::All, space.kind());
        book.with(channel, |counts| {
            route.by_name = true;
            route.include(counts);
        });
        if space == Space::Global && !self.patterns.is_empty() {
            self.patterns.for_each(|pattern, counts| {
                if glob_matches(pattern, channel) {
                    route.patterns.push(Arc::clone(pattern));
                    route.include(counts);
                }
            });
        }
        (route.receivers > 0).then_some(route)
    }

    /// Returns the channels of a space whose names match.
    pub(crate) fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let mut found = Vec::new();
        self.book(Audience::All, space.kind()).for_each(|name, _| {
            if pattern.is_none_or(|pattern| glob_matches(pattern, name)) {
                found.push(Arc::clone(name));
            }
        });
        found
    }

    pub(crate) fn subscribers(&self, space: Space, channel: &[u8]) -> usize {
        let mut subscribers = 0;
        self.book(Audience::All, space.kind()).with(channel, |counts| subscribers = total(counts));
        subscribers
    }

    /// Returns the number of different names of a kind with subscribers.
    pub(crate) fn names(&self, kind: SubscriptionKind) -> usize {
        self.book(Audience::All, kind).len.load(Acquire)
    }

    fn book(&self, audience: Audience, kind: SubscriptionKind) -> &Book {
        match (kind, audience) {
            (SubscriptionKind::Channel, Audience::All) => &self.global,
            (SubscriptionKind::Pattern, Audience::All) => &self.patterns,
            (SubscriptionKind::Channel, Audience::ClusterWide) => &self.cluster_wide_channels,
            (SubscriptionKind::Pattern, Audience::ClusterWide) => &self.cluster_wide_patterns,
            (SubscriptionKind::ShardChannel, _) => &self.sharded,
        }
    }
}

impl Destinations {
    fn include(&mut self, counts: &Counts) {
        self.receivers += total(counts);
        for (concerned, count) in self.workers.iter_mut().zip(counts) {
            *concerned |= *count > 0;
        }
    }
}

fn total(counts: &Counts) -> usize {
    counts.iter().map(|count| *count as usize).sum()
}

impl Book {
    fn new(parts: usize) -> Book {
        Book {
            parts: (0..parts).map(|_| RwLock::default()).collect(),
            hasher: RandomState::new(),
            len: AtomicUsize::new(0),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.len.load(Acquire) == 0
    }

    fn part(&self, name: &[u8]) -> &RwLock<SubscriberCounts> {
        let hash = self.hasher.hash_one(name);
        &self.parts[(hash % self.parts.len() as u64) as usize]
    }

    /// Calls `on_first` under the lock of the name.
    fn enter(&self, worker: usize, name: &Arc<[u8]>, workers: usize, on_first: impl FnOnce()) {
        let mut part = self.part(name).write();
        let counts = match part.entry(Arc::clone(name)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.len.fetch_add(1, AcqRel);
                entry.insert(vec![0; workers].into())
            }
        };
        counts[worker] += 1;
        if total(counts) == 1 {
            on_first();
        }
    }

    /// Calls `on_last` under the lock of the name.
    fn strike(&self, worker: usize, name: &[u8], on_last: impl FnOnce()) {
        let mut part = self.part(name).write();
        let counts = part.get_mut(name).expect("only what was entered is struck out");
        counts[worker] = counts[worker].checked_sub(1).expect("no more than was entered");
        if total(counts) == 0 {
            part.remove(name);
            self.len.fetch_sub(1, AcqRel);
            on_last();
        }
    }

    fn with(&self, name: &[u8], see: impl FnOnce(&Counts)) {
        if let Some(counts) = self.part(name).read().get(name) {
            see(counts);
        }
    }

    fn for_each(&self, mut see: impl FnMut(&Arc<[u8]>, &Counts)) {
        for part in &self.parts {
            part.read().iter().for_each(|(name, counts)| see(name, counts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(exchange: &Exchange, worker: usize, kind: SubscriptionKind, name: &str) {
        exchange.enter(worker, Audience::All, kind, &name.as_bytes().into(), || {});
    }

    #[test]
    fn a_message_goes_to_the_workers_whose_connections_listen() {
        let exchange = Exchange::new(3);
        assert!(exchange.route(Space::Global, b"news").is_none());
        enter(&exchange, 0, SubscriptionKind::Channel, "news");
        enter(&exchange, 0, SubscriptionKind::Channel, "news");
        enter(&exchange, 2, SubscriptionKind::Pattern, "n*");
        enter(&exchange, 1, SubscriptionKind::Pattern, "x*");
        enter(&exchange, 1, SubscriptionKind::ShardChannel, "news");

        let route = exchange.route(Space::Global, b"news").expect("listeners");
        assert_eq!((route.receivers, route.by_name), (3, true));
        assert_eq!(route.workers, [true, false, true]);
        assert_eq!(route.patterns.iter().map(|name| &**name).collect::<Vec<_>>(), [b"n*"]);
        let route = exchange.route(Space::Sharded, b"news").expect("a listener");
        assert_eq!((route.receivers, route.workers), (1, vec![false, true, false]));
        assert!(exchange.route(Space::Global, b"other").is_none());
    }

    #[test]
    fn a_name_nobody_listens_to_any_more_is_forgotten() {
        let exchange = Exchange::new(2);
        for (kind, name) in [
            (SubscriptionKind::Channel, "a"),
            (SubscriptionKind::Pattern, "a"),
            (SubscriptionKind::ShardChannel, "a"),
        ] {
            enter(&exchange, 0, kind, name);
            enter(&exchange, 1, kind, name);
            let strike = |worker, on_last: fn()| {
                exchange.strike(worker, Audience::All, kind, name.as_bytes(), on_last);
            };
            strike(0, || panic!("another one listens"));
            assert_eq!(exchange.names(kind), 1);
            strike(1, || {});
            assert_eq!(exchange.names(kind), 0);
        }
        assert!(exchange.is_silent());
        assert!(exchange.channels(Space::Global, None).is_empty());
        assert_eq!(exchange.subscribers(Space::Global, b"a"), 0);
    }
}
