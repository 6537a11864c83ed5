//! Nodes that are away for a while: what they held is theirs again if they are back in time.
//!
//! A node goes by `Change::Away`, comes back by `Change::Join`, and gets its places again one by one, each
//! by a fill of what has changed since. Meanwhile the others remember what was removed
//! (`replication::Past`), and the planner gives it its own buckets first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::{Bucket, LogIndex, Map, NodeId, Outcome};

/// A node that has gone for a while, or is back and has not got everything again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Away {
    pub name: String,
    /// How long its places are kept.
    pub long: Duration,
    /// What it held and does not hold again yet.
    pub buckets: BTreeSet<Hashmask>,
}

impl Map {
    /// All whose places are kept, in the order of their ids.
    pub fn away(&self) -> impl Iterator<Item = (NodeId, &Away)> {
        self.away.iter().map(|(node, away)| (*node, away))
    }

    /// Whether a place in this bucket is kept for the node.
    pub fn keeps_place(&self, node: NodeId, bucket: Hashmask) -> bool {
        self.away.get(&node).is_some_and(|away| away.buckets.contains(&bucket))
    }

    /// Members that hold something and are about to go.
    pub fn leavers(&self) -> Vec<NodeId> {
        let members = self.members.iter().zip(&self.loads);
        let goes = members.filter(|(member, load)| member.weight == 0 && load.total() > 0);
        goes.map(|(member, _)| member.id).collect()
    }

    /// Whether a copy of the bucket is away, or will be in a moment.
    pub fn is_missed(&self, bucket: &Bucket, leavers: &[NodeId]) -> bool {
        leavers.iter().any(|node| bucket.is_held_by(*node))
            || self.away.values().any(|away| away.buckets.contains(&bucket.hashmask))
    }

    pub(super) fn go_away(&mut self, index: LogIndex, node: NodeId, long: Duration) -> Outcome {
        let held = self.buckets().filter(|bucket| bucket.is_held_by(node));
        let buckets: BTreeSet<Hashmask> = held.map(|bucket| bucket.hashmask).collect();
        let name = self.member(node).map(|member| member.name.clone()).unwrap_or_default();
        let outcome = self.leave(index, node);
        if outcome == Outcome::Applied && !buckets.is_empty() {
            Arc::make_mut(&mut self.away).insert(node, Away { name, long, buckets });
        }
        outcome
    }

    pub(super) fn forget_places(&mut self, node: NodeId) -> Outcome {
        if !self.away.contains_key(&node) {
            return Outcome::Void;
        }
        Arc::make_mut(&mut self.away).remove(&node);
        Outcome::Applied
    }

    /// The node holds the bucket again.
    pub(super) fn take_place(&mut self, node: NodeId, bucket: Hashmask) {
        if !self.keeps_place(node, bucket) {
            return;
        }
        let all = Arc::make_mut(&mut self.away);
        let Some(away) = all.get_mut(&node) else { return };
        away.buckets.remove(&bucket);
        if away.buckets.is_empty() {
            all.remove(&node);
        }
    }

    pub(super) fn split_places(&mut self, parent: Hashmask) {
        if self.away.values().any(|away| away.buckets.contains(&parent)) {
            let all = Arc::make_mut(&mut self.away).values_mut();
            for away in all.filter(|away| away.buckets.contains(&parent)) {
                away.buckets.remove(&parent);
                away.buckets.extend(parent.split());
            }
        }
    }
}
