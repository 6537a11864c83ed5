//! Reports this node's condition for its load levels: what it holds, how busy it is, whether it is sick;
//! and the sizes of its buckets, because a bucket that has outgrown the rest is split.

use cluster::balance::{Condition, Vitals};
use placement::{Hashmask, Slot};
use settings::{EvictionPolicy, Settings};

use super::{Data, Notice};

impl Data {
    /// Reports to the control thread. Called by the janitor at intervals.
    pub(crate) fn report_condition(&self, vitals: Vitals) {
        self.notify(Notice::Vitals(vitals));
        if self.has_bytes() {
            self.notify(Notice::Sizes(self.sizes()));
        }
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

    /// Returns the bytes in each bucket that this node serves.
    fn sizes(&self) -> Vec<(Hashmask, u64)> {
        let map = self.map();
        let mine = map.buckets().filter(|bucket| bucket.primary() == Some(self.me));
        mine.map(|bucket| (bucket.hashmask, self.bytes_in(bucket.hashmask))).collect()
    }

    fn bytes_in(&self, bucket: Hashmask) -> u64 {
        let slots = bucket.slots().filter_map(Slot::new);
        slots.map(|slot| self.keyspace.lock_one(slot).table().bytes() as u64).sum()
    }

    /// Returns whether any bucket can have outgrown the rest: none can while all together are small.
    fn has_bytes(&self) -> bool {
        self.keyspace.memory.used() > self.map().settings().split_larger_than.bytes
    }
}
