//! Outgoing buckets: fills and handovers; and backups that fall behind. The control plane sends orders and gets
//! reports of the outcome.
//!
//! The server runs it on a thread of its own: it calls `handle` for every order and `go_on` repeatedly, at
//! short intervals while it `is_busy`.

use core::ops::ControlFlow;
use std::time::Duration;

use placement::{Hashmask, Slot};

use super::follow::remove_downstream;
use super::lag::BucketLag;
use super::pending::Pending;
use super::refusals::refused_slots;
use super::settle::Settlements;
use super::tombstones::TombstoneLimits;
use super::window::Window;
use super::{Outgoing, Plane, SendProgress, me_in, slots_of};
use crate::Moment;
use crate::balance::Attempt;
use crate::fill::{FillSource, Sent};
use crate::map::{Epoch, NodeId};
use crate::replication::{
    FillSize, Frame, FrameNumber, LinkId, Outbox, Position, Role, SlotReplica,
};
use crate::rules::{Rule, holds};

/// An order of the control plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Copy the bucket from this node to the taker; then `Report::FillDone` or `FillFailed`.
    Fill { attempt: Attempt, bucket: Hashmask, taker: NodeId },
    /// This node's part in that fill is over, whatever it was.
    Cancel { attempt: Attempt },
    /// Stop running commands on the bucket and park them; `Report::Drained` when everything is
    /// acknowledged. This node serves it again only at a later epoch in which it is still the primary.
    Pause { bucket: Hashmask, epoch: Epoch, to: NodeId },
}

/// An input of the mover.
#[derive(Clone, Copy, Debug)]
pub enum MoverInput {
    Order(Order),
    /// A taker has refused the fill.
    FillRefused {
        fill: Attempt,
    },
    /// A taker has a copy of a slot from an earlier membership.
    StaleCopy {
        fill: Attempt,
        slot: Slot,
        position: Position,
    },
    /// This node is about to become the bucket's primary: commands for it wait here until the bucket
    /// has a later epoch, or for a while.
    TakeOver {
        bucket: Hashmask,
        epoch: Epoch,
    },
    /// A link has received an acknowledgement.
    Acked,
    MapChanged,
}

/// A report to the control plane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Report {
    FillDone {
        attempt: Attempt,
        epoch: Epoch,
    },
    FillFailed {
        attempt: Attempt,
    },
    Drained {
        bucket: Hashmask,
        epoch: Epoch,
    },
    /// Number of bytes this backup has not acknowledged yet.
    Beat {
        to: NodeId,
        remaining_bytes: u64,
        /// The buckets of these bytes.
        lags: Vec<BucketLag>,
    },
    /// The backup is out of sync.
    OutOfSync {
        bucket: Hashmask,
        node: NodeId,
        epoch: Epoch,
    },
    /// The node has acknowledged nothing for a while; it must not be filled again at once.
    Stuck {
        node: NodeId,
    },
}

/// Number of bytes of a fill that are assembled before they are sent and other threads may run. On a busy
/// machine a turn of the other threads takes milliseconds, so several small slots share one.
const TURN_BYTES: u64 = 16 * 1024;
/// Interval between checks for backups that fall behind.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Time after which a backup that was announced as the next primary redirects commands again. The end of a handover,
/// good or bad, shows in the map, so this is only for a map that does not come: as long as a parked command waits.
const PROMOTION_WAIT: Duration = Duration::from_secs(5);

struct Filling {
    attempt: Attempt,
    taker: NodeId,
    source: FillSource,
    /// The number of the first frame, until the taker has acknowledged it. By then the taker has reported its
    /// stale copies.
    asked: Option<FrameNumber>,
    /// The number of the last frame (`FillEnd`), and the epoch it named.
    end: Option<(FrameNumber, Epoch)>,
    /// The time at which the fill was reported as done.
    reported: Option<Moment>,
}

/// A bucket that is about to be promoted here, as announced at this epoch of it.
struct PendingPromotion {
    bucket: Hashmask,
    epoch: Epoch,
    since: Moment,
}

#[derive(Clone, Copy)]
struct Pausing {
    bucket: Hashmask,
    epoch: Epoch,
    /// The frame that tells the next primary; none if there is no link to it.
    announced: Option<(LinkId, FrameNumber)>,
}

