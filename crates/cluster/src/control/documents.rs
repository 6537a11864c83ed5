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

/// The open requests of this node, the oldest first. One at a time is proposed: of two at once, one would be void.
#[derive(Default)]
pub(super) struct Writes {
    open: Vec<OpenWrite>,
    /// Time of the next question to members that have not followed yet.
    ask_at: Moment,
}

struct OpenWrite {
    id: u64,
    request: WriteRequest,
    state: WriteState,
    /// Time at which the state ends without a result.
    until: Moment,
}

enum WriteState {
    /// Waits for the ones before it.
    Queued,
    /// Proposed at this version of the documents.
    Proposed(LogIndex),
    /// Committed. These members have not said that they have applied it.
    Spreading { index: LogIndex, missing: BTreeSet<NodeId> },
}

impl Writes {
    pub(super) fn next_due(&self) -> Option<Moment> {
        let ends = self.open.iter().map(|write| write.until);
        let asks = self.open.iter().any(|it| matches!(it.state, WriteState::Spreading { .. }));
        ends.chain(asks.then_some(self.ask_at)).min()
    }
}

impl Control {
    pub(super) fn on_ask_write(&mut self, id: u64, request: WriteRequest) {
        let map = self.map.clone().expect("a member has a map");
        let refusal = if self.yielding.is_some() {
            Some("this side of the split cluster has ended in favour of another".to_owned())
        } else if self.writes.open.len() >= OPEN_MAX {
            Some("too many changes are under way; try again".to_owned())
        } else {
            objection_to_write(&map, &request)
        };
        if let Some(text) = refusal {
            return self.answer(id, Answer::Refused(text));
        }
        let until = self.now + OPERATOR_WAIT;
        self.writes.open.push(OpenWrite { id, request, state: WriteState::Queued, until });
        self.propose_next_write(&map);
    }

    /// Proposes the oldest queued write, unless another one is undecided.
    fn propose_next_write(&mut self, map: &Map) {
        let is_proposed = |write: &OpenWrite| matches!(write.state, WriteState::Proposed(_));
        while !self.writes.open.iter().any(is_proposed) {
            let is_queued = |write: &OpenWrite| matches!(write.state, WriteState::Queued);
            let Some(place) = self.writes.open.iter().position(is_queued) else { return };
            if let Some(text) = objection_to_write(map, &self.writes.open[place].request) {
                let write = self.writes.open.remove(place);
                self.answer(write.id, Answer::Refused(text));
                continue;
            }
            if map.documents().shows(&self.writes.open[place].request.documents) {
                self.spread(place);
                continue;
            }
            let expected = map.documents().version();
            let documents = self.writes.open[place].request.documents.clone();
            self.writes.open[place].state = WriteState::Proposed(expected);
            self.propose(None, vec![Change::Write { documents, expected }]);
        }
    }

    /// Waits from now on for the members to follow a write that the map shows.
    fn spread(&mut self, place: usize) {
        let (index, missing) = (self.applied, self.others().collect());
        let until = self.now + patience(self.lease());
        self.writes.ask_at = self.now;
        let write = &mut self.writes.open[place];
        (write.state, write.until) = (WriteState::Spreading { index, missing }, until);
    }

    /// Looks at every open write after the documents may have changed.
    pub(super) fn follow_writes(&mut self, map: &Map) {
        let version = map.documents().version();
        let others: BTreeSet<NodeId> = self.others().collect();
        for place in 0..self.writes.open.len() {
            let write = &mut self.writes.open[place];
            match &mut write.state {
                WriteState::Proposed(expected) if *expected != version => {
                    if map.documents().shows(&write.request.documents) {
                        self.spread(place);
                    } else {
                        write.state = WriteState::Queued; // Another write came first: this one is void.
                    }
                }
                WriteState::Queued | WriteState::Proposed(_) => {}
                WriteState::Spreading { missing, .. } => missing.retain(|it| others.contains(it)),
            }
        }
        self.propose_next_write(map);
    }

    /// Asks the members that have not followed yet, and answers the requests that are done or too old.
    pub(super) fn go_on_with_writes(&mut self) {
        if self.writes.open.is_empty() {
            return;
        }
        let now = self.now;
        for write in std::mem::take(&mut self.writes.open) {
            let is_late = write.until <= now;
            match &write.state {
                WriteState::Queued | WriteState::Proposed(_) if is_late => self.give_up(write),
                WriteState::Spreading { missing, .. } if is_late || missing.is_empty() => {
                    self.answer(write.id, Answer::Done);
                }
                WriteState::Queued | WriteState::Proposed(_) | WriteState::Spreading { .. } => {
                    self.writes.open.push(write);
                }
            }
        }
        if self.writes.ask_at <= now {
            self.writes.ask_at = now + ASK_AGAIN;
            let missing = self.writes.open.iter().filter_map(|write| match &write.state {
                WriteState::Spreading { missing, .. } => Some(missing),
                WriteState::Queued | WriteState::Proposed(_) => None,
            });
            let asked: BTreeSet<NodeId> = missing.flatten().copied().collect();
            self.send_all(asked, &Message::FollowAsk);
        }
        if let Some(map) = self.map.clone() {
            self.propose_next_write(&map);
        }
    }

    /// Answers a write that was not decided in time. It is not proposed again: later writes count.
    fn give_up(&mut self, write: OpenWrite) {
        let mut text = "no majority of the cluster was reached in time; nothing was changed";
        if let WriteState::Proposed(expected) = write.state {
            let documents = write.request.documents;
            self.proposals.withdraw(&[Change::Write { documents, expected }]);
            text =
                "no majority of the cluster was reached in time; the change may still take effect";
        }
        self.answer(write.id, Answer::Unknown(text.into()));
    }

    /// Answers all open writes of a process that ends.
    pub(super) fn end_writes(&mut self) {
        for write in std::mem::take(&mut self.writes.open) {
            let text = "this node is no member any more; the change may still take effect";
            self.answer(write.id, Answer::Unknown(text.into()));
        }
    }

    pub(super) fn on_follow_ask(&mut self, from: NodeId) {
        self.send(from, Message::Following(self.applied));
    }

    pub(super) fn on_following(&mut self, from: NodeId, applied: LogIndex) {
        for write in &mut self.writes.open {
            if let WriteState::Spreading { index, missing } = &mut write.state
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
