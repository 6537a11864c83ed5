//! Pub/sub messages between nodes, and their encoding in frames of a link.

use commands::SubscriptionKind;

use crate::published::Audience;

/// A message from one node to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PubsubMessage<'a> {
    /// Clients of the sender subscribe to a name.
    Listen(Interest<'a>),
    /// They no longer do.
    Stop(Interest<'a>),
    /// All their subscriptions are told.
    AllTold,
    /// A message for subscribers at the receiver.
    Post { channel: &'a [u8], payload: &'a [u8], audience: Audience },
}

/// A name that clients subscribe to. Those that hear events of the whole cluster are told twice, once in each audience.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interest<'a> {
    pub kind: SubscriptionKind,
    pub name: &'a [u8],
    pub audience: Audience,
}

const LISTEN: u8 = 1;
const STOP: u8 = 2;
const ALL_TOLD: u8 = 3;
const POST: u8 = 4;

const CHANNEL: u8 = 1;
const PATTERN: u8 = 2;

const ALL: u8 = 1;
const CLUSTER_WIDE: u8 = 2;

impl<'a> PubsubMessage<'a> {
    /// Encodes the message. Returns `None` for sharded channels: they stay on their slot's node.
    pub(super) fn write(self) -> Option<Vec<u8>> {
        match self {
            PubsubMessage::Listen(interest) => interest.write(LISTEN),
            PubsubMessage::Stop(interest) => interest.write(STOP),
            PubsubMessage::AllTold => Some(vec![ALL_TOLD]),
            PubsubMessage::Post { channel, payload, audience } => {
                let length = u32::try_from(channel.len()).ok()?.to_le_bytes();
                let head = [POST, audience_byte(audience)];
                Some([&head, &length[..], channel, payload].concat())
            }
        }
    }

    /// Decodes a message. Returns `None` for a kind this version does not know.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<PubsubMessage<'a>> {
        let (tag, rest) = bytes.split_first()?;
        match *tag {
            LISTEN => Some(PubsubMessage::Listen(Interest::read(rest)?)),
            STOP => Some(PubsubMessage::Stop(Interest::read(rest)?)),
            ALL_TOLD => Some(PubsubMessage::AllTold),
            POST => {
                let (audience, rest) = rest.split_first()?;
                let (length, rest) = rest.split_first_chunk::<4>()?;
                let length = u32::from_le_bytes(*length) as usize;
                let (channel, payload) = rest.split_at_checked(length)?;
                Some(PubsubMessage::Post { channel, payload, audience: audience_of(*audience)? })
            }
            _ => None,
        }
    }
}

impl<'a> Interest<'a> {
    fn write(self, tag: u8) -> Option<Vec<u8>> {
        let kind = match self.kind {
            SubscriptionKind::Channel => CHANNEL,
            SubscriptionKind::Pattern => PATTERN,
            SubscriptionKind::ShardChannel => return None,
        };
        Some([&[tag, kind, audience_byte(self.audience)], self.name].concat())
    }

    fn read(bytes: &'a [u8]) -> Option<Interest<'a>> {
        let ([kind, audience], name) = bytes.split_first_chunk::<2>()?;
        let kind = match *kind {
            CHANNEL => SubscriptionKind::Channel,
            PATTERN => SubscriptionKind::Pattern,
            _ => return None,
        };
        Some(Interest { kind, name, audience: audience_of(*audience)? })
    }
}

fn audience_byte(audience: Audience) -> u8 {
    match audience {
        Audience::All => ALL,
        Audience::ClusterWide => CLUSTER_WIDE,
    }
}

fn audience_of(byte: u8) -> Option<Audience> {
    match byte {
        ALL => Some(Audience::All),
        CLUSTER_WIDE => Some(Audience::ClusterWide),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interest(kind: SubscriptionKind, audience: Audience) -> Interest<'static> {
        Interest { kind, name: b"name", audience }
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let channel = interest(SubscriptionKind::Channel, Audience::All);
        let pattern = interest(SubscriptionKind::Pattern, Audience::ClusterWide);
        for message in [
            PubsubMessage::Listen(channel),
            PubsubMessage::Listen(pattern),
            PubsubMessage::Stop(pattern),
            PubsubMessage::AllTold,
            PubsubMessage::Post { channel: b"c", payload: b"hello", audience: Audience::All },
            PubsubMessage::Post { channel: b"c", payload: b"", audience: Audience::ClusterWide },
        ] {
            assert_eq!(PubsubMessage::read(&message.write().unwrap()), Some(message));
        }
        let sharded = interest(SubscriptionKind::ShardChannel, Audience::All);
        assert_eq!(PubsubMessage::Listen(sharded).write(), None);
    }

    #[test]
    fn unknown_and_cut_off_messages_are_left_out() {
        let beyond_the_end = [POST, ALL, 9, 0, 0, 0, 1];
        for bytes in
            [&beyond_the_end[..], &[POST], &[LISTEN, CHANNEL], &[LISTEN, 9, ALL, b'n'], &[9]]
        {
            assert_eq!(PubsubMessage::read(bytes), None, "{bytes:?}");
        }
        assert_eq!(PubsubMessage::read(&[STOP, CHANNEL, 9, b'n']), None, "an unknown audience");
    }
}
