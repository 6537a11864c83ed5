//! Outages of buckets, as their writers saw them: from when the first operation was sent that did not come
//! through until the next that did, or until the last that did not if nobody tried again soon. `causes.rs` tells
//! which fault each belongs to.
use std::sync::Mutex;
use std::time::{Duration, Instant};

use placement::{Hashmask, Mask, Slot};

/// Buckets as a cluster begins with them; a later split does not change what is counted together.
const MASK: Mask = Mask::M00FF;
/// A shorter wait is no outage.
const OUTAGE_MIN: Duration = Duration::from_millis(100);
/// After so long without an attempt nobody knows whether the bucket is out. A key whose fate is unknown gets
/// another name, and its bucket may have no other key.
const UNTRIED_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Outages {
    buckets: Vec<Mutex<Bucket>>,
    all: Mutex<Vec<Outage>>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Bucket {
    out: Option<Out>,
    /// When a write last came through: whoever waited longer waited for something else.
    answered: Option<Instant>,
}

/// An outage that has not ended as far as anybody knows.
#[derive(Clone, Copy, Debug)]
struct Out {
    /// When the first write was sent that did not come through.
    since: Instant,
    /// When the last write failed.
    failed: Instant,
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
        self.forget_untried(slot, begun);
        let since = self.with(slot, |bucket| {
            let since = bucket.without_answer_since(begun);
            *bucket = Bucket { out: None, answered: bucket.answered.max(Some(now)) };
            since
        });
        self.record(slot, since, now);
    }

    /// Records that a write that was begun at `begun` has failed now.
    pub fn failed(&self, slot: Slot, begun: Instant, now: Instant) {
        self.forget_untried(slot, begun);
        self.with(slot, |bucket| {
            let failed = bucket.out.map_or(now, |out| out.failed.max(now));
            bucket.out = Some(Out { since: bucket.without_answer_since(begun), failed });
        });
    }

    /// Returns all outages, those included that have not ended.
    pub fn all(&self) -> Vec<Outage> {
        let mut all = self.all.lock().expect("nothing panics while counting").clone();
        for (value, bucket) in (0..).zip(&self.buckets) {
            let Some(out) = bucket.lock().expect("nothing panics while counting").out else { continue };
            let outage = Outage { bucket: bucket_of(value), since: out.since, until: out.failed };
            all.extend((outage.lasted() >= OUTAGE_MIN).then_some(outage));
        }
        all
    }

    /// Ends an outage with its last failure if nobody tried for long after it.
    fn forget_untried(&self, slot: Slot, begun: Instant) {
        let is_untried = |out: &mut Out| begun > out.failed + UNTRIED_MAX;
        if let Some(out) = self.with(slot, |bucket| bucket.out.take_if(is_untried)) {
            self.record(slot, out.since, out.failed);
        }
    }

    fn record(&self, slot: Slot, since: Instant, until: Instant) {
        let outage = Outage { bucket: Hashmask::of_slot(MASK, slot), since, until };
        if outage.lasted() >= OUTAGE_MIN {
            self.all.lock().expect("nothing panics while counting").push(outage);
        }
    }

    fn with<T>(&self, slot: Slot, act: impl FnOnce(&mut Bucket) -> T) -> T {
        let index = usize::from(Hashmask::of_slot(MASK, slot).value());
        act(&mut self.buckets[index].lock().expect("nothing panics while counting"))
    }
}

/// The bucket with this value of the mask.
fn bucket_of(value: u16) -> Hashmask {
    Hashmask::new(MASK, value).expect("there is one for each value of the mask")
}

impl Bucket {
    /// The beginning of the time without an answer, for a write begun at `begun`.
    fn without_answer_since(&self, begun: Instant) -> Instant {
        let since = self.out.map_or(begun, |out| out.since.min(begun));
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
        outages.failed(slot, at(10), at(300));
        outages.failed(slot, at(400), at(800));
        outages.came_through(slot, at(900), at(1_010));
        outages.came_through(slot, at(2_000), at(2_500));
        let outage = |since, until| {
            let bucket = Hashmask::of_slot(MASK, slot);
            Outage { bucket, since: at(since), until: at(until) }
        };
        assert_eq!(outages.all(), [outage(10, 1_010), outage(2_000, 2_500)]);
    }

    #[test]
    fn an_outage_ends_with_its_last_failure_if_nobody_tries_again_soon() {
        let outages = Outages::default();
        let slot = Slot::of(b"k");
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let bucket = Hashmask::of_slot(MASK, slot);
        let outage = |since, until| Outage { bucket, since: at(since), until: at(until) };
        outages.failed(slot, at(0), at(500));
        outages.failed(slot, at(600), at(1_100));
        outages.came_through(slot, at(80_000), at(80_001));
        assert_eq!(outages.all(), [outage(0, 1_100)]);
        outages.failed(slot, at(90_000), at(90_500));
        assert_eq!(outages.all(), [outage(0, 1_100), outage(90_000, 90_500)], "it has not ended");
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
