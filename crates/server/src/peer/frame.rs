//! Messages in frames: four bytes of length, then postcard. All input is checked before it is used: a
//! frame that is too long, is no message, or has bytes left over is an error, and its link is closed.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a handshake message: everything sent before the proof is tiny.
pub(super) const HELLO_BYTES_MAX: usize = 1024;
/// Maximum size of a control message. The largest is the map of a cluster with 16,384 buckets of four
/// copies and some thousand members.
pub(super) const CONTROL_BYTES_MAX: usize = 16 << 20;
/// Maximum size of a question to join, and of its answer, which names all members.
pub(super) const JOIN_BYTES_MAX: usize = 1 << 20;
const HEADER_BYTES: usize = 4;

/// The bytes are no valid frame. Nothing of it was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BadPeerFrame {
    TooLong,
    Unreadable,
}

impl From<BadPeerFrame> for io::Error {
    fn from(bad: BadPeerFrame) -> io::Error {
        let text = match bad {
            BadPeerFrame::TooLong => "a frame is too long",
            BadPeerFrame::Unreadable => "a frame cannot be read",
        };
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

/// Appends a message as a frame. Appends nothing if it is longer than the other side would accept.
pub(super) fn put<M: Serialize>(
    message: &M,
    bytes_max: usize,
    to: &mut Vec<u8>,
) -> Result<(), BadPeerFrame> {
    let start = to.len();
    to.extend_from_slice(&[0; HEADER_BYTES]);
    let body = postcard::to_allocvec(message).expect("every message can be written");
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= bytes_max);
    let Some(length) = length else {
        to.truncate(start);
        return Err(BadPeerFrame::TooLong);
    };
    to[start..].copy_from_slice(&length.to_le_bytes());
    to.extend_from_slice(&body);
    Ok(())
}

/// Decodes the message in a frame's body, if it is one and nothing else.
pub(super) fn read_body<M: DeserializeOwned>(body: &[u8]) -> Result<M, BadPeerFrame> {
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        Ok(_) | Err(_) => Err(BadPeerFrame::Unreadable),
    }
}

/// Sends one message, and blocks until it is written.
pub(super) fn send<M: Serialize>(
    to: &mut impl Write,
    message: &M,
    bytes_max: usize,
) -> io::Result<()> {
    let mut frame = Vec::new();
    put(message, bytes_max, &mut frame)?;
    to.write_all(&frame)
}

/// Waits for one message. Reads not a byte beyond it.
pub(super) fn receive<M: DeserializeOwned>(
    from: &mut impl Read,
    bytes_max: usize,
) -> io::Result<M> {
    Ok(read_body(&receive_body(from, bytes_max)?)?)
}

pub(super) fn receive_body(from: &mut impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header)?;
    let length = u32::from_le_bytes(header);
    if length as usize > bytes_max {
        return Err(BadPeerFrame::TooLong.into());
    }
    // Grows with the bytes that come, not with the announced length.
    let mut body = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut body)?;
    if body.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

/// Splits incoming bytes into frames.
#[derive(Debug, Default)]
pub(super) struct Unframer {
    bytes: Vec<u8>,
    /// Number of bytes that were already returned as frames.
    taken: usize,
}

impl Unframer {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the body of the next complete frame.
    pub(super) fn next(&mut self, bytes_max: usize) -> Result<Option<&[u8]>, BadPeerFrame> {
        let rest = &self.bytes[self.taken..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*header) as usize;
        if length > bytes_max {
            return Err(BadPeerFrame::TooLong);
        }
        if rest.len() < length {
            return Ok(None);
        }
        let start = self.taken + HEADER_BYTES;
        self.taken = start + length;
        Ok(Some(&self.bytes[start..self.taken]))
    }

    /// Frees the bytes already returned; to be called when `next` has nothing more.
    pub(super) fn compact(&mut self) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in messages {
            put(message, 1 << 20, &mut bytes).expect("short enough");
        }
        bytes
    }

    #[test]
    fn a_message_that_is_too_long_is_neither_sent_nor_taken() {
        let mut bytes = b"before".to_vec();
        assert_eq!(put(&vec![0_u8; 100], 100, &mut bytes), Err(BadPeerFrame::TooLong));
        assert_eq!(bytes, b"before");
        let mut unframer = Unframer::default();
        unframer.push(&101_u32.to_le_bytes());
        assert_eq!(unframer.next(100), Err(BadPeerFrame::TooLong));
        assert!(receive_body(&mut &101_u32.to_le_bytes()[..], 100).is_err());
    }

    #[test]
    fn what_is_left_over_in_a_frame_is_an_error() {
        assert_eq!(read_body::<u8>(&[1]), Ok(1));
        assert_eq!(read_body::<u8>(&[1, 2]), Err(BadPeerFrame::Unreadable));
        assert_eq!(read_body::<u8>(&[]), Err(BadPeerFrame::Unreadable));
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_messages(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..8),
            steps in proptest::collection::vec(1_usize..40, 1..20),
        ) {
            let bytes = frames(&messages);
            let mut unframer = Unframer::default();
            let mut got: Vec<Vec<u8>> = Vec::new();
            let mut rest = &bytes[..];
            for step in steps.iter().cycle() {
                let (now, later) = rest.split_at((*step).min(rest.len()));
                rest = later;
                unframer.push(now);
                while let Some(body) = unframer.next(1 << 20).expect("good frames") {
                    got.push(read_body(body).expect("a message"));
                }
                unframer.compact();
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(got, messages);
        }

        #[test]
        fn a_frame_cut_short_is_never_taken_for_a_whole_one(
            message in proptest::collection::vec(any::<u8>(), 0..50),
            cut in 0_usize..60,
        ) {
            let bytes = frames(&[message]);
            let part = &bytes[..cut.min(bytes.len() - 1)];
            let mut unframer = Unframer::default();
            unframer.push(part);
            prop_assert_eq!(unframer.next(1 << 20), Ok(None));
            prop_assert!(receive_body(&mut &part[..], 1 << 20).is_err());
        }
    }
}
