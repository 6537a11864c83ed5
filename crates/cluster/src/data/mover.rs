//! Buckets that leave this node: fills and handovers; and backups that fall behind. The control plane
//! orders, and is told what became of it.
//!
//! The server runs it on a thread of its own: `handle` for every order, `go_on` again and again, soon
//! while it `is_busy`.

use core::ops::ControlFlow;
use std::time::Duration;

use placement::{Hashmask, Slot};

use super::follow::stop_feeding;
use super::pending::Pending;
use super::refusals::refused_slots;
use super::settle::Settlements;
use super::tombs::Tombs;
use super::window::Window;
use super::{Outgoing, Plane, Progress, me_in, slots_of};
use crate::balance::Attempt;
use crate::fill::{Sent, Source};
use crate::map::{Epoch, NodeId};
use crate::replication::{Duty, FrameNumber, LinkId, Outbox, Position, Role};
use crate::rules::{Rule, holds};

/// What the control plane wants done, and what else moves the mover.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Fill {
        attempt: Attempt,
        bucket: Hashmask,
        taker: NodeId,
    },
    Cancel {
        attempt: Attempt,
    },
    /// Run nothing more on the bucket, and tell when all it did is acknowledged.
    Pause {
        bucket: Hashmask,
        epoch: Epoch,
    },
    /// Commands for the bucket wait here: it is about to be promoted.
    TakeOver {
        bucket: Hashmask,
    },
    /// A taker has refused.
    FillRefused {
        fill: Attempt,
    },
    /// A taker has kept a copy of a slot from an earlier time.
    Kept {
        fill: Attempt,
        slot: Slot,
        position: Position,
    },
    /// Something was acknowledged.
    Acked,
    MapChanged,
}

/// What the control plane is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// So many bytes for this backup are not acknowledged yet.
    Beat {
        to: NodeId,
        left: u64,
    },
    /// The backup does not follow.
    OutOfSync {
        bucket: Hashmask,
        node: NodeId,
        epoch: Epoch,
    },
    /// The node has acknowledged nothing for a while: it is not filled again at once.
    Stuck {
        node: NodeId,
    },
}

/// How much of a fill is put together before it is sent and other threads have their turn. On a busy machine a
/// turn of the others takes milliseconds, so small slots share one.
const TURN_BYTES: u64 = 16 * 1024;
/// How often backups that fall behind are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// An heir whose turn does not come goes on as a backup.
const HEIR_WAIT: Duration = Duration::from_secs(1);

struct Filling {
    attempt: Attempt,
    taker: NodeId,
    source: Source,
    /// The number of the first frame, until the taker has answered it: then it has told what it has
    /// kept.
    asked: Option<FrameNumber>,
    /// The number of the last frame, and the epoch that it named.
    end: Option<(FrameNumber, Epoch)>,
    /// Since when the control plane knows that it is done.
    reported: Option<Duration>,
}

struct Pausing {
    bucket: Hashmask,
    epoch: Epoch,
}

pub struct Mover {
    filling: Option<Filling>,
    pausing: Option<Pausing>,
    heirs: Vec<(Hashmask, Duration)>,
    settlements: Settlements,
    pending: Pending,
    look_due: Duration,
    window: Window,
    /// What the bandwidth cap allows: bytes sent since when.
    paced: (Duration, u64),
    /// Bytes of fills since other threads had their turn.
    turn: u64,
    tombs: Tombs,
    /// What all fills have sent.
    sent: Sent,
}

impl Mover {
    pub fn new(now: Duration) -> Mover {
        Mover {
            filling: None,
            pausing: None,
            heirs: Vec::new(),
            settlements: Settlements::default(),
            pending: Pending::default(),
            look_due: now,
            window: Window::default(),
            paced: (now, 0),
            turn: 0,
            tombs: Tombs::default(),
            sent: Sent::default(),
        }
    }

