//! After a failover the new primary makes sure that the other backups have exactly the same data before it
//! serves. Some backups may have received more of the dead primary's last writes than others. All of them have
//! every acknowledged write, so the new primary's data is always right.

use placement::{Hashmask, Slot};
use store::encode_item_in_parts;

use super::refusals::refused_slots;
use super::{Plane, me_in, slots_of};
use crate::fill::CHUNK_BYTES;
use crate::map::{Bucket, LogIndex, Map, NodeId};
use crate::replication::{Frame, FrameNumber, LinkId, Outbox, Role};

/// Buckets of which this node is primary but that it does not serve yet.
#[derive(Default)]
pub(super) struct Reconciliations(Vec<Reconciliation>);

struct Reconciliation {
    bucket: Hashmask,
    reign: LogIndex,
    /// The last frame sent to each backup; all of them must be acknowledged.
    asked: Vec<(LinkId, FrameNumber)>,
}

/// Returns whether a bucket that this node starts to serve must be reconciled first. Not needed if its primary has
/// handed it over, because then all backups have acknowledged everything. If several changes lie between the two
/// maps, one of them may be a death.
///
/// `lived_on` is true if the process of the old primary was a member all the time. Then its place was taken by a
/// promotion, not by its death; and if only its own copy is gone after two changes, the second one dropped that.
pub(super) fn must_reconcile(before: &Bucket, now: &Bucket, lived_on: bool) -> bool {
    let Some(primary) = before.primary() else { return !now.backups().is_empty() };
    let is_promoted = now.epoch == before.epoch.next() && now.is_held_by(primary);
    let stays = |node: &&NodeId| **node != primary;
    let is_given = lived_on
        && now.hashmask == before.hashmask
        && now.epoch == before.epoch.next().next()
        && now.holders.len() + 1 == before.holders.len()
        && before.holders.iter().filter(stays).all(|node| now.is_held_by(*node));
    !is_promoted && !is_given && !now.backups().is_empty()
}

impl Reconciliations {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Starts with the buckets that need it, and forgets those that this node no longer has to reconcile.
    pub(super) fn follow(&mut self, map: &Map, plane: &impl Plane) {
        self.0.retain(|known| {
            map.bucket(known.bucket).is_some_and(|bucket| bucket.reign == known.reign)
        });
        let Some(me) = me_in(map, plane) else { return };
        for bucket in map.buckets().filter(|bucket| bucket.primary() == Some(me)) {
            let known = self.0.iter().any(|known| known.bucket == bucket.hashmask);
            if !known && is_reconciling(plane, bucket.hashmask) {
                let asked = compare(bucket, plane);
                self.0.push(Reconciliation { bucket: bucket.hashmask, reign: bucket.reign, asked });
            }
        }
    }

    /// Serves the buckets on which all backups agree, and resends the slots that differ.
    pub(super) fn go_on(&mut self, map: &Map, plane: &impl Plane) {
        self.0.retain_mut(|reconciliation| {
            let bucket =
                map.bucket(reconciliation.bucket).filter(|it| it.reign == reconciliation.reign);
            let Some(bucket) = bucket else { return false };
            let backups: Vec<LinkId> =
                bucket.backups().iter().filter_map(|node| plane.link_to(*node)).collect();
            reconciliation.asked.retain(|(link, _)| backups.contains(link));
            if reconciliation.asked.iter().any(|(link, number)| plane.acked(*link) < *number) {
                return true;
            }
            let differing = reconciliation.differing(plane);
            if differing.is_empty() {
                serve(bucket.hashmask, plane);
                return false;
            }
            reconciliation.asked = differing
                .into_iter()
                .map(|(link, slot)| (link, send_whole(link, slot, reconciliation.reign, plane)))
                .collect();
            true
        });
    }

    pub(super) fn concerns(&self, bucket: Hashmask) -> bool {
        self.0.iter().any(|reconciliation| reconciliation.bucket == bucket)
    }
}

