//! The data plane: replicates writes to other nodes and moves buckets. `cluster::data` decides; here are
//! the locks, sockets and threads around it (`plane_impl.rs`). The control thread reaches it through
//! `data_plane.rs`.
//!
//! `link.rs` sends frames to one other node, `intake.rs` receives them from one; workers read both
//! (`worker/links.rs`). `follow.rs` makes every slot's replica what the map says. `mover.rs` is a thread
//! that copies buckets, hands them over and notices backups that fall behind.

mod crowding; // Other nodes whose memory is full.
mod condition; // This node's condition, for its load levels.
mod follow; //  Applies a new map: this node's role in each slot.
mod intake; //  Frames from one other node.
mod key_lines; // Connections that wait for keys.
mod later; //   Key events that wait as replies do.
pub(crate) mod boottime; // The clock of leases.
mod lease; //   The time until which this node may serve.
mod link; //    Frames to one other node.
mod links; //   All links.
mod serving; // Implements what `cluster::serving` needs.
mod connections; // Connections as they come and go; notices to the control thread.
mod move_counts; //  Waiting times of commands, outcomes of fills.
mod mover; //   The thread that copies buckets and hands them over.
mod plane_impl; // Implements what `cluster::data` needs.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use cluster::Moment;
use cluster::balance::FillProgress;
use cluster::data::{BucketLag, Intake, MoverInput, Outgoing};
use cluster::fill::Sent;
use cluster::map::{Boot, Map, NodeId, Peer};
use cluster::serving::AckEpoch;
use cluster::status::Status;
use commands::cluster::View;
use parking_lot::Mutex;
use scripting::NodeScripts;

pub(crate) use connections::{Notice, Unwanted};
pub(crate) use crowding::{Crowding, SlotSet};
pub(crate) use intake::apply_context;
pub(crate) use key_lines::KeyLines;
pub(crate) use later::{Later, judge_all};
pub(crate) use lease::Lease;
pub(crate) use link::Link;
pub(crate) use links::Links;
pub(crate) use move_counts::{Fills, HandoverWaits};
pub(crate) use mover::run_mover;
pub(crate) use serving::judge;

use crate::keep::KeptCopies;
use crate::keyspace::Keyspace;
use crate::mailbox::Mailboxes;
use crate::memory::MemoryReport;
use crate::stall_watch::Stalled;

/// The data plane's state, shared by the threads of a node.
pub(crate) struct Data {
    pub keyspace: Keyspace,
    /// The scripts that run, and those that are remembered.
    pub scripts: Arc<NodeScripts>,
    /// Data that was on the disk when the node started.
    pub kept: KeptCopies,
    /// The map as this node sees it.
    pub view: ArcSwap<View>,
    mailboxes: Mailboxes,
    stopping: AtomicBool,
    /// Counts the maps: a worker that sees another number knows that there is a new map.
    pub map_number: AtomicU64,
    /// Counts the events that may change the meaning of an acknowledgement (`cluster::serving::AckEpoch`), and
    /// those that may let a parked command run.
    ack_epoch: AtomicU64,
    pub me: NodeId,
    pub boot: Boot,
    pub links: Links,
    pub lease: Lease,
    /// The intake for each boot of another node. It outlives connections.
    intakes: Mutex<BTreeMap<Peer, Arc<Mutex<Intake>>>>,
    /// The changes that the copies on this node lacked, by the last report of each primary.
    lags: Mutex<BTreeMap<NodeId, Vec<BucketLag>>>,
    pub key_lines: KeyLines,
    /// One for each worker: true if it holds replies back, and wants to be woken by acknowledgements.
    pub awaiting_acks: Vec<AtomicBool>,
    /// Inputs of the mover: orders of control, and events that workers and the applier see.
    mover: Sender<MoverInput>,
    /// The bucket that the mover is copying, one at a time, and those of the same move that it has copied.
    /// Locked while a new map is applied.
    outgoing: Mutex<Vec<Outgoing>>,
    /// Reports a notice to the control thread.
    pub notice: OnceLock<Box<dyn Fn(Notice) + Send + Sync>>,
    /// The time at which this node left the cluster, by its own will.
    pub left: OnceLock<Instant>,
    /// Number of reasons why roles may be ahead of the published map: buckets about to be promoted here, and a map
    /// that slots are following.
    pub roles_ahead: AtomicUsize,
    /// True if a bucket is being handed over.
    pub pausing: AtomicBool,
    /// Waiting times of commands that waited for a handover.
    pub handover_waits: HandoverWaits,
    /// Totals of what fills from here have sent.
    pub sent: Mutex<Sent>,
    pub fills: Fills,
    /// The time at which this node last heard from each primary.
    heard: Mutex<BTreeMap<NodeId, Moment>>,
    /// Primaries that have fallen silent: this node's copies of their buckets may be stale.
    pub pending: ArcSwap<BTreeSet<NodeId>>,
    pub crowding: Crowding,
    /// Number of times that a write to the disk has begun or ended.
    pub disk_pulse: AtomicU64,
    /// The thread or the disk that stalls: it makes this node sick.
    pub stalled: Mutex<Option<Stalled>>,
}

