//! Outages of buckets, as their writers saw them: from the moment the first failed operation was
//! sent until the next success, or until the last failure if nobody tried again soon. `causes.rs`
//! finds the fault that each belongs to.
use std::sync::Mutex;
use std::time::{Duration, Instant};

use placement::{Hashmask, Mask, Slot};

/// Buckets as a cluster begins with them; a later split does not change this grouping.
const MASK: Mask = Mask::M00FF;
/// Minimum duration of an outage; a shorter wait is not counted.
const OUTAGE_MIN: Duration = Duration::from_millis(100);
/// Maximum time without an attempt: after it nobody knows whether the bucket is still out. A key
/// whose fate is unknown gets another name, and its bucket may have no other key.
const UNTRIED_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Outages {
    buckets: Vec<Mutex<Bucket>>,
    all: Mutex<Vec<Outage>>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Bucket {
    out: Option<Out>,
    /// Time of the last successful write: a write that waited since before then had another reason to wait.
    answered: Option<Instant>,
}

/// An outage that is not known to have ended.
#[derive(Clone, Copy, Debug)]
struct Out {
    /// Time at which the first failed write was sent.
    since: Instant,
    /// Time of the last failure.
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
    /// Records that a write begun at `begun` has succeeded at `now`.
    pub fn came_through(&self, slot: Slot, begun: Instant, now: Instant) {
        self.forget_untried(slot, begun);
        let since = self.with(slot, |bucket| {
            let since = bucket.without_answer_since(begun);
            *bucket = Bucket { out: None, answered: bucket.answered.max(Some(now)) };
            since
        });
        self.record(slot, since, now);
    }

    /// Records that a write begun at `begun` has failed at `now`.
    pub fn failed(&self, slot: Slot, begun: Instant, now: Instant) {
        self.forget_untried(slot, begun);
        self.with(slot, |bucket| {
            let failed = bucket.out.map_or(now, |out| out.failed.max(now));
            bucket.out = Some(Out { since: bucket.without_answer_since(begun), failed });
        });
    }

    /// Returns all outages, including those that have not ended.
    pub fn all(&self) -> Vec<Outage> {
        let mut all = self.all.lock().expect("nothing panics while counting").clone();
        for (value, bucket) in (0..).zip(&self.buckets) {
            let Some(out) = bucket.lock().expect("nothing panics while counting").out else {
                continue;
            };
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

/// Returns the bucket with this value of the mask.
fn bucket_of(value: u16) -> Hashmask {
    Hashmask::new(MASK, value).expect("there is one for each value of the mask")
}

impl Bucket {
    /// Returns the beginning of the time without an answer, for a write begun at `begun`.
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
