//! This node's proposals, until the map shows their outcome.
//!
//! A proposal may be lost on its way to the leader or with a leader, so it is repeated. That is
//! harmless (idempotent): a change of a bucket names the epoch it expects, and the second one is stale.

use std::collections::BTreeSet;
use std::time::Duration;

use super::lease::patience;
use super::{Action, Answer, Control, Message};
use crate::Moment;
use crate::consensus::LogEntry;
use crate::map::{Change, Epoch, Map};

/// Time without a decision after which a proposal is sent again.
const REPEAT: Duration = Duration::from_millis(250);
/// Timeout of an operator's request.
pub(super) const OPERATOR_WAIT: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Proposals {
    open: Vec<OpenProposal>,
}

struct OpenProposal {
    entry: LogEntry,
    again_at: Moment,
    asker: Option<Operator>,
}

/// An operator that waits for the outcome, and its timeout.
struct Operator {
    id: u64,
    until: Moment,
}

impl Proposals {
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.open.iter().map(|open| open.again_at).min()
    }

    /// Returns the oldest proposal that is due, marked as sent.
    fn take_due(&mut self, now: Moment) -> Option<LogEntry> {
        let open = self.open.iter_mut().find(|open| open.again_at <= now)?;
        open.again_at = now + REPEAT;
        Some(open.entry.clone())
    }

    fn add(&mut self, entry: LogEntry, now: Moment) {
        if self.open.iter().all(|open| open.entry != entry) {
            self.open.push(OpenProposal { entry, again_at: now, asker: None });
        }
    }

    /// Removes proposals that the map, or the log itself, shows to be decided; returns the operators
    /// waiting for them.
    fn take_decided(&mut self, map: &Map, applied: Option<&LogEntry>) -> Vec<u64> {
        let mut answered = Vec::new();
        self.open.retain(|open| {
            let is_decided = applied == Some(&open.entry) || is_entry_decided(map, &open.entry);
            if is_decided {
                answered.extend(open.asker.as_ref().map(|asker| asker.id));
            }
            !is_decided
        });
        answered
    }

    /// Stops repeating a proposal whose requester no longer waits for it.
    pub(super) fn withdraw(&mut self, changes: &[Change]) {
        self.open.retain(|open| open.entry.changes != changes);
    }

    fn take_expired(&mut self, now: Moment) -> Vec<u64> {
        let mut expired = Vec::new();
        self.open.retain(|open| match &open.asker {
            Some(asker) if asker.until <= now => {
                expired.push(asker.id);
                false
            }
            Some(_) | None => true,
        });
        expired
    }

    /// Returns the expected epoch of this node's undecided proposal to add this copy, if there is one.
    pub(super) fn adds(
        &self,
        bucket: placement::Hashmask,
        node: crate::map::NodeId,
    ) -> Option<Epoch> {
        let changes = self.open.iter().flat_map(|open| &open.entry.changes);
        changes.into_iter().find_map(|change| {
            let Change::AddBackup { bucket: added, node: to, expected } = change else {
                return None;
            };
            ((*added, *to) == (bucket, node)).then_some(*expected)
        })
    }

    /// Stops repeating the proposal to add this copy: another one at the same epoch takes its place.
    pub(super) fn withdraw_add(&mut self, bucket: placement::Hashmask, node: crate::map::NodeId) {
        let adds_it = |change: &Change| {
            matches!(change, Change::AddBackup { bucket: added, node: to, .. }
                if (*added, *to) == (bucket, node))
        };
        for open in &mut self.open {
            if open.entry.changes.iter().any(adds_it) {
                open.entry.changes.retain(|change| change.bucket() != Some(bucket));
            }
        }
        self.open.retain(|open| !open.entry.changes.is_empty());
    }
}

/// Returns whether the map shows that an entry was decided: the first change of each of its buckets was.
/// The others build on that one.
fn is_entry_decided(map: &Map, entry: &LogEntry) -> bool {
    let mut seen = BTreeSet::new();
    entry.changes.iter().all(|change| !seen.insert(change.bucket()) || is_decided(map, change))
}

/// Returns whether the map shows that a change has taken effect, or no longer can.
fn is_decided(map: &Map, change: &Change) -> bool {
    let passed = |bucket: &placement::Hashmask, expected: &Epoch| {
        map.bucket(*bucket).is_none_or(|bucket| bucket.epoch > *expected)
    };
    match change {
        Change::AddBackup { bucket, expected, .. }
        | Change::Promote { bucket, expected, .. }
        | Change::DropBackup { bucket, expected, .. }
        | Change::Recreate { bucket, expected, .. } => passed(bucket, expected),
        Change::Split(buckets) => buckets.iter().all(|(bucket, epoch)| passed(bucket, epoch)),
        // The same member may be confirmed on purpose: only the log itself shows that it was.
        Change::Join(member) => map.member(member.id).is_none(),
        Change::Leave { node, boot, .. } | Change::Away { node, boot, .. } => {
            map.member(*node).is_none_or(|member| member.boot != *boot)
        }
        Change::Forget(node) => map.away().all(|(away, _)| away != *node),
        Change::Dead(nodes) => nodes.iter().all(|node| map.member(*node).is_none()),
        Change::Set(_) => false,
        Change::Yield(_) => map.yielded_to().is_some(),
        Change::KeptCopiesHandedOver { node, buckets } => {
            buckets.iter().all(|it| !map.may_bring(*node, *it))
        }
        Change::Write { expected, .. } => map.documents().version() != *expected,
    }
}

impl Control {
    /// Proposes these changes, and repeats that until they are decided.
    pub(super) fn propose(&mut self, planned_at: Option<Epoch>, changes: Vec<Change>) {
        self.proposals.add(LogEntry { planned_at, changes }, self.now);
    }

    pub(super) fn propose_for(&mut self, id: u64, changes: Vec<Change>) {
        // A shorter lease waits for the longer ones to expire.
        let wait = OPERATOR_WAIT.max(2 * patience(self.lease()));
        let asker = Some(Operator { id, until: self.now + wait });
        let entry = LogEntry { planned_at: None, changes };
        self.proposals.open.push(OpenProposal { entry, again_at: self.now, asker });
    }

    /// Sends due proposals to the leader, or appends them to the log if this node leads.
    pub(super) fn send_proposals(&mut self) {
        while let Some(entry) = self.proposals.take_due(self.now) {
            match self.consensus.leader() {
                Some(leader) if leader == self.me.id => self.on_propose(self.me.peer(), entry),
                Some(leader) => self.send(leader, Message::Propose(entry)),
                None => {}
            }
        }
        for id in self.proposals.take_expired(self.now) {
            let text =
                "no majority of the cluster was reached in time; the change may still take effect";
            self.answer(id, Answer::Unknown(text.into()));
        }
    }

    pub(super) fn forget_decided(&mut self, applied: Option<&LogEntry>) {
        let Some(map) = &self.map else { return };
        for id in self.proposals.take_decided(map, applied) {
            self.answer(id, Answer::Done);
        }
    }

    pub(super) fn answer(&mut self, id: u64, answer: Answer) {
        self.out.push(Action::Answer { id, answer });
    }
}
