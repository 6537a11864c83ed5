//! Messages that the library must not see: it assumes honest peers and sound links, and panics when one
//! of them contradicts its state. Such a message is dropped here.
//!
//! The checks cover the conditions of its assertions, and messages that would make it count an answer
//! that no node can have given, or keep an entry that no leader can have sent. The library itself
//! recognizes stale messages and messages that another node has to answer. Each condition has a test in
//! `tests/liars.rs` that fails without it.

use raft::RawNode;

use super::log::Log;
use super::{Entry, LogPlace, MessageBody, RaftMessage, SnapshotData, Term};
use crate::map::{LogIndex, NodeId};

/// Terms and indexes above this are invalid; below it the library's sums cannot overflow.
const NUMBER_MAX: u64 = 1 << 62;
/// Maximum number of elections a node can be behind. Without this, one message could use up all terms.
const TERMS_BEHIND_MAX: u64 = 1 << 32;

/// Returns whether a message may be passed to the library.
pub(super) fn is_sound(raft: &RawNode<Log>, from: NodeId, message: &RaftMessage) -> bool {
    let me = raft.raft.id;
    let named = from.0 != raft::INVALID_ID && from.0 != me;
    let ahead = message.term.0.saturating_sub(raft.raft.term);
    if !named || !is_number(message.term.0) || ahead > TERMS_BEHIND_MAX {
        return false;
    }
    let last = raft.raft.raft_log.last_index();
    match &message.body {
        MessageBody::Append { after, entries, commit: _ } => {
            is_place(*after) && continues(*after, entries, message.term)
        }
        // Otherwise entries that were never sent would count as arrived.
        MessageBody::Appended { last: matched, commit: _ } => {
            matched.0 <= last || message.term.0 != raft.raft.term
        }
        MessageBody::NotAppended { after, hint, commit: _ } => hint.index <= *after,
        MessageBody::Snapshot(snapshot) => is_snapshot(snapshot, message.term),
        // An honest leader announces no more than it knows to have arrived here.
        MessageBody::Heartbeat { commit, read: _ } => {
            commit.0 <= last || message.term.0 < raft.raft.term
        }
        // A node that has been in no election yet has no term to refuse with.
        MessageBody::Vote { last, .. } => {
            let log = &raft.raft.raft_log;
            raft.raft.term > 0 || log.is_up_to_date(last.index.0, last.term.0)
        }
        MessageBody::VoteGranted { .. }
        | MessageBody::VoteRefused { .. }
        | MessageBody::HeartbeatAnswer { .. } => true,
        MessageBody::TimeoutNow => from.0 == raft.raft.leader_id,
    }
}

fn is_number(number: u64) -> bool {
    (1..=NUMBER_MAX).contains(&number)
}

/// Checks a log position. The library returns term 0 for every index it does not have, so a message
/// must not use it.
fn is_place(place: LogPlace) -> bool {
    is_number(place.index.0) && is_number(place.term.0)
}

/// Returns whether these entries can follow that position in the log of a leader of that term.
fn continues(after: LogPlace, entries: &[Entry], leader: Term) -> bool {
    let mut last = after;
    let in_order = entries.iter().all(|entry| {
        let next = LogIndex(last.index.0 + 1);
        let follows = entry.index == next && entry.term >= last.term;
        last = LogPlace { index: entry.index, term: entry.term };
        follows
    });
    in_order && last.term <= leader
}

fn is_snapshot(snapshot: &SnapshotData, leader: Term) -> bool {
    is_place(snapshot.at) && snapshot.at.term <= leader && snapshot.configuration.is_valid()
}
