//! State shared by all threads of a node. Everything here is immutable, atomic, or behind a lock that is held
//! only briefly.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use arc_swap::ArcSwap;
use cluster::map::Map;
use commands::Table;
use commands::cluster::View;
use settings::Settings;
use store::{Garbage, Seed};

use crate::clients::Clients;
use crate::config::ConfigChanges;
use crate::data::Data;
use crate::keep::KeptCopies;
use crate::keyspace::Keyspace;
use crate::mailbox::Mailbox;
use crate::memory::{MemoryGauge, MemoryReport};
use crate::merge::Merging;
use crate::news::News;
use crate::pause::Pauses;
use crate::peer::{ControlHandle, StartupState};
use crate::pubsub::Exchange;
use crate::timers::Hub;
use crate::watching::Watching;

pub(crate) struct Shared {
    pub keyspace: Keyspace,
    /// Replication traffic to and from other nodes.
    pub data: Data,
    /// Data that was on the disk when the node started.
    pub kept: KeptCopies,
    pub settings: ArcSwap<Settings>,
    pub timers: Arc<Hub>,
    /// The map as this node sees it.
    pub cluster: ArcSwap<View>,
    /// Channel to the control thread.
    pub control: ControlHandle,
    /// The node's progress in entering its cluster.
    pub outlook: Arc<StartupState>,
    /// Data handed over by, or to, another side of the cluster.
    pub merging: Merging,
    /// Other knowledge about the other nodes.
    pub news: News,
    pub table: Table,
    pub clients: Clients,
    pub pauses: Pauses,
    pub config: ConfigChanges,
    pub seed: Seed,
    pub memory: MemoryGauge,
    pub exchange: Exchange,
    pub watching: Watching,
    /// Forty hexadecimal digits, new at each start.
    pub id: String,
    /// One for each worker.
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// One for each worker; the janitor's is the last.
    pub counters: Vec<Counters>,
    /// Number of open connections, by worker.
    pub connections: Vec<AtomicUsize>,
    pub accepted: AtomicU64,
    pub rejected: AtomicU64,
    pub next_client: AtomicU64,
    pub stopping: AtomicBool,
    /// True if expired keys are removed actively; after `DEBUG SET-ACTIVE-EXPIRE 0` only on access.
    pub expires_actively: AtomicBool,
    pub started: Instant,
    pub client_addr: SocketAddr,
    pub config_file: Option<PathBuf>,
    /// Channel to the janitor, which frees large values.
    pub garbage: Sender<Garbage>,
}

/// Counters of one worker. Only that worker writes, so a plain load and store suffice. They lie on cache lines
/// of their own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Counters {
    pub commands: AtomicU64,
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub expired: AtomicU64,
    pub evicted: AtomicU64,
    pub changes: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    if more != 0 {
        counter.store(counter.load(Relaxed) + more, Relaxed);
    }
}

impl Shared {
    pub(crate) fn total(&self, counter: impl Fn(&Counters) -> &AtomicU64) -> u64 {
        self.counters.iter().map(|counters| counter(counters).load(Relaxed)).sum()
    }

    pub(crate) fn client_count(&self) -> usize {
        self.connections.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// Frees something large on the janitor's thread.
    pub(crate) fn discard(&self, garbage: Garbage) {
        // The janitor is gone only when the node stops; then the garbage is freed here.
        let _ = self.garbage.send(garbage);
    }

    /// Refreshes the memory figures: the allocator's, and the bytes that links buffer for other nodes.
    pub(crate) fn refresh_memory(&self) -> MemoryReport {
        self.memory.refresh(self.data.buffered_bytes())
    }

    /// Returns the map this node currently uses.
    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(self.cluster.load().map())
    }

    /// Wakes a worker to flush frames that other threads have queued on links. Those threads must not write
    /// themselves: a thread they wake could preempt them mid-write while they hold a lock that client-serving
    /// threads need.
    pub(crate) fn have_links_written(&self) {
        if self.data.links.has_unwritten() {
            self.mailboxes[0].wake();
        }
    }

    /// Asks all threads to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.mailboxes.iter().for_each(|mailbox| mailbox.wake());
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}
