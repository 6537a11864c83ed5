//! Subscribers on other nodes. Every node tells all others the channels and patterns its clients subscribe to.
//! A published message goes to the nodes that want it, over the replication links.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BTreeMap, BTreeSet};

use cluster::map::Peer;
use cluster::replication::Frame;
use commands::{Post, Space, SubscriptionKind, glob_matches};
use parking_lot::RwLock;

use super::Exchange;
use super::message::{Interest, PubsubMessage};
use crate::data::{Link, Links};
use crate::published::Audience;

/// Number of maps without a process after which its subscriptions are dropped if it was never a member: it may be
/// about to join.
const STRANGER_MAPS_MAX: u8 = 64;

/// Subscriptions of other nodes' clients.
#[derive(Default)]
pub(crate) struct RemoteSubscribers {
    interests: RwLock<BTreeMap<Peer, Interests>>,
    any: AtomicBool,
}

/// Subscriptions of one other node's clients.
#[derive(Default)]
struct Interests {
    all: Names,
    cluster_wide: Names,
    /// False until it has told all its subscriptions. Until then it gets every message: otherwise a node that has
    /// just joined would serve a bucket and keep its events from subscribers it does not know yet.
    is_complete: bool,
    /// True if a map has had it.
    was_member: bool,
    /// Number of maps that did not have it.
    maps_without: u8,
}

#[derive(Default)]
struct Names {
    channels: BTreeSet<Box<[u8]>>,
    patterns: BTreeSet<Box<[u8]>>,
}

impl RemoteSubscribers {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Returns the processes whose clients want this message, and the encoded message.
    pub(super) fn wanted_by(
        &self,
        post: Post<'_>,
        audience: Audience,
    ) -> Option<(Vec<Peer>, Vec<u8>)> {
        if self.is_empty() || post.space != Space::Global {
            return None;
        }
        let (channel, payload) = (post.channel, post.payload);
        let interests = self.interests.read();
        let wanting = interests.iter().filter(|(_, known)| known.want(channel, audience));
        let peers: Vec<Peer> = wanting.map(|(peer, _)| *peer).collect();
        if peers.is_empty() {
            return None;
        }
        Some((peers, PubsubMessage::Post { channel, payload, audience }.write()?))
    }

    /// Records that a peer's clients subscribe to a name, or no longer do, or that all their names are told.
    pub(crate) fn note(&self, peer: Peer, message: PubsubMessage<'_>) {
        let mut interests = self.interests.write();
        let known = interests.entry(peer).or_default();
        match message {
            PubsubMessage::Listen(Interest { kind, name, audience }) => {
                if let Some(names) = known.names(audience).of(kind) {
                    names.insert(name.into());
                }
            }
            PubsubMessage::Stop(Interest { kind, name, audience }) => {
                if let Some(names) = known.names(audience).of(kind) {
                    names.remove(name);
                }
            }
            PubsubMessage::AllTold => known.is_complete = true,
            PubsubMessage::Post { .. } => {}
        }
        self.note_any(&interests);
    }

    /// Drops the subscriptions of processes that are members no more. These are the members.
    pub(crate) fn keep(&self, peers: &[Peer]) {
        let mut interests = self.interests.write();
        for peer in peers {
            interests.entry(*peer).or_default().was_member = true;
        }
        interests.retain(|peer, known| {
            let is_member = peers.contains(peer);
            known.maps_without = known.maps_without.saturating_add(u8::from(!is_member));
            is_member || !known.was_member && known.maps_without < STRANGER_MAPS_MAX
        });
        self.note_any(&interests);
    }

    fn note_any(&self, interests: &BTreeMap<Peer, Interests>) {
        self.any.store(interests.values().any(Interests::is_any), Ordering::Release);
    }
}

impl Interests {
    fn is_any(&self) -> bool {
        self.is_unknown() || !self.all.channels.is_empty() || !self.all.patterns.is_empty()
    }

    fn want(&self, channel: &[u8], audience: Audience) -> bool {
        let names = match audience {
            Audience::All => &self.all,
            Audience::ClusterWide => &self.cluster_wide,
        };
        self.is_unknown()
            || names.channels.contains(channel)
            || names.patterns.iter().any(|pattern| glob_matches(pattern, channel))
    }

    /// Returns whether it is a member that may have subscriptions it has not told yet.
    fn is_unknown(&self) -> bool {
        self.was_member && !self.is_complete
    }

    fn names(&mut self, audience: Audience) -> &mut Names {
        match audience {
            Audience::All => &mut self.all,
            Audience::ClusterWide => &mut self.cluster_wide,
        }
    }
}

impl Names {
    /// Returns the names of a kind; `None` for shard channels, which stay on their slot's node.
    fn of(&mut self, kind: SubscriptionKind) -> Option<&mut BTreeSet<Box<[u8]>>> {
        match kind {
            SubscriptionKind::Channel => Some(&mut self.channels),
            SubscriptionKind::Pattern => Some(&mut self.patterns),
            SubscriptionKind::ShardChannel => None,
        }
    }
}

