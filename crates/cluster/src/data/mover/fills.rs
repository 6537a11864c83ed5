//! Fills from this node: the buckets of one move, copied one after the other over one link.
//!
//! A bucket that is sent stays in the wait set until the map decides on it. Control hears of all buckets
//! of the move together, when the last one is sent and acknowledged, or when the move has lasted for
//! `TOGETHER_MAX`.

use core::ops::ControlFlow;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use placement::Hashmask;

use super::super::follow::remove_downstream;
use super::super::{Outgoing, Plane, SendProgress, me_in, slots_of};
use super::{Mover, Report, YIELD_BYTES};
use crate::Moment;
use crate::balance::MoveId;
use crate::fill::FillSource;
use crate::map::{Epoch, NodeId};
use crate::replication::{FillSize, FrameNumber, LinkId, Outbox};
use crate::rules::{Rule, is_enforced};

/// Time after which no further bucket of a move is begun: large buckets are published sooner, so that
/// little is copied in vain if the move fails.
const TOGETHER_MAX: Duration = Duration::from_millis(250);

pub(super) struct Filling {
    pub(super) move_id: MoveId,
    pub(super) taker: NodeId,
    pub(super) link: LinkId,
    began: Moment,
    /// Buckets that are not begun.
    queue: VecDeque<Hashmask>,
    current: Option<CurrentFill>,
    /// Buckets that are sent, and on which the map has not decided.
    ended: Vec<Ended>,
    /// True if the map has made the taker a holder of some bucket.
    has_added: bool,
    /// The time at which the fill was reported as done.
    reported: Option<Moment>,
}

/// The bucket that is being sent.
struct CurrentFill {
    source: FillSource,
    /// The number of the first frame, until the taker has acknowledged it. By then the taker has reported its
    /// stale copies.
    asked: Option<FrameNumber>,
}

/// A bucket whose last frame (`FillEnd`) is sent: the frame's number, and the epoch it named.
struct Ended {
    bucket: Hashmask,
    frame: FrameNumber,
    epoch: Epoch,
}

impl Filling {
    pub(super) fn is_reported(&self) -> bool {
        self.reported.is_some()
    }

    pub(super) fn source_mut(&mut self) -> Option<&mut FillSource> {
        self.current.as_mut().map(|current| &mut current.source)
    }

    /// Returns the buckets that the taker has got, at least in part.
    pub(super) fn sent_buckets(&self) -> impl Iterator<Item = Hashmask> {
        let ended = self.ended.iter().map(|ended| ended.bucket);
        ended.chain(self.current.iter().map(|current| current.source.bucket))
    }
}

impl Mover {
    /// Asserts that buckets are fed to a taker only by the fill.
    pub(super) fn check_fill_invariants(&self, plane: &impl Plane) {
        let ended = self.filling.iter().flat_map(|filling| &filling.ended);
        let current = self.filling.iter().filter_map(|filling| filling.current.as_ref());
        let ended = ended.map(|it| (it.bucket, Some(it.epoch)));
        let known = ended.chain(current.map(|it| (it.source.bucket, None)));
        let known: BTreeMap<Hashmask, Option<Epoch>> = known.collect();
        plane.with_moves(|outgoing| {
            for Outgoing { bucket, ended_at, .. } in outgoing {
                assert_eq!(known.get(bucket), Some(&*ended_at), "{bucket} belongs to the fill");
            }
        });
    }

    pub(super) fn start_fill(
        &mut self,
        now: Moment,
        move_id: MoveId,
        buckets: Vec<Hashmask>,
        taker: NodeId,
        plane: &impl Plane,
    ) {
        if self.filling.as_ref().is_some_and(|filling| filling.move_id == move_id) {
            return; // It was already ordered.
        }
        self.stop_fill(plane);
        if self.filling.is_some() {
            // The `FillEnd` of an earlier fill is sent, but its outcome is unknown and nobody tracks it any
            // more: force a decision.
            self.report_doubtful_fill(plane);
            return plane.report(Report::FillFailed { move_id });
        }
        let Some(link) = plane.link_to(taker) else {
            return plane.report(Report::FillFailed { move_id });
        };
        self.filling = Some(Filling {
            move_id,
            taker,
            link,
            began: now,
            queue: buckets.into(),
            current: None,
            ended: Vec::new(),
            has_added: false,
            reported: None,
        });
        self.begin_next(now, plane);
        if self.filling.as_ref().is_some_and(|filling| filling.current.is_none()) {
            self.filling = None;
            plane.report(Report::FillFailed { move_id });
        }
    }