    /// Whether something is at hand that does not wait for the map.
    pub fn is_busy(&self) -> bool {
        self.is_pausing()
            || !self.settlements.is_empty()
            || self.filling.as_ref().is_some_and(|filling| filling.reported.is_none())
    }

    /// Whether a bucket is being handed over.
    pub fn is_pausing(&self) -> bool {
        self.pausing.is_some()
    }

    /// Whether a bucket is about to be promoted here.
    pub fn has_heirs(&self) -> bool {
        !self.heirs.is_empty()
    }

    /// What all fills from here have sent.
    pub fn sent(&self) -> Sent {
        self.sent
    }

    pub fn handle(&mut self, now: Duration, order: Order, plane: &impl Plane) {
        match order {
            Order::Fill { attempt, bucket, taker } => {
                self.start_fill(now, attempt, (bucket, taker), plane);
            }
            Order::Cancel { attempt } => {
                if self.filling.as_ref().is_some_and(|filling| filling.attempt == attempt) {
                    self.stop_fill(plane);
                }
            }
            Order::FillRefused { fill } => {
                if self.filling.as_ref().is_some_and(|filling| filling.attempt == fill) {
                    self.fail_fill(plane);
                }
            }
            Order::Pause { bucket, epoch } => self.pause(bucket, epoch, plane),
            Order::TakeOver { bucket } => {
                change_duties(plane, bucket, Duty::await_promotion);
                self.heirs.push((bucket, now));
            }
            Order::Kept { fill, slot, position } => {
                if let Some(it) = self.filling.as_mut().filter(|it| it.attempt == fill) {
                    it.source.note_kept(slot, position);
                }
            }
            Order::Acked => self.look_whether_answered(plane),
            Order::MapChanged => {
                self.follow_map(plane);
                self.settlements.follow(&plane.map(), plane);
            }
        }
    }

    /// Does what can be done now.
    pub fn go_on(&mut self, now: Duration, plane: &impl Plane) {
        self.fill_on(now, plane);
        self.look_whether_drained(plane);
        self.settlements.go_on(&plane.map(), plane);
        plane.flush();
        if self.look_due <= now {
            self.look_due = now + LOOK_INTERVAL;
            self.look_for_the_slow(plane);
            self.look_for_the_forgotten(now, plane);
            self.forget_heirs(now, plane);
            self.tombs.look(now, plane);
            self.pending.look(now, plane);
        }
    }

    // ---- A fill.

