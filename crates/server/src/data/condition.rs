//! Reports this node's condition for its load levels: what it holds, how busy it is, whether it is sick;
//! and the sizes of its buckets, because a bucket that has outgrown the rest is split.

use cluster::balance::{BucketSize, Condition, SizeReport, Vitals};
use placement::{Hashmask, Slot};
use settings::{EvictionPolicy, Settings};

use super::{Data, Notice};

impl Data {
    /// Reports to the control thread. Called by the janitor at intervals.
    pub(crate) fn report_condition(&self, vitals: Vitals) {
        self.notify(Notice::Vitals(vitals));
    }

    /// Reports the sizes of the buckets that this node serves. Returns those that are too large and cannot be split.
    pub(crate) fn report_sizes(&self) -> Vec<BucketSize> {
        let report = self.sizes();
        let one_slot = report.named().iter().filter(|size| size.is_one_slot()).copied().collect();
        self.notify(Notice::Sizes(report));
        one_slot
    }

    /// Returns the condition of a node that runs so many commands per second.
    pub(crate) fn vitals(&self, settings: &Settings, ops_per_second: u64) -> Vitals {
        let memory = &self.keyspace.memory;
        let bytes = memory.used();
        let full = settings.maxmemory != 0
            && memory.counted() > settings.maxmemory
            && settings.maxmemory_policy == EvictionPolicy::NoEviction;
        let backlogs = self.links.living();
        let backlogs = backlogs.iter().map(|link| link.unacknowledged_bytes() as u64);
        Vitals {
            bytes,
            ops_per_second,
            condition: if full { Condition::Sick } else { Condition::Well },
            lag_bytes: backlogs.sum(),
            fill: self.filling(),
        }
    }

    /// Returns the sizes of the buckets that this node serves.
    fn sizes(&self) -> SizeReport {
        let map = self.map();
        let mine = map.buckets().filter(|bucket| bucket.primary() == Some(self.me));
        let limit = map.settings().split_larger_than.bytes;
        SizeReport::new(limit, mine.map(|bucket| self.size_of(bucket.hashmask)))
    }

    fn size_of(&self, bucket: Hashmask) -> BucketSize {
        let mut size = BucketSize { bucket, bytes: 0, largest_slot_bytes: 0 };
        for slot in bucket.slots().filter_map(Slot::new) {
            let bytes = self.keyspace.lock_one(slot).table().bytes() as u64;
            size.bytes += bytes;
            size.largest_slot_bytes = size.largest_slot_bytes.max(bytes);
        }
        size
    }
}
