//! Copies on the reporting node that are incomplete or behind their primaries.

use serde::{Deserialize, Serialize};

use super::{Status, name};
use crate::data::BucketLag;
use crate::fill::FillReceived;
use crate::map::{Bucket, Map, NodeId};

/// A copy on the reporting node that is being filled, or lacks changes that its primary has made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SyncStatus {
    pub bucket: String,
    /// The node that has the copy.
    pub node: String,
    /// The primary, from which the data comes.
    pub primary: String,
    /// Percentage of slots that are complete; 100 for a backup.
    pub percent: u8,
    /// Items that are missing; for a backup, commands whose changes it has not acknowledged.
    pub items_behind: u64,
    pub bytes_behind: u64,
}

impl Status {
    /// Adds the copies of the reporting node that are being filled.
    pub fn add_filling(&mut self, map: &Map, filling: impl Iterator<Item = FillReceived>) {
        for FillReceived { bucket, percent, items_behind, bytes_behind } in filling {
            let primary = map.bucket(bucket).and_then(Bucket::primary);
            self.sync.push(SyncStatus {
                bucket: bucket.to_string(),
                node: self.node.clone(),
                primary: primary.map_or_else(String::new, |primary| name(map, primary)),
                percent,
                items_behind,
                bytes_behind,
            });
        }
    }

    /// Adds the backups of node `me` that lack changes, by the last report of this primary.
    pub fn add_lags(&mut self, map: &Map, me: NodeId, primary: NodeId, lags: &[BucketLag]) {
        let node = self.node.clone();
        let counts = |lag: &&BucketLag| {
            let known = map.bucket(lag.bucket).filter(|it| it.primary() == Some(primary));
            known.is_some_and(|it| it.backups().contains(&me))
        };
        self.sync.extend(lags.iter().filter(counts).map(|lag| SyncStatus {
            bucket: lag.bucket.to_string(),
            node: node.clone(),
            primary: name(map, primary),
            percent: 100,
            items_behind: lag.items,
            bytes_behind: lag.bytes,
        }));
    }
}

#[cfg(test)]
mod tests {
    use placement::{Hashmask, Mask};

    use super::*;
    use crate::map::{Boot, Change, ClusterSettings, Endpoints, LogIndex, Member, Zone};

    fn member(id: u64) -> Member {
        Member {
            id: NodeId(id),
            boot: Boot(1),
            name: format!("n{id}"),
            weight: 1,
            zone: Zone::default(),
            at: Endpoints::default(),
        }
    }

    /// Returns a map in which node 1 has everything, and node 2 a backup of the first bucket.
    fn two() -> (Map, Hashmask) {
        let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
        map.apply(LogIndex(2), &Change::Join(member(2)));
        let (bucket, expected) = map.buckets().next().map(|it| (it.hashmask, it.epoch)).unwrap();
        map.apply(LogIndex(3), &Change::AddBackup { bucket, node: NodeId(2), expected });
        (map, bucket)
    }

    #[test]
    fn a_backup_lists_what_it_lacks_of_its_own_buckets_only() {
        let (map, bucket) = two();
        let other = map.buckets().nth(1).unwrap().hashmask;
        let lags = [bucket, other].map(|bucket| BucketLag { bucket, items: 3, bytes: 300 });
        let mut status = Status::of(&map, NodeId(2));
        status.add_lags(&map, NodeId(2), NodeId(1), &lags);
        let wanted = SyncStatus {
            bucket: bucket.to_string(),
            node: "n2".into(),
            primary: "n1".into(),
            percent: 100,
            items_behind: 3,
            bytes_behind: 300,
        };
        assert_eq!(status.sync, [wanted], "node 2 has no copy of the second bucket");
        let mut status = Status::of(&map, NodeId(2));
        status.add_lags(&map, NodeId(2), NodeId(9), &lags);
        assert_eq!(status.sync, [], "node 9 is not the primary");
    }

    #[test]
    fn a_fill_is_listed_with_its_source() {
        let (map, _) = two();
        let bucket = map.buckets().nth(1).unwrap().hashmask;
        let mut status = Status::of(&map, NodeId(2));
        let fill = FillReceived { bucket, percent: 25, items_behind: 60, bytes_behind: 6_000 };
        status.add_filling(&map, [fill].into_iter());
        assert_eq!((status.sync[0].primary.as_str(), status.sync[0].percent), ("n1", 25));
    }

    #[test]
    fn buckets_without_a_backup_are_counted_if_there_should_be_one() {
        let (map, _) = two();
        assert_eq!(Status::of(&map, NodeId(1)).single_copies, 15);
        let settings = ClusterSettings { backups: 0, ..ClusterSettings::default() };
        let map = Map::found(member(1), Mask::M000F, settings);
        assert_eq!(Status::of(&map, NodeId(1)).single_copies, 0);
    }
}
