//! Ways to place keys, side by side: the share of keys that moves when a node joins or leaves, and the
//! imbalance.
//!
//! Every way answers the same question for the same keys: which node owns the key with N - 1, N and N + 1
//! nodes? The last node is the one that joins and leaves. Called by `opencluster sim compare`.

use cluster::balance::Plan;
use cluster::map::{Boot, Change, ClusterSettings, Endpoints, LogIndex, Map, Member, NodeId, Zone};
use placement::{Mask, Ranking, ServerMap, Slot};

use crate::Rng;

/// Number of points of a node on the ring.
const RING_POINTS: usize = 160;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Buckets,
    Rendezvous,
    WeightedRendezvous,
    Ring,
    Modulo,
}

impl Way {
    pub const ALL: [Way; 5] =
        [Way::Buckets, Way::Rendezvous, Way::WeightedRendezvous, Way::Ring, Way::Modulo];

    pub fn name(self) -> &'static str {
        match self {
            Way::Buckets => "hashmask buckets",
            Way::Rendezvous => "rendezvous",
            Way::WeightedRendezvous => "weighted rendezvous",
            Way::Ring => "hash ring, 160 points",
            Way::Modulo => "modulo",
        }
    }
}

/// Result of one way with some number of nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Score {
    /// Share of all keys that moves when one more node joins, and when one leaves.
    pub moved_by_join: f64,
    pub moved_by_leave: f64,
    /// Keys of the fullest node relative to the average.
    pub imbalance: f64,
}

/// Returns the best possible score with that many nodes.
pub fn optimum(nodes: usize) -> Score {
    let nodes = nodes as f64;
    Score { moved_by_join: 1.0 / (nodes + 1.0), moved_by_leave: 1.0 / nodes, imbalance: 1.0 }
}

/// Returns the score of one way with `nodes` nodes, two at least.
pub fn score(way: Way, nodes: usize, keys: usize) -> Score {
    let [fewer, same, more] = [nodes - 1, nodes, nodes + 1].map(|nodes| Placer::new(way, nodes));
    let mut counts = vec![0usize; nodes];
    let (mut by_join, mut by_leave) = (0usize, 0usize);
    let mut key = Vec::new();
    for number in 0..keys {
        key.clear();
        key.extend_from_slice(format!("key:{number:012}").as_bytes());
        let owner = same.owner(&key);
        counts[owner] += 1;
        by_join += usize::from(more.owner(&key) != owner);
        by_leave += usize::from(fewer.owner(&key) != owner);
    }
    let part = |count: usize| count as f64 / keys.max(1) as f64;
    let most = counts.iter().copied().max().unwrap_or(0);
    Score {
        moved_by_join: part(by_join),
        moved_by_leave: part(by_leave),
        imbalance: part(most) * nodes as f64,
    }
}

/// A way, prepared for a number of nodes.
enum Placer {
    Buckets { owners: Vec<usize> },
    Rendezvous(Ranking),
    WeightedRendezvous(ServerMap),
    Ring { points: Vec<(u64, usize)> },
    Modulo(usize),
}

impl Placer {
    fn new(way: Way, nodes: usize) -> Placer {
        match way {
            Way::Buckets => Placer::Buckets { owners: bucket_owners(nodes) },
            Way::Rendezvous => {
                let names: Vec<String> = (0..nodes).map(|node| format!("node-{node}")).collect();
                Placer::Rendezvous(Ranking::new(&names))
            }
            Way::WeightedRendezvous => Placer::WeightedRendezvous(
                ServerMap::new(vec![1; nodes]).expect("a few equal weights"),
            ),
            Way::Ring => {
                let point = |node: usize, number: usize| {
                    let seed = (node * RING_POINTS + number) as u64;
                    (Rng::new(seed ^ 0x5249_4E47).draw(), node)
                };
                let of_node = |node| (0..RING_POINTS).map(move |number| point(node, number));
                let mut points: Vec<_> = (0..nodes).flat_map(of_node).collect();
                points.sort_unstable();
                Placer::Ring { points }
            }
            Way::Modulo => Placer::Modulo(nodes),
        }
    }

