//! An acceptor that does not know the secret and refuses every dialer, for tests.

use std::io::Write;
use std::net::TcpStream;

use super::super::frame::{self, HELLO_BYTES_MAX};
use super::super::hello::{HandshakeRefusal, HandshakeReply, HelloError};
use super::super::proof::{Nonce, Proof};
use super::{prefix, read_prefix};

/// The proof a forger adds to its refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::peer) enum Forgery {
    NoProof,
    /// The dialer's own proof, sent back.
    SentBack,
}

/// Plays the acceptor's side up to the refusal.
pub(in crate::peer) fn refuse(
    stream: &mut TcpStream,
    refusal: HandshakeRefusal,
    forgery: Forgery,
) -> Result<(), HelloError> {
    read_prefix(stream)?;
    frame::receive_body(stream, HELLO_BYTES_MAX)?;
    stream.write_all(&prefix())?;
    frame::send(stream, &Nonce::draw(), HELLO_BYTES_MAX)?;
    let theirs: Proof = frame::receive(stream, HELLO_BYTES_MAX)?;
    let proof = match forgery {
        Forgery::NoProof => None,
        Forgery::SentBack => Some(theirs),
    };
    frame::send(stream, &HandshakeReply::Refused { refusal, proof }, HELLO_BYTES_MAX)?;
    Ok(())
}
