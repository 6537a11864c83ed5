//! The messages of the handshake between two processes, and every way in which it can fail.
//!
//! ~~~text
//! D -> A  Hello       D's identity, the wanted node, the purpose, a nonce
//! A -> D  Nonce       A's nonce
//! D -> A  Proof       proof that D knows the secret
//! A -> D  Welcome     proof that A knows it too, A's identity and standing
//!         Refused     proof that A knows it too, and the reason
//! ~~~
//!
//! The dialer D proves itself first, so that a stranger who merely dials learns nothing. A refusal carries a
//! proof like a welcome, because some refusals make a node give up its membership; only `SecretDiffers`
//! cannot be proven. A refusal without a proof ([`HelloError::Unproven`]) means: the node is not reached, dial
//! again. The first bytes in each direction are a magic word and the range of versions that the sender
//! speaks (`ProtocolRange`), and always will be: so two nodes that have nothing else in common can still report that.

use std::fmt;
use std::io;

use cluster::control::ProtocolRange;
use cluster::map::{ClusterId, Endpoints, Generation, LogIndex, NodeId, Peer};
use serde::{Deserialize, Serialize};

use super::proof::{Nonce, Proof};

/// The purpose of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// Raft, leases, balancing: in both directions.
    Control,
    /// Effects and fills from the dialer, acknowledgements back.
    Data,
    /// Messages about timers from the dialer. Nothing is sent back.
    Timers,
    /// One question: may I become a member?
    Join,
    /// Nothing but the handshake: asks whether the acceptor is of another generation of this cluster, and of which.
    Meet,
    /// Data that the dialer, whose side has lost or who returns too late, hands over.
    Merge,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub purpose: Purpose,
    pub from: Peer,
    /// The node that the dialer wants; `None` if any node will do, as for joining.
    pub to: Option<NodeId>,
    /// The dialer's cluster; `None` if it is in none yet and wants to join.
    pub cluster: Option<ClusterId>,
    pub generation: Option<Generation>,
    /// The dialer's address, if the acceptor may have to dial it.
    pub at: Option<Endpoints>,
}

/// The identity and state of the node that accepts a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct AcceptorState {
    pub me: Peer,
    pub cluster: ClusterId,
    pub generation: Generation,
    /// For a data link: the number of the frame that is expected first.
    pub expects: u64,
}

/// The dialer's first message.
#[derive(Serialize, Deserialize)]
pub(super) struct Opening {
    pub(super) hello: Hello,
    pub(super) nonce: Nonce,
}

#[derive(Serialize, Deserialize)]
pub(super) enum HandshakeReply {
    Welcome {
        standing: AcceptorState,
        proof: Proof,
    },
    Refused {
        refusal: HandshakeRefusal,
        /// `None` for a dialer that has not proven itself: it gets nothing made with the secret.
        proof: Option<Proof>,
    },
}

/// The reason for refusing a link, as sent to the dialer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum HandshakeRefusal {
    SecretDiffers,
    OtherCluster,
    OtherGeneration(Generation),
    OtherNode(NodeId),
    /// The dialer is not in the map, or not yet: the map with the log applied up to this index.
    NoMember(LogIndex),
    /// Another process of the dialer's node is in the map.
    OtherBoot,
    /// The node that was dialed has not joined a cluster itself.
    NotJoined,
}

impl HandshakeRefusal {
    /// Returns whether it passes by itself: some nodes know a new member before all do.
    pub(super) fn is_passing(self) -> bool {
        match self {
            // Two generations that have met become one.
            HandshakeRefusal::NoMember(_)
            | HandshakeRefusal::OtherBoot
            | HandshakeRefusal::NotJoined
            | HandshakeRefusal::OtherGeneration(_) => true,
            HandshakeRefusal::SecretDiffers
            | HandshakeRefusal::OtherCluster
            | HandshakeRefusal::OtherNode(_) => false,
        }
    }
}

impl fmt::Display for HandshakeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeRefusal::SecretDiffers => {
                f.write_str("wrong cluster secret; set --secret-file to the cluster's secret")
            }
            HandshakeRefusal::OtherCluster => f.write_str("it belongs to another cluster"),
            HandshakeRefusal::OtherGeneration(there) => {
                let Generation { counter, founder } = there;
                let which = format!("{counter} of founder {founder}");
                write!(f, "it belongs to another generation of the cluster, {which}")
            }
            HandshakeRefusal::OtherNode(there) => {
                write!(f, "another node has this address: {there}")
            }
            HandshakeRefusal::NoMember(_) => {
                f.write_str("this node is not a member of that cluster")
            }
            HandshakeRefusal::OtherBoot => {
                f.write_str("another process of this node is a member there")
            }
            HandshakeRefusal::NotJoined => f.write_str("it has not joined a cluster itself yet"),
        }
    }
}

/// The reason why there is no link. The socket is unusable now; nothing else has changed.
#[derive(Debug)]
pub(crate) enum HelloError {
    Io(io::Error),
    /// The other end does not speak the protocol of nodes.
    NoNode,
    Version {
        here: ProtocolRange,
        there: ProtocolRange,
    },
    /// A refusal that is proven, unless it is `SecretDiffers`.
    Refused(HandshakeRefusal),
    /// A refusal by a process that has not proven to know the secret. It must have no consequences.
    Unproven(HandshakeRefusal),
}

impl fmt::Display for HelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HelloError::Io(error) if is_timeout(error) => f.write_str("no answer in time"),
            HelloError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("it closed the connection")
            }
            HelloError::Io(error) => error.fmt(f),
            HelloError::NoNode => f.write_str("the other end does not speak the peer protocol"),
            HelloError::Version { here, there } => {
                write!(f, "no common protocol version: {here} on this node, {there} on the other")
            }
            HelloError::Refused(refusal) => refusal.fmt(f),
            HelloError::Unproven(refusal) => {
                write!(f, "ignored a refusal without proof of the secret: {refusal}")
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

impl From<io::Error> for HelloError {
    fn from(error: io::Error) -> HelloError {
        // The error kind that `frame.rs` uses for an invalid frame.
        let is_garbled = error.kind() == io::ErrorKind::InvalidData;
        if is_garbled { HelloError::NoNode } else { HelloError::Io(error) }
    }
}
