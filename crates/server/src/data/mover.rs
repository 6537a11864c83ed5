//! The mover: one thread that copies a bucket to another node, hands buckets over, and notices backups
//! that fall behind. The control thread orders, and is told what became of it.

use core::ops::ControlFlow;
use core::sync::atomic::Ordering;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use cluster::balance::Attempt;
use cluster::fill::Source;
use cluster::map::{Epoch, LogIndex, NodeId};
use cluster::replication::{Feed, FrameNumber, LinkId, Role};
use placement::{Hashmask, Slot};

use super::{Link, Notice};
use crate::shared::Shared;

/// What the control thread wants done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
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
    /// Something was acknowledged.
    Acked,
    MapChanged,
}

/// What the control thread is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
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
    /// The backup does not follow.
    OutOfSync {
        bucket: Hashmask,
        node: NodeId,
        epoch: Epoch,
    },
}

/// The bucket that leaves this node, as far as others must know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub bucket: Hashmask,
    pub reign: LogIndex,
    pub link: LinkId,
    /// The bucket's epoch when the end was sent.
    pub ended_at: Option<Epoch>,
    pub progress: Progress,
}

/// How far a fill is.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Progress {
    pub sent_bytes: u64,
    /// By slots.
    pub percent: u8,
}

impl Progress {
    fn of(source: &Source) -> Progress {
        let all = source.bucket.slots().len();
        let sent = all.saturating_sub(source.slots_left());
        let percent = u8::try_from(sent * 100 / all).unwrap_or(100);
        Progress { sent_bytes: source.sent_bytes(), percent }
    }
}

/// So much of a fill may be under way unacknowledged: enough to keep the other end busy, little enough
/// that effects behind it are not late.
const WINDOW_BYTES: usize = 1024 * 1024;
/// Sleeps between looks, with and without work at hand.
const BUSY: Duration = Duration::from_micros(500);
const IDLE: Duration = Duration::from_millis(100);

struct Filling {
    attempt: Attempt,
    source: Source,
    link: Arc<Link>,
    end: Option<(FrameNumber, Epoch)>,
    reported: bool,
}

struct Pausing {
    bucket: Hashmask,
    epoch: Epoch,
}

pub(crate) struct Mover {
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    filling: Option<Filling>,
    pausing: Option<Pausing>,
    heirs: Vec<(Hashmask, Instant)>,
    look_due: Instant,
    /// What the bandwidth cap allows: bytes sent since when.
    paced: (Instant, u64),
}

