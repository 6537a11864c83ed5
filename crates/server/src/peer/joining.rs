//! Becoming a member: both ends of the question.
//!
//! A node that is to join is told where *clients* reach the cluster, for that is the address everybody
//! knows. It asks there with `CLUSTER NODES` for peer ports (`directory.rs`), introduces itself at one
//! and puts its question. The answer is welcome, not yet, or no with a reason; a no changes nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cluster::control::{Answer, Ask, JoinAnswer, JoinRequest, Welcome};
use cluster::map::Peer;
use commands::settings::{JoinAddress, Secret};
use serde::{Deserialize, Serialize};

use super::directory::{self, DirectoryError};
use super::frame::{self, JOIN_BYTES_MAX};
use super::handshake::Timed;
use super::hello::{Hello, HelloError, Purpose, Refusal};
use super::{Meeting, dialer};

/// How long addresses are tried at which nobody answers: all nodes may just be starting.
const NOBODY_MAX: Duration = Duration::from_secs(3);
/// How long "not yet" is taken for an answer by one who can do nothing else,
const NOT_YET_MAX: Duration = Duration::from_secs(30);
/// and by one who has kept a vote that the others may need: longer than a living majority takes to be sure
/// that its last process is gone.
const NOT_YET_TO_VOTER_MAX: Duration = Duration::from_secs(6);
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// For the question and its answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What a process says that wants to join, with its clock.
#[derive(Serialize, Deserialize)]
struct Question {
    request: JoinRequest,
    unix_millis: u64,
}

/// How long a process puts up with "not yet".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    Long,
    /// It can begin without an answer.
    Short,
}

/// A process that wants to join.
pub(crate) struct Candidate<'a> {
    pub addresses: &'a [JoinAddress],
    pub patience: Patience,
    pub password: &'a Secret,
    pub secret: &'a Secret,
    /// If its member has no host, it gets the address from which it was asked.
    pub request: JoinRequest,
}

pub(crate) struct Joined {
    pub welcome: Welcome,
    /// The address of this machine, as seen by the cluster.
    pub from: IpAddr,
}

/// Why a process is no member. The cluster is as it was.
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
    /// Whether it may be otherwise later, without anybody's doing.
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
    /// How long it may be so before it is taken for final.
    pub(super) fn patience(&self, of: Patience) -> Duration {
        match self {
            Why::Directory(DirectoryError::Io(_))
            | Why::Hello(HelloError::Io(_) | HelloError::Unproven(_)) => NOBODY_MAX,
            Why::Hello(HelloError::Refused(Refusal::NotJoined)) | Why::NotYet(_) => match of {
                Patience::Long => NOT_YET_MAX,
                Patience::Short => NOT_YET_TO_VOTER_MAX,
            },
            Why::Directory(DirectoryError::NoNode(_) | DirectoryError::Password)
            | Why::Hello(
                HelloError::NoNode | HelloError::Version { .. } | HelloError::Refused(_),
            )
            | Why::Refused(_) => Duration::ZERO,
        }
    }
}

/// Asks at one address after the other until there is an answer.
pub(crate) fn join(candidate: &Candidate<'_>) -> Result<Joined, JoinError> {
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

/// Says once, to whoever listens first, that this process is back and still loads what it held.
pub(crate) fn announce_loading(candidate: &Candidate<'_>) {
    let heard = |at: &&JoinAddress| matches!(ask_at(candidate, at), Err(Why::NotYet(_)));
    let _ = candidate.addresses.iter().find(heard); // If nobody hears it, it is said again.
}

fn ask_at(candidate: &Candidate<'_>, at: &JoinAddress) -> Result<Joined, Why> {
    let nodes = directory::peers_at(at, candidate.password).map_err(Why::Directory)?;
    let mut last = Why::Directory(DirectoryError::NoNode("it names no nodes".to_owned()));
    for (host, port) in nodes {
        match ask_node(candidate, &host, port) {
            // A machine that does not answer, or another one in its place, says nothing about the others.
            Err(why @ Why::Hello(HelloError::Io(_) | HelloError::Unproven(_))) => last = why,
            answered => return answered,
        }
    }
    Err(last)
}

/// Asks the node with this peer port.
pub(super) fn ask_node(candidate: &Candidate<'_>, host: &str, port: u16) -> Result<Joined, Why> {
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
    let question = Question { request, unix_millis: unix_millis() };
    let mut timed = Timed::within(&stream, ANSWER_MAX);
    frame::send(&mut timed, &question, JOIN_BYTES_MAX).map_err(hello_failed)?;
    match frame::receive(&mut timed, JOIN_BYTES_MAX).map_err(hello_failed)? {
        JoinAnswer::Welcome(welcome) => Ok(Joined { welcome, from }),
        JoinAnswer::Wait(reason) => Err(Why::NotYet(reason)),
        JoinAnswer::Refused(reason) => Err(Why::Refused(reason)),
    }
}

/// The other end: passes the question to the control thread and the answer back.
pub(super) fn answer(meeting: &Meeting, from: Peer, stream: &TcpStream) -> io::Result<()> {
    let mut timed = Timed::within(stream, ANSWER_MAX);
    let question: Question = frame::receive(&mut timed, JOIN_BYTES_MAX)?;
    let mut request = question.request;
    if request.member.peer() != from {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it asks for another"));
    }
    request.skew = Duration::from_millis(question.unix_millis.abs_diff(unix_millis()));
    let answer = meeting.line.ask_and_wait(Ask::Join(Box::new(request)), ANSWER_MAX);
    let answer = match answer {
        Some(Answer::Join(answer)) => answer,
        Some(Answer::Refused(reason) | Answer::Unknown(reason)) => JoinAnswer::Wait(reason),
        Some(Answer::Done) | None => JoinAnswer::Wait("the cluster does not answer".to_owned()),
    };
    frame::send(&mut Timed::new(stream), &answer, JOIN_BYTES_MAX)
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