/// Tells all other nodes that clients of this one subscribe to a name, or no longer do.
pub(super) fn announce(links: &Links, message: PubsubMessage<'_>) {
    let Some(bytes) = message.write() else { return };
    for link in links.living() {
        link.push(&Frame::Pubsub { bytes: &bytes });
    }
}

/// Sends a new node all subscriptions of this node's clients.
pub(crate) fn introduce(exchange: &Exchange, link: &Link) {
    let tell = |message: PubsubMessage<'_>| {
        if let Some(bytes) = message.write() {
            link.push(&Frame::Pubsub { bytes: &bytes });
        }
    };
    exchange.for_each_interest(|interest| tell(PubsubMessage::Listen(interest)));
    tell(PubsubMessage::AllTold);
}

#[cfg(test)]
mod tests {
    use cluster::map::{Boot, NodeId};

    use super::*;

    fn peer(id: u64) -> Peer {
        Peer { id: NodeId(id), boot: Boot(1) }
    }

    fn channel(name: &[u8], audience: Audience) -> Interest<'_> {
        Interest { kind: SubscriptionKind::Channel, name, audience }
    }

    fn pattern(name: &[u8], audience: Audience) -> Interest<'_> {
        Interest { kind: SubscriptionKind::Pattern, name, audience }
    }

    fn wanting(remote: &RemoteSubscribers, channel: &[u8], audience: Audience) -> Vec<u64> {
        let post = Post { space: Space::Global, channel, payload: b"x" };
        let wanted = remote.wanted_by(post, audience);
        wanted.map_or_else(Vec::new, |(peers, _)| peers.iter().map(|peer| peer.id.0).collect())
    }

    /// Returns what is known of two members that have told all their names.
    fn two() -> RemoteSubscribers {
        let remote = RemoteSubscribers::default();
        remote.keep(&[peer(1), peer(2)]);
        for member in [peer(1), peer(2)] {
            remote.note(member, PubsubMessage::AllTold);
        }
        remote
    }

    #[test]
    fn a_message_goes_to_the_nodes_that_asked_for_it() {
        let remote = two();
        assert!(remote.is_empty());
        let news = channel(b"news", Audience::All);
        remote.note(peer(1), PubsubMessage::Listen(news));
        remote.note(peer(2), PubsubMessage::Listen(pattern(b"n*", Audience::All)));
        assert_eq!(wanting(&remote, b"news", Audience::All), [1, 2]);
        remote.note(peer(1), PubsubMessage::Stop(news));
        assert_eq!(wanting(&remote, b"news", Audience::All), [2]);
        remote.keep(&[peer(1)]);
        assert!(remote.is_empty());
    }

    #[test]
    fn an_event_for_cluster_wide_subscribers_goes_only_to_their_nodes() {
        let remote = two();
        remote.note(peer(1), PubsubMessage::Listen(channel(b"news", Audience::All)));
        remote.note(peer(2), PubsubMessage::Listen(pattern(b"n*", Audience::All)));
        remote.note(peer(2), PubsubMessage::Listen(pattern(b"n*", Audience::ClusterWide)));
        assert_eq!(wanting(&remote, b"news", Audience::ClusterWide), [2]);
        remote.note(peer(2), PubsubMessage::Stop(pattern(b"n*", Audience::ClusterWide)));
        assert_eq!(wanting(&remote, b"news", Audience::ClusterWide), [0; 0]);
        assert_eq!(wanting(&remote, b"news", Audience::All), [1, 2]);
    }

    #[test]
    fn a_member_that_has_not_told_its_subscriptions_yet_gets_everything() {
        let remote = two();
        remote.keep(&[peer(1), peer(2), peer(3)]);
        for audience in [Audience::All, Audience::ClusterWide] {
            assert_eq!(wanting(&remote, b"news", audience), [3]);
        }
        remote.note(peer(3), PubsubMessage::AllTold);
        assert!(remote.is_empty());
    }

    #[test]
    fn a_process_may_tell_its_subscriptions_before_a_map_has_it() {
        let remote = two();
        remote.note(peer(3), PubsubMessage::Listen(channel(b"news", Audience::All)));
        remote.note(peer(3), PubsubMessage::AllTold);
        remote.keep(&[peer(1), peer(2)]);
        remote.keep(&[peer(1), peer(2), peer(3)]);
        assert_eq!(wanting(&remote, b"news", Audience::All), [3]);
        assert_eq!(wanting(&remote, b"other", Audience::All), [0; 0]);
        // A late message of a process that is gone does not stay for ever.
        remote.keep(&[peer(1)]);
        remote.note(peer(2), PubsubMessage::Listen(channel(b"news", Audience::All)));
        for _ in 0..STRANGER_MAPS_MAX {
            remote.keep(&[peer(1)]);
        }
        assert!(remote.is_empty());
    }
}