    /// Leaves out the buckets that are not wanted any more and not begun. The others are reported, and
    /// control decides about them.
    pub(super) fn narrow_fill(&mut self, move_id: MoveId, buckets: &[Hashmask]) {
        if let Some(filling) = self.filling.as_mut().filter(|it| it.move_id == move_id) {
            filling.queue.retain(|bucket| buckets.contains(bucket));
        }
    }

    /// Begins the next bucket of the move that this node still serves, if any.
    fn begin_next(&mut self, now: Moment, plane: &impl Plane) {
        let Some(filling) = &mut self.filling else { return };
        if now >= filling.began + TOGETHER_MAX && !filling.ended.is_empty() {
            filling.queue.clear();
        }
        let (move_id, link) = (filling.move_id, filling.link);
        while let Some(bucket) = filling.queue.pop_front() {
            let window = &mut self.window;
            let begun = plane.with_moves(|outgoing| {
                let map = plane.map();
                let me = me_in(&map, plane)?;
                let reign = map.bucket(bucket).filter(|it| it.primary() == Some(me))?.reign;
                let (ended_at, progress) = (None, SendProgress::default());
                outgoing.push(Outgoing { bucket, reign, link, ended_at, progress });
                let source = FillSource::new(move_id, bucket, link, reign);
                let size = size_of(bucket, plane);
                let asked = plane.with_outbox(link, |outbox| {
                    window.turn_to(now, link, outbox);
                    window.add(now, outbox, |outbox| source.start(size, outbox))
                });
                for slot in slots_of(bucket) {
                    plane.with_slot(slot, |state| {
                        state.replica.add_downstream(link, plane.last(link));
                    });
                }
                Some(CurrentFill { source, asked: Some(asked) })
            });
            if let Some(begun) = begun {
                filling.current = Some(begun);
                return;
            }
        }
    }

    /// Checks whether the taker has acknowledged the first frame of a bucket. The taker reports its stale
    /// copies before that, and its answers arrive in order.
    pub(super) fn note_answer(&mut self, plane: &impl Plane) {
        if let Some(Filling { link, current: Some(current), .. }) = &mut self.filling {
            let acked = plane.acked(*link);
            current.asked.take_if(|asked| *asked <= acked);
        }
    }

    /// Sends as much as the window and the bandwidth cap allow.
    pub(super) fn fill_on(&mut self, now: Moment, plane: &impl Plane) {
        while let Some(filling) = &mut self.filling {
            let link = filling.link;
            if plane.is_gone(link) {
                return self.abandon_fill(plane);
            }
            let Some(current) = &filling.current else {
                self.begin_next(now, plane);
                if self.filling.as_ref().is_some_and(|filling| filling.current.is_some()) {
                    continue;
                }
                return self.report_filled(now, plane);
            };
            if current.asked.is_some() {
                return;
            }
            let window = self.window.bytes(now, plane.last(link), plane.acked(link));
            if plane.unacknowledged_bytes(link) > window || !self.may_send(now, plane) {
                return;
            }
            if self.send_some(now, plane).is_break() {
                self.fail_fill(plane);
            }
        }
    }

    fn may_send(&mut self, now: Moment, plane: &impl Plane) -> bool {
        let Some(rate) = plane.map().settings().fill_rate else { return true };
        let (elapsed, sent) = (now.since(self.period_start), self.period_bytes);
        if elapsed > Duration::from_secs(1) {
            (self.period_start, self.period_bytes) = (now, 0);
        }
        sent as f64 <= elapsed.as_secs_f64() * rate as f64
    }

