//! Recent changes of the map and decisions, each with its reason, for `status`.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

use crate::Moment;
use crate::balance::Decision;
use crate::consensus::LogEntry;
use crate::map::{Change, ChangeOutcome, DropReason, LeaveWay, LogIndex, RecreateSource};

/// Maximum number of changes, and of decisions, that are remembered.
const REMEMBERED_MAX: usize = 128;

#[derive(Default, Debug)]
pub struct ControlHistory {
    changes: VecDeque<PastChange>,
    decisions: VecDeque<(Moment, Decision)>,
}

/// A log entry that was applied while this process ran.
#[derive(Clone, Debug)]
pub struct PastChange {
    /// Time of the change, by this node's clock.
    pub at: Moment,
    pub index: LogIndex,
    pub entry: Arc<LogEntry>,
    pub outcomes: Vec<ChangeOutcome>,
}

impl ControlHistory {
    /// Returns the changes, the latest first.
    pub fn changes(&self) -> impl Iterator<Item = &PastChange> {
        self.changes.iter()
    }

    /// Returns the decisions, the latest first, each with its time.
    pub fn decisions(&self) -> impl Iterator<Item = &(Moment, Decision)> {
        self.decisions.iter()
    }

    pub(super) fn note_change(&mut self, change: PastChange) {
        self.changes.truncate(REMEMBERED_MAX - 1);
        self.changes.push_front(change);
    }

    pub(super) fn note_decision(&mut self, at: Moment, decision: Decision) {
        self.decisions.truncate(REMEMBERED_MAX - 1);
        self.decisions.push_front((at, decision));
    }
}

impl PastChange {
    /// Describes the changes in one line.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for (place, change) in self.entry.changes.iter().enumerate() {
            if place > 0 {
                line.push_str(", ");
            }
            line.push_str(&described(change));
            match self.outcomes.get(place) {
                Some(ChangeOutcome::Applied) => {}
                Some(ChangeOutcome::Void) => line.push_str(" (nothing to do)"),
                Some(ChangeOutcome::Stale) => line.push_str(" (too late)"),
                Some(ChangeOutcome::Refused(_)) => line.push_str(" (refused)"),
                None => line.push_str(" (not tried)"),
            }
        }
        line
    }

    /// Returns the reason of the change.
    pub fn reason(&self) -> &'static str {
        self.entry.changes.first().map_or("", |change| match change {
            Change::Join(_) => "a node joined, or its entry in the map changed",
            Change::Leave { way: LeaveWay::Safe, .. } => {
                "the node left after others had copies of all its buckets"
            }
            Change::Leave { way: LeaveWay::Quick, .. } => {
                "the node left the quick way, after handing over the buckets it served"
            }
            Change::Away { .. } => "the operator asked the node to leave for a while",
            Change::Forget(_) => "the node is back, or was away too long",
            Change::Dead(_) => "its lease has expired, so it cannot be serving",
            Change::AddBackup { .. } | Change::Promote { .. } => "balance",
            Change::DropBackup { because: DropReason::Balance, .. } => "balance",
            Change::DropBackup { because: DropReason::OutOfSync, .. } => "it fell out of sync",
            Change::Split(_) => {
                "too few buckets for the nodes, a bucket too large, or requested by the operator"
            }
            Change::Recreate { .. } => "all holders of the bucket were gone",
            Change::Set(_) => "set by the operator",
            Change::Yield(_) => "another side of the split cluster survives",
            Change::KeptCopiesHandedOver { .. } => {
                "the node has handed over its old copies, or has none"
            }
            Change::Write { .. } => "requested by a client",
        })
    }
}

fn described(change: &Change) -> String {
    match change {
        Change::Join(member) => format!("join {} {}", member.name, member.id),
        Change::Leave { node, .. } => format!("leave {node}"),
        Change::Away { node, absence, .. } => format!("leave {node} for {} s", absence.as_secs()),
        Change::Forget(node) => format!("release the reserved places of {node}"),
        Change::Dead(nodes) => {
            let mut text = String::from("dead");
            for node in nodes {
                let _ = write!(text, " {node}");
            }
            text
        }
        Change::AddBackup { bucket, node, .. } => format!("{bucket} add backup {node}"),
        Change::Promote { bucket, node, .. } => format!("{bucket} promote {node}"),
        Change::DropBackup { bucket, node, .. } => format!("{bucket} drop backup {node}"),
        Change::Split(buckets) => format!("split {} buckets", buckets.len()),
        Change::Recreate { bucket, node, from, .. } => {
            let from = match from {
                RecreateSource::OwnData => "its own data",
                RecreateSource::Snapshot => "an older copy",
                RecreateSource::Empty => "nothing",
            };
            format!("{bucket} recreate on {node} from {from}")
        }
        Change::Set(setting) => format!("set {setting:?}"),
        Change::Yield(generation) => {
            format!("yield to generation {} of {}", generation.counter, generation.founder)
        }
        Change::KeptCopiesHandedOver { node, buckets } => {
            format!("stop awaiting old copies of {} buckets from {node}", buckets.len())
        }
        Change::Write { documents, .. } => {
            let names: Vec<&str> = documents.iter().map(|write| write.name.as_str()).collect();
            format!("write {}", names.join(" "))
        }
    }
}
