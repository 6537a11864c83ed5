//! A peer port in memory, as seen by a process that does not know the secret: for fuzzing it with arbitrary
//! bytes (fuzz/src/peers.rs). Nothing here is used by a running node.

use std::io::{self, Read, Write};

use cluster::control::Message;
use cluster::map::{Boot, ClusterId, Generation, NodeId, Peer};
use settings::Secret;

use super::frame::{self, CONTROL_BYTES_MAX, Unframer};
use super::handshake::{introduce_on, receive_on};
use super::hello::{AcceptorState, HandshakeRefusal, Hello, HelloError, Purpose};

/// All bytes that the other end will ever send; bytes sent to it are dropped.
struct Said<'a>(&'a [u8]);

impl Read for Said<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Said<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn secret() -> Secret {
    Secret::new("nobody has told it")
}

fn standing() -> AcceptorState {
    let me = Peer { id: NodeId(2), boot: Boot(20) };
    let generation = Generation { counter: 1, founder: NodeId(2) };
    AcceptorState { me, cluster: ClusterId(9), generation, expects: 1 }
}

/// Returns whether a dialer that sends these bytes is let in.
pub fn is_let_in(said: &[u8]) -> bool {
    receive_on(&mut Said(said), &secret(), |_| Ok(standing())).is_ok()
}

/// Returns whether an acceptor that answers with these bytes is taken for a node.
pub fn is_believed(said: &[u8]) -> bool {
    introduce_on(&mut Said(said), &secret(), hello()).is_ok()
}

fn hello() -> Hello {
    let AcceptorState { me, cluster, generation, .. } = standing();
    let from = Peer { id: NodeId(1), boot: Boot(10) };
    let (to, cluster, generation) = (Some(me.id), Some(cluster), Some(generation));
    Hello { purpose: Purpose::Control, from, to, cluster, generation, at: None }
}

/// Returns whether the refusal of an acceptor that answers with these bytes is believed.
pub fn is_refusal_believed(said: &[u8]) -> bool {
    match introduce_on(&mut Said(said), &secret(), hello()) {
        Err(HelloError::Refused(refusal)) => refusal != HandshakeRefusal::SecretDiffers,
        Ok(_)
        | Err(
            HelloError::Io(_)
            | HelloError::NoNode
            | HelloError::Version { .. }
            | HelloError::Unproven(_),
        ) => false,
    }
}

/// Returns the control messages in a stream that comes `piece` bytes at a time, up to the first frame that is
/// no message.
pub fn control_frames(stream: &[u8], piece: usize) -> Vec<Message> {
    let mut unframer = Unframer::default();
    let mut messages = Vec::new();
    for arrived in stream.chunks(piece) {
        unframer.push(arrived);
        loop {
            let body = match unframer.next(CONTROL_BYTES_MAX) {
                Err(_) => return messages,
                Ok(None) => break,
                // A keep-alive.
                Ok(Some([])) => continue,
                Ok(Some(body)) => body,
            };
            match frame::read_body(body) {
                Ok(message) => messages.push(message),
                Err(_) => return messages,
            }
        }
        unframer.compact();
    }
    messages
}
