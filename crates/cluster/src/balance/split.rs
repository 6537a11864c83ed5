//! Splitting of buckets: all of them when there are too few to share out, one when it has outgrown the
//! rest. Buckets never merge.

use super::sizes::Sizes;
use crate::map::{Change, Map};

/// Returns the split that the map needs for its number of members, if any. It is proposed together with
/// the `Join` that makes it necessary, so that nothing is copied under the old mask first.
///
/// With buckets of different sizes, only the largest are split.
pub fn split_by_count(map: &Map) -> Option<Change> {
    let nodes = map.members().iter().filter(|member| member.weight > 0).count();
    let copies = map.bucket_count() * map.copies_wanted();
    let too_few = copies < nodes * map.settings().min_buckets as usize;
    let mask = map.coarsest_mask();
    if !too_few || mask.next().is_none() {
        return None;
    }
    let largest = map.buckets().filter(|bucket| bucket.hashmask.mask() == mask);
    Some(Change::Split(largest.map(|bucket| (bucket.hashmask, bucket.epoch)).collect()))
}

/// Returns the split of buckets that have outgrown the rest, as far as their sizes are known. A bucket that is nearly
/// all one slot stays: splitting it would not make it smaller.
pub fn split_by_size(map: &Map, sizes: &Sizes) -> Option<Change> {
    let limit = map.settings().split_larger_than;
    let median = sizes.median(map)?;
    let largest_allowed = limit.bytes.max(median.saturating_mul(limit.times_the_median.into()));
    let too_large: Vec<_> = sizes
        .large(map)
        .into_iter()
        .filter(|size| size.bytes > largest_allowed && !size.is_one_slot())
        .filter_map(|size| map.bucket(size.bucket))
        .filter(|bucket| bucket.hashmask.mask().next().is_some())
        .map(|bucket| (bucket.hashmask, bucket.epoch))
        .collect();
    if too_large.is_empty() { None } else { Some(Change::Split(too_large)) }
}

#[cfg(test)]
mod tests {
    use super::super::sizes::{BucketSize, SizeReport};
    use super::*;
    use crate::map::{Boot, ClusterSettings, Endpoints, LogIndex, Member, NodeId, Zone};
    use placement::{Hashmask, Mask, Slot};

    fn member(id: u64) -> Member {
        let (id, name) = (NodeId(id), format!("n{id}"));
        Member {
            id,
            boot: Boot(1),
            name,
            weight: 1,
            zone: Zone::default(),
            at: Endpoints::default(),
        }
    }

    fn cluster_of(nodes: u64, mask: Mask) -> Map {
        let mut map = Map::found(member(1), mask, ClusterSettings::default());
        for id in 2..=nodes {
            map.apply(LogIndex(id), &Change::Join(member(id)));
        }
        map
    }

    #[test]
    fn sixteen_buckets_are_enough_for_five_nodes_and_not_for_six() {
        assert_eq!(split_by_count(&cluster_of(1, Mask::M000F)), None);
        assert_eq!(split_by_count(&cluster_of(5, Mask::M000F)), None);
        let mut map = cluster_of(6, Mask::M000F);
        let split = split_by_count(&map).unwrap();
        map.apply(LogIndex(99), &split);
        assert_eq!(map.bucket_count(), 256);
        assert_eq!(split_by_count(&map), None);
    }

    #[test]
    fn later_it_is_4096_and_then_every_slot() {
        assert_eq!(split_by_count(&cluster_of(85, Mask::M00FF)), None);
        let mut map = cluster_of(86, Mask::M00FF);
        map.apply(LogIndex(999), &split_by_count(&map).unwrap());
        assert_eq!(map.bucket_count(), 4096);
        assert!(split_by_count(&cluster_of(6000, Mask::M3FFF)).is_none(), "a slot cannot be split");
    }

    #[test]
    fn a_witness_needs_no_buckets() {
        let mut map = cluster_of(5, Mask::M000F);
        map.apply(LogIndex(9), &Change::Join(Member { weight: 0, ..member(6) }));
        assert_eq!(split_by_count(&map), None);
    }

    const MIB: u64 = 1 << 20;

    /// Returns the first node's report: `large` has so many bytes, all other buckets `small`.
    fn sizes(map: &Map, small: u64, large: BucketSize) -> Sizes {
        let of = |bucket: Hashmask| {
            let other = BucketSize { bucket, bytes: small, largest_slot_bytes: small / 64 };
            if bucket == large.bucket { large } else { other }
        };
        let mine = map.buckets().filter(|bucket| bucket.primary() == Some(NodeId(1)));
        let mut sizes = Sizes::default();
        let above = map.settings().split_larger_than.bytes;
        sizes.note(NodeId(1), SizeReport::new(above, mine.map(|it| of(it.hashmask))));
        sizes
    }

    fn large(bytes: u64) -> BucketSize {
        let bucket = "000F/0007".parse().unwrap();
        BucketSize { bucket, bytes, largest_slot_bytes: bytes / 100 }
    }

    #[test]
    fn a_bucket_that_has_outgrown_the_rest_is_split_alone_and_lookups_go_on() {
        let mut map = cluster_of(2, Mask::M000F);
        let split = |map: &Map, small, it| split_by_size(map, &sizes(map, small, it));
        assert_eq!(split(&map, MIB, large(64 * MIB)), None, "not over 64 MiB");
        assert_eq!(split(&map, 20 * MIB, large(160 * MIB)), None, "not over 8 times");
        assert!(split(&map, 0, large(65 * MIB)).is_some(), "also if all others are empty");
        let change = split(&map, MIB, large(65 * MIB)).unwrap();
        map.apply(LogIndex(9), &change);
        assert_eq!(map.bucket_count(), 31);
        map.check_invariants();
        assert!(Slot::all().all(|slot| map.bucket_of(slot).primary() == Some(NodeId(1))));
        assert_eq!(split(&map, MIB, large(65 * MIB)), None, "it is gone");
    }

    #[test]
    fn a_bucket_that_is_one_huge_key_is_left_alone() {
        let map = cluster_of(2, Mask::M000F);
        let huge = BucketSize { largest_slot_bytes: 999 * MIB, ..large(1000 * MIB) };
        assert_eq!(split_by_size(&map, &sizes(&map, MIB, huge)), None);
    }

    #[test]
    fn while_most_sizes_are_unknown_nothing_is_split() {
        let map = cluster_of(2, Mask::M000F);
        let mut known = Sizes::default();
        known.note(NodeId(1), SizeReport::new(0, [large(1000 * MIB)].into_iter()));
        assert_eq!(split_by_size(&map, &known), None);
    }
}
