//! Nodes that are away for a while: they get their buckets back if they return in time.
//!
//! A node leaves by `Change::Away`, comes back by `Change::Join`, and gets its places back one by one,
//! each by a fill of the delta. Meanwhile the others remember what was removed (`replication::Past`),
//! and the planner gives the node its own buckets first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::{Bucket, ChangeOutcome, LeaveWay, LogIndex, Map, NodeId, Peer};
use crate::rules::{Rule, is_enforced};

/// A node that has left for a while, or is back and does not hold all its buckets again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Away {
    pub name: String,
    /// Time for which its places are reserved.
    pub absence: Duration,
    /// Buckets it held and does not hold again yet.
    pub buckets: BTreeSet<Hashmask>,
}

impl Map {
    /// Returns all nodes with reserved places, ordered by id.
    pub fn away(&self) -> impl Iterator<Item = (NodeId, &Away)> {
        self.away.iter().map(|(node, away)| (*node, away))
    }

    /// Returns whether a place in this bucket is reserved for the node.
    pub fn keeps_place(&self, node: NodeId, bucket: Hashmask) -> bool {
        self.away.get(&node).is_some_and(|away| away.buckets.contains(&bucket))
    }

    /// Returns the members that hold something and are about to leave.
    pub fn leavers(&self) -> Vec<NodeId> {
        let members = self.members.iter().zip(&self.loads);
        let goes = members.filter(|(member, load)| member.weight == 0 && load.total() > 0);
        goes.map(|(member, _)| member.id).collect()
    }

    /// Returns whether a copy of the bucket is away, or is about to be.
    pub fn is_missed(&self, bucket: &Bucket, leavers: &[NodeId]) -> bool {
        leavers.iter().any(|node| bucket.is_held_by(*node))
            || self.away.values().any(|away| away.buckets.contains(&bucket.hashmask))
    }

    /// Returns a bucket that would have too few copies without this node: fewer than the settings ask
    /// for on the nodes that stay.
    pub fn bucket_that_needs(&self, node: NodeId) -> Option<&Bucket> {
        if !is_enforced(Rule::CopiesBeforeLeave) {
            return None;
        }
        let stay = self.members.iter().filter(|member| member.weight > 0 && member.id != node);
        let stay: Vec<NodeId> = stay.map(|member| member.id).collect();
        let wanted = stay.len().min(1 + usize::from(self.settings.backups));
        let has_enough = |bucket: &Bucket| {
            let staying = |holder: &&NodeId| stay.binary_search(holder).is_ok();
            bucket.holders.iter().filter(staying).count() >= wanted
        };
        self.buckets().find(|bucket| bucket.is_held_by(node) && !has_enough(bucket))
    }

    pub(super) fn go_away(
        &mut self,
        index: LogIndex,
        peer: Peer,
        absence: Duration,
        way: LeaveWay,
    ) -> ChangeOutcome {
        let node = peer.id;
        let held = self.buckets().filter(|bucket| bucket.is_held_by(node));
        let buckets: BTreeSet<Hashmask> = held.map(|bucket| bucket.hashmask).collect();
        let name = self.member(node).map(|member| member.name.clone()).unwrap_or_default();
        let outcome = self.leave(index, peer, way);
        if outcome == ChangeOutcome::Applied && !buckets.is_empty() {
            Arc::make_mut(&mut self.away).insert(node, Away { name, absence, buckets });
        }
        outcome
    }

    pub(super) fn forget_places(&mut self, node: NodeId) -> ChangeOutcome {
        if !self.away.contains_key(&node) {
            return ChangeOutcome::Void;
        }
        Arc::make_mut(&mut self.away).remove(&node);
        ChangeOutcome::Applied
    }

    /// Releases the node's reserved place in the bucket, because it holds the bucket again.
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
