//! The effect of each change on the map. Deterministic: the same log gives the same map everywhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use placement::Hashmask;

use super::{
    Bucket, Change, ChangeOutcome, ChangeRefusal, DocumentWrite, DropReason, Epoch, LeaveWay, Load,
    LogIndex, Map, Member, NodeId, Peer, RecreateSource,
};

impl Map {
    /// Applies the entry at `index` of the log. Its changes of one bucket build on each other, so the
    /// first one without effect ends them: a copy that was to be replaced must not be dropped when its
    /// replacement could not be added. Changes of other buckets in the entry do not depend on it.
    ///
    /// A step of balancing names in `planned_at` the basis of the plan it belongs to. If that is no
    /// longer the map's basis, the present plan does not account for the step: all nodes have to plan
    /// again.
    pub fn apply_entry(
        &mut self,
        index: LogIndex,
        planned_at: Option<Epoch>,
        changes: &[Change],
    ) -> Vec<ChangeOutcome> {
        let late = planned_at.is_some_and(|basis| basis != self.basis);
        let mut outcomes = Vec::with_capacity(changes.len());
        let mut ended: BTreeSet<Option<Hashmask>> = BTreeSet::new();
        for change in changes {
            let outcome = if ended.contains(&change.bucket()) {
                ChangeOutcome::Stale
            } else {
                self.apply(index, change)
            };
            if outcome != ChangeOutcome::Applied {
                ended.insert(change.bucket());
            }
            outcomes.push(outcome);
        }
        if late && outcomes.contains(&ChangeOutcome::Applied) {
            self.basis = self.epoch;
        }
        outcomes
    }

    /// Applies one change of the entry at `index` of the log.
    pub fn apply(&mut self, index: LogIndex, change: &Change) -> ChangeOutcome {
        if let Some(generation) = self.yielded_to {
            return ChangeOutcome::Refused(ChangeRefusal::Yielded(generation));
        }
        let outcome = self.apply_to_parts(index, change);
        match outcome {
            ChangeOutcome::Applied | ChangeOutcome::Void => self.epoch = self.epoch.next(),
            ChangeOutcome::Stale | ChangeOutcome::Refused(_) => return outcome,
        }
        if outcome == ChangeOutcome::Applied && change.makes_a_new_basis() {
            self.basis = self.epoch;
        }
        outcome
    }

    fn apply_to_parts(&mut self, index: LogIndex, change: &Change) -> ChangeOutcome {
        match change {
            Change::Join(member) => self.join(index, member),
            Change::Leave { node, boot, way } => {
                self.leave(index, Peer { id: *node, boot: *boot }, *way)
            }
            Change::Away { node, boot, absence, way } => {
                self.go_away(index, Peer { id: *node, boot: *boot }, *absence, *way)
            }
            Change::Forget(node) => self.forget_places(*node),
            Change::Dead(nodes) => self.dead(index, nodes),
            Change::AddBackup { bucket, node, expected } => {
                self.change_bucket(*bucket, *expected, |map, place| map.add_backup(place, *node))
            }
            Change::Promote { bucket, node, expected } => {
                self.change_bucket(*bucket, *expected, |map, place| {
                    map.promote(index, place, *node)
                })
            }
            Change::DropBackup { bucket, node, expected, because } => {
                self.change_bucket(*bucket, *expected, |map, place| {
                    map.drop_backup(place, *node, *because)
                })
            }
            Change::Split(buckets) => self.split(buckets),
            Change::Recreate { bucket, node, from, expected } => {
                self.change_bucket(*bucket, *expected, |map, place| {
                    map.recreate(index, place, *node, *from)
                })
            }
            Change::KeptCopiesHandedOver { node, buckets } => self.stop_awaiting(*node, buckets),
            Change::Write { documents, expected } => self.write(index, documents, *expected),
            Change::Set(setting) => {
                Arc::make_mut(&mut self.settings).set(setting);
                ChangeOutcome::Applied
            }
            Change::Yield(generation) => {
                self.yielded_to = Some(*generation);
                ChangeOutcome::Applied
            }
        }
    }

    /// Applies a takeover, at `index` of a log that begins with it: the next generation, with this node
    /// as its only member.
    pub fn take_over(&mut self, index: LogIndex, founder: NodeId) {
        self.generation = self.generation.taken_over_by(founder);
        let others = self.members.iter().map(|member| member.id).filter(|node| *node != founder);
        let others: BTreeSet<NodeId> = others.collect();
        let lost_sight_of = self.members.iter().filter(|member| member.id != founder).cloned();
        let mut partitioned_members: Vec<Member> = lost_sight_of.collect();
        partitioned_members
            .extend(self.partitioned_members.iter().filter(|it| it.id != founder).cloned());
        self.partitioned_members = Arc::new(partitioned_members);
        self.apply(index, &Change::Dead(others));
        self.basis = self.epoch;
    }

