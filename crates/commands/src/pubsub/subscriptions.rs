//! The subscriptions of one connection. The host keeps the node's side (the subscribers of a name); `subscribe.rs`
//! changes both together.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of name in a subscription.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SubscriptionKind {
    Channel,
    /// All channels whose names match a glob pattern.
    Pattern,
    /// A channel that belongs to a slot.
    ShardChannel,
}

/// A namespace of channels. Channels of the same name in different spaces are independent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Space {
    /// Delivered on every node.
    Global,
    /// Delivered on the node that serves the slot of the channel's name.
    Sharded,
}

/// The names a connection is subscribed to.
#[derive(Default, Debug)]
pub struct Subscriptions {
    channels: OrderedNames,
    patterns: OrderedNames,
    shard_channels: OrderedNames,
    /// Number of all three: read at every command.
    total: usize,
}

/// A set of names that keeps the order of insertion.
#[derive(Default, Debug)]
struct OrderedNames {
    order: BTreeMap<Arc<[u8]>, u64>,
    next: u64,
}

impl Subscriptions {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub fn count(&self, kind: SubscriptionKind) -> usize {
        self.names(kind).order.len()
    }

    /// Returns the count in replies to (un)subscriptions: sharded channels are counted separately, channels and
    /// patterns together.
    pub(crate) fn reported_count(&self, kind: SubscriptionKind) -> usize {
        match kind {
            SubscriptionKind::Channel | SubscriptionKind::Pattern => {
                self.count(SubscriptionKind::Channel) + self.count(SubscriptionKind::Pattern)
            }
            SubscriptionKind::ShardChannel => self.count(SubscriptionKind::ShardChannel),
        }
    }

    /// Returns the names of one kind, the oldest subscription first.
    pub fn list(&self, kind: SubscriptionKind) -> Vec<Arc<[u8]>> {
        let mut names: Vec<_> = self.names(kind).order.iter().collect();
        names.sort_unstable_by_key(|(_, order)| **order);
        names.into_iter().map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Adds a name. Returns it as it is stored, or `None` if it was there before.
    pub(crate) fn add(&mut self, kind: SubscriptionKind, name: &[u8]) -> Option<Arc<[u8]>> {
        let names = self.names_mut(kind);
        if names.order.contains_key(name) {
            return None;
        }
        let name: Arc<[u8]> = name.into();
        names.order.insert(Arc::clone(&name), names.next);
        names.next += 1;
        self.total += 1;
        Some(name)
    }

    /// Removes a name. Returns whether it was there.
    pub(crate) fn remove(&mut self, kind: SubscriptionKind, name: &[u8]) -> bool {
        let was_there = self.names_mut(kind).order.remove(name).is_some();
        self.total -= usize::from(was_there);
        was_there
    }

    fn names(&self, kind: SubscriptionKind) -> &OrderedNames {
        match kind {
            SubscriptionKind::Channel => &self.channels,
            SubscriptionKind::Pattern => &self.patterns,
            SubscriptionKind::ShardChannel => &self.shard_channels,
        }
    }

    fn names_mut(&mut self, kind: SubscriptionKind) -> &mut OrderedNames {
        match kind {
            SubscriptionKind::Channel => &mut self.channels,
            SubscriptionKind::Pattern => &mut self.patterns,
            SubscriptionKind::ShardChannel => &mut self.shard_channels,
        }
    }
}

impl SubscriptionKind {
    pub const ALL: [SubscriptionKind; 3] =
        [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::ShardChannel];

    /// Returns the first word of the confirmation of a subscription.
    pub(crate) fn subscribed_word(self) -> &'static str {
        match self {
            SubscriptionKind::Channel => "subscribe",
            SubscriptionKind::Pattern => "psubscribe",
            SubscriptionKind::ShardChannel => "ssubscribe",
        }
    }

    pub(crate) fn unsubscribed_word(self) -> &'static str {
        match self {
            SubscriptionKind::Channel => "unsubscribe",
            SubscriptionKind::Pattern => "punsubscribe",
            SubscriptionKind::ShardChannel => "sunsubscribe",
        }
    }
}

impl Space {
    /// Returns the kind of subscription to a channel of this space.
    pub fn kind(self) -> SubscriptionKind {
        match self {
            Space::Global => SubscriptionKind::Channel,
            Space::Sharded => SubscriptionKind::ShardChannel,
        }
    }
}