pub struct Mover {
    filling: Option<Filling>,
    pausing: Option<Pausing>,
    pending_promotions: Vec<PendingPromotion>,
    /// Promotions that nothing waits for any more, since the last `take_promotions_over`.
    promotions_over: usize,
    settlements: Settlements,
    pending: Pending,
    look_due: Moment,
    window: Window,
    /// Accounting for the bandwidth cap: start of the period, and bytes sent since.
    paced: (Moment, u64),
    /// Bytes of fills sent since other threads had their turn.
    turn: u64,
    tombstones: TombstoneLimits,
    /// Totals of all fills.
    sent: Sent,
}

impl Mover {
    pub fn new(now: Moment) -> Mover {
        Mover {
            filling: None,
            pausing: None,
            pending_promotions: Vec::new(),
            promotions_over: 0,
            settlements: Settlements::default(),
            pending: Pending::default(),
            look_due: now,
            window: Window::default(),
            paced: (now, 0),
            turn: 0,
            tombstones: TombstoneLimits::default(),
            sent: Sent::default(),
        }
    }

    /// Returns whether there is work that does not wait for the map.
    pub fn is_busy(&self) -> bool {
        self.is_pausing()
            || !self.settlements.is_empty()
            || self.filling.as_ref().is_some_and(|filling| filling.reported.is_none())
    }

    /// Returns whether a bucket is being handed over.
    pub fn is_pausing(&self) -> bool {
        self.pausing.is_some()
    }

    /// Returns how many announced promotions are over, and forgets them.
    pub fn take_promotions_over(&mut self) -> usize {
        core::mem::take(&mut self.promotions_over)
    }

    /// Returns the totals of all fills from this node.
    pub fn sent(&self) -> Sent {
        self.sent
    }

    pub fn handle(&mut self, now: Moment, input: MoverInput, plane: &impl Plane) {
        match input {
            MoverInput::Order(order) => self.carry_out(now, order, plane),
            MoverInput::FillRefused { fill } => {
                if self.filling.as_ref().is_some_and(|filling| filling.attempt == fill) {
                    self.fail_fill(plane);
                }
            }
            MoverInput::StaleCopy { fill, slot, position } => {
                if let Some(it) = self.filling.as_mut().filter(|it| it.attempt == fill) {
                    it.source.note_kept(slot, position);
                }
            }
            MoverInput::TakeOver { bucket, epoch } => {
                self.pending_promotions.push(PendingPromotion { bucket, epoch, since: now });
                self.forget_pending_promotions(now, plane);
            }
            MoverInput::Acked => self.note_answer(plane),
            MoverInput::MapChanged => {
                self.follow_map(plane);
                self.forget_pending_promotions(now, plane);
                self.settlements.follow(&plane.map(), plane);
            }
        }
    }

    fn carry_out(&mut self, now: Moment, order: Order, plane: &impl Plane) {
        match order {
            Order::Fill { attempt, bucket, taker } => {
                self.start_fill(now, attempt, bucket, taker, plane);
            }
            Order::Cancel { attempt } => {
                if self.filling.as_ref().is_some_and(|filling| filling.attempt == attempt) {
                    self.stop_fill(plane);
                }
            }
            Order::Pause { bucket, epoch, to } => self.pause(bucket, epoch, to, plane),
        }
    }

    /// Does the work that is possible now.
    pub fn go_on(&mut self, now: Moment, plane: &impl Plane) {
        self.fill_on(now, plane);
        self.report_drained(plane);
        self.settlements.go_on(&plane.map(), plane);
        plane.flush();
        if self.look_due <= now {
            self.look_due = now + LOOK_INTERVAL;
            self.report_slow_backups(plane);
            self.report_forgotten_fill(now, plane);
            self.forget_pending_promotions(now, plane);
            self.tombstones.look(now, plane);
            self.pending.look(now, plane);
        }
        if cfg!(debug_assertions) {
            self.check_invariants(plane);
        }
    }

    /// Asserts the invariants that hold between inputs.
    fn check_invariants(&self, plane: &impl Plane) {
        if let Some(filling) = &self.filling {
            assert!(filling.asked.is_none() || filling.end.is_none(), "nothing is sent unasked");
            assert!(
                filling.reported.is_none() || filling.end.is_some(),
                "only a complete fill is reported"
            );
        }
        plane.with_moves(|outgoing| {
            let Some(outgoing) = outgoing else { return };
            let filling = self.filling.as_ref().expect("only a fill feeds a bucket to a taker");
            assert_eq!(outgoing.bucket, filling.source.bucket);
            assert_eq!(outgoing.link, filling.source.link);
            assert_eq!(outgoing.ended_at, filling.end.map(|(_, epoch)| epoch));
        });
    }

