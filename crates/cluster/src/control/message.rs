//! Messages between the control planes of two nodes.
//!
//! Every message may be lost, doubled or late: a node that needs an answer asks again, and reads
//! decisions from the map, never from a message. `crates/server` carries the messages between
//! processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::recreate::KeptCopy;
use super::version::ProtocolRange;
use crate::balance::{self, MoveId, SizeReport};
use crate::consensus::{LogEntry, RaftMessage};
use crate::data::BucketLag;
use crate::map::{ClusterId, Generation, LogIndex, Member};
use crate::status::Sight;

/// Conversation in which a node N gets its lease from the leader L:
///
/// ~~~text
/// N       notes its clock
/// N -> L  LeaseAsk n        may I serve?
/// L       makes sure, by asking a majority, that it still leads
/// L -> N  LeaseGrant n, i   yes, for a second from the moment you noted, once you have applied i
///         LeaseRefused      no: you are not a member, or another process of your node is
/// ~~~
///
/// Conversation in which bucket b is handed over from its primary A to its backup C:
///
/// ~~~text
/// A       pauses b
/// A -> C  AnnouncePromotion b        (a frame on the data link) you will be primary: park commands for b
/// A       waits for all acknowledgements
/// A -> L  Propose           Promote b C
/// ~~~
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// For one generation only: another one has another log.
    Raft {
        generation: Generation,
        message: RaftMessage,
    },
    LeaseAsk {
        number: u64,
        /// Index up to which the asking node has applied the log.
        applied: LogIndex,
        /// True if it does not reach most of the others.
        is_cut_off: bool,
    },
    LeaseGrant {
        number: u64,
        /// The lease takes effect once this index is applied: everything committed before the request
        /// is known then.
        index: LogIndex,
        lease: Duration,
    },
    /// By the log up to this index the asking process is not a member. Any member can send this.
    LeaseRefused {
        generation: Generation,
        index: LogIndex,
    },
    /// Append this to the log. Repeated until the map shows the outcome.
    Propose(LogEntry),
    Balance(balance::BalanceMessage),
    /// The sender takes part in this move. A receiver that does not answers with `Forget`.
    Engaged {
        move_id: MoveId,
    },
    JoinAsk {
        number: u64,
        request: Box<JoinRequest>,
    },
    JoinAnswer {
        number: u64,
        answer: JoinAnswer,
    },
    /// Sizes of the buckets that the sender serves.
    Sizes(SizeReport),
    /// The sender avoids serving, and should get nothing.
    Sick,
    /// Copies that the sender has found on its disk.
    KeptCopies(Vec<KeptCopy>),
    /// The sender's side has ended in favour of another, and this is its progress.
    Yielding(Handed),
    /// Number of bytes the receiver has not acknowledged of the sender's writes as its primary, and their buckets.
    BackupLag {
        remaining_bytes: u64,
        lags: Vec<BucketLag>,
    },
    /// The sender's memory is full. The receiver shall evict so many bytes from its buckets that have a copy
    /// there, or refuse writes to them; 0 if they take no more than their part.
    MakeRoom {
        bytes: u64,
    },
    /// The receiver has left, and nothing waits for it any more.
    Farewell,
    /// A viewer looks at the cluster: the receiver reports its state.
    Look,
    Sight(Box<Sight>),
    /// The sender's wall clock, once a second: to the leader, and from the leader to all members.
    Clock {
        unix_millis: u64,
    },
    /// The receiver reports how far it has applied the log.
    FollowAsk,
    /// The sender has applied the log up to this index.
    Following(LogIndex),
}

/// Progress of a process that hands over the data another side lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Handed {
    Partly,
    Done,
}

/// A process's description of itself when it wants to become a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JoinRequest {
    pub versions: ProtocolRange,
    pub member: Member,
    /// The cluster of its data directory, if it has one.
    pub cluster: Option<ClusterId>,
    /// Difference of its wall clock from that of the member it asked, measured by that member.
    pub skew: Duration,
    /// True if it does not want to join yet, but still loads its data: the cluster waits for it.
    pub is_loading: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JoinAnswer {
    Welcome(Welcome),
    /// Not yet, for this reason: ask again.
    Wait(String),
    /// Never, for this reason.
    Refused(String),
}

/// The facts a new member needs until the map reaches it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Welcome {
    pub cluster: ClusterId,
    pub generation: Generation,
    /// Includes the new member.
    pub members: Vec<Member>,
    /// Log index at which these are the members.
    pub index: LogIndex,
}