    /// Sends a piece of a large value, a chunk of a slot, or the end. Breaks if this node is no longer the
    /// bucket's primary.
    fn send_some(&mut self, now: Moment, plane: &impl Plane) -> ControlFlow<()> {
        let Some(source) = self.filling.as_mut().and_then(Filling::source_mut) else {
            return ControlFlow::Break(());
        };
        let (link, before, window) = (source.link, source.sent(), &mut self.window);
        if !plane.with_outbox(link, |outbox| window.add(now, outbox, |it| source.send_piece(it))) {
            let Some(slot) = source.slot() else { return self.end_bucket(now, plane) };
            plane.with_slot(slot, |state| {
                if !state.replica.is_primary() || state.replica.reign() != source.reign {
                    return ControlFlow::Break(());
                }
                // Built without the link's lock: clients' writes wait for that lock.
                let mut draft = Outbox::default();
                source.send_chunk(&state.table, &mut state.replica, plane.seed(), &mut draft);
                plane.with_outbox(link, |outbox| {
                    window.add(now, outbox, |outbox| outbox.append(&mut draft));
                });
                ControlFlow::Continue(())
            })?;
        }
        let more = source.sent() - before;
        self.period_bytes += more.bytes;
        self.sent += more;
        self.unyielded_bytes += more.bytes;
        let (bucket, progress) = (source.bucket, SendProgress::of(source));
        plane.with_moves(|outgoing| {
            if let Some(outgoing) = outgoing.iter_mut().find(|it| it.bucket == bucket) {
                outgoing.progress = progress;
            }
        });
        if self.unyielded_bytes >= YIELD_BYTES {
            self.unyielded_bytes = 0;
            plane.flush();
            plane.yield_cpu();
        }
        ControlFlow::Continue(())
    }

    /// Ends a bucket when all its slots are sent: from now on replies wait for the taker.
    fn end_bucket(&mut self, now: Moment, plane: &impl Plane) -> ControlFlow<()> {
        let Some(filling) = &mut self.filling else { return ControlFlow::Break(()) };
        let Some(CurrentFill { source, .. }) = &filling.current else {
            return ControlFlow::Break(());
        };
        let epoch = plane.with_moves(|outgoing| {
            let map = plane.map();
            let known = map.bucket(source.bucket).filter(|it| it.reign == source.reign)?;
            let outgoing = outgoing.iter_mut().find(|it| it.bucket == source.bucket)?;
            outgoing.ended_at = Some(known.epoch);
            for slot in slots_of(source.bucket) {
                plane.with_slot(slot, |state| {
                    let last = plane.last(source.link);
                    let downstream = state.replica.downstream_mut(source.link)?;
                    if is_enforced(Rule::WaitSet) {
                        downstream.join_wait_set(last);
                    }
                    Some(())
                })?;
            }
            plane.with_outbox(source.link, |outbox| {
                self.window.add(now, outbox, |outbox| source.end(known.epoch, outbox));
            });
            Some(known.epoch)
        });
        let Some(epoch) = epoch else { return ControlFlow::Break(()) };
        let (bucket, frame) = (source.bucket, plane.last(source.link));
        filling.ended.push(Ended { bucket, frame, epoch });
        filling.current = None;
        plane.flush();
        ControlFlow::Continue(())
    }

    /// Reports the buckets of a move whose copies the taker has acknowledged, all together.
    fn report_filled(&mut self, now: Moment, plane: &impl Plane) {
        let Some(filling) = self.filling.as_mut().filter(|it| it.reported.is_none()) else {
            return;
        };
        if filling.ended.is_empty() {
            // None of the buckets could be begun, or the map has decided on all of them.
            let (move_id, has_added) = (filling.move_id, filling.has_added);
            self.filling = None;
            if !has_added {
                plane.report(Report::FillFailed { move_id });
            }
            return;
        }
        let acked = plane.acked(filling.link);
        if filling.ended.iter().all(|ended| ended.frame <= acked) {
            filling.reported = Some(now);
            let filled = filling.ended.iter().map(|ended| (ended.bucket, ended.epoch)).collect();
            plane.report(Report::FillDone { move_id: filling.move_id, filled });
        }
    }

    /// Fails the fill. If replies already wait for the taker, only a change of the map can end that
    /// (`report_doubtful_fill`).
    pub(super) fn fail_fill(&mut self, plane: &impl Plane) {
        let Some(move_id) = self.filling.as_ref().map(|filling| filling.move_id) else { return };
        self.report_doubtful_fill(plane);
        self.stop_fill(plane);
        plane.report(Report::FillFailed { move_id });
    }

