//! The serialized map: the content of a log snapshot, sent to joining nodes and kept on disk.
//!
//! Derived fields are not written. The input may come from anywhere, so it becomes a `Map` only if it
//! is valid: the owner of a `Map` never has to check it again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use placement::{Hashmask, Slot};
use serde::{Deserialize, Serialize};

use super::{
    Away, Bucket, Chunked, ClusterSettings, DOCUMENTS_BYTES_MAX, Documents, Epoch, Generation,
    Holders, Load, LogIndex, Map, Member, NodeId,
};

#[derive(Serialize, Deserialize)]
pub(super) struct WrittenMap {
    generation: Generation,
    yielded_to: Option<Generation>,
    epoch: Epoch,
    basis: Epoch,
    settings: ClusterSettings,
    members: Vec<Member>,
    /// The bucket each member received last, in the order of `members`.
    last_received: Vec<Option<Hashmask>>,
    since: Vec<LogIndex>,
    buckets: Vec<Bucket>,
    lost: BTreeMap<Hashmask, Holders>,
    anew: BTreeMap<Hashmask, Holders>,
    partitioned_members: Vec<Member>,
    away: BTreeMap<NodeId, Away>,
    documents: Documents,
}

/// The reason an input is not a valid map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMap(&'static str);

impl fmt::Display for NoMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid map: {}", self.0)
    }
}

impl std::error::Error for NoMap {}

impl From<Map> for WrittenMap {
    fn from(map: Map) -> WrittenMap {
        WrittenMap {
            generation: map.generation,
            yielded_to: map.yielded_to,
            epoch: map.epoch,
            basis: map.basis,
            settings: ClusterSettings::clone(&map.settings),
            members: Vec::clone(&map.members),
            last_received: map.loads.iter().map(|load| load.last_received).collect(),
            since: map.since,
            buckets: map.buckets.iter().cloned().collect(),
            lost: BTreeMap::clone(&map.lost),
            anew: BTreeMap::clone(&map.anew),
            partitioned_members: Vec::clone(&map.partitioned_members),
            away: BTreeMap::clone(&map.away),
            documents: Documents::clone(&map.documents),
        }
    }
}

impl TryFrom<WrittenMap> for Map {
    type Error = NoMap;

    fn try_from(written: WrittenMap) -> Result<Map, NoMap> {
        written.check()?;
        let load = |last_received| Load { last_received, ..Load::default() };
        let mut map = Map {
            generation: written.generation,
            yielded_to: written.yielded_to,
            epoch: written.epoch,
            basis: written.basis,
            settings: Arc::new(written.settings),
            members: Arc::new(written.members),
            loads: written.last_received.into_iter().map(load).collect(),
            since: written.since,
            buckets: Chunked::default(),
            by_slot: Arc::default(),
            lost: Arc::new(written.lost),
            anew: Arc::new(written.anew),
            partitioned_members: Arc::new(written.partitioned_members),
            away: Arc::new(written.away),
            documents: Arc::new(written.documents),
        };
        map.set_buckets(written.buckets);
        Ok(map)
    }
}

impl WrittenMap {
    /// Checks everything that `Map::check_invariants` requires and that reading does not derive by
    /// itself.
    fn check(&self) -> Result<(), NoMap> {
        let in_order = self.members.is_sorted_by(|a, b| a.id < b.id);
        require(in_order, "members are out of order")?;
        require(
            self.last_received.len() == self.members.len(),
            "members and loads differ in number",
        )?;
        require(
            self.since.len() == self.members.len(),
            "members and their join indexes differ in number",
        )?;
        self.check_cover()?;
        let members: BTreeSet<NodeId> = self.members.iter().map(|member| member.id).collect();
        for bucket in &self.buckets {
            let distinct: BTreeSet<NodeId> = bucket.holders.iter().copied().collect();
            require(distinct.len() == bucket.holders.len(), "a node holds a bucket twice")?;
            require(distinct.is_subset(&members), "a holder is not a member")?;
        }
        let buckets: BTreeSet<&Hashmask> = self.buckets.iter().map(|it| &it.hashmask).collect();
        let mut places = self.away.values().flat_map(|away| &away.buckets);
        let are_known = places.all(|place| buckets.contains(place));
        require(are_known, "a place is reserved in an unknown bucket")?;
        let is_bucket = |bucket: &Hashmask| buckets.contains(bucket);
        require(self.anew.keys().all(is_bucket), "a recreated bucket is unknown")?;
        let without = self.buckets.iter().filter(|bucket| bucket.holders.is_empty());
        let lost = without.map(|bucket| &bucket.hashmask);
        let is_exact = lost.eq(self.lost.keys());
        require(is_exact, "the lost buckets are not the buckets without a holder")?;
        require(self.documents.bytes() <= DOCUMENTS_BYTES_MAX, "the documents are too large")
    }

