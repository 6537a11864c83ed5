//! Becoming a member: both ends of the question.
//!
//! A joining node is configured with an address where *clients* reach the cluster, because everybody knows
//! that one. It asks there with `CLUSTER NODES` for peer ports (`directory.rs`), does the handshake at one
//! and asks to join. The answer is welcome, not yet, or no with a reason; a no changes nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cluster::control::{Answer, JoinAnswer, JoinRequest, OperatorRequest, Welcome};
use cluster::map::Peer;
use serde::{Deserialize, Serialize};
use settings::{JoinAddress, Secret};

use super::directory::{self, DirectoryError};
use super::frame::{self, JOIN_BYTES_MAX};
use super::handshake::Timed;
use super::hello::{HandshakeRefusal, Hello, HelloError, Purpose};
use super::{PeerContext, dialer};

/// Timeout of trying addresses at which no node answers: all nodes may just be starting.
const NOBODY_MAX: Duration = Duration::from_secs(3);
/// Timeout of retrying after "not yet", for a node that can do nothing else.
const NOT_YET_MAX: Duration = Duration::from_secs(30);
/// The same for a node that has kept a vote that the others may need: longer than a living majority takes to
/// be sure that the node's last process is gone.
const NOT_YET_TO_VOTER_MAX: Duration = Duration::from_secs(6);
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Timeout of the question and its answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The question of a process that wants to join, with the time of its clock.
#[derive(Serialize, Deserialize)]
struct JoinEnvelope {
    request: JoinRequest,
    unix_millis: u64,
}

/// The patience of a process with the answer "not yet".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    Long,
    /// The process can start without an answer.
    Short,
}

/// A process that wants to join.
pub(crate) struct Joiner<'a> {
    pub addresses: &'a [JoinAddress],
    pub patience: Patience,
    pub password: &'a Secret,
    pub secret: &'a Secret,
    /// The request. A member without a host gets the address from which it asks.
    pub request: JoinRequest,
}

pub(crate) struct Joined {
    pub welcome: Welcome,
    /// The local address of this machine on the connection to the cluster.
    pub from: IpAddr,
}

/// The reason why a process could not join. The cluster is unchanged.
#[derive(Debug)]
pub(crate) struct JoinError {
    at: JoinAddress,
    why: Why,
}

#[derive(Debug)]
pub(super) enum Why {
    Directory(DirectoryError),
    Hello(HelloError),
    NotYet(String),
    Refused(String),
}

impl JoinError {
    /// Returns whether the reason may pass by itself.
    pub(crate) fn may_pass(&self) -> bool {
        !self.why.patience(Patience::Short).is_zero()
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot join at {}: {}", self.at, self.why)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Directory(error) => error.fmt(f),
            Why::Hello(error) => error.fmt(f),
            Why::NotYet(reason) | Why::Refused(reason) => reason.fmt(f),
        }
    }
}

impl Why {
    /// Returns how long the reason may last before it is taken as final.
    pub(super) fn patience(&self, of: Patience) -> Duration {
        match self {
            Why::Directory(DirectoryError::Io(_))
            | Why::Hello(HelloError::Io(_) | HelloError::Unproven(_)) => NOBODY_MAX,
            Why::Hello(HelloError::Refused(HandshakeRefusal::NotJoined)) | Why::NotYet(_) => {
                match of {
                    Patience::Long => NOT_YET_MAX,
                    Patience::Short => NOT_YET_TO_VOTER_MAX,
                }
            }
            Why::Directory(DirectoryError::NoNode(_) | DirectoryError::Password)
            | Why::Hello(
                HelloError::NoNode | HelloError::Version { .. } | HelloError::Refused(_),
            )
            | Why::Refused(_) => Duration::ZERO,
        }
    }
}

