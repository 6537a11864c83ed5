//! The roles in which clients see the nodes: masters, and replicas if nodes have a replica port.
//!
//! A client keeps one role for each address. Every node is primary of some slots and backup of others, so it is shown
//! as a master at its ordinary port, and its backup copies as replicas at its replica port. A replica has one master,
//! but a node backs up slots of several primaries: it is shown once for each of them, under an id made from both.
//! docs/decisions/0025 has the reasons.

use std::collections::{BTreeMap, BTreeSet};

use cluster::map::{Bucket, Map, NodeId};
use placement::SplitMix64;

/// A run of neighbouring slots with the same primary and the same replicas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SlotRun {
    pub first: u16,
    pub last: u16,
    pub primary: NodeId,
    /// In ascending order.
    pub replicas: Vec<NodeId>,
}

/// The slots of one primary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Shard {
    /// First and last slot of each run of neighbouring slots.
    pub ranges: Vec<(u16, u16)>,
    /// The replicas that hold at least one of the slots, in ascending order.
    pub replicas: Vec<NodeId>,
    /// Those of them that hold all the slots.
    whole: Vec<NodeId>,
}

/// Returns the shard of every primary.
pub(super) fn shards(map: &Map) -> BTreeMap<NodeId, Shard> {
    shards_of(&runs(map))
}

fn shards_of(runs: &[SlotRun]) -> BTreeMap<NodeId, Shard> {
    let mut shards: BTreeMap<NodeId, Shard> = BTreeMap::new();
    for run in runs {
        let shard = shards.entry(run.primary).or_default();
        if shard.ranges.is_empty() {
            (shard.replicas, shard.whole) = (run.replicas.clone(), run.replicas.clone());
        }
        match shard.ranges.last_mut().filter(|range| range.1 + 1 == run.first) {
            Some(range) => range.1 = run.last,
            None => shard.ranges.push((run.first, run.last)),
        }
        shard.whole.retain(|node| run.replicas.contains(node));
        shard.replicas.extend(&run.replicas);
        shard.replicas.sort_unstable();
        shard.replicas.dedup();
    }
    shards
}

/// Returns all runs that have a primary, in the order of their slots.
fn runs(map: &Map) -> Vec<SlotRun> {
    let mut runs: Vec<SlotRun> = Vec::new();
    for bucket in map.places_by_slot().map(|place| map.bucket_at(place)) {
        let Some(primary) = bucket.primary() else { continue };
        let (first, last) = (bucket.hashmask.slots().start, bucket.hashmask.slots().end - 1);
        let replicas = replicas_of(map, bucket);
        let continues = |run: &&mut SlotRun| {
            run.primary == primary && run.replicas == replicas && run.last + 1 == first
        };
        match runs.last_mut().filter(continues) {
            Some(run) => run.last = last,
            None => runs.push(SlotRun { first, last, primary, replicas }),
        }
    }
    runs
}

/// Returns the rows of CLUSTER SLOTS. Where the backups of a primary differ from slot to slot, its first row is one
/// slot with only those replicas that hold all its slots, mostly none. valkey-glide takes the replicas in the first
/// row for replicas of all slots of that primary: its SCAN would silently miss the keys they do not hold.
pub(super) fn slot_rows(map: &Map) -> Vec<SlotRun> {
    let runs = runs(map);
    let mut shards = shards_of(&runs);
    let mut rows = Vec::with_capacity(runs.len() + shards.len());
    for mut run in runs {
        // Present at the first run of each primary only.
        let shard = shards.remove(&run.primary).filter(|shard| shard.whole != shard.replicas);
        if let Some(Shard { whole, .. }) = shard {
            rows.push(SlotRun { last: run.first, replicas: whole, ..run.clone() });
            if run.first == run.last {
                continue;
            }
            run.first += 1;
        }
        rows.push(run);
    }
    rows
}

/// Returns the backups of a bucket that are shown as replicas: those with a replica port, unless they are about to
/// leave. A client keeps connections to all nodes in the reply, and one to a leaving node would break while a command
/// is in flight. Never more than the settings ask for: a bucket on the move has one more for a moment, and redis-py
/// takes the number of replicas of one slot for that of all slots of the primary.
fn replicas_of(map: &Map, bucket: &Bucket) -> Vec<NodeId> {
    let is_shown = |node: &&NodeId| is_shown_as_replica(map, **node);
    let shown = bucket.backups().iter().filter(is_shown).take(usize::from(map.settings().backups));
    let mut replicas: Vec<NodeId> = shown.copied().collect();
    replicas.sort_unstable();
    replicas
}

fn is_shown_as_replica(map: &Map, node: NodeId) -> bool {
    map.member(node).is_some_and(|member| member.at.replica != 0 && member.weight > 0)
}

/// Returns the first primary of which this node is shown as a replica: on the replica port, its master.
pub(super) fn master_of(map: &Map, node: NodeId) -> Option<NodeId> {
    let primaries = backed_up_by(map, node).filter_map(Bucket::primary);
    primaries.min().filter(|_| is_shown_as_replica(map, node))
}

/// Returns whether a node backs up all slots of every primary of which it backs up any.
pub(super) fn has_whole_shards(map: &Map, node: NodeId) -> bool {
    let primaries: BTreeSet<NodeId> = backed_up_by(map, node).filter_map(Bucket::primary).collect();
    let is_theirs = |bucket: &&Bucket| bucket.primary().is_some_and(|it| primaries.contains(&it));
    map.buckets().filter(is_theirs).all(|bucket| bucket.backups().contains(&node))
}

fn backed_up_by(map: &Map, node: NodeId) -> impl Iterator<Item = &Bucket> {
    map.buckets().filter(move |bucket| bucket.backups().contains(&node))
}

/// Returns a node's id as Redis writes ids: forty hexadecimal digits. The first sixteen are the id itself, the
/// others are derived from it.
pub fn format_node_id(node: NodeId) -> String {
    let mut rng = SplitMix64::new(node.0);
    let (second, third) = (rng.draw(), rng.draw() >> 32);
    format!("{:016x}{second:016x}{third:08x}", node.0)
}

/// Returns the id of a node as a replica of this primary, derived from the ids of both.
pub fn format_replica_id(node: NodeId, primary: NodeId) -> String {
    let mut rng = SplitMix64::new(SplitMix64::new(node.0).draw() ^ primary.0);
    let (first, second, third) = (rng.draw(), rng.draw(), rng.draw() >> 32);
    format!("{first:016x}{second:016x}{third:08x}")
}