impl Reconciliation {
    fn differing(&self, plane: &impl Plane) -> Vec<(LinkId, Slot)> {
        let slots = self.bucket.slots();
        let of = |link: LinkId| {
            let refused = refused_slots(plane, link).into_iter();
            refused.filter(|slot| slots.contains(&slot.number())).map(move |slot| (link, slot))
        };
        let mut all: Vec<(LinkId, Slot)> =
            self.asked.iter().flat_map(|(link, _)| of(*link)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Checks only the last slot: all slots of a bucket are reconciled together, the last one last. Checking each slot of
/// all buckets on every map change would block this core for a millisecond.
fn is_reconciling(plane: &impl Plane, bucket: Hashmask) -> bool {
    let last = slots_of(bucket).last().expect("a bucket has slots");
    plane.with_slot(last, |state| state.replica.role() == Role::Reconciling)
}

/// Sends all backups the position of every slot, to be compared with theirs.
fn compare(bucket: &Bucket, plane: &impl Plane) -> Vec<(LinkId, FrameNumber)> {
    let links = bucket.backups().iter().filter_map(|node| plane.link_to(*node));
    links
        .map(|link| {
            for slot in slots_of(bucket.hashmask) {
                let position = plane.with_slot(slot, |state| state.position());
                let frame = Frame::Compare { reign: bucket.reign, slot, position };
                plane.with_outbox(link, |outbox| outbox.push(&frame));
            }
            (link, plane.last(link))
        })
        .collect()
}

/// Sends the whole slot. Nothing changes it meanwhile: it is not served yet.
fn send_whole(link: LinkId, slot: Slot, reign: LogIndex, plane: &impl Plane) -> FrameNumber {
    plane.with_slot(slot, |state| {
        state.replica.clear_refusal(link, plane.last(link));
        // Built without the link's lock: writes to other slots wait for that lock.
        let mut draft = Outbox::default();
        draft.push(&Frame::Replace { reign, slot, position: state.position() });
        let mut items = Vec::new();
        state.table.for_each(|found| {
            encode_item_in_parts(&found, &mut items, |items| {
                if items.len() >= CHUNK_BYTES {
                    draft.push(&Frame::ReplaceItems { slot, items });
                    items.clear();
                }
            });
        });
        draft.push(&Frame::ReplaceItems { slot, items: &items });
        draft.push(&Frame::ReplaceEnd { slot });
        plane.with_outbox(link, |outbox| {
            outbox.append(&mut draft);
            outbox.last()
        })
    })
}

fn serve(bucket: Hashmask, plane: &impl Plane) {
    for slot in slots_of(bucket) {
        plane.with_slot(slot, |state| {
            if state.replica.reconciled() {
                plane.publish_counts(slot, state);
            }
        });
    }
    plane.recheck_waiting(); // Parked commands may wait for this bucket.
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Epoch;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);
    const C: NodeId = NodeId(3);

    fn bucket(epoch: u64, holders: &[NodeId]) -> Bucket {
        let hashmask = "00FF/0014".parse().expect("a hashmask");
        let (epoch, holders) = (Epoch(epoch), holders.iter().copied().collect());
        Bucket { hashmask, epoch, reign: LogIndex(1), holders }
    }

    #[test]
    fn a_bucket_that_was_handed_over_is_served_at_once() {
        let before = bucket(5, &[A, B, C]);
        assert!(!must_reconcile(&before, &bucket(6, &[C, B, A]), true));
        assert!(!must_reconcile(&before, &bucket(7, &[C, B]), true), "A has given its copy away");
    }

    #[test]
    fn after_a_death_the_backups_are_compared() {
        let before = bucket(5, &[A, B, C]);
        assert!(must_reconcile(&before, &bucket(6, &[C, B]), false), "A died");
        assert!(must_reconcile(&before, &bucket(7, &[C, B]), false), "A died, and something else");
        assert!(must_reconcile(&before, &bucket(7, &[C, A]), true), "B was promoted and died");
        assert!(must_reconcile(&before, &bucket(8, &[C, B]), true), "too much has happened");
        assert!(
            !must_reconcile(&before, &bucket(6, &[C]), false),
            "there is nobody to compare with"
        );
    }
}
