//! Outages of buckets, as their writers saw them: from when the first operation was sent that did not come
//! through until the next that did. `causes.rs` tells which fault each belongs to.
use std::sync::Mutex;
use std::time::{Duration, Instant};

use placement::{Hashmask, Mask, Slot};

/// Buckets as a cluster begins with them; a later split does not change what is counted together.
const MASK: Mask = Mask::M00FF;
/// A shorter wait is no outage.
const OUTAGE_MIN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Outages {
    /// When the first write was sent that did not come through, by bucket.
    out_since: Vec<Mutex<Option<Instant>>>,
    all: Mutex<Vec<Outage>>,
}

/// A time during which a bucket could not be written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    pub bucket: Hashmask,
    pub since: Instant,
    pub until: Instant,
}

impl Outage {
    pub fn lasted(&self) -> Duration {
        self.until.saturating_duration_since(self.since)
    }
}

impl Default for Outages {
    fn default() -> Outages {
        let out_since = (0..MASK.buckets()).map(|_| Mutex::default()).collect();
        Outages { out_since, all: Mutex::default() }
    }
}

impl Outages {
    /// Records that a write that was begun at `begun` has come through now.
    pub fn came_through(&self, slot: Slot, begun: Instant, now: Instant) {
        let since = self.with(slot, Option::take).unwrap_or(begun).min(begun);
        let outage = Outage { bucket: Hashmask::of_slot(MASK, slot), since, until: now };
        if outage.lasted() >= OUTAGE_MIN {
            self.all.lock().expect("nothing panics while counting").push(outage);
        }
    }

    /// Records that a write that was begun at `begun` has not come through.
    pub fn failed(&self, slot: Slot, begun: Instant) {
        self.with(slot, |out_since| {
            let since = out_since.unwrap_or(begun);
            *out_since = Some(since.min(begun));
        });
    }

    pub fn all(&self) -> Vec<Outage> {
        self.all.lock().expect("nothing panics while counting").clone()
    }

    fn with<T>(&self, slot: Slot, act: impl FnOnce(&mut Option<Instant>) -> T) -> T {
        let index = usize::from(Hashmask::of_slot(MASK, slot).value());
        act(&mut self.out_since[index].lock().expect("nothing panics while counting"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_lasts_from_the_first_failure_to_the_next_success() {
        let outages = Outages::default();
        let slot = Slot::of(b"k");
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        outages.came_through(slot, at(0), at(2));
        outages.failed(slot, at(10));
        outages.failed(slot, at(400));
        outages.came_through(slot, at(900), at(1_010));
        outages.came_through(slot, at(2_000), at(2_500));
        let outage = |since, until| {
            let bucket = Hashmask::of_slot(MASK, slot);
            Outage { bucket, since: at(since), until: at(until) }
        };
        assert_eq!(outages.all(), [outage(10, 1_010), outage(2_000, 2_500)]);
    }
}
