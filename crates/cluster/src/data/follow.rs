//! A new map: every slot's duty becomes what it says, bucket by bucket. The control plane hands over
//! one map after the other; `Intake::follow` does the same for a copy that is coming.

use std::sync::Arc;

use placement::Hashmask;
use store::{Applied, Version};

use super::settle::must_settle;
use super::{Outgoing, Plane, slots_of};
use crate::map::{Bucket, Epoch, LogIndex, Map};
use crate::replication::{LinkId, Role};

/// Takes over a map. There must be links to all its members. `before` is the one taken over last.
pub fn follow<P: Plane>(
    plane: &P,
    map: &Arc<Map>,
    before: Option<&Map>,
    mut applied: impl FnMut(Applied),
) {
    plane.with_moves(|outgoing| {
        // A taker that is no member any more is not waited for, although its bucket has not changed.
        if let Some(abandoned) = outgoing.take_if(|outgoing| plane.is_gone(outgoing.link)) {
            stop_feeding(plane, abandoned.bucket, abandoned.link);
        }
        for bucket in map.buckets() {
            if before.and_then(|before| before.bucket(bucket.hashmask)) != Some(bucket) {
                follow_bucket(plane, bucket, *outgoing, &mut applied);
                settle_if_inherited(plane, bucket, before);
            }
        }
        if map.is_forked() || before.is_some_and(Map::is_forked) {
            follow_parting(plane, map, before, &mut applied);
        }
        plane.publish(map);
    });
}

fn follow_bucket<P: Plane>(
    plane: &P,
    bucket: &Bucket,
    outgoing: Option<Outgoing>,
    applied: &mut impl FnMut(Applied),
) {
    plane.forget_refusals(&bucket.hashmask.slots());
    let backups = bucket.backups().iter().filter_map(|node| plane.link_to(*node));
    let wanted: Vec<LinkId> = backups.chain(feed_to_keep(bucket, outgoing)).collect();
    for slot in slots_of(bucket.hashmask) {
        plane.with_slot(slot, |state| {
            state.duty.follow(bucket, plane.me(), |node| plane.link_to(node));
            if state.duty.is_primary() {
                state.duty.feeds.retain(|feed| wanted.contains(&feed.link));
            } else if state.duty.role == Role::Absent {
                applied(state.table.begin_copy(Version::ZERO, plane.seed()));
                state.duty.written_in = LogIndex(0);
            }
            plane.note(slot, state);
        });
    }
}

/// As long as another side of the cluster may have gone on, every slot remembers where the histories
/// parted and what was taken away since. One that came here later and remembers nothing, because its
/// bucket began anew, has parted at its beginning.
fn follow_parting<P: Plane>(
    plane: &P,
    map: &Map,
    before: Option<&Map>,
    applied: &mut impl FnMut(Applied),
) {
    let has_parted = before.is_some_and(|it| !it.generation().is_one_with(map.generation()));
    let is_news = |bucket: &Bucket| {
        before.is_none_or(|it| {
            it.is_forked() != map.is_forked() || it.bucket(bucket.hashmask) != Some(bucket)
        })
    };
    for bucket in map.buckets().filter(|bucket| has_parted || is_news(bucket)) {
        for slot in slots_of(bucket.hashmask) {
            plane.with_slot(slot, |state| {
                if !map.is_forked() {
                    applied(state.table.reunite());
                } else if state.duty.holds() {
                    let at = if has_parted { state.table.version() } else { Version::ZERO };
                    state.table.part(at);
                }
            });
        }
    }
}

/// A bucket that this node has inherited from a dead primary is not served before all agree.
fn settle_if_inherited(plane: &impl Plane, bucket: &Bucket, before: Option<&Map>) {
    let first = slots_of(bucket.hashmask).next().expect("a bucket has slots");
    let Some(known) = before.map(|before| before.bucket_of(first)) else { return };
    let inherited = bucket.primary() == Some(plane.me()) && known.primary() != Some(plane.me());
    if inherited && must_settle(known, bucket) {
        for slot in slots_of(bucket.hashmask) {
            plane.with_slot(slot, |state| {
                if state.duty.role == Role::Serving {
                    state.duty.role = Role::Settling;
                }
            });
        }
    }
}

pub(super) fn stop_feeding(plane: &impl Plane, bucket: Hashmask, link: LinkId) {
    for slot in slots_of(bucket) {
        plane.with_slot(slot, |state| state.duty.stop_feeding(link));
    }
}

/// The link of a fill of this bucket that is still under way, or undecided.
fn feed_to_keep(bucket: &Bucket, outgoing: Option<Outgoing>) -> Option<LinkId> {
    let outgoing = outgoing.filter(|outgoing| outgoing.bucket == bucket.hashmask)?;
    let undecided = |ended: Epoch| bucket.epoch <= ended;
    let same_reign = bucket.reign == outgoing.reign;
    (same_reign && outgoing.ended_at.is_none_or(undecided)).then_some(outgoing.link)
}
