//! How long each bucket could not be written to, as its writers saw it: from when the first operation was
//! sent that did not come through until the next that did.
use std::sync::Mutex;
use std::time::{Duration, Instant};

use placement::{Hashmask, Mask, Slot};

/// Buckets as a cluster begins with them; a later split does not change what is counted together.
const MASK: Mask = Mask::M00FF;

#[derive(Clone, Copy, Default, Debug)]
struct Bucket {
    out_since: Option<Instant>,
    longest: Duration,
    /// When the longest ended.
    at: Option<Instant>,
}

#[derive(Debug)]
pub struct Outages {
    buckets: Vec<Mutex<Bucket>>,
}

/// The longest a bucket was out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    pub bucket: Hashmask,
    pub lasted: Duration,
    /// When it was over.
    pub until: Instant,
}

impl Default for Outages {
    fn default() -> Outages {
        let buckets = (0..MASK.buckets()).map(|_| Mutex::default()).collect();
        Outages { buckets }
    }
}

impl Outages {
    /// A write that was begun at `begun` has come through now.
    pub fn came_through(&self, slot: Slot, begun: Instant, now: Instant) {
        self.with(slot, |bucket| {
            let since = bucket.out_since.take().unwrap_or(begun).min(begun);
            let lasted = now.saturating_duration_since(since);
            if lasted > bucket.longest {
                (bucket.longest, bucket.at) = (lasted, Some(now));
            }
        });
    }

    /// A write that was begun at `begun` has not come through.
    pub fn failed(&self, slot: Slot, begun: Instant) {
        self.with(slot, |bucket| {
            let since = bucket.out_since.unwrap_or(begun);
            bucket.out_since = Some(since.min(begun));
        });
    }

    /// The longest of every bucket, the longest first.
    pub fn longest(&self) -> Vec<Outage> {
        let outage = |(bucket, state): (Hashmask, &Mutex<Bucket>)| {
            let state = *state.lock().expect("nobody panics while counting");
            state.at.map(|until| Outage { bucket, lasted: state.longest, until })
        };
        let mut all: Vec<Outage> =
            Hashmask::all(MASK).zip(&self.buckets).filter_map(outage).collect();
        all.sort_by_key(|outage| std::cmp::Reverse(outage.lasted));
        all
    }

    fn with(&self, slot: Slot, act: impl FnOnce(&mut Bucket)) {
        let index = usize::from(Hashmask::of_slot(MASK, slot).value());
        act(&mut self.buckets[index].lock().expect("nobody panics while counting"));
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
        let longest = outages.longest();
        assert_eq!(longest.len(), 1, "only one bucket was used");
        assert_eq!(longest[0].lasted, Duration::from_millis(1_000));
        assert_eq!(longest[0].until, at(1_010));
        assert_eq!(longest[0].bucket, Hashmask::of_slot(MASK, slot));
    }
}
