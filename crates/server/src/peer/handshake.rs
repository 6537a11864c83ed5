//! The handshake on a new link, from both ends. `hello.rs` has its messages; `dialer.rs` and `listener.rs`
//! call this with a fresh socket and continue with it on success.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use cluster::control::ProtocolRange;
use settings::Secret;

use super::frame::{self, HELLO_BYTES_MAX};
use super::hello::{AcceptorState, HandshakeRefusal, HandshakeReply, Hello, HelloError, Opening};
use super::proof::{self, Nonce, Proof, ProverRole};

/// Timeout of the whole handshake.
pub(super) const HANDSHAKE_MAX: Duration = Duration::from_secs(3);
const MAGIC: [u8; 8] = *b"OPENCLUS";
const PREFIX_BYTES: usize = MAGIC.len() + 4;

/// Does the dialer's side of the handshake. Returns the acceptor's standing, which is proven by then.
pub(super) fn introduce(
    stream: &TcpStream,
    secret: &Secret,
    hello: Hello,
) -> Result<AcceptorState, HelloError> {
    introduce_on(&mut Timed::new(stream), secret, hello)
}

pub(super) fn introduce_on(
    stream: &mut (impl Read + Write),
    secret: &Secret,
    hello: Hello,
) -> Result<AcceptorState, HelloError> {
    // 1) Send who this node is.
    let opening = Opening { hello, nonce: Nonce::draw() };
    let opened = encoded(&opening)?;
    stream.write_all(&[&prefix()[..], &opened].concat())?;
    // 2) Expect nothing but a nonce from the acceptor.
    read_prefix(stream)?;
    let challenge: Nonce = frame::receive(stream, HELLO_BYTES_MAX)?;
    let challenged = encoded(&challenge)?;
    // 3) Prove that this node knows the secret.
    let mine = proof::prove(secret, ProverRole::Dialer, &[&opened, &challenged]);
    frame::send(stream, &mine, HELLO_BYTES_MAX)?;
    // 4) Check that the acceptor knows it.
    let verdict: HandshakeReply = frame::receive(stream, HELLO_BYTES_MAX)?;
    let (standing, theirs) = match verdict {
        HandshakeReply::Welcome { standing, proof } => (standing, proof),
        HandshakeReply::Refused { refusal, proof } => {
            let said = [&opened[..], &challenged, &encoded(&refusal)?];
            return Err(judge_refusal(secret, &said, refusal, proof));
        }
    };
    let said = [&opened[..], &challenged, &encoded(&standing)?];
    if !proof::is_proven(secret, ProverRole::Acceptor, &said, &theirs) {
        return Err(HelloError::Refused(HandshakeRefusal::SecretDiffers));
    }
    judge_standing(&opening.hello, &standing).map_err(HelloError::Refused)?;
    Ok(standing)
}

/// Judges a refusal: it counts only from a node that knows the secret. Nobody can prove that the secret
/// differs, and nothing but a log line for the operator follows from that.
fn judge_refusal(
    secret: &Secret,
    said: &[&[u8]],
    refusal: HandshakeRefusal,
    proof: Option<Proof>,
) -> HelloError {
    let is_proven =
        proof.is_some_and(|proof| proof::is_proven(secret, ProverRole::Refuser, said, &proof));
    if is_proven || refusal == HandshakeRefusal::SecretDiffers {
        HelloError::Refused(refusal)
    } else {
        HelloError::Unproven(refusal)
    }
}

/// Checks that the acceptor is the node that the dialer wanted.
fn judge_standing(hello: &Hello, standing: &AcceptorState) -> Result<(), HandshakeRefusal> {
    if hello.cluster.is_some_and(|cluster| cluster != standing.cluster) {
        return Err(HandshakeRefusal::OtherCluster);
    }
    if hello.to.is_some_and(|wanted| wanted != standing.me.id) {
        return Err(HandshakeRefusal::OtherNode(standing.me.id));
    }
    Ok(())
}

