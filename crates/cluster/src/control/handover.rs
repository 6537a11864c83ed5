//! Handover: a bucket gets another primary, and at no moment do two serve it.
//!
//! The old primary pauses the bucket, reads included; when all its effects are acknowledged everywhere,
//! and only then, it proposes `Promote`. Whatever happens, it serves the bucket again only at a later
//! epoch. Commands that wait at either node run, or are redirected, when the map there has that epoch.

use std::collections::BTreeMap;

use placement::Hashmask;

use super::{Action, Control};
use crate::Moment;
use crate::consensus::LogEntry;
use crate::data::Order;
use crate::map::{Change, Epoch, Map};
use crate::rules::{Rule, holds};

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
    /// Acknowledgements are missing. After this time the handover is given up.
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
    /// Pauses the bucket; the promotion is proposed when it is drained.
    pub(super) fn begin_handover(&mut self, promotion: LogEntry) {
        let Some(Change::Promote { bucket, node: to, expected: epoch }) =
            promotion.changes.first().cloned()
        else {
            return;
        };
        if !holds(Rule::DrainBeforePromotion) {
            return self.propose(promotion.planned_at, promotion.changes);
        }
        if self.handovers.given.get(&bucket).is_some_and(|given| given.epoch >= epoch) {
            return; // In progress, or given up at this very epoch.
        }
        let until = self.now + self.lease();
        let state = HandoverState::Draining { promotion, until };
        self.handovers.given.insert(bucket, Given { epoch, state });
        self.out.push(Action::Order(Order::Pause { bucket, epoch, to }));
    }

    /// Returns whether no handover from this node is in progress.
    pub(super) fn gives_nothing(&self) -> bool {
        self.handovers.given.is_empty()
    }

    pub(super) fn on_drained(&mut self, bucket: Hashmask, epoch: Epoch) {
        let Some(given) = self.handovers.given.get_mut(&bucket) else { return };
        if given.epoch != epoch {
            return; // Belongs to an earlier handover that failed.
        }
        if let HandoverState::Draining { promotion, .. } =
            std::mem::replace(&mut given.state, HandoverState::Proposed)
        {
            self.propose(promotion.planned_at, promotion.changes);
        }
    }

    /// Gives up handovers that do not drain, by a change that only raises the epoch: only that proves
    /// that this node may serve the bucket again.
    pub(super) fn give_up_handovers(&mut self) {
        let mut void = Vec::new();
        for (bucket, given) in &mut self.handovers.given {
            if matches!(given.state, HandoverState::Draining { until, .. } if until <= self.now) {
                given.state = HandoverState::Proposed;
                void.push((*bucket, given.epoch));
            }
        }
        for (bucket, expected) in void {
            let node = self.me.id;
            self.propose(None, vec![Change::Promote { bucket, node, expected }]);
        }
    }

    /// Forgets handovers that the map shows to be over.
    pub(super) fn forget_handovers(&mut self, map: &Map) {
        self.handovers.given.retain(|bucket, given| {
            map.bucket(*bucket).is_some_and(|bucket| bucket.epoch <= given.epoch)
        });
    }
}
