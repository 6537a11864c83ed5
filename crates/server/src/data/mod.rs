//! The data plane: what a write to a slot does beyond this node. `cluster::data` decides; here are the
//! locks, sockets and threads around it (`standing.rs`).
//!
//! `link.rs` is the way out to one other node, `intake.rs` the way in from one; workers read both
//! (`worker/links.rs`). `follow.rs` makes every slot's duty what the map says. `mover.rs` is a thread
//! that copies buckets, hands them over and notices backups that fall behind.

mod condition; // How this node is, for its load levels.
mod control; // The data plane as the control thread sees it.
mod follow; //  A new map: what this node is to each slot from now on.
mod intake; //  What comes from one other node.
mod later; //   Events that wait as replies do.
pub(crate) mod boottime; // The clock of leases.
mod lease; //   Until when this node may serve.
mod link; //    The way out to one other node.
mod links; //   All of them.
mod serving; // What `cluster::serving` stands on here.
mod plane; //   Connections as they come and go; what the control thread is told.
mod stalls; //  How long commands waited.
mod mover; //   The thread that copies buckets and hands them over.
mod standing; // What `cluster::data` stands on here.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use cluster::balance::FillProgress;
use cluster::data::{Intake, Order, Outgoing};
use cluster::fill::Sent;
use cluster::map::{Boot, NodeId, Peer};
use cluster::serving::AckEpoch;
use parking_lot::Mutex;

pub(crate) use condition::report_condition;
pub(crate) use condition::vitals;
pub(crate) use control::report_to;
pub(crate) use follow::follow;
pub(crate) use intake::surface;
pub(crate) use later::{Later, judge_all};
pub(crate) use lease::Lease;
pub(crate) use link::Link;
pub(crate) use links::Links;
pub(crate) use mover::run_mover;
pub(crate) use plane::{Notice, incoming, outgoing};
pub(crate) use serving::judge;
pub(crate) use stalls::{Fills, Stalls};

/// What the threads of a node share about the other nodes.
pub(crate) struct Data {
    /// Counts the maps: a worker that sees another number looks again.
    pub map_number: AtomicU64,
    /// Counts what may make an acknowledgement mean something else (`cluster::serving::AckEpoch`), and what
    /// may let a parked command run.
    ack_epoch: AtomicU64,
    pub me: NodeId,
    pub boot: Boot,
    pub links: Links,
    pub lease: Lease,
    /// What comes from each boot of another node. It outlives connections.
    intakes: Mutex<BTreeMap<Peer, Arc<Mutex<Intake>>>>,
    /// One for each worker: it holds replies back, and wants to be woken when something is acknowledged.
    pub holding: Vec<AtomicBool>,
    /// To the mover.
    orders: Sender<Order>,
    /// What the mover is at: one bucket at a time leaves this node. Held while a new map is taken over.
    outgoing: Mutex<Option<Outgoing>>,
    /// Whom to tell of what the control thread must know.
    pub notice: OnceLock<Box<dyn Fn(Notice) + Send + Sync>>,
    /// Since when this node is no member any more, by its own will.
    pub left: OnceLock<Instant>,
    /// A bucket is about to be promoted here.
    pub heirs: AtomicBool,
    /// A bucket is being handed over.
    pub pausing: AtomicBool,
    /// How long commands had to wait for a handover.
    pub parked: Stalls,
    /// What fills from here have sent.
    pub sent: Mutex<Sent>,
    pub fills: Fills,
    /// When each primary was heard of last.
    heard: Mutex<BTreeMap<NodeId, Duration>>,
    /// Primaries that have fallen silent: what is here of theirs may be old.
    pub pending: ArcSwap<BTreeSet<NodeId>>,
}

impl Data {
    pub(crate) fn new(me: Peer, workers: usize, orders: Sender<Order>) -> Data {
        Data {
            map_number: AtomicU64::new(0),
            ack_epoch: AtomicU64::new(0),
            me: me.id,
            boot: me.boot,
            links: Links::default(),
            lease: Lease::unlimited(),
            intakes: Mutex::default(),
            holding: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            orders,
            outgoing: Mutex::default(),
            notice: OnceLock::new(),
            left: OnceLock::new(),
            heirs: AtomicBool::new(false),
            pausing: AtomicBool::new(false),
            parked: Stalls::default(),
            sent: Mutex::default(),
            fills: Fills::default(),
            heard: Mutex::default(),
            pending: ArcSwap::default(),
        }
    }

    /// What comes from this process.
    pub(crate) fn intake(&self, from: Peer) -> Arc<Mutex<Intake>> {
        Arc::clone(self.intakes.lock().entry(from).or_default())
    }

    /// How far the copying of a bucket from here is, if there is one. Whoever asks may hold slots that
    /// the mover waits for, and so does not wait for the mover.
    pub(crate) fn filling(&self) -> Option<FillProgress> {
        self.outgoing.try_lock()?.as_ref().map(|outgoing| FillProgress {
            bucket: outgoing.bucket,
            sent_bytes: outgoing.progress.sent_bytes,
            percent: outgoing.progress.percent,
        })
    }

    /// Memory that waits for other nodes, or for the rest of what they send in parts.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        let intakes = self.intakes.lock();
        // Whoever has one locked is taking frames in, and would have to be waited for.
        let coming = intakes.values().filter_map(|intake| intake.try_lock());
        let coming: usize = coming.map(|intake| intake.gathered_bytes()).sum();
        self.links.allocated_bytes() + coming as u64
    }

    /// Something came from this node, or word that nothing was left.
    pub(crate) fn note_heard(&self, from: NodeId) {
        self.heard.lock().insert(from, boottime::now());
    }

    /// The processes from which anything came.
    pub(crate) fn sources(&self) -> Vec<Peer> {
        self.intakes.lock().keys().copied().collect()
    }

    /// Something for the mover to do.
    pub(crate) fn order(&self, order: Order) {
        // It is gone only when the node stops.
        let _ = self.orders.send(order);
    }

    /// [`Data::order`], if a bucket is on its way.
    pub(crate) fn order_if_moving(&self, order: Order) {
        // Who takes over a new map right now tells the mover anyway, but it shall not be waited for.
        let is_filling = self.outgoing.try_lock().is_none_or(|outgoing| outgoing.is_some());
        if is_filling || self.pausing.load(Ordering::Acquire) {
            self.order(order);
        }
    }

    /// The worker of a link or of what comes from a node: always the same one.
    pub(crate) fn worker_of(&self, node: NodeId) -> usize {
        usize::try_from(node.0 % self.holding.len() as u64).unwrap_or(0)
    }

    pub(crate) fn ack_epoch(&self) -> AckEpoch {
        AckEpoch(self.ack_epoch.load(Ordering::Acquire))
    }

    /// Counts a refusal, before the acknowledgement that covers it, or a change of duties, after it.
    pub(crate) fn next_ack_epoch(&self) {
        self.ack_epoch.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn map_number(&self) -> u64 {
        self.map_number.load(Ordering::Acquire)
    }
}