    /// Checks that every slot is in exactly one bucket.
    fn check_cover(&self) -> Result<(), NoMap> {
        let in_order = self.buckets.is_sorted_by(|a, b| a.hashmask < b.hashmask);
        require(in_order, "buckets are out of order")?;
        let mut covered = vec![false; usize::from(Slot::COUNT)];
        for number in self.buckets.iter().flat_map(|bucket| bucket.hashmask.slots()) {
            let before = std::mem::replace(&mut covered[usize::from(number)], true);
            require(!before, "a slot is in two buckets")?;
        }
        require(covered.iter().all(|covered| *covered), "a slot is in no bucket")
    }
}

fn require(condition: bool, otherwise: &'static str) -> Result<(), NoMap> {
    if condition { Ok(()) } else { Err(NoMap(otherwise)) }
}

#[cfg(test)]
mod tests {
    use placement::Mask;

    use super::*;
    use crate::map::{Boot, Change, Endpoints, RecreateSource, Zone};

    fn member(id: u64) -> Member {
        Member {
            id: NodeId(id),
            boot: Boot(id),
            name: format!("n{id}"),
            weight: 1,
            zone: Zone::default(),
            at: Endpoints::default(),
        }
    }

    /// Returns a map with two members, buckets of two sizes, a backup, lost buckets and a recreated
    /// one.
    fn eventful() -> Map {
        let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
        let bucket = |value| Hashmask::new(Mask::M000F, value).unwrap();
        let expected = Epoch::FIRST;
        map.apply(LogIndex(2), &Change::Join(member(2)));
        map.apply(LogIndex(3), &Change::Split(vec![(bucket(3), expected)]));
        for value in [4, 5] {
            let node = NodeId(2);
            let bucket = bucket(value);
            map.apply(LogIndex(4), &Change::AddBackup { bucket, node, expected });
        }
        map.apply(LogIndex(5), &Change::Dead(BTreeSet::from([NodeId(1)])));
        let (bucket, node, from) = (bucket(7), NodeId(2), RecreateSource::Empty);
        let expected = map.bucket(bucket).unwrap().epoch;
        map.apply(LogIndex(6), &Change::Recreate { bucket, node, from, expected });
        map.check_invariants();
        map
    }

    fn read(written: &WrittenMap) -> Result<Map, postcard::Error> {
        postcard::from_bytes(&postcard::to_allocvec(written).unwrap())
    }

    #[test]
    fn a_map_that_is_read_is_the_map_that_was_written() {
        let map = eventful();
        let bytes = postcard::to_allocvec(&map).unwrap();
        let back: Map = postcard::from_bytes(&bytes).unwrap();
        back.check_invariants();
        assert_eq!(back, map);
    }

    #[test]
    fn what_is_no_map_is_refused() {
        type Spoil = fn(&mut WrittenMap);
        let spoilt: [(&str, Spoil); 9] = [
            ("no bucket", |written| written.buckets.clear()),
            ("one bucket less", |written| drop(written.buckets.pop())),
            ("a bucket twice", |written| written.buckets.push(written.buckets[0].clone())),
            ("buckets out of order", |written| written.buckets.swap(0, 1)),
            ("a member twice", |written| written.members.push(member(2))),
            ("a member too many", |written| written.members.push(member(3))),
            ("a stranger holds", |written| written.buckets[4].holders.push(NodeId(9))),
            ("lost and held", |written| written.lost.clear()),
            ("no bucket began again", |written| {
                let split = Hashmask::new(Mask::M000F, 3).unwrap();
                written.anew.insert(split, Holders::new());
            }),
        ];
        for (what, spoil) in spoilt {
            let mut written = WrittenMap::from(eventful());
            assert!(read(&written).is_ok());
            spoil(&mut written);
            assert!(read(&written).is_err(), "{what}");
        }
    }
}
