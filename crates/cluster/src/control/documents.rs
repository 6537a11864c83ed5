//! Writing documents of the cluster: the request, its repetition when another write was committed first, and the
//! wait until every member follows the new documents.
//!
//! ~~~text
//! N       Propose           Write, with the version of the documents that N knows
//! N -> M  FollowAsk         to every member, once the write is committed
//! M -> N  Following i       M has applied the log up to i
//! ~~~
//!
//! A member that does not answer cannot serve with old documents for long: its lease ends, and the next one counts
//! only when the member has applied the write. So the wait ends after `patience` at the latest.

use std::collections::BTreeSet;
use std::time::Duration;

use super::lease::patience;
use super::proposals::OPERATOR_WAIT;
use super::{Answer, Control, Message};
use crate::Moment;
use crate::map::{Change, DocumentWrite, LogIndex, Map, NodeId};

/// Time without an answer after which a member is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// Maximum number of open requests: a client can make a new one before the last is decided.
const OPEN_MAX: usize = 1000;

/// A request to write documents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriteRequest {
    pub documents: Vec<DocumentWrite>,
    /// The version of the documents on which the request is based, if it is void when they have changed since.
    pub only_at: Option<LogIndex>,
}

/// The open requests of this node.
#[derive(Default)]
pub(super) struct Writes {
    open: Vec<OpenWrite>,
}

struct OpenWrite {
    id: u64,
    request: WriteRequest,
    state: WriteState,
    /// Time at which the state ends without a result.
    until: Moment,
}

enum WriteState {
    /// Proposed at this version of the documents.
    Proposed(LogIndex),
    /// Committed. These members have not said that they have applied it.
    Spreading { index: LogIndex, missing: BTreeSet<NodeId>, ask_at: Moment },
}

impl Writes {
    pub(super) fn next_due(&self) -> Option<Moment> {
        let due = |write: &OpenWrite| match write.state {
            WriteState::Proposed(_) => write.until,
            WriteState::Spreading { ask_at, .. } => ask_at.min(write.until),
        };
        self.open.iter().map(due).min()
    }
}

impl Control {
    pub(super) fn on_ask_write(&mut self, id: u64, request: WriteRequest) {
        let map = self.map.clone().expect("a member has a map");
        if let Some(text) = objection_to_write(&map, &request) {
            return self.answer(id, Answer::Refused(text));
        }
        if self.writes.open.len() >= OPEN_MAX {
            let text = "too many changes are under way; try again";
            return self.answer(id, Answer::Refused(text.into()));
        }
        let until = self.now + OPERATOR_WAIT;
        let version = map.documents().version();
        self.propose_write(&request, version);
        self.writes.open.push(OpenWrite {
            id,
            request,
            state: WriteState::Proposed(version),
            until,
        });
    }

    fn propose_write(&mut self, request: &WriteRequest, expected: LogIndex) {
        let documents = request.documents.clone();
        self.propose(None, vec![Change::Write { documents, expected }]);
    }

    /// Looks at every open write after the documents may have changed.
    pub(super) fn follow_writes(&mut self, map: &Map) {
        let (now, version) = (self.now, map.documents().version());
        let others: BTreeSet<NodeId> = self.others().collect();
        for mut write in std::mem::take(&mut self.writes.open) {
            match &mut write.state {
                WriteState::Proposed(expected) if *expected != version => {
                    if map.documents().shows(&write.request.documents) {
                        let (index, missing) = (self.applied, others.clone());
                        write.until = now + patience(self.lease());
                        write.state = WriteState::Spreading { index, missing, ask_at: now };
                    } else if let Some(text) = objection_to_write(map, &write.request) {
                        self.answer(write.id, Answer::Refused(text));
                        continue;
                    } else {
                        // Another write came first, and this one is void.
                        *expected = version;
                        self.propose_write(&write.request, version);
                    }
                }
                WriteState::Proposed(_) => {}
                WriteState::Spreading { missing, .. } => missing.retain(|it| others.contains(it)),
            }
            self.writes.open.push(write);
        }
    }

    /// Asks the members that have not followed yet, and answers the requests that are done or too old.
    pub(super) fn go_on_with_writes(&mut self) {
        let now = self.now;
        for mut write in std::mem::take(&mut self.writes.open) {
            let is_late = write.until <= now;
            match &mut write.state {
                WriteState::Proposed(_) if is_late => {
                    let text = "no majority of the cluster was reached in time; the change may still \
                                take effect";
                    self.answer(write.id, Answer::Unknown(text.into()));
                    continue;
                }
                WriteState::Spreading { missing, .. } if is_late || missing.is_empty() => {
                    self.answer(write.id, Answer::Done);
                    continue;
                }
                WriteState::Spreading { missing, ask_at, .. } if *ask_at <= now => {
                    *ask_at = now + ASK_AGAIN;
                    let asked: Vec<NodeId> = missing.iter().copied().collect();
                    self.send_all(asked, &Message::FollowAsk);
                }
                WriteState::Proposed(_) | WriteState::Spreading { .. } => {}
            }
            self.writes.open.push(write);
        }
    }

    pub(super) fn on_follow_ask(&mut self, from: NodeId) {
        self.send(from, Message::Following(self.applied));
    }

    pub(super) fn on_following(&mut self, from: NodeId, applied: LogIndex) {
        for write in &mut self.writes.open {
            if let WriteState::Spreading { index, missing, .. } = &mut write.state
                && applied >= *index
            {
                missing.remove(&from);
            }
        }
    }
}

/// Returns the reason a write cannot be made on this map.
pub(super) fn objection_to_write(map: &Map, request: &WriteRequest) -> Option<String> {
    if request.only_at.is_some_and(|version| version != map.documents().version()) {
        return Some("the documents of the cluster have changed meanwhile; try again".into());
    }
    map.documents().check(&request.documents).err().map(|error| error.to_string())
}
