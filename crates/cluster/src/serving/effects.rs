//! The effects of one command, EXEC or script, until they are shipped: a backup applies all or none of what
//! was done to a slot.

use std::borrow::Cow;
use std::collections::BTreeMap;

use placement::Slot;
use store::{Effect, Recorded, Version};

#[derive(Default)]
pub struct EffectLog {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

/// Effects of one slot that stand together.
#[derive(Clone, Copy, Debug)]
struct Run {
    slot: Slot,
    /// Where they begin.
    start: usize,
}

/// Memory that an empty log keeps.
const CAPACITY_KEPT: usize = 64 * 1024;

impl EffectLog {
    #[inline]
    pub fn record(&mut self, slot: Slot, previous: Version, version: Version, effect: &Effect<'_>) {
        if self.runs.last().is_none_or(|run| run.slot != slot) {
            self.runs.push(Run { slot, start: self.bytes.len() });
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

    /// What was recorded, slot by slot: each a unit that `store::Recorded` reads.
    pub fn units(&self) -> impl Iterator<Item = (Slot, &[u8])> {
        self.runs.iter().enumerate().map(|(index, run)| {
            let end = self.runs.get(index + 1).map_or(self.bytes.len(), |next| next.start);
            (run.slot, &self.bytes[run.start..end])
        })
    }

    /// The same with all that was done to one slot in one unit, also if other slots came in between.
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

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what was recorded.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(CAPACITY_KEPT);
        self.runs.clear();
    }
}
