//! Subscriptions and delivery of messages, as the pub/sub commands use them.

use std::sync::Arc;

use crate::{Event, Kind, Session, Space};

/// Access to the node's message delivery.
pub trait PubSub {
    /// Adds a new subscription of this connection to a name.
    fn subscribe(&mut self, session: &Session, kind: Kind, name: &Arc<[u8]>);

    /// Removes an existing subscription of this connection to a name.
    fn unsubscribe(&mut self, session: &Session, kind: Kind, name: &[u8]);

    /// Sends a message to all subscribers and returns their number. A connection that is subscribed to the channel
    /// and to matching patterns receives it, and counts, several times.
    fn publish(&mut self, session: &Session, post: Post<'_>) -> usize;

    /// Publishes the keyspace events so far, before any later message.
    fn tell(&mut self, session: &Session, events: &mut Vec<Event>);

    /// Returns the channels with subscribers whose names match the pattern.
    fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>>;

    /// Returns the number of connections subscribed to this channel by its name.
    fn subscribers(&self, space: Space, channel: &[u8]) -> usize;

    /// Returns the number of different patterns with subscribers.
    fn patterns(&self) -> usize;
}

/// A message to be published on a channel.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    pub space: Space,
    pub channel: &'a [u8],
    pub payload: &'a [u8],
}