/// Asks at one address after the other until there is an answer.
pub(crate) fn join(candidate: &Joiner<'_>) -> Result<Joined, JoinError> {
    let begun = Instant::now();
    let patience = |why: &Why| why.patience(candidate.patience);
    loop {
        let mut errors = Vec::new();
        for at in candidate.addresses {
            match ask_at(candidate, at) {
                Ok(joined) => return Ok(joined),
                Err(why) if patience(&why).is_zero() => {
                    return Err(JoinError { at: at.clone(), why });
                }
                Err(why) => errors.push(JoinError { at: at.clone(), why }),
            }
        }
        let worth_most = errors.into_iter().max_by_key(|error| patience(&error.why));
        let error = worth_most.expect("a node that joins was given an address");
        if begun.elapsed() >= patience(&error.why) {
            return Err(error);
        }
        thread::sleep(AGAIN_AFTER);
    }
}

/// Announces once, to the first node that answers, that this process is back and still loads its data.
pub(crate) fn announce_loading(candidate: &Joiner<'_>) {
    let heard = |at: &&JoinAddress| matches!(ask_at(candidate, at), Err(Why::NotYet(_)));
    let _ = candidate.addresses.iter().find(heard); // If no node answers, the caller announces it again.
}

fn ask_at(candidate: &Joiner<'_>, at: &JoinAddress) -> Result<Joined, Why> {
    let nodes = directory::peers_at(at, candidate.password).map_err(Why::Directory)?;
    let no_nodes = "CLUSTER NODES lists no nodes".to_owned();
    let mut last = Why::Directory(DirectoryError::NoNode(no_nodes));
    for (host, port) in nodes {
        match ask_node(candidate, &host, port) {
            // A machine that does not answer, or an impostor in its place, tells nothing about the others.
            Err(why @ Why::Hello(HelloError::Io(_) | HelloError::Unproven(_))) => last = why,
            answered => return answered,
        }
    }
    Err(last)
}

/// Asks the node with this peer port.
pub(super) fn ask_node(candidate: &Joiner<'_>, host: &str, port: u16) -> Result<Joined, Why> {
    let hello_failed = |error: io::Error| Why::Hello(error.into());
    let stream = dialer::connect(host, port).map_err(hello_failed)?;
    let from = stream.local_addr().map_err(hello_failed)?.ip();
    let mut request = candidate.request.clone();
    if request.member.at.host.is_empty() {
        request.member.at.host = from.to_string();
    }
    let (purpose, me) = (Purpose::Join, request.member.peer());
    let (to, generation, at) = (None, None, None);
    let hello = Hello { purpose, from: me, to, cluster: request.cluster, generation, at };
    let (_, stream) = dialer::introduce(stream, candidate.secret, hello).map_err(Why::Hello)?;
    let question = JoinEnvelope { request, unix_millis: unix_millis() };
    let mut timed = Timed::within(&stream, ANSWER_MAX);
    frame::send(&mut timed, &question, JOIN_BYTES_MAX).map_err(hello_failed)?;
    match frame::receive(&mut timed, JOIN_BYTES_MAX).map_err(hello_failed)? {
        JoinAnswer::Welcome(welcome) => Ok(Joined { welcome, from }),
        JoinAnswer::Wait(reason) => Err(Why::NotYet(reason)),
        JoinAnswer::Refused(reason) => Err(Why::Refused(reason)),
    }
}

/// Handles the accepting end: passes the question to the control thread and the answer back.
pub(super) fn answer(context: &PeerContext, from: Peer, stream: &TcpStream) -> io::Result<()> {
    let mut timed = Timed::within(stream, ANSWER_MAX);
    let question: JoinEnvelope = frame::receive(&mut timed, JOIN_BYTES_MAX)?;
    let mut request = question.request;
    if request.member.peer() != from {
        let why = "the join request names another node than the handshake";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    request.skew = Duration::from_millis(question.unix_millis.abs_diff(unix_millis()));
    let answer =
        context.control_handle.ask_and_wait(OperatorRequest::Join(Box::new(request)), ANSWER_MAX);
    let answer = match answer {
        Some(Answer::Join(answer)) => answer,
        Some(Answer::Refused(reason) | Answer::Unknown(reason)) => JoinAnswer::Wait(reason),
        Some(Answer::Done) | None => {
            JoinAnswer::Wait("the cluster did not decide in time".to_owned())
        }
    };
    frame::send(&mut Timed::new(stream), &answer, JOIN_BYTES_MAX)
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
