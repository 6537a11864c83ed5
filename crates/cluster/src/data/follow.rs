//! Applies a new map: sets every slot's replica, bucket by bucket. The control plane hands over one map after the
//! other; `Intake::follow` does the same for an incoming copy.

use std::sync::Arc;

use placement::{Hashmask, Slot};
use store::{Applied, Version};

use super::reconcile::must_reconcile;
use super::{Outgoing, Plane, me_in, slots_of};
use crate::map::{Bucket, Epoch, Map, Member, NodeId};
use crate::replication::{LinkId, Role};
use crate::serving::wake_all_if_moved;

/// Applies a map. There must be links to all its members. `before` is the map applied last.
pub fn follow<P: Plane>(
    plane: &P,
    map: &Arc<Map>,
    before: Option<&Map>,
    mut applied: impl FnMut(Applied),
) {
    let now = MapView::of(plane, map);
    let then = before.map(|before| MapView::of(plane, before));
    plane.with_moves(|outgoing| {
        // Replies must not wait for a taker that has left, even if its bucket has not changed.
        for abandoned in outgoing.extract_if(.., |outgoing| plane.is_gone(outgoing.link)) {
            remove_downstream(plane, abandoned.bucket, abandoned.link);
        }
        for bucket in map.buckets() {
            if then.as_ref().is_none_or(|then| now.differs(then, bucket)) {
                let inherits = inherits(plane, bucket, map, then.as_ref());
                follow_bucket(plane, &now, bucket, outgoing, inherits, &mut applied);
            } else if then.as_ref().is_some_and(|then| now.recalls_otherwise(then, bucket)) {
                let slots = slots_of(bucket.hashmask);
                slots.for_each(|slot| set_retention(plane, slot, &now, bucket, &mut applied));
            }
        }
        if map.keeps_divergence() || before.is_some_and(Map::keeps_divergence) {
            follow_divergence(plane, map, before, &mut applied);
        }
        plane.publish(map);
        plane.recheck_waiting();
    });
}

/// A map as one process sees it.
struct MapView<'a> {
    map: &'a Map,
    /// This node, if the map has this very process as a member.
    me: Option<NodeId>,
    leavers: Vec<NodeId>,
}

impl MapView<'_> {
    fn of<'a>(plane: &impl Plane, map: &'a Map) -> MapView<'a> {
        MapView { map, me: me_in(map, plane), leavers: map.leavers() }
    }

    /// Returns whether this node's role in the bucket may have changed. A slot whose role stays must not be
    /// touched: it may be paused, or have refusals recorded.
    fn differs(&self, then: &MapView<'_>, bucket: &Bucket) -> bool {
        then.map.bucket(bucket.hashmask) != Some(bucket) || self.me != then.me
    }

    /// Returns whether the retention of removals or of a stale copy has changed for the bucket.
    fn recalls_otherwise(&self, then: &MapView<'_>, bucket: &Bucket) -> bool {
        self.is_missed(bucket) != then.is_missed(bucket) || self.keeps(bucket) != then.keeps(bucket)
    }

    /// Returns whether removals from the bucket must be remembered for a copy that is away.
    fn is_missed(&self, bucket: &Bucket) -> bool {
        self.map.is_missed(bucket, &self.leavers)
    }

    /// Returns whether a stale copy of the bucket from an earlier membership may still be useful.
    fn keeps(&self, bucket: &Bucket) -> bool {
        let is_lost = bucket.holders.is_empty();
        let is_kept = |me| self.map.keeps_place(me, bucket.hashmask);
        self.me.is_none_or(|me| is_lost || is_kept(me) || self.map.may_bring(me, bucket.hashmask))
    }
}

fn follow_bucket<P: Plane>(
    plane: &P,
    view: &MapView<'_>,
    bucket: &Bucket,
    outgoing: &[Outgoing],
    inherits: bool,
    applied: &mut impl FnMut(Applied),
) {
    let fill_to = downstream_to_keep(bucket, outgoing);
    for slot in slots_of(bucket.hashmask) {
        plane.with_slot(slot, |state| {
            match view.me {
                Some(me) => state.replica.follow(bucket, me, fill_to, inherits, plane),
                None => state.replica.stand_aside(bucket, plane),
            }
            if state.replica.role() == Role::Absent {
                applied(state.empty(plane.seed()));
            }
            plane.publish_counts(slot, state);
            wake_all_if_moved(plane, slot, state);
        });
        set_retention(plane, slot, view, bucket, applied);
    }
}

