//! Messages that the library must not see: it takes its peers for honest and its links for sound, and
//! ends the process when one of them contradicts what it knows. Here such a message is ignored.
//!
//! What is checked are the conditions of the library's assertions, no more: whether a message is old,
//! or for somebody else to answer, it decides itself.

use raft::RawNode;

use super::log::Log;
use super::{Body, Entry, LogPlace, RaftMessage, SnapshotData, Term};
use crate::map::{LogIndex, NodeId};

/// Terms and indexes above this are nonsense; below it the library's sums cannot overflow.
const NUMBER_MAX: u64 = 1 << 62;
/// Nobody is so many elections behind. Without this, one message could use up all terms there are.
const TERMS_BEHIND_MAX: u64 = 1 << 32;

/// Whether a message may go to the library.
pub(super) fn is_sound(raft: &RawNode<Log>, from: NodeId, message: &RaftMessage) -> bool {
    let me = raft.raft.id;
    let named = from.0 != raft::INVALID_ID && from.0 != me;
    let ahead = message.term.0.saturating_sub(raft.raft.term);
    if !named || !is_number(message.term.0) || ahead > TERMS_BEHIND_MAX {
        return false;
    }
    let last = raft.raft.raft_log.last_index();
    match &message.body {
        Body::Append { after, entries, commit } => {
            is_place(*after) && is_number(commit.0) && continues(*after, entries, message.term)
        }
        Body::Appended { last: matched, commit } => {
            (matched.0 <= last || message.term.0 != raft.raft.term) && commit.0 <= NUMBER_MAX
        }
        Body::NotAppended { after, hint, commit } => {
            hint.index <= *after && after.0 <= NUMBER_MAX && commit.0 <= NUMBER_MAX
        }
        Body::Vote { ballot: _, last, commit } => is_place(*last) && is_place(*commit),
        Body::VoteGranted { ballot: _ } => true,
        Body::VoteRefused { ballot: _, commit } => commit.index.0 <= NUMBER_MAX,
        Body::Snapshot(snapshot) => is_snapshot(snapshot, message.term),
        // An honest leader says no more than it knows to have arrived here.
        Body::Heartbeat { commit, read: _ } => commit.0 <= last || message.term.0 < raft.raft.term,
        Body::HeartbeatAnswer { commit, read: _ } => commit.0 <= NUMBER_MAX,
        Body::TimeoutNow => from.0 == raft.raft.leader_id,
    }
}

fn is_number(number: u64) -> bool {
    (1..=NUMBER_MAX).contains(&number)
}

/// The library says 0 is the term of every index it does not have, so a message must not.
fn is_place(place: LogPlace) -> bool {
    is_number(place.index.0) && is_number(place.term.0)
}

/// Whether these entries can follow that place in the log of a leader of that term.
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
