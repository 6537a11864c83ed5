//! Subscribers on other nodes. Every node tells all others the channels and patterns its clients subscribe to.
//! A published message goes to the nodes that want it, over the replication links.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeMap, BTreeSet};

use cluster::map::Peer;
use cluster::replication::Frame;
use commands::{Kind, Post, Space, glob_matches};
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
pub(crate) enum News<'a> {
    Listen(Kind, &'a [u8]),
    Stop(Kind, &'a [u8]),
    Post { channel: &'a [u8], payload: &'a [u8] },
}

const LISTEN_CHANNEL: u8 = 1;
const LISTEN_PATTERN: u8 = 2;
const STOP_CHANNEL: u8 = 3;
const STOP_PATTERN: u8 = 4;
const POST: u8 = 5;

impl<'a> News<'a> {
    /// Encodes the news. Returns `None` for sharded channels: they stay on their slot's node.
    fn write(self) -> Option<Vec<u8>> {
        let named = |tag: u8, name: &[u8]| [&[tag], name].concat();
        match self {
            News::Listen(Kind::Channel, name) => Some(named(LISTEN_CHANNEL, name)),
            News::Listen(Kind::Pattern, name) => Some(named(LISTEN_PATTERN, name)),
            News::Stop(Kind::Channel, name) => Some(named(STOP_CHANNEL, name)),
            News::Stop(Kind::Pattern, name) => Some(named(STOP_PATTERN, name)),
            News::Listen(Kind::ShardChannel, _) | News::Stop(Kind::ShardChannel, _) => None,
            News::Post { channel, payload } => {
                let length = u32::try_from(channel.len()).ok()?;
                Some([&[POST], &length.to_le_bytes()[..], channel, payload].concat())
            }
        }
    }

    /// Decodes news. Returns `None` for a kind this version does not know.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<News<'a>> {
        let (tag, rest) = bytes.split_first()?;
        match *tag {
            LISTEN_CHANNEL => Some(News::Listen(Kind::Channel, rest)),
            LISTEN_PATTERN => Some(News::Listen(Kind::Pattern, rest)),
            STOP_CHANNEL => Some(News::Stop(Kind::Channel, rest)),
            STOP_PATTERN => Some(News::Stop(Kind::Pattern, rest)),
            POST => {
                let (length, rest) = rest.split_first_chunk::<4>()?;
                let length = u32::from_le_bytes(*length) as usize;
                let (channel, payload) = rest.split_at_checked(length)?;
                Some(News::Post { channel, payload })
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
        let message = News::Post { channel, payload: post.payload }.write()?;
        (!peers.is_empty()).then_some((peers, message))
    }

    /// Records that a peer's clients subscribe to a name, or no longer do.
    pub(crate) fn note(&self, peer: Peer, news: News<'_>) {
        let mut interests = self.interests.write();
        let known = interests.entry(peer).or_default();
        match news {
            News::Listen(Kind::Channel, name) => drop(known.channels.insert(name.into())),
            News::Listen(Kind::Pattern, name) => drop(known.patterns.insert(name.into())),
            News::Stop(Kind::Channel, name) => drop(known.channels.remove(name)),
            News::Stop(Kind::Pattern, name) => drop(known.patterns.remove(name)),
            News::Listen(Kind::ShardChannel, _)
            | News::Stop(Kind::ShardChannel, _)
            | News::Post { .. } => {}
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
pub(crate) fn announce(links: &Links, news: News<'_>) {
    let Some(bytes) = news.write() else { return };
    for link in links.living() {
        link.push(&Frame::News { bytes: &bytes });
    }
}

/// Sends a new node all subscriptions of this node's clients.
pub(crate) fn introduce(exchange: &Exchange, link: &Link) {
    for kind in [Kind::Channel, Kind::Pattern] {
        exchange.for_each_name(kind, |name| {
            if let Some(bytes) = News::Listen(kind, name).write() {
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
        let post = News::Post { channel: b"c", payload: b"hello" };
        for news in [News::Listen(Kind::Channel, b"a"), News::Stop(Kind::Pattern, b"b*"), post] {
            assert_eq!(News::read(&news.write().unwrap()), Some(news));
        }
        assert_eq!(News::read(&[POST, 9, 0, 0, 0, 1]), None, "a length beyond the end");
        assert_eq!(News::Listen(Kind::ShardChannel, b"s").write(), None);
    }

    #[test]
    fn a_message_goes_to_the_nodes_that_asked_for_it() {
        use cluster::map::{Boot, NodeId};
        let peer = |id| Peer { id: NodeId(id), boot: Boot(1) };
        let afar = Afar::default();
        let post = |channel| Post { space: Space::Global, channel, payload: b"x" };
        assert!(afar.wanted_by(post(b"news")).is_none());
        afar.note(peer(1), News::Listen(Kind::Channel, b"news"));
        afar.note(peer(2), News::Listen(Kind::Pattern, b"n*"));
        let peers = afar.wanted_by(post(b"news")).unwrap().0;
        assert_eq!(peers, [peer(1), peer(2)]);
        afar.note(peer(1), News::Stop(Kind::Channel, b"news"));
        assert_eq!(afar.wanted_by(post(b"news")).unwrap().0, [peer(2)]);
        afar.keep(&[peer(1)]);
        assert!(afar.is_empty());
    }
}
