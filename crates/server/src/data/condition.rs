//! Reports this node's condition for its load levels: what it holds, how busy it is, whether it is sick;
//! and the sizes of its buckets, because a bucket that has outgrown the rest is split.

use std::collections::BTreeMap;

use cluster::balance::{BucketSize, Condition, MemoryLevel, MemoryReport, SizeReport, Vitals};
use cluster::map::Bucket;
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
        let is_sick = self.stalled.lock().is_some();
        let backlogs = self.links.living();
        let backlogs = backlogs.iter().map(|link| link.unacknowledged_bytes() as u64);
        Vitals {
            bytes,
            ops_per_second,
            condition: if is_sick { Condition::Sick } else { Condition::Well },
            memory: self.memory_level(settings),
            lag_bytes: backlogs.sum(),
            fill: self.filling(),
        }
    }

    pub(crate) fn memory_level(&self, settings: &Settings) -> MemoryLevel {
        let evicts = settings.maxmemory_policy != EvictionPolicy::NoEviction;
        MemoryLevel { used: self.keyspace.memory.counted(), max: settings.maxmemory, evicts }
    }

    /// Reports the memory of a node near its limit, with the sizes of its copies; adjusts the limit for its own
    /// keys. Called at intervals.
    pub(crate) fn report_memory(&self, settings: &Settings) {
        let (level, map) = (self.memory_level(settings), self.map());
        let base = self.keyspace.memory.startup();
        let mut report = MemoryReport { level, base, copies: BTreeMap::new() };
        if level.is_near_limit() {
            let held = map.buckets().filter(|bucket| bucket.is_held_by(self.me));
            let size = |bucket: &Bucket| (bucket.hashmask, self.size_of(bucket.hashmask).bytes);
            report.copies = held.map(size).collect();
        }
        self.keyspace.memory.set_own_limit(report.own_limit(&map, self.me), level.used);
        self.notify(Notice::Memory(report));
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
