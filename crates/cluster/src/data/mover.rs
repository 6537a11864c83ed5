//! Outgoing buckets: fills and handovers; and backups that fall behind. The control plane sends orders and gets
//! reports of the outcome.
//!
//! The server runs it on a thread of its own: it calls `handle` for every order and `go_on` repeatedly, at
//! short intervals while it `is_busy`.

mod fills; // Fills from this node.

use std::time::Duration;

use placement::{Hash, Hashmask, Slot};

use super::lag::BucketLag;
use super::pending::Pending;
use super::reconcile::Reconciliations;
use super::refusals::refused_slots;
use super::tombstones::TombstoneLimits;
use super::window::Window;
use super::{Plane, me_in, slots_of};
use crate::Moment;
use crate::balance::MoveId;
use crate::fill::Sent;
use crate::map::{Epoch, Map, NodeId};
use crate::replication::{Frame, FrameNumber, LinkId, Position, Role, SlotReplica};
use fills::Filling;

/// An order of the control plane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Copy the buckets from this node to the taker, one after the other; then `Report::FillDone` or
    /// `FillFailed`.
    Fill { move_id: MoveId, buckets: Vec<Hashmask>, taker: NodeId },
    /// Of that fill only these buckets are still wanted.
    Narrow { move_id: MoveId, buckets: Vec<Hashmask> },
    /// This node's part in that fill is over, whatever it was.
    Cancel { move_id: MoveId },
    /// Stop running commands on these buckets, each at this epoch of it, and park the commands;
    /// `Report::Drained` when everything is acknowledged. This node serves a bucket again only at a later
    /// epoch in which it is still the primary.
    Pause { buckets: Vec<(Hashmask, Epoch)>, to: NodeId },
}

