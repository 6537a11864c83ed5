//! Subscriptions and received messages in a node without sockets. Messages are delivered at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Post, Space, SubscriptionKind, glob_matches};

#[derive(Default)]
pub struct Bus {
    listeners: BTreeMap<(SubscriptionKind, Arc<[u8]>), BTreeSet<u64>>,
    heard: BTreeMap<u64, Vec<String>>,
}

impl Bus {
    pub(super) fn heard(&mut self, connection: u64) -> Vec<String> {
        self.heard.remove(&connection).unwrap_or_default()
    }

    fn names(&self, kind: SubscriptionKind) -> impl Iterator<Item = &Arc<[u8]>> {
        self.listeners.keys().filter(move |(of, _)| *of == kind).map(|(_, name)| name)
    }

    fn deliver(&mut self, kind: SubscriptionKind, name: &[u8], parts: &[&[u8]]) -> usize {
        let Some(listeners) = self.listeners.get(&(kind, name.into())) else { return 0 };
        let text = String::from_utf8_lossy(&parts.join(&b' ')).into_owned();
        for listener in listeners {
            self.heard.entry(*listener).or_default().push(text.clone());
        }
        listeners.len()
    }

    pub(super) fn publish(&mut self, post: Post<'_>) -> usize {
        let Post { space, channel, payload } = post;
        match space {
            Space::Sharded => self.deliver(
                SubscriptionKind::ShardChannel,
                channel,
                &[b"smessage", channel, payload],
            ),
            Space::Global => {
                let patterns = self.names(SubscriptionKind::Pattern);
                let matching: Vec<_> =
                    patterns.filter(|name| glob_matches(name, channel)).cloned().collect();
                let direct = self.deliver(
                    SubscriptionKind::Channel,
                    channel,
                    &[b"message", channel, payload],
                );
                let by_pattern = matching.iter().map(|pattern| {
                    let parts: [&[u8]; 4] = [b"pmessage", pattern, channel, payload];
                    self.deliver(SubscriptionKind::Pattern, pattern, &parts)
                });
                direct + by_pattern.sum::<usize>()
            }
        }
    }

    pub(super) fn subscribe(&mut self, connection: u64, kind: SubscriptionKind, name: &Arc<[u8]>) {
        let listeners = self.listeners.entry((kind, Arc::clone(name))).or_default();
        assert!(listeners.insert(connection), "subscribed twice");
    }

    pub(super) fn unsubscribe(&mut self, connection: u64, kind: SubscriptionKind, name: &[u8]) {
        let key = (kind, name.into());
        let listeners = self.listeners.get_mut(&key).expect("somebody listens");
        assert!(listeners.remove(&connection), "it did not listen");
        if listeners.is_empty() {
            self.listeners.remove(&key);
        }
    }

    pub(super) fn count_receivers(&self, post: Post<'_>) -> usize {
        let by_name = self.subscribers(post.space, post.channel);
        let matching = |(of, name): &&(SubscriptionKind, Arc<[u8]>)| {
            *of == SubscriptionKind::Pattern && glob_matches(name, post.channel)
        };
        let patterns = self.listeners.iter().filter(|(name, _)| matching(name));
        let by_pattern = patterns.map(|(_, listeners)| listeners.len()).sum::<usize>();
        by_name + if post.space == Space::Global { by_pattern } else { 0 }
    }

    pub(super) fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let wanted = |name: &&Arc<[u8]>| pattern.is_none_or(|pattern| glob_matches(pattern, name));
        self.names(space.kind()).filter(wanted).cloned().collect()
    }

    pub(super) fn subscribers(&self, space: Space, channel: &[u8]) -> usize {
        self.listeners.get(&(space.kind(), channel.into())).map_or(0, BTreeSet::len)
    }

    pub(super) fn pattern_count(&self) -> usize {
        self.names(SubscriptionKind::Pattern).count()
    }
}
