//! The effects of one command, EXEC or script, until they are shipped: a backup applies all of a slot's effects
//! or none.

use std::borrow::Cow;
use std::collections::BTreeMap;

use placement::Slot;
use store::{Effect, Recorded, Version};

#[derive(Default)]
pub struct EffectLog {
    bytes: Vec<u8>,
    runs: Vec<EffectRun>,
}

/// Consecutive effects of one slot.
#[derive(Clone, Copy, Debug)]
struct EffectRun {
    slot: Slot,
    /// Offset of the first effect.
    start: usize,
}

/// Capacity that an empty log keeps.
const CAPACITY_KEPT: usize = 64 * 1024;

impl EffectLog {
    #[inline]
    pub fn record(&mut self, slot: Slot, previous: Version, version: Version, effect: &Effect<'_>) {
        if self.runs.last().is_none_or(|run| run.slot != slot) {
            self.runs.push(EffectRun { slot, start: self.bytes.len() });
        }
        Recorded::write(slot, (previous, version), effect, &mut self.bytes);
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub fn is_of_one_slot(&self) -> bool {
        self.runs.len() <= 1
    }

    /// Returns the recorded effects in runs of one slot: each is a unit that `store::Recorded` reads.
    pub fn units(&self) -> impl Iterator<Item = (Slot, &[u8])> {
        self.runs.iter().enumerate().map(|(index, run)| {
            let end = self.runs.get(index + 1).map_or(self.bytes.len(), |next| next.start);
            (run.slot, &self.bytes[run.start..end])
        })
    }

    /// Returns one unit per slot, even if effects of other slots came in between.
    pub fn units_by_slot(&self) -> BTreeMap<Slot, Cow<'_, [u8]>> {
        let mut units: BTreeMap<Slot, Cow<'_, [u8]>> = BTreeMap::new();
        for (slot, unit) in self.units() {
            units
                .entry(slot)
                .and_modify(|known| known.to_mut().extend_from_slice(unit))
                .or_insert(Cow::Borrowed(unit));
        }
        units
    }

    /// Returns all recorded bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Drops the recorded effects.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(CAPACITY_KEPT);
        self.runs.clear();
    }
}