/// An input of the mover.
#[derive(Clone, Debug)]
pub enum MoverInput {
    Order(Order),
    /// A taker has refused the fill.
    FillRefused {
        fill: MoveId,
    },
    /// A taker has a copy of a slot from an earlier membership.
    StaleCopy {
        fill: MoveId,
        slot: Slot,
        position: Position,
    },
    /// This node is about to become the bucket's primary: commands for it wait here until the bucket
    /// has a later epoch, or for a while.
    AnnouncePromotion {
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
    /// The taker has these buckets of the fill, each at this epoch of it. The others are not copied.
    FillDone {
        move_id: MoveId,
        filled: Vec<(Hashmask, Epoch)>,
    },
    FillFailed {
        move_id: MoveId,
    },
    Drained {
        buckets: Vec<(Hashmask, Epoch)>,
    },
    /// Number of bytes this backup has not acknowledged yet.
    BackupLag {
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
/// machine the others then run for milliseconds, so several small slots are sent between two such pauses.
const YIELD_BYTES: u64 = 16 * 1024;
/// Interval between checks for backups that fall behind.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Time after which a backup that was announced as the next primary redirects commands again. Normally the next map
/// ends the wait; this timeout covers a map that never arrives. Equal to the time for which a command is parked.
const PROMOTION_WAIT: Duration = Duration::from_secs(5);

/// A bucket that is about to be promoted here, as announced at this epoch of it.
struct PendingPromotion {
    bucket: Hashmask,
    epoch: Epoch,
    since: Moment,
}

impl PendingPromotion {
    /// Returns whether the map has a newer epoch of the bucket, or has split it.
    fn is_decided(&self, map: &Map) -> bool {
        map.bucket(self.bucket).is_none_or(|known| known.epoch > self.epoch)
    }
}

/// Buckets that are being handed over together.
struct Pausing {
    /// Each with its epoch. Never empty.
    buckets: Vec<(Hashmask, Epoch)>,
    /// The last frame that tells the next primary; none if there is no link to it.
    announced: Option<(LinkId, FrameNumber)>,
}

/// The thread that copies buckets, as a state machine: fills, handovers, reconciliations, and backups that fall behind.
pub struct Mover {
    filling: Option<Filling>,
    /// Handovers under way; usually one.
    pausing: Vec<Pausing>,
    pending_promotions: Vec<PendingPromotion>,
    /// Promotions that nothing waits for any more, since the last `take_promotions_over`.
    promotions_over: usize,
    reconciliations: Reconciliations,
    pending: Pending,
    look_due: Moment,
    window: Window,
    /// Accounting for the bandwidth cap: start of the period, and bytes sent since.
    period_start: Moment,
    period_bytes: u64,
    /// Bytes of fills sent since other threads could run.
    unyielded_bytes: u64,
    tombstones: TombstoneLimits,
    /// Totals of all fills.
    sent: Sent,
}

impl Mover {
    pub fn new(now: Moment) -> Mover {
        Mover {
            filling: None,
            pausing: Vec::new(),
            pending_promotions: Vec::new(),
            promotions_over: 0,
            reconciliations: Reconciliations::default(),
            pending: Pending::default(),
            look_due: now,
            window: Window::default(),
            period_start: now,
            period_bytes: 0,
            unyielded_bytes: 0,
            tombstones: TombstoneLimits::default(),
            sent: Sent::default(),
        }
    }

    /// Returns whether there is work that does not wait for the map.
    pub fn is_busy(&self) -> bool {
        self.is_pausing()
            || !self.reconciliations.is_empty()
            || self.filling.as_ref().is_some_and(|filling| !filling.is_reported())
    }

    /// Returns whether a bucket is being handed over.
    pub fn is_pausing(&self) -> bool {
        !self.pausing.is_empty()
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
                if self.filling.as_ref().is_some_and(|filling| filling.move_id == fill) {
                    self.fail_fill(plane);
                }
            }
            MoverInput::StaleCopy { fill, slot, position } => {
                let filling = self.filling.as_mut().filter(|it| it.move_id == fill);
                if let Some(source) = filling.and_then(Filling::source_mut) {
                    source.note_kept(slot, position);
                }
            }
            MoverInput::AnnouncePromotion { bucket, epoch } => {
                self.expect_promotion(now, PendingPromotion { bucket, epoch, since: now }, plane);
            }
            MoverInput::Acked => self.note_answer(plane),
            MoverInput::MapChanged => {
                self.follow_map(plane);
                self.forget_pending_promotions(now, plane);
                self.reconciliations.follow(&plane.map(), plane);
            }
        }
    }

    fn carry_out(&mut self, now: Moment, order: Order, plane: &impl Plane) {
        match order {
            Order::Fill { move_id, buckets, taker } => {
                self.start_fill(now, move_id, buckets, taker, plane);
            }
            Order::Narrow { move_id, buckets } => self.narrow_fill(move_id, &buckets),
            Order::Cancel { move_id } => {
                if self.filling.as_ref().is_some_and(|filling| filling.move_id == move_id) {
                    self.stop_fill(plane);
                }
            }
            Order::Pause { buckets, to } => self.pause(buckets, to, plane),
        }
    }

    /// Does the work that is possible now.
    pub fn go_on(&mut self, now: Moment, plane: &impl Plane) {
        self.fill_on(now, plane);
        self.report_drained(plane);
        self.reconciliations.go_on(&plane.map(), plane);
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
            self.check_fill_invariants(plane);
        }
    }

    /// Ends fills and handovers that the new map decides. A handover is over with the next epoch.
    fn follow_map(&mut self, plane: &impl Plane) {
        let map = plane.map();
        for pausing in &mut self.pausing {
            pausing.buckets.retain(|(bucket, epoch)| {
                map.bucket(*bucket).is_some_and(|known| known.epoch <= *epoch)
            });
        }
        self.pausing.retain(|pausing| !pausing.buckets.is_empty());
        self.follow_fill(plane);
    }

    // ---- A handover.

    fn pause(&mut self, mut buckets: Vec<(Hashmask, Epoch)>, to: NodeId, plane: &impl Plane) {
        plane.with_moves(|_| {
            let map = plane.map();
            // If the map has moved on, the requester sees that itself.
            buckets.retain(|(bucket, epoch)| {
                map.bucket(*bucket).is_some_and(|known| known.epoch == *epoch)
            });
            let mut announced = None;
            for (bucket, epoch) in buckets.iter().copied() {
                change_replicas(plane, bucket, SlotReplica::pause);
                announced = plane.link_to(to).map(|link| {
                    let frame = Frame::AnnouncePromotion { bucket, epoch };
                    (link, plane.with_outbox(link, |outbox| outbox.push(&frame)))
                });
            }
            if !buckets.is_empty() {
                self.pausing.push(Pausing { buckets, announced });
            }
        });
    }

