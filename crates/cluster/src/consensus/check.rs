//! Messages that the library must not see: it takes its peers for honest and its links for sound, and
//! ends the process when one of them contradicts what it knows. Here such a message is ignored.
//!
//! What is checked are the conditions of its assertions, and what would make it count an answer that
//! nobody can have given, or keep an entry that no leader can have sent. Whether a message is old, or
//! for somebody else to answer, it decides itself. Each condition has a test in `tests/liars.rs` that
//! fails without it.

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
        Body::Append { after, entries, commit: _ } => {
            is_place(*after) && continues(*after, entries, message.term)
        }
        // Or entries that were never sent would count as arrived.
        Body::Appended { last: matched, commit: _ } => {
            matched.0 <= last || message.term.0 != raft.raft.term
        }
        Body::NotAppended { after, hint, commit: _ } => hint.index <= *after,
        Body::Snapshot(snapshot) => is_snapshot(snapshot, message.term),
        // An honest leader says no more than it knows to have arrived here.
        Body::Heartbeat { commit, read: _ } => commit.0 <= last || message.term.0 < raft.raft.term,
        // Who has been in no election yet has no term to refuse with.
        Body::Vote { last, .. } => {
            let log = &raft.raft.raft_log;
            raft.raft.term > 0 || log.is_up_to_date(last.index.0, last.term.0)
        }
        Body::VoteGranted { .. } | Body::VoteRefused { .. } | Body::HeartbeatAnswer { .. } => true,
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
