//! Subscribers on other nodes. Every node tells all others the channels and patterns its clients subscribe to.
//! A published message goes to the nodes that want it, over the replication links.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeMap, BTreeSet};

use cluster::map::Peer;
use cluster::replication::Frame;
use commands::{Post, Space, SubscriptionKind, glob_matches};
use parking_lot::RwLock;

use super::Exchange;
use crate::data::{Link, Links};

/// Subscriptions of other nodes' clients.
#[derive(Default)]
pub(crate) struct Afar {
    interests: RwLock<BTreeMap<Peer, Interests>>,
    any: AtomicBool,
}

#[derive(Default)]
struct Interests {
    channels: BTreeSet<Box<[u8]>>,
    patterns: BTreeSet<Box<[u8]>>,
}

/// Pub/sub messages between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PubsubMessage<'a> {
    Listen(SubscriptionKind, &'a [u8]),
    Stop(SubscriptionKind, &'a [u8]),
    Post { channel: &'a [u8], payload: &'a [u8] },
}

const LISTEN_CHANNEL: u8 = 1;
const LISTEN_PATTERN: u8 = 2;
const STOP_CHANNEL: u8 = 3;
const STOP_PATTERN: u8 = 4;
const POST: u8 = 5;

impl<'a> PubsubMessage<'a> {
    /// Encodes the message. Returns `None` for sharded channels: they stay on their slot's node.
    fn write(self) -> Option<Vec<u8>> {
        let named = |tag: u8, name: &[u8]| [&[tag], name].concat();
        match self {
            PubsubMessage::Listen(SubscriptionKind::Channel, name) => {
                Some(named(LISTEN_CHANNEL, name))
            }
            PubsubMessage::Listen(SubscriptionKind::Pattern, name) => {
                Some(named(LISTEN_PATTERN, name))
            }
            PubsubMessage::Stop(SubscriptionKind::Channel, name) => Some(named(STOP_CHANNEL, name)),
            PubsubMessage::Stop(SubscriptionKind::Pattern, name) => Some(named(STOP_PATTERN, name)),
            PubsubMessage::Listen(SubscriptionKind::ShardChannel, _)
            | PubsubMessage::Stop(SubscriptionKind::ShardChannel, _) => None,
            PubsubMessage::Post { channel, payload } => {
                let length = u32::try_from(channel.len()).ok()?;
                Some([&[POST], &length.to_le_bytes()[..], channel, payload].concat())
            }
        }
    }

    /// Decodes a message. Returns `None` for a kind this version does not know.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<PubsubMessage<'a>> {
        let (tag, rest) = bytes.split_first()?;
        match *tag {
            LISTEN_CHANNEL => Some(PubsubMessage::Listen(SubscriptionKind::Channel, rest)),
            LISTEN_PATTERN => Some(PubsubMessage::Listen(SubscriptionKind::Pattern, rest)),
            STOP_CHANNEL => Some(PubsubMessage::Stop(SubscriptionKind::Channel, rest)),
            STOP_PATTERN => Some(PubsubMessage::Stop(SubscriptionKind::Pattern, rest)),
            POST => {
                let (length, rest) = rest.split_first_chunk::<4>()?;
                let length = u32::from_le_bytes(*length) as usize;
                let (channel, payload) = rest.split_at_checked(length)?;
                Some(PubsubMessage::Post { channel, payload })
            }
            _ => None,
        }
    }
}

impl Afar {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Returns the processes whose clients want this message, and the encoded message.
    pub(super) fn wanted_by(&self, post: Post<'_>) -> Option<(Vec<Peer>, Vec<u8>)> {
        if self.is_empty() || post.space != Space::Global {
            return None;
        }
        let channel = post.channel;
        let wants = |interests: &Interests| {
            interests.channels.contains(channel)
                || interests.patterns.iter().any(|pattern| glob_matches(pattern, channel))
        };
        let interests = self.interests.read();
        let peers: Vec<Peer> =
            interests.iter().filter(|(_, known)| wants(known)).map(|(peer, _)| *peer).collect();
        let message = PubsubMessage::Post { channel, payload: post.payload }.write()?;
        (!peers.is_empty()).then_some((peers, message))
    }