    // ---- A fill.

    fn start_fill(
        &mut self,
        now: Moment,
        attempt: Attempt,
        bucket: Hashmask,
        taker: NodeId,
        plane: &impl Plane,
    ) {
        if self.filling.as_ref().is_some_and(|filling| filling.attempt == attempt) {
            return; // It was already ordered.
        }
        self.stop_fill(plane);
        if self.filling.is_some() {
            // The `FillEnd` of the previous fill is sent, but its outcome is unknown and nobody tracks it any
            // more: force a decision.
            self.report_doubtful_fill(plane);
            return plane.report(Report::FillFailed { attempt });
        }
        let source = plane.with_moves(|outgoing| {
            let map = plane.map();
            let me = me_in(&map, plane)?;
            let known = map.bucket(bucket).filter(|it| it.primary() == Some(me))?;
            let (reign, link) = (known.reign, plane.link_to(taker)?);
            *outgoing = Some(Outgoing {
                bucket,
                reign,
                link,
                ended_at: None,
                progress: SendProgress::default(),
            });
            let source = FillSource::new(attempt, bucket, link, reign);
            let size = size_of(bucket, plane);
            let asked = plane.with_outbox(link, |outbox| {
                self.window.turn_to(now, link, outbox);
                self.window.add(now, outbox, |outbox| source.start(size, outbox))
            });
            for slot in slots_of(bucket) {
                plane.with_slot(slot, |state| state.replica.add_downstream(link, plane.last(link)));
            }
            Some((source, Some(asked)))
        });
        match source {
            Some((source, asked)) => {
                let (end, reported) = (None, None);
                self.filling = Some(Filling { attempt, taker, source, asked, end, reported });
            }
            None => plane.report(Report::FillFailed { attempt }),
        }
    }

    /// Checks whether the taker has acknowledged the first frame. The taker reports its stale copies before
    /// that, and its answers arrive in order.
    fn note_answer(&mut self, plane: &impl Plane) {
        if let Some(filling) = &mut self.filling {
            let acked = plane.acked(filling.source.link);
            filling.asked.take_if(|asked| *asked <= acked);
        }
    }

