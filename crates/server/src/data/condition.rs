//! Reports this node's condition for its load levels: what it holds, how busy it is, whether it is sick;
//! and the sizes of its buckets, because a bucket that has outgrown the rest is split.

use cluster::balance::{Condition, Vitals};
use commands::settings::EvictionPolicy;
use placement::{Hashmask, Slot};

use super::Notice;
use crate::shared::Shared;

/// Reports to the control thread. Called by the janitor at intervals.
pub(crate) fn report_condition(shared: &Shared) {
    shared.data.notify(Notice::Vitals(vitals(shared)));
    if shared.data.has_bytes(shared) {
        shared.data.notify(Notice::Sizes(sizes(shared)));
    }
}

pub(crate) fn vitals(shared: &Shared) -> Vitals {
    let settings = shared.settings.load();
    let bytes = shared.data.keyspace.memory.used();
    let full = settings.maxmemory != 0
        && shared.data.keyspace.memory.counted() > settings.maxmemory
        && settings.maxmemory_policy == EvictionPolicy::NoEviction;
    Vitals {
        bytes,
        ops_per_second: shared.watching.rates.per_second().commands,
        condition: if full { Condition::Sick } else { Condition::Well },
        lag_bytes: shared
            .data
            .links
            .living()
            .iter()
            .map(|link| link.unacknowledged_bytes() as u64)
            .sum(),
        fill: shared.data.filling(),
    }
}

/// Returns the bytes in each bucket that this node serves.
fn sizes(shared: &Shared) -> Vec<(Hashmask, u64)> {
    let map = shared.map();
    let mine = map.buckets().filter(|bucket| bucket.primary() == Some(shared.data.me));
    mine.map(|bucket| (bucket.hashmask, bytes_in(shared, bucket.hashmask))).collect()
}

fn bytes_in(shared: &Shared, bucket: Hashmask) -> u64 {
    let slots = bucket.slots().filter_map(Slot::new);
    slots.map(|slot| shared.data.keyspace.lock_one(slot).table().bytes() as u64).sum()
}

impl super::Data {
    /// Returns whether any bucket can have outgrown the rest: none can while all together are small.
    fn has_bytes(&self, shared: &Shared) -> bool {
        shared.data.keyspace.memory.used() > shared.map().settings().split_larger_than.bytes
    }
}