    fn join(&mut self, index: LogIndex, member: &Member) -> ChangeOutcome {
        match self.members.binary_search_by_key(&member.id, |known| known.id) {
            Ok(place) => {
                if self.members[place].boot != member.boot {
                    // The lock on its data directory proves that the old process is gone.
                    self.remove_holders(index, &BTreeSet::from([member.id]));
                    self.loads[place].last_received = None;
                    self.since[place] = index;
                }
                Arc::make_mut(&mut self.members)[place] = member.clone();
            }
            Err(place) => {
                self.generation = self.generation.joined();
                Arc::make_mut(&mut self.members).insert(place, member.clone());
                self.loads.insert(place, Load::default());
                self.since.insert(place, index);
            }
        }
        if self.partitioned_members.iter().any(|it| it.is_succeeded_by(member)) {
            Arc::make_mut(&mut self.partitioned_members).retain(|it| !it.is_succeeded_by(member));
        }
        ChangeOutcome::Applied
    }

    pub(super) fn leave(&mut self, index: LogIndex, peer: Peer, way: LeaveWay) -> ChangeOutcome {
        let node = peer.id;
        if self.member(node).is_none_or(|member| member.peer() != peer) {
            return ChangeOutcome::Refused(ChangeRefusal::UnknownNode(node));
        }
        // It may hold a lease: only a handover or its death takes a bucket from it.
        if let Some(bucket) = self.buckets().find(|bucket| bucket.primary() == Some(node)) {
            return ChangeOutcome::Refused(ChangeRefusal::StillServes(bucket.hashmask));
        }
        if let (LeaveWay::Safe, Some(bucket)) = (way, self.bucket_that_needs(node)) {
            return ChangeOutcome::Refused(ChangeRefusal::StillNeeded(bucket.hashmask));
        }
        self.dead(index, &BTreeSet::from([node]))
    }

    fn dead(&mut self, index: LogIndex, nodes: &BTreeSet<NodeId>) -> ChangeOutcome {
        let known = nodes.iter().any(|node| self.member(*node).is_some());
        if !known {
            return ChangeOutcome::Void;
        }
        self.remove_holders(index, nodes);
        for node in nodes {
            self.forget_places(*node);
        }
        let members = Arc::make_mut(&mut self.members);
        let stays: Vec<bool> = members.iter().map(|it| !nodes.contains(&it.id)).collect();
        retain(&mut self.loads, &stays);
        retain(&mut self.since, &stays);
        members.retain(|member| !nodes.contains(&member.id));
        ChangeOutcome::Applied
    }

    /// Removes these nodes from every bucket; the first remaining backup becomes primary.
    fn remove_holders(&mut self, index: LogIndex, nodes: &BTreeSet<NodeId>) {
        for place in 0..self.buckets.len() {
            if !self.buckets.get(place).holders.iter().any(|holder| nodes.contains(holder)) {
                continue;
            }
            let bucket = self.buckets.get_mut(place);
            let before = bucket.holders.clone();
            bucket.holders.retain(|holder| !nodes.contains(holder));
            bucket.epoch = bucket.epoch.next();
            if bucket.primary() != before.first().copied() {
                bucket.reign = index;
            }
            if bucket.holders.is_empty() {
                let hashmask = bucket.hashmask;
                Arc::make_mut(&mut self.lost).insert(hashmask, before);
            }
        }
        self.count_loads();
    }

    /// Compare-and-set: runs `change` on the bucket at its place if the epoch is the expected one.
    fn change_bucket(
        &mut self,
        hashmask: Hashmask,
        expected: Epoch,
        change: impl FnOnce(&mut Map, usize) -> ChangeOutcome,
    ) -> ChangeOutcome {
        let Some(place) = self.place_of_bucket(hashmask) else { return ChangeOutcome::Stale };
        if self.buckets.get(place).epoch != expected {
            return ChangeOutcome::Stale;
        }
        // Raised even if nothing else changes: so an undecided proposal can be voided by committing
        // another one with the same expectation.
        self.buckets.get_mut(place).epoch = expected.next();
        change(self, place)
    }

    fn add_backup(&mut self, place: usize, node: NodeId) -> ChangeOutcome {
        let Some(member) = self.place_of(node) else { return ChangeOutcome::Void };
        let bucket = self.buckets.get_mut(place);
        if bucket.holders.is_empty() || bucket.is_held_by(node) {
            return ChangeOutcome::Void;
        }
        bucket.holders.push(node);
        self.loads[member].backups += 1;
        let hashmask = bucket.hashmask;
        self.loads[member].last_received = Some(hashmask);
        self.take_place(node, hashmask);
        ChangeOutcome::Applied
    }

    fn promote(&mut self, index: LogIndex, place: usize, node: NodeId) -> ChangeOutcome {
        let bucket = self.buckets.get_mut(place);
        let Some(rank) = bucket.holders.iter().skip(1).position(|backup| *backup == node) else {
            return ChangeOutcome::Void;
        };
        let before = bucket.holders[0];
        bucket.holders.swap(0, rank + 1);
        bucket.reign = index;
        self.load_mut(before).primaries -= 1;
        self.load_mut(before).backups += 1;
        self.load_mut(node).primaries += 1;
        self.load_mut(node).backups -= 1;
        ChangeOutcome::Applied
    }

