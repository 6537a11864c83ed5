//! A published message, encoded once and shared by all receivers. `pubsub/` makes it, a mailbox carries it.

use std::sync::Arc;

use commands::{Post, Space};
use resp::{Output, Protocol, SHARED_BYTES_MIN};

/// The connection that caused a message. It receives the message before its own reply, not by mail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Author(pub u64);

/// The subscribers that a message is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    All,
    /// Those that hear events of all keys whatever `notify-scope` is, such as clients of the any-port.
    ClusterWide,
}

pub(crate) struct PublishedMessage {
    pub space: Space,
    pub audience: Audience,
    pub channel: Box<[u8]>,
    /// For subscribers of the channel by its name.
    pub by_name: Option<PublishedBody>,
    /// For subscribers of a matching pattern.
    pub by_pattern: Vec<(Arc<[u8]>, PublishedBody)>,
    pub author: Option<Author>,
}

/// An encoded message without its first byte: only that byte differs between the two protocol versions.
pub(crate) struct PublishedBody(Arc<Vec<u8>>);

impl PublishedMessage {
    /// Encodes a message for subscribers by name, if there are any, and for these patterns.
    pub(crate) fn new(
        post: Post<'_>,
        audience: Audience,
        by_name: bool,
        patterns: &[Arc<[u8]>],
        author: Option<Author>,
    ) -> PublishedMessage {
        let Post { space, channel, payload } = post;
        let word: &[u8] = match space {
            Space::Global => b"message",
            Space::Sharded => b"smessage",
        };
        let by_pattern = patterns.iter().map(|pattern| {
            let body = PublishedBody::new(&[b"pmessage", pattern, channel, payload]);
            (Arc::clone(pattern), body)
        });
        PublishedMessage {
            space,
            audience,
            channel: channel.into(),
            by_name: by_name.then(|| PublishedBody::new(&[word, channel, payload])),
            by_pattern: by_pattern.collect(),
            author,
        }
    }

    /// Returns its approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let bodies = self.by_name.iter().chain(self.by_pattern.iter().map(|(_, body)| body));
        size_of::<PublishedMessage>()
            + self.channel.len()
            + bodies.map(|body| body.0.len()).sum::<usize>()
    }
}

impl PublishedBody {
    fn new(parts: &[&[u8]]) -> PublishedBody {
        let mut bytes = Vec::new();
        resp::encode_command(&mut bytes, parts);
        assert_eq!(bytes.remove(0), b'*', "a message is an array in the old protocol");
        PublishedBody(Arc::new(bytes))
    }

    /// Appends the message. A large one is shared, not copied.
    pub(crate) fn write(&self, output: &mut Output, protocol: Protocol) {
        output.extend_from_slice(match protocol {
            Protocol::Resp2 => b"*",
            Protocol::Resp3 => b">",
        });
        if self.0.len() < SHARED_BYTES_MIN {
            output.extend_from_slice(&self.0);
        } else {
            output.push_shared(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_protocols_share_one_encoding() {
        let body = PublishedBody::new(&[b"message", b"news", b"hi"]);
        let written = |protocol| {
            let mut output = Output::default();
            body.write(&mut output, protocol);
            output.chunks(output.mark()).collect::<Vec<_>>().concat()
        };
        assert_eq!(written(Protocol::Resp2), b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
        assert_eq!(written(Protocol::Resp3), b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
    }

    #[test]
    fn a_large_message_is_not_copied_for_each_who_gets_it() {
        let body = PublishedBody::new(&[b"message", b"news", &vec![b'x'; 1_000_000]]);
        let mut outputs = [Output::default(), Output::default()];
        outputs.iter_mut().for_each(|output| body.write(output, Protocol::Resp2));
        assert_eq!(Arc::strong_count(&body.0), 3);
        assert!(outputs.iter().all(|output| output.capacity() < 1_000));
    }
}
