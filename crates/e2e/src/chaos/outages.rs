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
    buckets: Vec<Mutex<Bucket>>,
    all: Mutex<Vec<Outage>>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Bucket {
    /// When the first write was sent that did not come through.
    out_since: Option<Instant>,
    /// When a write last came through: whoever waited longer waited for something else.
    answered: Option<Instant>,
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
        let buckets = (0..MASK.buckets()).map(|_| Mutex::default()).collect();
        Outages { buckets, all: Mutex::default() }
    }
}

impl Outages {
    /// Records that a write that was begun at `begun` has come through now.
    pub fn came_through(&self, slot: Slot, begun: Instant, now: Instant) {
        let since = self.with(slot, |bucket| {
            let since = bucket.without_answer_since(begun);
            *bucket = Bucket { out_since: None, answered: bucket.answered.max(Some(now)) };
            since
        });
        let outage = Outage { bucket: Hashmask::of_slot(MASK, slot), since, until: now };
        if outage.lasted() >= OUTAGE_MIN {
            self.all.lock().expect("nothing panics while counting").push(outage);
        }
    }

    /// Records that a write that was begun at `begun` has not come through.
    pub fn failed(&self, slot: Slot, begun: Instant) {
        self.with(slot, |bucket| bucket.out_since = Some(bucket.without_answer_since(begun)));
    }

    pub fn all(&self) -> Vec<Outage> {
        self.all.lock().expect("nothing panics while counting").clone()
    }

    fn with<T>(&self, slot: Slot, act: impl FnOnce(&mut Bucket) -> T) -> T {
        let index = usize::from(Hashmask::of_slot(MASK, slot).value());
        act(&mut self.buckets[index].lock().expect("nothing panics while counting"))
    }
}

impl Bucket {
    /// The beginning of the time without an answer, for a write begun at `begun`.
    fn without_answer_since(&self, begun: Instant) -> Instant {
        let since = self.out_since.unwrap_or(begun).min(begun);
        self.answered.map_or(since, |answered| since.max(answered))
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

    #[test]
    fn a_client_that_waits_while_others_are_answered_sees_no_outage() {
        let outages = Outages::default();
        let (slot, start) = (Slot::of(b"k"), Instant::now());
        let at = |millis: u64| start + Duration::from_millis(millis);
        outages.came_through(slot, at(3_000), at(3_001));
        outages.came_through(slot, at(0), at(3_050));
        assert_eq!(outages.all(), []);
    }
}
