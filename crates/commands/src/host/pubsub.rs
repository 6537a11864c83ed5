//! Who listens to what in a node, as the pub/sub commands ask for it.

use std::sync::Arc;

use crate::{Event, Kind, Session, Space};

/// Whoever brings messages to the connections that listen.
pub trait PubSub {
    /// This connection begins to listen to a name it did not listen to before.
    fn subscribe(&mut self, session: &Session, kind: Kind, name: &Arc<[u8]>);

    /// This connection no longer listens to a name it listened to.
    fn unsubscribe(&mut self, session: &Session, kind: Kind, name: &[u8]);

    /// Sends a message to all who listen, and says how many will get it. A connection that listens
    /// to the channel and to patterns that match it gets it, and counts, several times.
    fn publish(&mut self, session: &Session, post: Post<'_>) -> usize;

    /// Publishes what happened to keys so far, before anything that is published later.
    fn tell(&mut self, session: &Session, events: &mut Vec<Event>);

    /// The channels somebody listens to, of those whose name matches the pattern.
    fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>>;

    /// How many connections listen to this channel by its name.
    fn subscribers(&self, space: Space, channel: &[u8]) -> usize;

    /// How many different patterns somebody listens to.
    fn patterns(&self) -> usize;
}

/// A message on its way to a channel.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    pub space: Space,
    pub channel: &'a [u8],
    pub payload: &'a [u8],
}
