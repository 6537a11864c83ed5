//! The holders of all buckets, in few bytes: a list of members and, for each bucket, its first slot, its mask
//! and the indices of its holders in that list, the primary first. 4,096 buckets are some 50 KB.

use std::fmt::Write;
use std::sync::Arc;

use axum::body::Bytes;
use cluster::map::{Bucket, Map};
use parking_lot::Mutex;

/// The encoded picture of the last map requested: every epoch is encoded once, for any number of viewers.
#[derive(Default)]
pub(super) struct PictureCache(Mutex<Option<(Arc<Map>, Bytes)>>);

impl PictureCache {
    pub(super) fn of(&self, map: &Arc<Map>) -> Bytes {
        let mut kept = self.0.lock();
        if let Some((known, text)) = &*kept
            && Arc::ptr_eq(known, map)
        {
            return text.clone();
        }
        let text = Bytes::from(whole(map));
        *kept = Some((Arc::clone(map), text.clone()));
        text
    }
}

/// Returns a tag that identifies a map.
pub(super) fn tag(map: &Map) -> String {
    let generation = map.generation();
    format!("\"{}-{:x}-{}\"", generation.counter, generation.founder.0, map.epoch())
}

fn whole(map: &Map) -> String {
    let names: Vec<&str> = map.members().iter().map(|member| &*member.name).collect();
    let names = serde_json::to_string(&names).expect("texts can be written");
    let (epoch, generation) = (map.epoch(), map.generation().counter);
    let head = format!("\"epoch\":{epoch},\"generation\":{generation},\"members\":{names}");
    format!("{{{head},\"buckets\":{}}}", listed(map, map.buckets()))
}

/// Returns the buckets that have changed; `None` if members or buckets differ, so that the whole map has to be
/// sent.
pub(super) fn changed(before: &Map, after: &Map) -> Option<String> {
    let ids = |map: &Map| map.members().iter().map(|member| member.id).collect::<Vec<_>>();
    let names = |map: &Map| map.members().iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    if before.bucket_count() != after.bucket_count()
        || before.generation() != after.generation()
        || ids(before) != ids(after)
        || names(before) != names(after)
    {
        return None;
    }
    let pairs = || before.buckets().zip(after.buckets());
    if pairs().any(|(old, new)| old.hashmask != new.hashmask) {
        return None;
    }
    let others = pairs().filter(|(old, new)| old.holders != new.holders).map(|(_, new)| new);
    let listed = listed(after, others);
    Some(format!("{{\"epoch\":{},\"buckets\":{listed}}}", after.epoch()))
}

fn listed<'a>(map: &Map, buckets: impl Iterator<Item = &'a Bucket>) -> String {
    let mut text = String::with_capacity(16 * buckets.size_hint().0);
    text.push('[');
    for (place, bucket) in buckets.enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let (slots, mask) = (bucket.hashmask.slots(), bucket.hashmask.mask().bits());
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}[{},{mask}", slots.start);
        for holder in &bucket.holders {
            let _ = write!(text, ",{}", map.place_of(*holder).expect("a holder is a member"));
        }
        text.push(']');
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::map::{Boot, Change, ClusterSettings, Endpoints, LogIndex, Member, NodeId, Zone};
    use placement::{Hashmask, Mask};

    fn member(number: u64) -> Member {
        Member {
            id: NodeId(number),
            boot: Boot(1),
            name: format!("n{number}"),
            weight: 1,
            zone: Zone::default(),
            at: Endpoints::default(),
        }
    }

    fn after(map: &Map, index: u64, change: Change) -> Map {
        let mut map = map.clone();
        map.apply_entry(LogIndex(index), None, &[change]);
        map
    }

    #[test]
    fn a_bucket_is_its_first_slot_its_mask_and_who_holds_it() {
        let first = Map::found(member(1), Mask::M000F, ClusterSettings::default());
        let text = whole(&first);
        assert!(text.starts_with("{\"epoch\":1,\"generation\":1,\"members\":[\"n1\"],"), "{text}");
        assert!(text.contains("\"buckets\":[[0,15,0],"), "{text}");
        assert_eq!(text.matches(",15,0]").count(), 16);
    }

    #[test]
    fn what_changed_is_told_alone_until_members_or_buckets_are_others() {
        let first = Map::found(member(1), Mask::M000F, ClusterSettings::default());
        let joined = after(&first, 2, Change::Join(member(2)));
        assert_eq!(changed(&first, &joined), None);
        let bucket: Hashmask = "000F/0008".parse().unwrap();
        let expected = joined.bucket(bucket).unwrap().epoch;
        let node = NodeId(2);
        let added = after(&joined, 3, Change::AddBackup { bucket, node, expected });
        assert_eq!(changed(&joined, &added).unwrap(), "{\"epoch\":3,\"buckets\":[[1024,15,0,1]]}");
        let epoch = added.bucket(bucket).unwrap().epoch;
        let split = after(&added, 4, Change::Split(vec![(bucket, epoch)]));
        assert_eq!(changed(&added, &split), None);
    }

    #[test]
    fn four_thousand_buckets_are_drawn_once_and_stay_small() {
        let map = Arc::new(Map::found(member(1), Mask::M0FFF, ClusterSettings::default()));
        let kept = PictureCache::default();
        let text = kept.of(&map);
        assert!(text.len() < 64 * 1024, "{} bytes", text.len());
        assert_eq!(kept.of(&map).as_ptr(), text.as_ptr(), "the same bytes");
    }
}
