//! Messages that keep the logs of all nodes the same. They are typed, so that a decoded message is
//! well-formed, and they are the only form in which the log crosses the network.
//!
//! `check.rs` drops messages that are well-formed but wrong in this state; then `to_raft` passes the
//! rest to the library.

use raft::eraftpb::{self, Message, MessageType};
use serde::{Deserialize, Serialize};

use super::{Configuration, Entry, SnapshotData, Term};
use crate::map::{LogIndex, NodeId};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RaftMessage {
    /// The sender's term; for a poll before an election, and a vote promised in it, the next term.
    pub term: Term,
    pub body: MessageBody,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum MessageBody {
    /// Entries that follow those up to `after`.
    Append {
        after: LogPlace,
        entries: Vec<Entry>,
        commit: LogIndex,
    },
    /// The sender has the leader's log up to `last`.
    Appended {
        last: LogIndex,
        commit: LogIndex,
    },
    /// The sender's entry at `after` differs from the leader's; the logs may agree up to `hint`.
    NotAppended {
        after: LogIndex,
        hint: LogPlace,
        commit: LogIndex,
    },
    Vote {
        ballot: Ballot,
        last: LogPlace,
        commit: LogPlace,
    },
    VoteGranted {
        ballot: Ballot,
    },
    VoteRefused {
        ballot: Ballot,
        commit: LogPlace,
    },
    Snapshot(Box<SnapshotData>),
    /// A heartbeat; `read` is the context of the last requested read index.
    Heartbeat {
        commit: LogIndex,
        read: Option<u64>,
    },
    HeartbeatAnswer {
        commit: LogIndex,
        read: Option<u64>,
    },
    /// The leader hands over: the receiver stands for election at once.
    TimeoutNow,
}

/// The kind of a vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ballot {
    /// A pre-vote: would the node get votes? Asking changes no term.
    Poll,
    Election,
    /// An election requested by the leader itself; the leader need not be silent for it.
    HandOver,
}

/// A log index and the term of the entry there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct LogPlace {
    pub index: LogIndex,
    pub term: Term,
}

impl LogPlace {
    pub(super) fn new(index: u64, term: u64) -> LogPlace {
        LogPlace { index: LogIndex(index), term: Term(term) }
    }
}

impl RaftMessage {
    /// Converts to the library's form. `from` is the peer of the link, whatever the message might
    /// claim.
    pub(super) fn to_raft(&self, from: NodeId, to: NodeId) -> Message {
        let mut raft = Message::default();
        (raft.from, raft.to, raft.term) = (from.0, to.0, self.term.0);
        self.body.fill(&mut raft);
        raft
    }

    /// Converts a message of the library, with its recipient. `None` for messages that never leave a
    /// node.
    pub(super) fn of_raft(mut raft: Message) -> Option<(NodeId, RaftMessage)> {
        let body = MessageBody::of_raft(&mut raft)?;
        Some((NodeId(raft.to), RaftMessage { term: Term(raft.term), body }))
    }
}

impl MessageBody {
    fn fill(&self, raft: &mut Message) {
        match self {
            MessageBody::Append { after, entries, commit } => {
                raft.set_msg_type(MessageType::MsgAppend);
                (raft.index, raft.log_term) = (after.index.0, after.term.0);
                raft.set_entries(entries.iter().map(Entry::to_raft).collect::<Vec<_>>().into());
                raft.commit = commit.0;
            }
            MessageBody::Appended { last, commit } => {
                raft.set_msg_type(MessageType::MsgAppendResponse);
                (raft.index, raft.commit) = (last.0, commit.0);
            }
            MessageBody::NotAppended { after, hint, commit } => {
                raft.set_msg_type(MessageType::MsgAppendResponse);
                (raft.index, raft.commit, raft.reject) = (after.0, commit.0, true);
                (raft.reject_hint, raft.log_term) = (hint.index.0, hint.term.0);
            }
            MessageBody::Vote { ballot, last, commit } => {
                raft.set_msg_type(ballot.request());
                (raft.index, raft.log_term) = (last.index.0, last.term.0);
                (raft.commit, raft.commit_term) = (commit.index.0, commit.term.0);
                if *ballot == Ballot::HandOver {
                    raft.context = raft::CAMPAIGN_TRANSFER.into();
                }
            }
            MessageBody::VoteGranted { ballot } => raft.set_msg_type(ballot.answer()),
            MessageBody::VoteRefused { ballot, commit } => {
                raft.set_msg_type(ballot.answer());
                raft.reject = true;
                (raft.commit, raft.commit_term) = (commit.index.0, commit.term.0);
            }
            MessageBody::Snapshot(snapshot) => {
                raft.set_msg_type(MessageType::MsgSnapshot);
                raft.set_snapshot(snapshot.to_raft());
            }
            MessageBody::Heartbeat { commit, read } => {
                raft.set_msg_type(MessageType::MsgHeartbeat);
                raft.commit = commit.0;
                raft.context = read_context(*read).into();
            }
            MessageBody::HeartbeatAnswer { commit, read } => {
                raft.set_msg_type(MessageType::MsgHeartbeatResponse);
                raft.commit = commit.0;
                raft.context = read_context(*read).into();
            }
            MessageBody::TimeoutNow => raft.set_msg_type(MessageType::MsgTimeoutNow),
        }
    }