/// Sets what is retained of a slot: its removals while a copy is away, and a stale copy while that may be useful.
fn set_retention<P: Plane>(
    plane: &P,
    slot: Slot,
    view: &MapView<'_>,
    bucket: &Bucket,
    applied: &mut impl FnMut(Applied),
) {
    plane.with_slot(slot, |state| {
        if !view.keeps(bucket)
            && let Some(done) = state.drop_stale(plane.seed())
        {
            applied(done);
        }
        let since = state.table.version();
        state.replica.remember_removals(view.is_missed(bucket).then_some(since));
    });
}

/// Records the divergence of histories. While another side of the cluster may be running (split brain), every
/// slot remembers the version at which the histories diverged, and the removals since. A slot that arrived here
/// later and remembers nothing, because its bucket began anew, diverged at its beginning. The slots of a bucket
/// that began anew also do this, as long as a former holder may still come back.
fn follow_divergence<P: Plane>(
    plane: &P,
    map: &Map,
    before: Option<&Map>,
    applied: &mut impl FnMut(Applied),
) {
    let has_parted = before.is_some_and(|it| !it.generation().is_one_with(map.generation()));
    let is_apart = |map: &Map, bucket: &Bucket| map.is_apart(bucket.hashmask);
    let is_news = |bucket: &Bucket| {
        before.is_none_or(|it| {
            is_apart(it, bucket) != is_apart(map, bucket)
                || it.bucket(bucket.hashmask) != Some(bucket)
        })
    };
    for bucket in map.buckets().filter(|bucket| has_parted || is_news(bucket)) {
        let begins = !map.is_forked() && !before.is_some_and(|it| is_apart(it, bucket));
        for slot in slots_of(bucket.hashmask) {
            plane.with_slot(slot, |state| {
                if !is_apart(map, bucket) {
                    applied(state.table.end_divergence());
                } else if state.replica.holds() {
                    let parts_here = has_parted || begins;
                    let at = if parts_here { state.table.version() } else { Version::ZERO };
                    state.table.begin_divergence(at);
                }
            });
        }
    }
}

/// Returns whether this node takes the bucket over from a dead primary: it must not serve before all backups agree.
fn inherits(plane: &impl Plane, bucket: &Bucket, map: &Map, then: Option<&MapView<'_>>) -> bool {
    let first = slots_of(bucket.hashmask).next().expect("a bucket has slots");
    let Some(then) = then else { return false };
    let known = then.map.bucket_of(first);
    let is_new = bucket.primary() == Some(plane.me()) && known.primary() != Some(plane.me());
    is_new && must_reconcile(known, bucket, has_lived_on(known.primary(), then.map, map))
}

/// Returns whether the node was a member in both maps and at all times between.
fn has_lived_on(node: Option<NodeId>, before: &Map, now: &Map) -> bool {
    let Some(peer) = node.and_then(|node| before.member(node)).map(Member::peer) else {
        return false;
    };
    let since = before.member_since(peer);
    since.is_some() && now.member_since(peer) == since
}

pub(super) fn remove_downstream(plane: &impl Plane, bucket: Hashmask, link: LinkId) {
    for slot in slots_of(bucket) {
        plane.with_slot(slot, |state| state.replica.remove_downstream(link));
    }
}

/// Returns the link of a fill of this bucket that is in progress or undecided.
fn downstream_to_keep(bucket: &Bucket, outgoing: &[Outgoing]) -> Option<LinkId> {
    let outgoing = outgoing.iter().find(|outgoing| outgoing.bucket == bucket.hashmask)?;
    let undecided = |ended: Epoch| bucket.epoch <= ended;
    let same_reign = bucket.reign == outgoing.reign;
    (same_reign && outgoing.ended_at.is_none_or(undecided)).then_some(outgoing.link)
}
