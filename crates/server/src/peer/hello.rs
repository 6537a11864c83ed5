//! What two processes say to each other before anything else, and every way in which it can end.
//!
//! ~~~text
//! D -> A  Hello       who I am, whom I want and what for, a nonce
//! A -> D  Nonce       mine
//! D -> A  Proof       that I know the secret
//! A -> D  Welcome     that I know it too, who I am, where we stand
//!         Refused     that I know it too, and why not
//! ~~~
//!
//! The dialer D proves itself first, so that a stranger who merely dials learns nothing. A refusal is
//! proven like a welcome, for a node gives up its place because of some; only `SecretDiffers` cannot be.
//! A refusal without a proof ([`HelloError::Unproven`]) means: the node is not reached, dial again. The first
//! bytes in each direction are a magic word and a version, and always will be: so two versions that
//! have nothing else in common can still say so.

use std::fmt;
use std::io;

use cluster::map::{ClusterId, Endpoints, Generation, LogIndex, NodeId, Peer};
use serde::{Deserialize, Serialize};

use super::proof::{Nonce, Proof};

/// What a link is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// Raft, leases, balancing: in both directions.
    Control,
    /// Effects and fills from the dialer, acknowledgements back.
    Data,
    /// What the dialer has to say about timers. Nothing is said back.
    Timers,
    /// One question: may I become a member?
    Join,
    /// Nothing but these words: are you of another generation of this cluster, and of which?
    Meet,
    /// What the dialer, whose side has yielded, hands over.
    Merge,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub purpose: Purpose,
    pub from: Peer,
    /// Nobody in particular, for one who wants to join.
    pub to: Option<NodeId>,
    /// None yet, for one who wants to join.
    pub cluster: Option<ClusterId>,
    pub generation: Option<Generation>,
    /// Where the dialer is reached, if the other may have to come to it.
    pub at: Option<Endpoints>,
}

/// Where the one who accepts a link stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub me: Peer,
    pub cluster: ClusterId,
    pub generation: Generation,
    /// For a data link: the number of the frame that is expected first.
    pub expects: u64,
}

/// The dialer's first words.
#[derive(Serialize, Deserialize)]
pub(super) struct Opening {
    pub(super) hello: Hello,
    pub(super) nonce: Nonce,
}

#[derive(Serialize, Deserialize)]
pub(super) enum Verdict {
    Welcome {
        standing: Standing,
        proof: Proof,
    },
    Refused {
        refusal: Refusal,
        /// None for a dialer that has not proven itself: it gets nothing made with the secret.
        proof: Option<Proof>,
    },
}

/// Why a link is not wanted, as told to whoever dialed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Refusal {
    SecretDiffers,
    OtherCluster,
    OtherGeneration(Generation),
    OtherNode(NodeId),
    /// The dialer is not in the map, or not yet: the map with the log applied up to there.
    NoMember(LogIndex),
    /// Another process of the dialer's node is in the map.
    OtherBoot,
    /// Whoever was dialed has not joined a cluster itself.
    NotJoined,
}

impl Refusal {
    /// Whether it ends by itself: a node is known to some before it is known to all.
    pub(super) fn is_passing(self) -> bool {
        match self {
            // Two generations that have met become one.
            Refusal::NoMember(_)
            | Refusal::OtherBoot
            | Refusal::NotJoined
            | Refusal::OtherGeneration(_) => true,
            Refusal::SecretDiffers | Refusal::OtherCluster | Refusal::OtherNode(_) => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::SecretDiffers => f.write_str("the secret differs"),
            Refusal::OtherCluster => f.write_str("it belongs to another cluster"),
            Refusal::OtherGeneration(there) => {
                write!(f, "it is of another generation, {} of {}", there.counter, there.founder)
            }
            Refusal::OtherNode(there) => write!(f, "another node answers there, {there}"),
            Refusal::NoMember(_) => f.write_str("this node is no member there"),
            Refusal::OtherBoot => f.write_str("another process of this node is a member there"),
            Refusal::NotJoined => f.write_str("it has not joined a cluster itself yet"),
        }
    }
}

/// Why there is no link. The socket is of no use any more; nothing else has changed.
#[derive(Debug)]
pub(crate) enum HelloError {
    Io(io::Error),
    /// Whatever is at the other end does not speak like a node.
    NoNode,
    Version {
        here: u32,
        there: u32,
    },
    /// Proven, unless it is `SecretDiffers`.
    Refused(Refusal),
    /// A refusal by somebody who has not proven to know the secret. Nothing may follow from it.
    Unproven(Refusal),
}

impl fmt::Display for HelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HelloError::Io(error) if is_timeout(error) => f.write_str("no answer in time"),
            HelloError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("it closed the connection")
            }
            HelloError::Io(error) => error.fmt(f),
            HelloError::NoNode => f.write_str("what answers there is no peer port of a node"),
            HelloError::Version { here, there } => {
                write!(f, "the versions differ: {here} here, {there} there")
            }
            HelloError::Refused(refusal) => refusal.fmt(f),
            HelloError::Unproven(refusal) => {
                write!(f, "an answer without proof of the secret is ignored: {refusal}")
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

impl From<io::Error> for HelloError {
    fn from(error: io::Error) -> HelloError {
        // What `frame.rs` says of a frame that is none.
        let is_garbled = error.kind() == io::ErrorKind::InvalidData;
        if is_garbled { HelloError::NoNode } else { HelloError::Io(error) }
    }
}
