//! Changes that a backup has not acknowledged, by bucket: a primary counts them in the outbox of the link and tells the
//! backup with every `Report::BackupLag`, for `status`.

use std::collections::BTreeMap;

use placement::{Hashmask, Slot};
use serde::{Deserialize, Serialize};

use crate::map::Map;
use crate::replication::{Outbox, SlotLag};

/// Maximum number of buckets in one report; a backup that lacks changes of more buckets hears of the first ones.
pub const LAGS_MAX: usize = 256;
/// Size of an outbox up to which its frames are counted. Beyond it, the number of bytes says enough.
const COUNTED_BYTES_MAX: usize = 1 << 20;

/// The changes of a bucket that a backup has not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BucketLag {
    pub bucket: Hashmask,
    /// Number of commands and transactions that changed items.
    pub items: u64,
    pub bytes: u64,
}

/// Returns the buckets with unacknowledged changes in an outbox.
pub(super) fn lags(map: &Map, outbox: &Outbox) -> Vec<BucketLag> {
    if outbox.unacknowledged_bytes() > COUNTED_BYTES_MAX {
        return Vec::new();
    }
    by_bucket(map, outbox.lag_by_slot())
}

fn by_bucket(map: &Map, slots: BTreeMap<Slot, SlotLag>) -> Vec<BucketLag> {
    let mut lags: BTreeMap<Hashmask, SlotLag> = BTreeMap::new();
    for (slot, lag) in slots {
        let sum = lags.entry(map.bucket_of(slot).hashmask).or_default();
        sum.units += lag.units;
        sum.bytes += lag.bytes;
    }
    let lag = |(bucket, lag): (Hashmask, SlotLag)| BucketLag {
        bucket,
        items: lag.units,
        bytes: lag.bytes,
    };
    lags.into_iter().map(lag).take(LAGS_MAX).collect()
}
