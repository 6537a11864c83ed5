//! Handover: a bucket gets another primary, and at no moment do two serve it.
//!
//! The old primary pauses the bucket, reads included; when all its effects are acknowledged everywhere,
//! and only then, it proposes `Promote`. Whatever happens, it serves the bucket again only at a later
//! epoch. Commands that wait at either node run, or are redirected, when the map there has that epoch.
//! Buckets that move together are paused, drained and proposed together.

use std::collections::BTreeMap;

use placement::Hashmask;

use super::{Action, Control};
use crate::Moment;
use crate::consensus::LogEntry;
use crate::data::Order;
use crate::map::{Change, Epoch, Map};
use crate::rules::{Rule, is_enforced};

#[derive(Default)]
pub(super) struct Handovers {
    /// Buckets of this node that are paused, until they have a later epoch.
    given: BTreeMap<Hashmask, Given>,
}

struct Given {
    epoch: Epoch,
    state: HandoverState,
}

enum HandoverState {
    /// Acknowledgements are missing. After this time the handover is given up. `promotion` has the
    /// changes of this bucket only.
    Draining { promotion: LogEntry, until: Moment },
    /// Proposed: the promotion, or a void change in its place.
    Proposed,
}

impl Handovers {
    pub(super) fn next_due(&self) -> Option<Moment> {
        let draining = self.given.values().filter_map(|given| match given.state {
            HandoverState::Draining { until, .. } => Some(until),
            HandoverState::Proposed => None,
        });
        draining.min()
    }
}

impl Handovers {
    /// Asserts that each bucket that is paused could still be handed over at the epoch it was paused at.
    pub(super) fn check_invariants(&self, map: &Map) {
        for (bucket, given) in &self.given {
            let epoch = map.bucket(*bucket).map(|known| known.epoch);
            assert!(epoch.is_some_and(|epoch| epoch <= given.epoch), "{bucket} was handed over");
        }
    }
}

impl Control {
    /// Pauses the buckets of an entry that promotes one node for all of them; the promotions are proposed
    /// when they are drained.
    pub(super) fn begin_handover(&mut self, entry: LogEntry) {
        let Some(Change::Promote { node: to, .. }) = entry.changes.first() else { return };
        let to = *to;
        if !is_enforced(Rule::DrainBeforePromotion) {
            return self.propose(entry.planned_at, entry.changes);
        }
        let until = self.now + self.lease();
        let mut buckets = Vec::new();
        for (bucket, epoch, promotion) in promotions_of(entry) {
            if self.handovers.given.get(&bucket).is_some_and(|given| given.epoch >= epoch) {
                continue; // In progress, or given up at this very epoch.
            }
            let state = HandoverState::Draining { promotion, until };
            self.handovers.given.insert(bucket, Given { epoch, state });
            buckets.push((bucket, epoch));
        }
        if !buckets.is_empty() {
            self.out.push(Action::Order(Order::Pause { buckets, to }));
        }
    }

    /// Returns whether no handover from this node is in progress.
    pub(super) fn gives_nothing(&self) -> bool {
        self.handovers.given.is_empty()
    }

    pub(super) fn on_drained(&mut self, buckets: &[(Hashmask, Epoch)]) {
        let mut entry: Option<LogEntry> = None;
        for (bucket, epoch) in buckets {
            let given = self.handovers.given.get_mut(bucket);
            // Another epoch belongs to an earlier handover that failed.
            let Some(given) = given.filter(|given| given.epoch == *epoch) else { continue };
            if let HandoverState::Draining { promotion, .. } =
                std::mem::replace(&mut given.state, HandoverState::Proposed)
            {
                match &mut entry {
                    Some(entry) => entry.changes.extend(promotion.changes),
                    None => entry = Some(promotion),
                }
            }
        }
        if let Some(LogEntry { planned_at, changes }) = entry {
            self.propose(planned_at, changes);
        }
    }

    /// Gives up handovers that do not drain, by a change that only raises the epoch: only that proves
    /// that this node may serve the bucket again.
    pub(super) fn give_up_handovers(&mut self) {
        let (mut void, node) = (Vec::new(), self.me.id);
        for (bucket, given) in &mut self.handovers.given {
            if matches!(given.state, HandoverState::Draining { until, .. } if until <= self.now) {
                given.state = HandoverState::Proposed;
                void.push(Change::Promote { bucket: *bucket, node, expected: given.epoch });
            }
        }
        if !void.is_empty() {
            self.propose(None, void);
        }
    }

    /// Forgets handovers that the map shows to be over.
    pub(super) fn forget_handovers(&mut self, map: &Map) {
        self.handovers.given.retain(|bucket, given| {
            map.bucket(*bucket).is_some_and(|bucket| bucket.epoch <= given.epoch)
        });
    }
}

/// Splits an entry into the entries of its buckets, each with the bucket and the epoch its promotion
/// expects.
fn promotions_of(entry: LogEntry) -> Vec<(Hashmask, Epoch, LogEntry)> {
    let LogEntry { planned_at, changes } = entry;
    let mut promotions: Vec<(Hashmask, Epoch, LogEntry)> = Vec::new();
    for change in changes {
        if let Change::Promote { bucket, expected, .. } = change {
            let entry = LogEntry { planned_at, changes: vec![change] };
            promotions.push((bucket, expected, entry));
        } else if let Some((bucket, _, entry)) = promotions.last_mut() {
            debug_assert_eq!(change.bucket(), Some(*bucket), "changes follow their promotion");
            entry.changes.push(change);
        }
    }
    promotions
}