    /// Sends as much as the window and the bandwidth cap allow.
    fn fill_on(&mut self, now: Moment, plane: &impl Plane) {
        while let Some(filling) = &mut self.filling {
            if plane.is_gone(filling.source.link) {
                return self.abandon_fill(plane);
            }
            if filling.end.is_some() {
                return self.report_filled(now, plane);
            }
            if filling.asked.is_some() {
                return;
            }
            let link = filling.source.link;
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
        let (since, sent) = self.paced;
        let elapsed = now.since(since);
        if elapsed > Duration::from_secs(1) {
            self.paced = (now, 0);
        }
        sent as f64 <= elapsed.as_secs_f64() * rate as f64
    }

    /// Sends a piece of a large value, a chunk of a slot, or the end. Breaks if this node is no longer the
    /// bucket's primary.
    fn send_some(&mut self, now: Moment, plane: &impl Plane) -> ControlFlow<()> {
        let Some(Filling { source, .. }) = &mut self.filling else {
            return ControlFlow::Break(());
        };
        let (link, before, window) = (source.link, source.sent(), &mut self.window);
        if !plane.with_outbox(link, |outbox| window.add(now, outbox, |it| source.send_piece(it))) {
            let Some(slot) = source.slot() else { return self.end_fill(now, plane) };
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
        self.paced.1 += more.bytes;
        self.sent += more;
        self.turn += more.bytes;
        let progress = SendProgress::of(source);
        plane.with_moves(|outgoing| {
            if let Some(outgoing) = outgoing {
                outgoing.progress = progress;
            }
        });
        if self.turn >= TURN_BYTES {
            self.turn = 0;
            plane.flush();
            plane.give_way();
        }
        ControlFlow::Continue(())
    }

    /// Ends the fill when all slots are sent: from now on replies wait for the taker.
    fn end_fill(&mut self, now: Moment, plane: &impl Plane) -> ControlFlow<()> {
        let Some(filling) = &mut self.filling else { return ControlFlow::Break(()) };
        let source = &filling.source;
        let epoch = plane.with_moves(|outgoing| {
            let map = plane.map();
            let known = map.bucket(source.bucket).filter(|it| it.reign == source.reign)?;
            outgoing.as_mut()?.ended_at = Some(known.epoch);
            for slot in slots_of(source.bucket) {
                plane.with_slot(slot, |state| {
                    let last = plane.last(source.link);
                    let downstream = state.replica.downstream_mut(source.link)?;
                    if holds(Rule::WaitSet) {
                        downstream.count(last);
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
        filling.end = Some((plane.last(source.link), epoch));
        plane.flush();
        ControlFlow::Continue(())
    }

    fn report_filled(&mut self, now: Moment, plane: &impl Plane) {
        let Some(filling) = self.filling.as_mut().filter(|it| it.reported.is_none()) else {
            return;
        };
        let Some((end, epoch)) = filling.end else { return };
        if plane.acked(filling.source.link) >= end {
            filling.reported = Some(now);
            plane.report(Report::FillDone { attempt: filling.attempt, epoch });
        }
    }

    /// Fails the fill. If replies already wait for the taker, only a change of the map can end that
    /// (`report_doubtful_fill`).
    fn fail_fill(&mut self, plane: &impl Plane) {
        let Some(attempt) = self.filling.as_ref().map(|filling| filling.attempt) else { return };
        self.report_doubtful_fill(plane);
        self.stop_fill(plane);
        plane.report(Report::FillFailed { attempt });
    }

    /// Reports the taker as out of sync, if `FillEnd` is sent: replies wait for it although it will not become
    /// a backup. The bucket's next epoch ends that.
    fn report_doubtful_fill(&self, plane: &impl Plane) {
        if let Some(Filling { taker, source, end: Some((_, epoch)), .. }) = &self.filling {
            let (bucket, node, epoch) = (source.bucket, *taker, *epoch);
            plane.report(Report::OutOfSync { bucket, node, epoch });
        }
    }

    /// Cancels the fill, unless its `FillEnd` is sent: then the map decides (`follow_map`).
    fn stop_fill(&mut self, plane: &impl Plane) {
        let Some(filling) = self.filling.take_if(|filling| filling.end.is_none()) else { return };
        let (bucket, link) = (filling.source.bucket, filling.source.link);
        // Remove the downstreams first: frames shipped after the cancellation would be refused.
        forget_downstream(plane, bucket, link);
        plane.with_outbox(link, |outbox| filling.source.cancel(outbox));
    }

    /// Drops the fill because the taker is no longer a member: nobody waits for its acknowledgement.
    fn abandon_fill(&mut self, plane: &impl Plane) {
        let Some(Filling { attempt, source, .. }) = self.filling.take() else { return };
        forget_downstream(plane, source.bucket, source.link);
        plane.report(Report::FillFailed { attempt });
    }

    /// Ends fills and handovers that the new map decides. A fill whose `FillEnd` was sent is over when the
    /// bucket has a later epoch, whatever that changed; an unfinished fill ends with the bucket or its reign. A
    /// handover is over with the next epoch.
    fn follow_map(&mut self, plane: &impl Plane) {
        let map = plane.map();
        self.pausing.take_if(|pausing| {
            map.bucket(pausing.bucket).is_none_or(|known| known.epoch > pausing.epoch)
        });
        let Some(filling) = &self.filling else { return };
        let known = map.bucket(filling.source.bucket);
        let over = match (known, filling.end) {
            (None, _) => true,
            (Some(known), Some((_, epoch))) => known.epoch > epoch,
            (Some(known), None) => known.reign != filling.source.reign,
        };
        if over && filling.end.is_some() {
            let (attempt, taker) = (filling.attempt, filling.taker);
            plane.with_moves(Option::take);
            self.filling = None;
            // The control plane may still wait for the outcome of a fill that some other change of the bucket
            // has ended.
            if known.is_none_or(|known| !known.is_held_by(taker)) {
                plane.report(Report::FillFailed { attempt });
            }
        } else if over {
            self.fail_fill(plane);
        }
    }

    // ---- A handover.

    fn pause(&mut self, bucket: Hashmask, epoch: Epoch, to: NodeId, plane: &impl Plane) {
        plane.with_moves(|_| {
            let map = plane.map();
            // If the map has moved on, the requester sees that itself.
            if map.bucket(bucket).is_some_and(|known| known.epoch == epoch) {
                change_replicas(plane, bucket, SlotReplica::pause);
                let announced = plane.link_to(to).map(|link| {
                    let frame = Frame::TakeOver { bucket, epoch };
                    (link, plane.with_outbox(link, |outbox| outbox.push(&frame)))
                });
                self.pausing = Some(Pausing { bucket, epoch, announced });
            }
        });
    }

    fn report_drained(&mut self, plane: &impl Plane) {
        let Some(Pausing { bucket, epoch, announced }) = self.pausing else { return };
        plane.flush();
        let is_acked = |(link, number)| plane.acked(link) >= number || plane.is_gone(link);
        if !announced.is_none_or(is_acked) {
            return;
        }
        let is_drained = plane.with_moves(|_| {
            let map = plane.map();
            let is_at_hand = map.bucket(bucket).is_some_and(|known| known.epoch == epoch);
            is_at_hand
                && slots_of(bucket).all(|slot| {
                    plane.with_slot(slot, |state| {
                        // A bucket that was settling when the pause was ordered is paused once it has settled.
                        state.replica.pause();
                        let settles = state.replica.role() == Role::Reconciling;
                        !settles && state.replica.is_drained(|link| plane.acked(link))
                    })
                })
        });
        if is_drained {
            self.pausing = None;
            plane.report(Report::Drained { bucket, epoch });
        }
    }

    fn forget_pending_promotions(&mut self, now: Moment, plane: &impl Plane) {
        let before = self.pending_promotions.len();
        if before == 0 {
            return;
        }
        let map = plane.with_moves(|_| plane.map()); // No map is halfway: slots have followed it.
        self.pending_promotions.retain(|pending| {
            let known = map.bucket(pending.bucket);
            let waits = known.is_some_and(|known| known.epoch <= pending.epoch)
                && now < pending.since + PROMOTION_WAIT;
            if !waits {
                change_replicas(plane, pending.bucket, SlotReplica::stop_awaiting);
                plane.disturb(); // Parked commands may wait for this bucket.
            }
            waits
        });
        self.promotions_over += before - self.pending_promotions.len();
    }

    // ---- Peers that fall behind.

    /// Forces a decision on a finished fill that nobody has decided on for two leases: it must have been forgotten.
    fn report_forgotten_fill(&mut self, now: Moment, plane: &impl Plane) {
        let long = 2 * plane.map().settings().lease;
        let reported = self.filling.as_ref().and_then(|filling| filling.reported);
        if reported.is_some_and(|since| now > since + long) {
            self.report_doubtful_fill(plane);
        }
    }

    fn report_slow_backups(&mut self, plane: &impl Plane) {
        let map = plane.map();
        let Some(me) = me_in(&map, plane) else { return };
        let long = map.settings().lease;
        for (link, node) in plane.links() {
            let is_stuck = plane.is_stuck(link, long);
            let refused = refused_slots(plane, link);
            if !is_stuck && refused.is_empty() {
                continue;
            }
            if is_stuck {
                plane.report(Report::Stuck { node });
            }
            let follows = |bucket: Hashmask| {
                let slots = bucket.slots();
                // A slot that differs after a failover is sent again; its backup is not dropped.
                let settles = self.settlements.concerns(bucket);
                !is_stuck && (settles || refused.iter().all(|slot| !slots.contains(&slot.number())))
            };
            let mine = map.buckets().filter(|bucket| bucket.primary() == Some(me));
            let mine = mine.filter(|bucket| bucket.backups().contains(&node));
            for bucket in mine.filter(|bucket| !follows(bucket.hashmask)) {
                let (bucket, epoch) = (bucket.hashmask, bucket.epoch);
                plane.report(Report::OutOfSync { bucket, node, epoch });
            }
            let taker = self.filling.as_ref().filter(|filling| filling.taker == node);
            if taker.is_some_and(|filling| !follows(filling.source.bucket)) {
                self.fail_fill(plane);
            }
        }
    }
}

fn forget_downstream(plane: &impl Plane, bucket: Hashmask, link: LinkId) {
    plane.with_moves(|outgoing| {
        outgoing.take();
        remove_downstream(plane, bucket, link);
    });
    plane.disturb(); // Held replies may wait for this downstream.
}

fn change_replicas(plane: &impl Plane, bucket: Hashmask, change: impl Fn(&mut SlotReplica)) {
    for slot in slots_of(bucket) {
        plane.with_slot(slot, |state| change(&mut state.replica));
    }
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
