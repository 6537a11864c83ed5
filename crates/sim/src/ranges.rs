//! The number of ranges of slots in a map, as clients see them: maximal runs of neighbouring slots with the same
//! owner. Redis has one range a node.

use cluster::map::{Bucket, Map, NodeId};
use placement::Slot;

/// Returns the number of ranges of slots with the same primary: those of CLUSTER SLOTS, NODES and SHARDS.
pub fn of_primaries(map: &Map) -> usize {
    count(map, Bucket::primary)
}

/// Returns the number of ranges of slots with the same primary and the same backups: those of CLUSTER SLOTS if all nodes
/// have a replica port.
pub fn of_holders(map: &Map) -> usize {
    count(map, |bucket| {
        let mut backups: Vec<NodeId> = bucket.backups().to_vec();
        backups.sort_unstable();
        (bucket.primary(), backups)
    })
}

fn count<Owner: PartialEq>(map: &Map, owner: impl Fn(&Bucket) -> Owner) -> usize {
    let owners: Vec<Owner> = Slot::all().map(|slot| owner(map.bucket_of(slot))).collect();
    1 + owners.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weather;
    use crate::grow::{Growth, Newcomer};
    use cluster::map::ClusterSettings;
    use placement::Mask;

    #[test]
    fn one_node_has_one_range_and_two_nodes_have_two() {
        let (mask, settings) = (Mask::M000F, ClusterSettings::default());
        let mut growth = Growth::start(1, Weather::calm(), Newcomer::default(), mask, settings);
        assert_eq!((of_primaries(growth.map()), of_holders(growth.map())), (1, 1));
        let step = growth.join(Newcomer::default());
        assert_eq!((of_primaries(&step.map), of_holders(&step.map)), (2, 2));
    }
}