    fn owner(&self, key: &[u8]) -> usize {
        match self {
            Placer::Buckets { owners } => owners[Slot::of(key).index()],
            Placer::Rendezvous(ranking) => ranking.replicas(wide_hash(key), 1)[0],
            Placer::WeightedRendezvous(map) => map.server_of(key),
            Placer::Ring { points } => {
                let hash = wide_hash(key);
                let place = points.partition_point(|(point, _)| *point < hash);
                points[place % points.len()].1
            }
            Placer::Modulo(nodes) => (wide_hash(key) % *nodes as u64) as usize,
        }
    }
}

/// Returns 64 bits of a key: two murmur hashes, mixed.
fn wide_hash(key: &[u8]) -> u64 {
    let high = u64::from(placement::murmur3(key, 1)) << 32;
    Rng::new(high | u64::from(placement::murmur3(key, 2))).draw()
}

/// Returns the owner of each slot in a cluster without backups that has grown to `nodes` nodes, one by one.
fn bucket_owners(nodes: usize) -> Vec<usize> {
    let settings = ClusterSettings { backups: 0, ..ClusterSettings::default() };
    let mut map = Map::found(member(1), Mask::M00FF, settings);
    let mut index = LogIndex::FIRST;
    let mut commit = |map: &mut Map, change: &Change| {
        index.0 += 1;
        map.apply(index, change);
    };
    for id in 2..=nodes as u64 {
        commit(&mut map, &Change::Join(member(id)));
        while let Some(split) = cluster::balance::split::split_by_count(&map) {
            commit(&mut map, &split);
        }
        carry_out(&mut map, &mut commit);
    }
    Slot::all()
        .map(|slot| map.bucket_of(slot).primary().expect("nothing was lost").0 as usize - 1)
        .collect()
}

/// Carries out the whole plan at once. Without backups every step gives a primary away.
fn carry_out(map: &mut Map, commit: &mut impl FnMut(&mut Map, &Change)) {
    for plan in Plan::of(map).buckets() {
        let (bucket, because) = (plan.hashmask, cluster::map::DropReason::Balance);
        for copy in &plan.copies {
            let expected = map.bucket(bucket).expect("planned for").epoch;
            commit(map, &Change::AddBackup { bucket, node: copy.taker, expected });
            let expected = expected.next();
            commit(map, &Change::Promote { bucket, node: copy.taker, expected });
            let (node, expected) = (copy.giver.expect("no backups are missing"), expected.next());
            commit(map, &Change::DropBackup { bucket, node, expected, because });
        }
    }
}

fn member(id: u64) -> Member {
    let (id, name) = (NodeId(id), format!("n{id}"));
    Member { id, boot: Boot(1), name, weight: 1, zone: Zone::default(), at: Endpoints::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_rendezvous_move_little_and_modulo_nearly_everything() {
        for way in Way::ALL {
            let score = score(way, 5, 50_000);
            let best = optimum(5);
            let excess = score.moved_by_join / best.moved_by_join;
            match way {
                Way::Buckets | Way::Rendezvous | Way::WeightedRendezvous => {
                    assert!((0.9..1.1).contains(&excess), "{way:?}: {score:?}");
                }
                Way::Ring => assert!((0.5..1.5).contains(&excess), "{way:?}: {score:?}"),
                Way::Modulo => assert!(score.moved_by_join > 0.8, "{way:?}: {score:?}"),
            }
            assert!(score.imbalance >= 1.0 && score.imbalance < 1.5, "{way:?}: {score:?}");
        }
    }

    #[test]
    fn buckets_leave_no_node_more_than_a_bucket_above_another() {
        let score = score(Way::Buckets, 7, 200_000);
        assert!(score.imbalance < 37.0 / (256.0 / 7.0) + 0.03, "{score:?}");
    }
}