    fn start_fill(
        &mut self,
        now: Duration,
        attempt: Attempt,
        (bucket, taker): (Hashmask, NodeId),
        plane: &impl Plane,
    ) {
        if self.filling.as_ref().is_some_and(|filling| filling.attempt == attempt) {
            return; // It was ordered already.
        }
        self.stop_fill(plane);
        if self.filling.is_some() {
            // One whose end is sent is not decided yet, and has been forgotten: it is to be decided.
            self.doubt_fill(plane);
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
                progress: Progress::default(),
            });
            let source = Source::new(attempt, bucket, link, reign);
            let asked = plane.with_outbox(link, |outbox| {
                self.window.turn_to(now, link, outbox);
                self.window.add(now, outbox, |outbox| source.start(outbox))
            });
            for slot in slots_of(bucket) {
                plane.with_slot(slot, |state| state.duty.start_feeding(link, plane.last(link)));
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

    /// What the taker has kept it tells before it acknowledges the first frame, and its answers come in
    /// their order.
    fn look_whether_answered(&mut self, plane: &impl Plane) {
        if let Some(filling) = &mut self.filling {
            let acked = plane.acked(filling.source.link);
            filling.asked.take_if(|asked| *asked <= acked);
        }
    }

    /// Sends as much as the window and the bandwidth cap allow.
    fn fill_on(&mut self, now: Duration, plane: &impl Plane) {
        while let Some(filling) = &mut self.filling {
            if plane.is_gone(filling.source.link) {
                return self.abandon_fill(plane);
            }
            if filling.end.is_some() {
                return self.look_whether_filled(now, plane);
            }
            if filling.asked.is_some() {
                return;
            }
            let link = filling.source.link;
            let window = self.window.bytes(now, plane.last(link), plane.acked(link));
            if plane.kept_bytes(link) > window || !self.may_send(now, plane) {
                return;
            }
            if self.send_some(now, plane).is_break() {
                self.fail_fill(plane);
            }
        }
    }

    fn may_send(&mut self, now: Duration, plane: &impl Plane) -> bool {
        let Some(rate) = plane.map().settings().fill_rate else { return true };
        let (since, sent) = self.paced;
        let elapsed = now.saturating_sub(since);
        if elapsed > Duration::from_secs(1) {
            self.paced = (now, 0);
        }
        sent as f64 <= elapsed.as_secs_f64() * rate as f64
    }

    /// A piece of a large value, or a chunk of a slot, or the end. Breaks if the bucket is no longer
    /// this node's.
    fn send_some(&mut self, now: Duration, plane: &impl Plane) -> ControlFlow<()> {
        let Some(Filling { source, .. }) = &mut self.filling else {
            return ControlFlow::Break(());
        };
        let (link, before, window) = (source.link, source.sent(), &mut self.window);
        if !plane.with_outbox(link, |outbox| window.add(now, outbox, |it| source.send_piece(it))) {
            let Some(slot) = source.slot() else { return self.end_fill(now, plane) };
            plane.with_slot(slot, |state| {
                if !state.duty.is_primary() || state.duty.reign() != source.reign {
                    return ControlFlow::Break(());
                }
                // Put together without the link's lock: clients' writes wait for that one.
                let mut draft = Outbox::default();
                source.send_chunk(&state.table, &mut state.duty, plane.seed(), &mut draft);
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
        let progress = Progress::of(source);
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

    /// All slots are sent: from here on the taker counts.
    fn end_fill(&mut self, now: Duration, plane: &impl Plane) -> ControlFlow<()> {
        let Some(filling) = &mut self.filling else { return ControlFlow::Break(()) };
        let source = &filling.source;
        let epoch = plane.with_moves(|outgoing| {
            let map = plane.map();
            let known = map.bucket(source.bucket).filter(|it| it.reign == source.reign)?;
            outgoing.as_mut()?.ended_at = Some(known.epoch);
            for slot in slots_of(source.bucket) {
                plane.with_slot(slot, |state| {
                    let last = plane.last(source.link);
                    let feed = state.duty.feed_mut(source.link)?;
                    if holds(Rule::WaitSet) {
                        feed.count(last);
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

    fn look_whether_filled(&mut self, now: Duration, plane: &impl Plane) {
        let Some(filling) = self.filling.as_mut().filter(|it| it.reported.is_none()) else {
            return;
        };
        let Some((end, epoch)) = filling.end else { return };
        if plane.acked(filling.source.link) >= end {
            filling.reported = Some(now);
            plane.report(Report::FillDone { attempt: filling.attempt, epoch });
        }
    }

    /// It comes to nothing. If replies wait for the taker already, the map has to say that they need
    /// not.
    fn fail_fill(&mut self, plane: &impl Plane) {
        let Some(attempt) = self.filling.as_ref().map(|filling| filling.attempt) else { return };
        self.doubt_fill(plane);
        self.stop_fill(plane);
        plane.report(Report::FillFailed { attempt });
    }

    /// Replies wait for a taker that will be no backup: the bucket's next epoch ends that.
    fn doubt_fill(&self, plane: &impl Plane) {
        if let Some(Filling { taker, source, end: Some((_, epoch)), .. }) = &self.filling {
            let (bucket, node, epoch) = (source.bucket, *taker, *epoch);
            plane.report(Report::OutOfSync { bucket, node, epoch });
        }
    }

    /// Forgets the fill, unless its end is sent: then the map decides (`follow_map`).
    fn stop_fill(&mut self, plane: &impl Plane) {
        let Some(filling) = self.filling.take_if(|filling| filling.end.is_none()) else { return };
        let (bucket, link) = (filling.source.bucket, filling.source.link);
        // The feeds first: what is shipped behind the cancellation would be refused.
        forget_feed(plane, bucket, link);
        plane.with_outbox(link, |outbox| filling.source.cancel(outbox));
    }

    /// The taker is no member any more: whatever was sent, nobody waits for it.
    fn abandon_fill(&mut self, plane: &impl Plane) {
        let Some(Filling { attempt, source, .. }) = self.filling.take() else { return };
        forget_feed(plane, source.bucket, source.link);
        plane.report(Report::FillFailed { attempt });
    }

    /// A fill whose end was sent is over when the bucket has a later epoch, whatever that brought; one
    /// that is under way ends with its bucket. A handover is over with the next epoch.
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
            // The control plane may wait to hear of a fill that an unlike change of the bucket has ended.
            if known.is_none_or(|known| !known.is_held_by(taker)) {
                plane.report(Report::FillFailed { attempt });
            }
        } else if over {
            self.fail_fill(plane);
        }
    }

    // ---- A handover.

    fn pause(&mut self, bucket: Hashmask, epoch: Epoch, plane: &impl Plane) {
        plane.with_moves(|_| {
            let map = plane.map();
            // If the map has gone on, whoever asked sees it.
            if map.bucket(bucket).is_some_and(|known| known.epoch == epoch) {
                change_duties(plane, bucket, Duty::pause);
                self.pausing = Some(Pausing { bucket, epoch });
            }
        });
    }

    fn look_whether_drained(&mut self, plane: &impl Plane) {
        let Some(Pausing { bucket, epoch }) = self.pausing else { return };
        plane.flush();
        let is_drained = plane.with_moves(|_| {
            let map = plane.map();
            let is_at_hand = map.bucket(bucket).is_some_and(|known| known.epoch == epoch);
            is_at_hand
                && slots_of(bucket).all(|slot| {
                    plane.with_slot(slot, |state| {
                        // A bucket that had to settle when it was asked for is paused when it has.
                        state.duty.pause();
                        let settles = state.duty.role() == Role::Settling;
                        !settles && state.duty.is_drained(|link| plane.acked(link))
                    })
                })
        });
        if is_drained {
            self.pausing = None;
            plane.report(Report::Drained { bucket, epoch });
        }
    }

    fn forget_heirs(&mut self, now: Duration, plane: &impl Plane) {
        self.heirs.retain(|(bucket, since)| {
            let waits = now < *since + HEIR_WAIT;
            if !waits {
                change_duties(plane, *bucket, Duty::stop_awaiting);
                plane.disturb(); // Commands may have waited for it.
            }
            waits
        });
    }

    // ---- Those who do not follow.

    /// A fill that is done is decided soon, unless nobody remembers it.
    fn look_for_the_forgotten(&mut self, now: Duration, plane: &impl Plane) {
        let long = 2 * plane.map().settings().lease;
        let reported = self.filling.as_ref().and_then(|filling| filling.reported);
        if reported.is_some_and(|since| now > since + long) {
            self.doubt_fill(plane);
        }
    }

    fn look_for_the_slow(&mut self, plane: &impl Plane) {
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
                // What differs after a death is sent again, not dropped.
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

fn forget_feed(plane: &impl Plane, bucket: Hashmask, link: LinkId) {
    plane.with_moves(|outgoing| {
        outgoing.take();
        stop_feeding(plane, bucket, link);
    });
    plane.disturb(); // Replies may have waited for it.
}

fn change_duties(plane: &impl Plane, bucket: Hashmask, change: impl Fn(&mut Duty)) {
    for slot in slots_of(bucket) {
        plane.with_slot(slot, |state| change(&mut state.duty));
    }
}