/// Does the acceptor's side of the handshake. `judge` is called only for a dialer that has proven to know
/// the secret.
pub(super) fn receive(
    stream: &TcpStream,
    secret: &Secret,
    judge: impl FnOnce(&Hello) -> Result<AcceptorState, HandshakeRefusal>,
) -> Result<(Hello, AcceptorState), HelloError> {
    receive_on(&mut Timed::new(stream), secret, judge)
}

pub(super) fn receive_on(
    stream: &mut (impl Read + Write),
    secret: &Secret,
    judge: impl FnOnce(&Hello) -> Result<AcceptorState, HandshakeRefusal>,
) -> Result<(Hello, AcceptorState), HelloError> {
    // 1) Read who the dialer is. One of another version gets our version.
    let version = read_prefix(stream);
    if let Err(HelloError::Version { .. }) = version {
        stream.write_all(&prefix())?;
    }
    version?;
    let body = frame::receive_body(stream, HELLO_BYTES_MAX)?;
    let opening: Opening = frame::read_body(&body).map_err(io::Error::from)?;
    let opened = encoded(&opening)?;
    // 2) Ask for a proof.
    let challenged = encoded(&Nonce::draw())?;
    stream.write_all(&[&prefix()[..], &challenged].concat())?;
    // 3) Check the proof, and whether the link is wanted.
    let theirs: Proof = frame::receive(stream, HELLO_BYTES_MAX)?;
    let proven = proof::is_proven(secret, ProverRole::Dialer, &[&opened, &challenged], &theirs);
    let judged = if proven { judge(&opening.hello) } else { Err(HandshakeRefusal::SecretDiffers) };
    // 4) Send the verdict.
    match judged {
        Err(refusal) => {
            let said = [&opened[..], &challenged, &encoded(&refusal)?];
            let proof = proven.then(|| proof::prove(secret, ProverRole::Refuser, &said));
            frame::send(stream, &HandshakeReply::Refused { refusal, proof }, HELLO_BYTES_MAX)?;
            Err(HelloError::Refused(refusal))
        }
        Ok(standing) => {
            let said = [&opened[..], &challenged, &encoded(&standing)?];
            let proof = proof::prove(secret, ProverRole::Acceptor, &said);
            frame::send(stream, &HandshakeReply::Welcome { standing, proof }, HELLO_BYTES_MAX)?;
            Ok((opening.hello, standing))
        }
    }
}

fn encoded(message: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    frame::put(message, HELLO_BYTES_MAX, &mut bytes)?;
    Ok(bytes)
}

fn prefix() -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..MAGIC.len()].copy_from_slice(&MAGIC);
    prefix[MAGIC.len()..].copy_from_slice(&ProtocolRange::OURS.to_number().to_le_bytes());
    prefix
}

fn read_prefix(from: &mut impl Read) -> Result<(), HelloError> {
    let mut magic = MAGIC;
    from.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(HelloError::NoNode);
    }
    let mut versions = [0; 4];
    from.read_exact(&mut versions)?;
    let (here, there) =
        (ProtocolRange::OURS, ProtocolRange::from_number(u32::from_le_bytes(versions)));
    // Every message has the same form in all versions that this build speaks, so which one it is does not matter yet.
    here.common(there).map(|_version| ()).ok_or(HelloError::Version { here, there })
}

/// A blocking socket with one deadline for all reads and writes together: a peer that sends a byte a
/// second gains nothing.
pub(super) struct Timed<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> Timed<'a> {
    pub(super) fn new(stream: &'a TcpStream) -> Timed<'a> {
        Timed::within(stream, HANDSHAKE_MAX)
    }

    pub(super) fn within(stream: &'a TcpStream, limit: Duration) -> Timed<'a> {
        Timed { stream, until: Instant::now() + limit }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        (&mut &*self.stream).read(bytes)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        (&mut &*self.stream).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod forged;
#[cfg(test)]
mod tests;