impl Data {
    pub(crate) fn new(
        me: Peer,
        keyspace: Keyspace,
        kept: KeptCopies,
        view: View,
        mailboxes: Mailboxes,
        mover: Sender<MoverInput>,
    ) -> Data {
        Data {
            keyspace,
            kept,
            view: ArcSwap::from_pointee(view),
            map_number: AtomicU64::new(0),
            ack_epoch: AtomicU64::new(0),
            me: me.id,
            boot: me.boot,
            links: Links::default(),
            lease: Lease::unlimited(),
            intakes: Mutex::default(),
            lags: Mutex::default(),
            key_lines: KeyLines::default(),
            awaiting_acks: mailboxes.iter().map(|_| AtomicBool::new(false)).collect(),
            mailboxes,
            stopping: AtomicBool::new(false),
            mover,
            outgoing: Mutex::default(),
            notice: OnceLock::new(),
            left: OnceLock::new(),
            roles_ahead: AtomicUsize::new(0),
            pausing: AtomicBool::new(false),
            scripts: Arc::default(),
            handover_waits: HandoverWaits::default(),
            sent: Mutex::default(),
            fills: Fills::default(),
            heard: Mutex::default(),
            pending: ArcSwap::default(),
            crowding: Crowding::default(),
            disk_pulse: AtomicU64::new(0),
            stalled: Mutex::default(),
        }
    }

    /// Returns the map this node currently uses.
    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(self.view.load().map())
    }

    /// Wakes a worker to flush frames that other threads have queued on links. Those threads must not write
    /// themselves: a thread they wake could preempt them mid-write while they hold a lock that client-serving
    /// threads need.
    pub(crate) fn have_links_written(&self) {
        if self.links.has_unwritten() {
            self.mailboxes[0].wake();
        }
    }

    /// Asks all threads of the node to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.mailboxes.wake_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Refreshes the memory figures: the allocator's, and the bytes that links buffer for other nodes.
    pub(crate) fn refresh_memory(&self) -> MemoryReport {
        self.keyspace.memory.refresh(self.buffered_bytes())
    }

    /// Returns the intake for frames from this process.
    pub(crate) fn intake(&self, from: Peer) -> Arc<Mutex<Intake>> {
        Arc::clone(self.intakes.lock().entry(from).or_default())
    }

    /// Returns the progress of the fill from here, if there is one. The caller may hold slots that the
    /// mover waits for, and so must not wait for the mover.
    pub(crate) fn filling(&self) -> Option<FillProgress> {
        self.outgoing.try_lock()?.last().map(|outgoing| FillProgress {
            bucket: outgoing.bucket,
            sent_bytes: outgoing.progress.sent_bytes,
            percent: outgoing.progress.percent,
        })
    }

    /// Returns the memory of unacknowledged frames to other nodes, and of incomplete long frames from them.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        let intakes = self.intakes.lock();
        // Skips an intake that is locked: its worker is applying frames, and this would have to wait.
        let coming = intakes.values().filter_map(|intake| intake.try_lock());
        let coming: usize = coming.map(|intake| intake.gathered_bytes()).sum();
        self.links.allocated_bytes() + coming as u64
    }

    /// Records the changes that this node's backups lack, by the report of a primary.
    pub(crate) fn note_lags(&self, from: NodeId, lags: Vec<BucketLag>) {
        let map = self.map();
        let mut known = self.lags.lock();
        known.retain(|node, _| map.member(*node).is_some());
        known.insert(from, lags);
    }

    /// Adds to a status which copies on this node are incomplete or behind.
    pub(crate) fn add_sync(&self, map: &Map, status: &mut Status) {
        let intakes: Vec<_> = self.intakes.lock().values().map(Arc::clone).collect();
        // Skips an intake that is locked: its worker is applying frames, and this would have to wait.
        let filling = intakes.iter().filter_map(|intake| intake.try_lock()?.filling());
        status.add_filling(map, filling);
        for (primary, lags) in &*self.lags.lock() {
            status.add_lags(map, self.me, *primary, lags);
        }
    }

    /// Records that data came from this node, or its report that no bytes are outstanding.
    pub(crate) fn note_heard(&self, from: NodeId) {
        self.heard.lock().insert(from, boottime::now());
    }

    /// Returns the processes from which anything came.
    pub(crate) fn sources(&self) -> Vec<Peer> {
        self.intakes.lock().keys().copied().collect()
    }

    /// Sends an input to the mover.
    pub(crate) fn tell_mover(&self, input: MoverInput) {
        // The mover is gone only when the node stops.
        let _ = self.mover.send(input);
    }

    /// Sends an input to the mover if a bucket is being copied or handed over.
    pub(crate) fn tell_mover_if_moving(&self, input: MoverInput) {
        // If the lock is held, a map is being applied, which notifies the mover anyway; do not wait for it.
        let is_filling = self.outgoing.try_lock().is_none_or(|outgoing| !outgoing.is_empty());
        if is_filling || self.pausing.load(Ordering::Acquire) {
            self.tell_mover(input);
        }
    }

    /// Returns the worker of the links to and from a node: always the same one.
    pub(crate) fn worker_of(&self, node: NodeId) -> usize {
        usize::try_from(node.0 % self.awaiting_acks.len() as u64).unwrap_or(0)
    }

    pub(crate) fn ack_epoch(&self) -> AckEpoch {
        AckEpoch(self.ack_epoch.load(Ordering::Acquire))
    }

    /// Counts a refusal or a change of roles: called for a refusal before the acknowledgement that covers it becomes
    /// visible, for a change of roles after the roles have changed.
    pub(crate) fn next_ack_epoch(&self) {
        self.ack_epoch.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn map_number(&self) -> u64 {
        self.map_number.load(Ordering::Acquire)
    }
}