    /// Reports the taker as out of sync for every bucket whose `FillEnd` is sent: replies wait for it although
    /// it will not become a backup. The bucket's next epoch ends that.
    pub(super) fn report_doubtful_fill(&self, plane: &impl Plane) {
        let Some(filling) = &self.filling else { return };
        for Ended { bucket, epoch, .. } in &filling.ended {
            let (bucket, node, epoch) = (*bucket, filling.taker, *epoch);
            plane.report(Report::OutOfSync { bucket, node, epoch });
        }
    }

    /// Cancels the fill, except for buckets whose `FillEnd` is sent: there the map decides (`follow_fill`).
    pub(super) fn stop_fill(&mut self, plane: &impl Plane) {
        let Some(filling) = &mut self.filling else { return };
        filling.queue.clear();
        if let Some(CurrentFill { source, .. }) = filling.current.take() {
            // Remove the downstreams first: frames shipped after the cancellation would be refused.
            forget_downstream(plane, source.bucket, source.link);
            plane.with_outbox(source.link, |outbox| source.cancel(outbox));
        }
        if filling.ended.is_empty() {
            self.filling = None;
        }
    }

    /// Drops the fill because the taker is no longer a member: nobody waits for its acknowledgement.
    fn abandon_fill(&mut self, plane: &impl Plane) {
        let Some(filling) = self.filling.take() else { return };
        for bucket in filling.sent_buckets() {
            forget_downstream(plane, bucket, filling.link);
        }
        plane.report(Report::FillFailed { move_id: filling.move_id });
    }

    /// Applies a new map to the fill. A bucket whose `FillEnd` was sent is decided on when it has a later epoch,
    /// whatever that changed; an unfinished one ends with the bucket or its reign, and the whole fill with it.
    pub(super) fn follow_fill(&mut self, plane: &impl Plane) {
        let map = plane.map();
        let Some(filling) = &mut self.filling else { return };
        let (taker, mut has_added) = (filling.taker, filling.has_added);
        filling.ended.retain(|ended| {
            let known = map.bucket(ended.bucket);
            if known.is_some_and(|known| known.epoch <= ended.epoch) {
                return true;
            }
            plane.with_moves(|outgoing| outgoing.retain(|it| it.bucket != ended.bucket));
            has_added |= known.is_some_and(|known| known.is_held_by(taker));
            false
        });
        filling.has_added = has_added;
        let is_lost = filling.current.as_ref().is_some_and(|CurrentFill { source, .. }| {
            map.bucket(source.bucket).is_none_or(|known| known.reign != source.reign)
        });
        if is_lost {
            return self.fail_fill(plane);
        }
        let is_over =
            filling.ended.is_empty() && filling.current.is_none() && filling.queue.is_empty();
        if is_over {
            let move_id = filling.move_id;
            self.filling = None;
            // The control plane may still wait for the outcome of a fill that some other change of the buckets
            // has ended.
            if !has_added {
                plane.report(Report::FillFailed { move_id });
            }
        }
    }

    /// Forces a decision on a finished fill that nobody has decided on for two leases: it must have been forgotten.
    pub(super) fn report_forgotten_fill(&mut self, now: Moment, plane: &impl Plane) {
        let long = 2 * plane.map().settings().lease;
        let reported = self.filling.as_ref().and_then(|filling| filling.reported);
        if reported.is_some_and(|since| now > since + long) {
            self.report_doubtful_fill(plane);
        }
    }
}

fn forget_downstream(plane: &impl Plane, bucket: Hashmask, link: LinkId) {
    plane.with_moves(|outgoing| {
        outgoing.retain(|it| it.bucket != bucket);
        remove_downstream(plane, bucket, link);
    });
    plane.recheck_waiting(); // Held replies may wait for this downstream.
}

/// Returns the size of a bucket that this node serves.
fn size_of(bucket: Hashmask, plane: &impl Plane) -> FillSize {
    let mut size = FillSize::default();
    for slot in slots_of(bucket) {
        plane.with_slot(slot, |state| {
            size.items += state.table().len() as u64;
            size.bytes += state.table().bytes() as u64;
        });
    }
    size
}