    fn drop_backup(&mut self, place: usize, node: NodeId, because: DropReason) -> ChangeOutcome {
        let wanted = self.copies_wanted();
        let bucket = self.buckets.get_mut(place);
        if because == DropReason::Balance && bucket.holders.len() <= wanted {
            return ChangeOutcome::Void;
        }
        let Some(rank) = bucket.holders.iter().skip(1).position(|backup| *backup == node) else {
            return ChangeOutcome::Void;
        };
        bucket.holders.remove(rank + 1);
        self.load_mut(node).backups -= 1;
        ChangeOutcome::Applied
    }

    fn recreate(
        &mut self,
        index: LogIndex,
        place: usize,
        node: NodeId,
        from: RecreateSource,
    ) -> ChangeOutcome {
        let member = self.member(node).is_some();
        let bucket = self.buckets.get_mut(place);
        if !member || !bucket.holders.is_empty() {
            return ChangeOutcome::Void;
        }
        bucket.holders.push(node);
        bucket.reign = index;
        let hashmask = bucket.hashmask;
        let last = Arc::make_mut(&mut self.lost).remove(&hashmask);
        if let (RecreateSource::Snapshot | RecreateSource::Empty, Some(last)) = (from, last) {
            self.begin_anew(hashmask, &last);
        }
        self.load_mut(node).primaries += 1;
        self.take_place(node, hashmask);
        ChangeOutcome::Applied
    }

    fn split(&mut self, buckets: &[(Hashmask, Epoch)]) -> ChangeOutcome {
        let fresh: BTreeSet<Hashmask> = buckets
            .iter()
            .filter(|(hashmask, expected)| {
                self.bucket(*hashmask).is_some_and(|bucket| bucket.epoch == *expected)
            })
            .filter(|(hashmask, _)| hashmask.mask().next().is_some())
            .map(|(hashmask, _)| *hashmask)
            .collect();
        if fresh.is_empty() {
            return ChangeOutcome::Stale;
        }
        let (parents, mut kept): (Vec<Bucket>, Vec<Bucket>) =
            self.buckets().cloned().partition(|bucket| fresh.contains(&bucket.hashmask));
        for parent in &parents {
            self.split_marks(parent.hashmask);
            kept.extend(parent.hashmask.split().map(|hashmask| Bucket {
                hashmask,
                epoch: parent.epoch.next(),
                reign: parent.reign,
                holders: parent.holders.clone(),
            }));
        }
        self.set_buckets(kept);
        ChangeOutcome::Applied
    }

    /// Splits the other records of the map about a bucket that is split.
    fn split_marks(&mut self, parent: Hashmask) {
        self.split_places(parent);
        self.split_anew(parent);
        for load in self.loads.iter_mut().filter(|load| load.last_received == Some(parent)) {
            load.last_received = None;
        }
        if !self.lost.contains_key(&parent) {
            return;
        }
        let lost = Arc::make_mut(&mut self.lost);
        let holders = lost.remove(&parent).expect("looked up above");
        lost.extend(parent.split().map(|child| (child, holders.clone())));
    }

    fn write(
        &mut self,
        index: LogIndex,
        writes: &[DocumentWrite],
        expected: LogIndex,
    ) -> ChangeOutcome {
        if self.documents.version() != expected {
            return ChangeOutcome::Stale;
        }
        if let Err(error) = self.documents.check(writes) {
            return ChangeOutcome::Refused(ChangeRefusal::Document(error));
        }
        Arc::make_mut(&mut self.documents).write(index, writes);
        ChangeOutcome::Applied
    }

    fn load_mut(&mut self, node: NodeId) -> &mut Load {
        let place = self.place_of(node).expect("a holder is a member");
        &mut self.loads[place]
    }
}

/// Keeps the items whose flag in `stays` is set.
fn retain<T>(items: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    items.retain(|_| *stays.next().expect("as many items as members"));
}

impl Change {
    /// Returns the bucket that this changes, if it is one.
    pub fn bucket(&self) -> Option<Hashmask> {
        match self {
            Change::AddBackup { bucket, .. }
            | Change::Promote { bucket, .. }
            | Change::DropBackup { bucket, .. }
            | Change::Recreate { bucket, .. } => Some(*bucket),
            Change::Join(_)
            | Change::Leave { .. }
            | Change::Away { .. }
            | Change::Forget(_)
            | Change::Dead(_)
            | Change::Split(_)
            | Change::Set(_)
            | Change::Yield(_)
            | Change::KeptCopiesHandedOver { .. }
            | Change::Write { .. } => None,
        }
    }

    /// Returns whether all nodes have to plan again after this change.
    fn makes_a_new_basis(&self) -> bool {
        match self {
            Change::Join(_)
            | Change::Leave { .. }
            | Change::Away { .. }
            | Change::Forget(_)
            | Change::Dead(_)
            | Change::Split(_)
            | Change::Recreate { .. }
            | Change::Set(_)
            | Change::Yield(_) => true,
            Change::AddBackup { .. }
            | Change::Promote { .. }
            | Change::KeptCopiesHandedOver { .. }
            | Change::Write { .. } => false,
            Change::DropBackup { because, .. } => *because == DropReason::OutOfSync,
        }
    }
}
