//! Buckets that were recreated without the data of their last holders. One of those may still return
//! with it; its data is merged then (`control::returning`). Until then the holders of such a bucket
//! remember what is deleted (`store::DivergenceLog`).

use std::sync::Arc;

use placement::Hashmask;

use super::{ChangeOutcome, Holders, Map, NodeId};

impl Map {
    /// Returns the recreated buckets, each with the nodes that may still return with its former data.
    pub fn begun_anew(&self) -> impl Iterator<Item = (Hashmask, &[NodeId])> {
        self.anew.iter().map(|(bucket, last)| (*bucket, last.as_slice()))
    }

    pub fn has_begun_anew(&self, bucket: Hashmask) -> bool {
        self.anew.contains_key(&bucket)
    }

    /// Returns whether this node may still return with the former data of the bucket.
    pub fn may_bring(&self, node: NodeId, bucket: Hashmask) -> bool {
        self.anew.get(&bucket).is_some_and(|last| last.contains(&node))
    }

    /// Returns whether this node may still return with any former data.
    pub fn may_bring_any(&self, node: NodeId) -> bool {
        self.awaited_of(node).next().is_some()
    }

    /// Returns the buckets of which this node may still return with former data.
    pub fn awaited_of(&self, node: NodeId) -> impl Iterator<Item = Hashmask> {
        self.begun_anew().filter(move |(_, last)| last.contains(&node)).map(|(bucket, _)| bucket)
    }

    pub(super) fn begin_anew(&mut self, bucket: Hashmask, last: &Holders) {
        let known = Arc::make_mut(&mut self.anew).entry(bucket).or_default();
        let others: Holders = last.iter().copied().filter(|node| !known.contains(node)).collect();
        known.extend(others);
    }

    /// Records that the node has handed over its data of these buckets, or has none.
    pub(super) fn stop_awaiting(&mut self, node: NodeId, buckets: &[Hashmask]) -> ChangeOutcome {
        if buckets.iter().all(|bucket| !self.may_bring(node, *bucket)) {
            return ChangeOutcome::Void;
        }
        let anew = Arc::make_mut(&mut self.anew);
        for bucket in buckets {
            if let Some(last) = anew.get_mut(bucket) {
                last.retain(|it| *it != node);
            }
        }
        anew.retain(|_, last| !last.is_empty());
        ChangeOutcome::Applied
    }

    pub(super) fn split_anew(&mut self, parent: Hashmask) {
        if self.anew.contains_key(&parent) {
            let anew = Arc::make_mut(&mut self.anew);
            let last = anew.remove(&parent).expect("looked up above");
            anew.extend(parent.split().map(|child| (child, last.clone())));
        }
    }
}