    fn report_drained(&mut self, plane: &impl Plane) {
        if self.pausing.is_empty() {
            return;
        }
        plane.flush();
        for pausing in self.pausing.extract_if(.., |pausing| is_drained(pausing, plane)) {
            plane.report(Report::Drained { buckets: pausing.buckets });
        }
    }

    fn expect_promotion(&mut self, now: Moment, pending: PendingPromotion, plane: &impl Plane) {
        plane.with_moves(|_| {
            if pending.is_decided(&plane.map()) {
                return;
            }
            // The intake has done so, but the end of an earlier announcement may have reverted it.
            change_replicas(plane, pending.bucket, SlotReplica::await_promotion);
        });
        self.pending_promotions.push(pending);
        self.forget_pending_promotions(now, plane);
    }

    fn forget_pending_promotions(&mut self, now: Moment, plane: &impl Plane) {
        if self.pending_promotions.is_empty() {
            return;
        }
        let map = plane.with_moves(|_| plane.map()); // No map is halfway: slots have followed it.
        let is_over = |pending: &mut PendingPromotion| {
            pending.is_decided(&map) || now >= pending.since + PROMOTION_WAIT
        };
        let over: Vec<_> = self.pending_promotions.extract_if(.., is_over).collect();
        for slot in over.iter().flat_map(|pending| slots_of(pending.bucket)) {
            // The slot may have been announced again since, at a newer epoch or as part of a smaller bucket.
            let is_awaited = |it: &PendingPromotion| it.bucket.contains(Hash::of_slot(slot));
            if !self.pending_promotions.iter().any(is_awaited) {
                plane.with_slot(slot, |state| state.replica.stop_awaiting());
            }
        }
        if !over.is_empty() {
            plane.recheck_waiting(); // Parked commands may wait for these buckets.
        }
        self.promotions_over += over.len();
    }

    // ---- Peers that fall behind.

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
                let reconciles = self.reconciliations.concerns(bucket);
                !is_stuck
                    && (reconciles || refused.iter().all(|slot| !slots.contains(&slot.number())))
            };
            let mine = map.buckets().filter(|bucket| bucket.primary() == Some(me));
            let mine = mine.filter(|bucket| bucket.backups().contains(&node));
            for bucket in mine.filter(|bucket| !follows(bucket.hashmask)) {
                let (bucket, epoch) = (bucket.hashmask, bucket.epoch);
                plane.report(Report::OutOfSync { bucket, node, epoch });
            }
            let taker = self.filling.as_ref().filter(|filling| filling.taker == node);
            if taker.is_some_and(|it| it.sent_buckets().any(|bucket| !follows(bucket))) {
                self.fail_fill(plane);
            }
        }
    }
}

/// Returns whether everything on these buckets is acknowledged, and the next primary knows of the handover.
fn is_drained(pausing: &Pausing, plane: &impl Plane) -> bool {
    let is_acked = |(link, number)| plane.acked(link) >= number || plane.is_gone(link);
    if !pausing.announced.is_none_or(is_acked) {
        return false;
    }
    let slot_is_drained = |slot| {
        plane.with_slot(slot, |state| {
            // A bucket that was reconciling when the pause was ordered is paused once it has reconciled.
            state.replica.pause();
            let reconciles = state.replica.role() == Role::Reconciling;
            !reconciles && state.replica.is_drained(|link| plane.acked(link))
        })
    };
    plane.with_moves(|_| {
        let map = plane.map();
        pausing.buckets.iter().all(|(bucket, epoch)| {
            let is_at_hand = map.bucket(*bucket).is_some_and(|known| known.epoch == *epoch);
            is_at_hand && slots_of(*bucket).all(slot_is_drained)
        })
    })
}

fn change_replicas(plane: &impl Plane, bucket: Hashmask, change: impl Fn(&mut SlotReplica)) {
    for slot in slots_of(bucket) {
        plane.with_slot(slot, |state| change(&mut state.replica));
    }
}