    fn of_raft(raft: &mut Message) -> Option<MessageBody> {
        let commit = LogIndex(raft.commit);
        let commit_place = LogPlace::new(raft.commit, raft.commit_term);
        let place = LogPlace::new(raft.index, raft.log_term);
        Some(match raft.get_msg_type() {
            MessageType::MsgAppend => {
                let entries = raft.take_entries().iter().map(Entry::of_raft).collect();
                MessageBody::Append { after: place, entries, commit }
            }
            MessageType::MsgAppendResponse if raft.reject => {
                let hint = LogPlace::new(raft.reject_hint, raft.log_term);
                MessageBody::NotAppended { after: place.index, hint, commit }
            }
            MessageType::MsgAppendResponse => MessageBody::Appended { last: place.index, commit },
            MessageType::MsgRequestPreVote => {
                MessageBody::Vote { ballot: Ballot::Poll, last: place, commit: commit_place }
            }
            MessageType::MsgRequestVote => {
                let handed_over = raft.context == raft::CAMPAIGN_TRANSFER;
                let ballot = if handed_over { Ballot::HandOver } else { Ballot::Election };
                MessageBody::Vote { ballot, last: place, commit: commit_place }
            }
            MessageType::MsgRequestPreVoteResponse => {
                MessageBody::vote_answer(Ballot::Poll, raft, commit_place)
            }
            MessageType::MsgRequestVoteResponse => {
                MessageBody::vote_answer(Ballot::Election, raft, commit_place)
            }
            MessageType::MsgSnapshot => {
                MessageBody::Snapshot(Box::new(SnapshotData::of_raft(raft.get_snapshot())))
            }
            MessageType::MsgHeartbeat => {
                MessageBody::Heartbeat { commit, read: context_of_read(&raft.context) }
            }
            MessageType::MsgHeartbeatResponse => {
                MessageBody::HeartbeatAnswer { commit, read: context_of_read(&raft.context) }
            }
            MessageType::MsgTimeoutNow => MessageBody::TimeoutNow,
            // Events inside the library, and messages that followers would forward: `Consensus`
            // requests those only on a leader.
            MessageType::MsgHup
            | MessageType::MsgBeat
            | MessageType::MsgPropose
            | MessageType::MsgUnreachable
            | MessageType::MsgSnapStatus
            | MessageType::MsgCheckQuorum
            | MessageType::MsgTransferLeader
            | MessageType::MsgReadIndex
            | MessageType::MsgReadIndexResp => return None,
        })
    }

    fn vote_answer(ballot: Ballot, raft: &Message, commit: LogPlace) -> MessageBody {
        if raft.reject {
            MessageBody::VoteRefused { ballot, commit }
        } else {
            MessageBody::VoteGranted { ballot }
        }
    }
}

impl Ballot {
    fn request(self) -> MessageType {
        match self {
            Ballot::Poll => MessageType::MsgRequestPreVote,
            Ballot::Election | Ballot::HandOver => MessageType::MsgRequestVote,
        }
    }

    fn answer(self) -> MessageType {
        match self {
            Ballot::Poll => MessageType::MsgRequestPreVoteResponse,
            Ballot::Election | Ballot::HandOver => MessageType::MsgRequestVoteResponse,
        }
    }
}

impl SnapshotData {
    pub(super) fn to_raft(&self) -> eraftpb::Snapshot {
        let mut raft = eraftpb::Snapshot::default();
        let metadata = raft.mut_metadata();
        (metadata.index, metadata.term) = (self.at.index.0, self.at.term.0);
        metadata.set_conf_state(self.configuration.to_raft());
        raft.data = postcard::to_allocvec(&self.map).expect("a map can be written").into();
        raft
    }

    pub(super) fn of_raft(raft: &eraftpb::Snapshot) -> SnapshotData {
        let metadata = raft.get_metadata();
        SnapshotData {
            at: LogPlace::new(metadata.index, metadata.term),
            configuration: Configuration::of_raft(metadata.get_conf_state()),
            map: postcard::from_bytes(&raft.data).expect("only `to_raft` makes such data"),
        }
    }
}

/// Returns the library's form of a read's context: empty means none.
pub(super) fn read_context(read: Option<u64>) -> Vec<u8> {
    read.map(|context| context.to_le_bytes().to_vec()).unwrap_or_default()
}

pub(super) fn context_of_read(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}