    /// Records that a peer's clients subscribe to a name, or no longer do.
    pub(crate) fn note(&self, peer: Peer, message: PubsubMessage<'_>) {
        let mut interests = self.interests.write();
        let known = interests.entry(peer).or_default();
        match message {
            PubsubMessage::Listen(SubscriptionKind::Channel, name) => {
                known.channels.insert(name.into());
            }
            PubsubMessage::Listen(SubscriptionKind::Pattern, name) => {
                known.patterns.insert(name.into());
            }
            PubsubMessage::Stop(SubscriptionKind::Channel, name) => {
                known.channels.remove(name);
            }
            PubsubMessage::Stop(SubscriptionKind::Pattern, name) => {
                known.patterns.remove(name);
            }
            PubsubMessage::Listen(SubscriptionKind::ShardChannel, _)
            | PubsubMessage::Stop(SubscriptionKind::ShardChannel, _)
            | PubsubMessage::Post { .. } => {}
        }
        let any = interests.values().any(Interests::is_any);
        self.any.store(any, Ordering::Release);
    }

    /// Drops the subscriptions of all processes but these.
    pub(crate) fn keep(&self, peers: &[Peer]) {
        let mut interests = self.interests.write();
        interests.retain(|peer, _| peers.contains(peer));
        self.any.store(interests.values().any(Interests::is_any), Ordering::Release);
    }
}

impl Interests {
    fn is_any(&self) -> bool {
        !self.channels.is_empty() || !self.patterns.is_empty()
    }
}

/// Tells all other nodes that clients of this one subscribe to a name, or no longer do.
pub(crate) fn announce(links: &Links, message: PubsubMessage<'_>) {
    let Some(bytes) = message.write() else { return };
    for link in links.living() {
        link.push(&Frame::News { bytes: &bytes });
    }
}

/// Sends a new node all subscriptions of this node's clients.
pub(crate) fn introduce(exchange: &Exchange, link: &Link) {
    for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern] {
        exchange.for_each_name(kind, |name| {
            if let Some(bytes) = PubsubMessage::Listen(kind, name).write() {
                link.push(&Frame::News { bytes: &bytes });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_read_as_they_were_written() {
        let post = PubsubMessage::Post { channel: b"c", payload: b"hello" };
        for message in [
            PubsubMessage::Listen(SubscriptionKind::Channel, b"a"),
            PubsubMessage::Stop(SubscriptionKind::Pattern, b"b*"),
            post,
        ] {
            assert_eq!(PubsubMessage::read(&message.write().unwrap()), Some(message));
        }
        assert_eq!(PubsubMessage::read(&[POST, 9, 0, 0, 0, 1]), None, "a length beyond the end");
        assert_eq!(PubsubMessage::Listen(SubscriptionKind::ShardChannel, b"s").write(), None);
    }

    #[test]
    fn a_message_goes_to_the_nodes_that_asked_for_it() {
        use cluster::map::{Boot, NodeId};
        let peer = |id| Peer { id: NodeId(id), boot: Boot(1) };
        let afar = Afar::default();
        let post = |channel| Post { space: Space::Global, channel, payload: b"x" };
        assert!(afar.wanted_by(post(b"news")).is_none());
        afar.note(peer(1), PubsubMessage::Listen(SubscriptionKind::Channel, b"news"));
        afar.note(peer(2), PubsubMessage::Listen(SubscriptionKind::Pattern, b"n*"));
        let peers = afar.wanted_by(post(b"news")).unwrap().0;
        assert_eq!(peers, [peer(1), peer(2)]);
        afar.note(peer(1), PubsubMessage::Stop(SubscriptionKind::Channel, b"news"));
        assert_eq!(afar.wanted_by(post(b"news")).unwrap().0, [peer(2)]);
        afar.keep(&[peer(1)]);
        assert!(afar.is_empty());
    }
}