impl Mover {
    pub(crate) fn new(shared: Arc<Shared>, orders: Receiver<Order>) -> Mover {
        let now = Instant::now();
        Mover {
            shared,
            orders,
            filling: None,
            pausing: None,
            heirs: Vec::new(),
            look_due: now,
            paced: (now, 0),
        }
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        while !self.shared.is_stopping() {
            let busy = self.pausing.is_some()
                || self.filling.as_ref().is_some_and(|filling| !filling.reported);
            match self.orders.recv_timeout(if busy { BUSY } else { IDLE }) {
                Ok(order) => self.carry_out(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(order) = self.orders.try_recv() {
                self.carry_out(order);
            }
            self.fill_on();
            self.look_whether_drained();
            self.shared.data.links.flush();
            if self.look_due <= Instant::now() {
                self.look_due = Instant::now() + IDLE;
                self.look_for_the_slow();
                self.forget_heirs();
            }
        }
    }

    fn report(&self, report: Report) {
        self.shared.data.notify(Notice::Moved(report));
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Fill { attempt, bucket, taker } => self.start_fill(attempt, bucket, taker),
            Order::Cancel { attempt } => {
                if self.filling.as_ref().is_some_and(|filling| filling.attempt == attempt) {
                    self.stop_fill();
                }
            }
            Order::FillRefused { fill } => {
                if self.filling.as_ref().is_some_and(|filling| filling.attempt == fill) {
                    self.fail_fill();
                }
            }
            Order::Pause { bucket, epoch } => self.pause(bucket, epoch),
            Order::TakeOver { bucket } => {
                self.set_roles(bucket, Role::Backup, Role::Heir);
                self.heirs.push((bucket, Instant::now()));
            }
            Order::Acked => {}
            Order::MapChanged => self.follow_map(),
        }
    }

    // ---- A fill.

    fn start_fill(&mut self, attempt: Attempt, bucket: Hashmask, taker: NodeId) {
        if self.filling.is_some() {
            self.stop_fill();
        }
        let data = &self.shared.data;
        let map = self.shared.map();
        let known = map.bucket(bucket);
        let mine = known.filter(|known| known.primary() == Some(data.me));
        let (Some(known), Some(link)) = (mine, data.links.to_node(taker)) else {
            return self.report(Report::FillFailed { attempt });
        };
        let reign = known.reign;
        *data.outgoing.lock() =
            Some(Outgoing { bucket, reign, link, ended_at: None, progress: Progress::default() });
        let source = Source::new(attempt, bucket, link, reign);
        let link = data.links.get(link);
        link.with_outbox(|outbox| source.start(outbox));
        let mut all_fed = true;
        for slot in bucket.slots().filter_map(Slot::new) {
            let mut state = self.shared.keyspace.lock_one(slot);
            state.duty.stop_feeding(link.id);
            state.duty.feeds.push(Feed::not_begun(link.id));
            all_fed &= state.duty.is_primary() && state.duty.reign == reign;
        }
        self.filling = Some(Filling { attempt, source, link, end: None, reported: false });
        if !all_fed {
            self.fail_fill();
        }
    }

    /// Sends as much as the window and the bandwidth cap allow.
    fn fill_on(&mut self) {
        while let Some(filling) = &mut self.filling {
            if filling.link.is_gone() {
                return self.fail_fill();
            }
            if filling.end.is_some() {
                return self.look_whether_filled();
            }
            if filling.link.kept_bytes() > WINDOW_BYTES || !self.may_send() {
                return;
            }
            if self.send_some().is_break() {
                self.fail_fill();
            }
        }
    }

    fn may_send(&mut self) -> bool {
        let Some(rate) = self.shared.map().settings().fill_rate else { return true };
        let (since, sent) = self.paced;
        let allowed = since.elapsed().as_secs_f64() * rate as f64;
        if since.elapsed() > Duration::from_secs(1) {
            self.paced = (Instant::now(), 0);
        }
        sent as f64 <= allowed
    }

    /// A piece of a large value, or a chunk of a slot, or the end. Breaks if the bucket is no longer
    /// this node's.
    fn send_some(&mut self) -> ControlFlow<()> {
        let Some(filling) = &mut self.filling else { return ControlFlow::Break(()) };
        let before = filling.source.sent_bytes();
        let Filling { source, link, .. } = filling;
        if link.with_outbox(|outbox| source.send_piece(outbox)) {
            link.flush();
        } else if let Some(slot) = source.slot() {
            let mut state = self.shared.keyspace.lock_one(slot);
            let state = &mut *state;
            if !state.duty.is_primary() || state.duty.reign != source.reign {
                return ControlFlow::Break(());
            }
            let seed = &self.shared.seed;
            link.with_outbox(|outbox| {
                source.send_chunk(&state.table, &mut state.duty, seed, outbox);
            });
        } else {
            return self.end_fill();
        }
        let link = Arc::clone(&filling.link);
        self.paced.1 += filling.source.sent_bytes() - before;
        if let Some(outgoing) = self.shared.data.outgoing.lock().as_mut() {
            outgoing.progress = Progress::of(&filling.source);
        }
        link.flush();
        ControlFlow::Continue(())
    }

    /// All slots are sent: from here on the taker counts.
    fn end_fill(&mut self) -> ControlFlow<()> {
        let Some(filling) = &mut self.filling else { return ControlFlow::Break(()) };
        let data = &self.shared.data;
        let map = self.shared.map();
        let Filling { source, link, .. } = filling;
        let known = map.bucket(source.bucket);
        let known = known.filter(|known| known.reign == source.reign);
        let Some(epoch) = known.map(|known| known.epoch) else { return ControlFlow::Break(()) };
        if let Some(outgoing) = data.outgoing.lock().as_mut() {
            outgoing.ended_at = Some(epoch);
        }
        for slot in source.bucket.slots().filter_map(Slot::new) {
            let mut state = self.shared.keyspace.lock_one(slot);
            let last = link.last();
            match state.duty.feed_mut(link.id) {
                Some(feed) => feed.count(last),
                None => return ControlFlow::Break(()),
            }
        }
        link.with_outbox(|outbox| source.end(epoch, outbox));
        filling.end = Some((link.last(), epoch));
        link.flush();
        ControlFlow::Continue(())
    }

    fn look_whether_filled(&mut self) {
        let Some(filling) = self.filling.as_mut().filter(|filling| !filling.reported) else {
            return;
        };
        let Some((end, epoch)) = filling.end else { return };
        if filling.link.acked() >= end {
            filling.reported = true;
            let attempt = filling.attempt;
            self.report(Report::FillDone { attempt, epoch });
        }
    }

    fn fail_fill(&mut self) {
        if let Some(filling) = &self.filling {
            let attempt = filling.attempt;
            self.stop_fill();
            self.report(Report::FillFailed { attempt });
        }
    }

    /// Forgets the fill, unless its end is sent: then the map decides (`follow_map`).
    fn stop_fill(&mut self) {
        let Some(filling) = self.filling.take_if(|filling| filling.end.is_none()) else { return };
        self.shared.data.outgoing.lock().take();
        filling.link.with_outbox(|outbox| filling.source.cancel(outbox));
        self.stop_feeding(filling.source.bucket, filling.link.id);
    }

    fn stop_feeding(&self, bucket: Hashmask, link: LinkId) {
        for slot in bucket.slots().filter_map(Slot::new) {
            let mut state = self.shared.keyspace.lock_one(slot);
            state.duty.stop_feeding(link);
        }
    }

    /// A fill whose end was sent is over when the bucket has a later epoch, whatever that brought; one
    /// that is under way ends with its bucket.
    fn follow_map(&mut self) {
        self.pausing.take_if(|pausing| {
            let map = self.shared.map();
            let known = map.bucket(pausing.bucket);
            known.is_none_or(|known| known.epoch > pausing.epoch)
        });
        let Some(filling) = &self.filling else { return };
        let map = self.shared.map();
        let known = map.bucket(filling.source.bucket);
        let over = match (known, filling.end) {
            (None, _) => true,
            (Some(known), Some((_, epoch))) => known.epoch > epoch,
            (Some(known), None) => known.reign != filling.source.reign,
        };
        if over && filling.end.is_some() {
            self.shared.data.outgoing.lock().take();
            self.filling = None;
        } else if over {
            self.fail_fill();
        }
    }

    // ---- A handover.

    fn pause(&mut self, bucket: Hashmask, epoch: Epoch) {
        let map = self.shared.map();
        let known = map.bucket(bucket);
        if known.is_none_or(|known| known.epoch != epoch) {
            return; // The map has gone on; whoever asked sees it.
        }
        self.set_roles(bucket, Role::Serving, Role::Paused);
        let map = self.shared.map();
        let known = map.bucket(bucket);
        if known.is_none_or(|known| known.epoch != epoch) {
            return self.set_roles(bucket, Role::Paused, Role::Serving); // It went on meanwhile.
        }
        self.pausing = Some(Pausing { bucket, epoch });
        self.shared.data.pausing.store(true, Ordering::Release);
    }

    fn set_roles(&self, bucket: Hashmask, from: Role, to: Role) {
        for slot in bucket.slots().filter_map(Slot::new) {
            let mut state = self.shared.keyspace.lock_one(slot);
            if state.duty.role == from {
                state.duty.role = to;
            }
        }
    }

    fn look_whether_drained(&mut self) {
        let Some(pausing) = &self.pausing else { return };
        let data = &self.shared.data;
        data.links.flush();
        let settled = |slot: Slot| {
            let state = self.shared.keyspace.lock_one(slot);
            state.duty.unsettled(|link| data.links.get(link).acked_for(Some(slot))).is_empty()
        };
        if pausing.bucket.slots().filter_map(Slot::new).all(settled) {
            let Pausing { bucket, epoch } = *pausing;
            self.pausing = None;
            data.pausing.store(false, Ordering::Release);
            self.report(Report::Drained { bucket, epoch });
        }
    }

    /// An heir whose turn never came goes on as a backup.
    fn forget_heirs(&mut self) {
        let mut heirs = core::mem::take(&mut self.heirs);
        heirs.retain(|(bucket, since)| {
            let waits = since.elapsed() < Duration::from_secs(1);
            if !waits {
                self.set_roles(*bucket, Role::Heir, Role::Backup);
            }
            waits
        });
        self.heirs = heirs;
    }

    // ---- Backups that do not follow.

    fn look_for_the_slow(&mut self) {
        let data = &self.shared.data;
        let map = self.shared.map();
        let long = map.settings().lease;
        for link in data.links.all().iter().filter(|link| !link.is_gone() && link.is_stuck(long)) {
            let node = link.peer.id;
            let mine = map.buckets().filter(|bucket| bucket.primary() == Some(data.me));
            for bucket in mine.filter(|bucket| bucket.backups().contains(&node)) {
                let (bucket, epoch) = (bucket.hashmask, bucket.epoch);
                self.report(Report::OutOfSync { bucket, node, epoch });
            }
        }
    }
}
