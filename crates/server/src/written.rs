//! Slots that a connection has written, and how many backups have all of it: the answer to WAIT.

use std::time::Instant;

use placement::Slot;

use crate::shared::Shared;

/// More slots than these are not told apart: every slot of the node counts then.
const SLOTS_MAX: usize = 256;

#[derive(Default)]
pub(crate) struct Written {
    /// In ascending order.
    slots: Vec<Slot>,
    too_many: bool,
}

/// The end of a WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitUntil {
    At(Instant),
    ForEver,
}

impl WaitUntil {
    pub(crate) fn at(self) -> Option<Instant> {
        match self {
            WaitUntil::At(at) => Some(at),
            WaitUntil::ForEver => None,
        }
    }

    pub(crate) fn is_over(self) -> bool {
        self.at().is_some_and(|at| at <= Instant::now())
    }
}

impl Written {
    pub(crate) fn note(&mut self, slots: &[Slot]) {
        for slot in slots {
            if self.too_many {
                return;
            }
            if let Err(place) = self.slots.binary_search(slot) {
                self.slots.insert(place, *slot);
            }
            self.too_many = self.slots.len() > SLOTS_MAX;
        }
    }

    /// The number of backups that have everything this connection has written to slots that this node still
    /// serves. What it wrote to others was acknowledged when they were handed over. Without a lease nobody
    /// can say.
    pub(crate) fn backups(&self, shared: &Shared, has_lease: bool) -> usize {
        if !has_lease {
            return 0;
        }
        if self.too_many {
            return fewest(Slot::all().filter_map(|slot| backups_of(shared, slot))).unwrap_or(0);
        }
        let known = self.slots.iter().filter_map(|slot| backups_of(shared, *slot));
        fewest(known).unwrap_or_else(|| backups_in_map(shared))
    }
}

fn fewest(counts: impl Iterator<Item = usize>) -> Option<usize> {
    counts.min()
}

/// The number of backups that have all of a slot, if it is served here.
fn backups_of(shared: &Shared, slot: Slot) -> Option<usize> {
    let state = shared.keyspace.lock_one(slot);
    let duty = state.duty();
    duty.is_primary().then(|| duty.backups_in_sync(|link| shared.data.links.acked(link)))
}

/// For a connection that has written nothing: the fewest backups of any bucket that this node serves.
fn backups_in_map(shared: &Shared) -> usize {
    let map = shared.map();
    let mine = map.buckets().filter(|bucket| bucket.primary() == Some(shared.data.me));
    fewest(mine.map(|bucket| bucket.backups().len())).unwrap_or(0)
}
