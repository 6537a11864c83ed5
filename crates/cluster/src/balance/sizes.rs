//! Sizes of buckets: each node's compact report about the buckets it serves, and the leader's collection of them. A
//! bucket that has outgrown the rest is split (`split.rs`).

use std::collections::BTreeMap;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use crate::map::{Map, NodeId};

/// Maximum number of buckets that a report names; the largest are named first.
const NAMED_MAX: usize = 256;
/// Size classes per doubling of the size, as a power of two.
const CLASS_BITS: u32 = 2;

/// The sizes of the buckets that one node serves: how many there are of each size class, and the large ones by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SizeReport {
    counts: BTreeMap<u16, u32>,
    named: Vec<BucketSize>,
}

/// The size of one bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BucketSize {
    pub bucket: Hashmask,
    pub bytes: u64,
    /// Bytes in the largest of its slots.
    pub largest_slot_bytes: u64,
}

impl BucketSize {
    /// Returns whether nearly all of the bucket is in one slot: one large key, or keys with one hash tag. Splitting it
    /// would leave a bucket that is as large.
    pub fn is_one_slot(&self) -> bool {
        self.largest_slot_bytes > self.bytes / 8 * 7
    }
}

impl SizeReport {
    /// Describes these buckets; those above `named_above` bytes are named.
    pub fn new(named_above: u64, buckets: impl Iterator<Item = BucketSize>) -> SizeReport {
        let mut report = SizeReport::default();
        for size in buckets {
            *report.counts.entry(class_of(size.bytes)).or_default() += 1;
            if size.bytes > named_above {
                report.named.push(size);
            }
        }
        report.named.sort_by_key(|size| core::cmp::Reverse((size.bytes, size.bucket)));
        report.named.truncate(NAMED_MAX);
        report
    }

    /// Returns the large buckets, the largest first.
    pub fn named(&self) -> &[BucketSize] {
        &self.named
    }
}

/// Returns the size class of a number of bytes: four classes for each doubling.
fn class_of(bytes: u64) -> u16 {
    let bits = u64::BITS - bytes.leading_zeros();
    let fraction = if bits > CLASS_BITS { bytes >> (bits - 1 - CLASS_BITS) & 0b11 } else { 0 };
    u16::try_from(u64::from(bits) << CLASS_BITS | fraction).expect("64 bits have 260 classes")
}

/// Returns the largest number of bytes in a size class.
fn largest_of(class: u16) -> u64 {
    let (bits, fraction) = (u32::from(class >> CLASS_BITS), u64::from(class & 0b11));
    match bits {
        0 => 0,
        _ if bits <= CLASS_BITS => (1 << bits) - 1,
        _ => {
            let step = bits - 1 - CLASS_BITS;
            ((0b100 + fraction + 1) << step).wrapping_sub(1)
        }
    }
}

/// The reports of all nodes, at the leader.
#[derive(Default, Debug)]
pub struct Sizes {
    reports: BTreeMap<NodeId, SizeReport>,
    has_news: bool,
}

impl Sizes {
    pub fn note(&mut self, node: NodeId, report: SizeReport) {
        self.reports.insert(node, report);
        self.has_news = true;
    }

    /// Returns true once after each report.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Forgets the reports of nodes that are no members.
    pub fn follow(&mut self, map: &Map) {
        self.reports.retain(|node, _| map.member(*node).is_some());
    }

    /// Returns the large buckets that their present primaries have named.
    pub fn large(&self, map: &Map) -> Vec<BucketSize> {
        let mut large = Vec::new();
        for (node, report) in &self.reports {
            let serves = |size: &&BucketSize| {
                map.bucket(size.bucket).is_some_and(|bucket| bucket.primary() == Some(*node))
            };
            large.extend(report.named.iter().filter(serves));
        }
        large
    }

    /// Returns the median size of all buckets, rounded up by an eighth at most. `None` while most buckets are unknown.
    pub fn median(&self, map: &Map) -> Option<u64> {
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        for (class, count) in self.reports.values().flat_map(|report| &report.counts) {
            *counts.entry(*class).or_default() += u64::from(*count);
        }
        let known: u64 = counts.values().sum();
        if known * 2 <= map.bucket_count() as u64 {
            return None;
        }
        let mut below = 0;
        let class = counts.iter().find(|(_, count)| {
            below += **count;
            below > known / 2
        });
        class.map(|(class, _)| largest_of(*class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_sizes_that_differ_by_a_quarter_at_most() {
        let sizes = (0..64).flat_map(|bits| [1 << bits, (1 << bits) + (1 << bits) / 3]);
        for bytes in sizes.chain([0, 1, 2, 3, 5, 6, 7, 1000, u64::MAX]) {
            let largest = largest_of(class_of(bytes));
            assert!(largest >= bytes, "{bytes}: {largest}");
            assert!(largest - bytes <= bytes / 4 + 1, "{bytes}: {largest}");
        }
    }

    #[test]
    fn a_report_names_the_largest_buckets_and_counts_all() {
        let all = Hashmask::all(placement::Mask::M0FFF).zip(1_u64..);
        let size = |(bucket, bytes)| BucketSize { bucket, bytes, largest_slot_bytes: bytes / 2 };
        let report = SizeReport::new(100, all.map(size));
        assert_eq!(report.counts.values().sum::<u32>(), 4096);
        assert_eq!(report.named().len(), NAMED_MAX, "a report is small whatever the node holds");
        assert_eq!(report.named()[0].bytes, 4096);
    }

    #[test]
    fn a_bucket_that_is_one_slot_is_recognised() {
        let bucket = Hashmask::all(placement::Mask::M000F).next().unwrap();
        let size = |largest_slot_bytes| BucketSize { bucket, bytes: 800, largest_slot_bytes };
        assert!(size(701).is_one_slot() && !size(700).is_one_slot());
    }
}
