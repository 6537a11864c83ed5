//! A process that was away for too long has copies of buckets that were started again, empty, without them.
//! It hands its copies over to the primaries of these buckets, while it is a member like any other.

use std::thread;
use std::time::{Duration, Instant};

use cluster::merge::{Giver, Tally};
use placement::Hashmask;

use super::Merging;
use super::give::tell;
use crate::data::Data;
use crate::log;

/// Timeout of one bucket. A bucket that no node takes in this time is tried again after the others.
const EACH_WITHIN: Duration = Duration::from_secs(5);
/// Back-off before all buckets are tried again, if none could be handed over.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

impl Merging {
    /// Tries each bucket once, and returns those that are handed over.
    pub(crate) fn bring_copies(&self, data: &Data, buckets: &[Hashmask]) -> Vec<Hashmask> {
        let told = format!(
            "buckets recreated while this node was away: {}; handing over the copies it has kept",
            buckets.len()
        );
        log::warn("merge", &told);
        let (mut brought, mut tally) = (Vec::new(), Tally::default());
        for bucket in buckets {
            let (begun, mut giver) = (Instant::now(), Giver::of([*bucket]));
            let goes_on = || {
                begun.elapsed() < EACH_WITHIN && !data.is_stopping() && is_awaited(data, *bucket)
            };
            if self.hand_over(data, &mut giver, goes_on) {
                brought.push(*bucket);
                tally += giver.tally();
            }
        }
        if brought.is_empty() {
            thread::sleep(AGAIN_AFTER);
        } else {
            tell(tally);
        }
        brought
    }
}

/// Returns whether this node's copy of the bucket is still awaited, and the node does not hold the bucket by now.
fn is_awaited(data: &Data, bucket: Hashmask) -> bool {
    let (map, me) = (data.map(), data.me);
    let is_held = map.bucket(bucket).is_some_and(|known| known.is_held_by(me));
    map.may_bring(me, bucket) && !is_held
}
