//! What the control planes of two nodes say to each other.
//!
//! Every message may be lost, doubled or late: whoever needs an answer asks again, and what has been
//! decided is read from the map, never from a message. `crates/server` carries them between processes.

use std::time::Duration;

use placement::{Hashmask, Mask};
use serde::{Deserialize, Serialize};

use super::recreate::Offer;
use super::sights::Sight;
use crate::balance::{self, Attempt};
use crate::consensus::{LogEntry, RaftMessage};
use crate::map::{Ack, ClusterId, Epoch, Generation, LogIndex, Member};

/// The version of everything nodes say to each other. Nodes of different versions do not join.
pub const PROTOCOL_VERSION: u32 = 2;

/// How a node N gets its lease from the leader L:
///
/// ~~~text
/// N       notes its clock
/// N -> L  LeaseAsk n        may I serve?
/// L       makes sure, by asking a majority, that it still leads
/// L -> N  LeaseGrant n, i   yes, for a second from the moment you noted, once you have applied i
///         LeaseRefused      no: you are no member, or another process of yours is
/// ~~~
///
/// How bucket b is handed over from its primary A to its backup C:
///
/// ~~~text
/// A -> C  TakeOver b        it will be yours: let commands for it wait, do not send them back
/// A       stops everything on b, waits for all acknowledgements
/// A -> L  Propose           Promote b C
/// C -> A  Serving b         I have applied it: send your clients to me
/// ~~~
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Of one generation only: another one has another log.
    Raft {
        generation: Generation,
        message: RaftMessage,
    },
    LeaseAsk {
        number: u64,
        /// How far the asking node has applied the log.
        applied: LogIndex,
        /// Whether most of the others do not reach it.
        is_cut_off: bool,
    },
    LeaseGrant {
        number: u64,
        /// The lease counts once this is applied: what was decided before the question is known then.
        index: LogIndex,
        lease: Duration,
    },
    /// By everything up to this index the asking process is no member. Any member can tell.
    LeaseRefused {
        generation: Generation,
        index: LogIndex,
    },
    /// Put this into the log. Repeated until the map shows what became of it.
    Propose(LogEntry),
    Balance(balance::Message),
    /// I take part in this move. Whoever does not answers that it is to be forgotten.
    Engaged {
        attempt: Attempt,
    },
    TakeOver {
        bucket: Hashmask,
        epoch: Epoch,
    },
    Serving {
        bucket: Hashmask,
        reign: LogIndex,
    },
    JoinAsk {
        number: u64,
        request: Box<JoinRequest>,
    },
    JoinAnswer {
        number: u64,
        answer: JoinAnswer,
    },
    /// The bytes in the buckets that the sender serves.
    Sizes(Vec<(Hashmask, u64)>),
    /// The sender serves nothing if it can help it, and should get nothing.
    Sick,
    /// Copies that the sender has found on its disk.
    Offer(Vec<Offer>),
    /// The sender's side has ended in favour of another, and this is how far it is.
    Yielding(Handed),
    /// Of what the sender has written as your primary, so many bytes are not acknowledged.
    Beat {
        left: u64,
    },
    /// You have left, and nothing waits for you any more.
    Farewell,
    /// Somebody looks at the cluster: how are you?
    Look,
    Sight(Box<Sight>),
    /// The sender's wall clock, once a second: to the leader, and from the leader to everybody.
    Clock {
        unix_millis: u64,
    },
}

/// How far a process is that hands over what another side lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Handed {
    Some,
    All,
}

/// What a process says of itself when it wants to become a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JoinRequest {
    pub version: u32,
    pub member: Member,
    /// The cluster it belongs to by its data directory, if it has one.
    pub cluster: Option<ClusterId>,
    /// What it was told of settings that are the cluster's: they must be the same.
    pub backups: Option<u8>,
    pub ack: Option<Ack>,
    pub buckets: Option<Mask>,
    /// How far its wall clock is from that of the member it asked, measured by that member.
    pub skew: Duration,
    /// It does not want to come in yet, but still loads what it held: that is to be waited for.
    pub is_loading: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JoinAnswer {
    Welcome(Welcome),
    /// Not yet, for this reason: ask again.
    Wait(String),
    /// Not ever, for this reason.
    Refused(String),
}

/// What a new member has to know until the map reaches it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Welcome {
    pub cluster: ClusterId,
    pub generation: Generation,
    /// The new one among them.
    pub members: Vec<Member>,
    /// Where in the log they are these.
    pub index: LogIndex,
}
