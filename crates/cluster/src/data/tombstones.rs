//! Limits on the tombstones a node keeps since the split brain: their number and their age. Tombstones beyond
//! the limits are dropped, and the slot records that its tombstones are incomplete (`store::DivergenceLog`).

use std::time::Duration;

use placement::Slot;

use super::Plane;
use crate::Moment;

const TOMBS_MAX: usize = 1_000_000;
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct TombstoneLimits {
    look_due: Moment,
    /// The time at which this process first saw that another side may be running.
    parted: Option<Moment>,
}

impl TombstoneLimits {
    pub(super) fn look(&mut self, now: Moment, plane: &impl Plane) {
        if !plane.map().keeps_divergence() {
            self.parted = None;
            return;
        }
        if now < self.look_due {
            return;
        }
        self.look_due = now + LOOK_INTERVAL;
        let parted = *self.parted.get_or_insert(now);
        let max = if now > parted + KEPT_FOR { 0 } else { TOMBS_MAX };
        forget_beyond(max, plane);
    }
}

/// Drops the tombstones of whole slots, those with most first, until at most `max` are left.
fn forget_beyond(max: usize, plane: &impl Plane) {
    let count = |slot: Slot| {
        let count =
            plane.with_slot(slot, |it| it.table.divergence().map_or(0, |it| it.tombstone_count()));
        (count > 0).then_some((count, slot))
    };
    let mut counts: Vec<(usize, Slot)> = Slot::all().filter_map(count).collect();
    let mut all: usize = counts.iter().map(|(count, _)| count).sum();
    counts.sort_unstable();
    while let Some((count, slot)) = counts.pop().filter(|_| all > max) {
        // The memory gauge polls the allocator often enough to notice.
        plane.with_slot(slot, |state| drop(state.table.forget_tombstones()));
        all -= count;
    }
}
