//! What all threads of a node share. Everything here is either never changed, atomic, or behind a
//! lock held for a moment.

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
use commands::settings::Settings;
use store::{Garbage, Seed};

use crate::clients::Clients;
use crate::config::ConfigChanges;
use crate::data::Data;
use crate::keep::Kept;
use crate::keyspace::Keyspace;
use crate::mailbox::Mailbox;
use crate::memory::{MemoryGauge, MemoryReport};
use crate::merge::Merging;
use crate::news::News;
use crate::pause::Pauses;
use crate::peer::{ControlLine, Outlook};
use crate::pubsub::Exchange;
use crate::timers::Hub;
use crate::watching::Watching;

pub(crate) struct Shared {
    pub keyspace: Keyspace,
    /// What goes to other nodes, and comes from them.
    pub data: Data,
    /// What it had on its disk when it started.
    pub kept: Kept,
    pub settings: ArcSwap<Settings>,
    pub timers: Arc<Hub>,
    /// The map as this node sees it.
    pub cluster: ArcSwap<View>,
    /// To the thread that decides.
    pub control: ControlLine,
    /// How far this node has come.
    pub outlook: Arc<Outlook>,
    /// What another side of the cluster has handed over, or is handed.
    pub merging: Merging,
    /// What else it knows of the other nodes.
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
    /// One for each worker, and the keeper's behind them.
    pub counters: Vec<Counters>,
    /// Open connections, by worker.
    pub connections: Vec<AtomicUsize>,
    pub accepted: AtomicU64,
    pub rejected: AtomicU64,
    pub next_client: AtomicU64,
    pub stopping: AtomicBool,
    /// Keys are taken away when they are due; `DEBUG SET-ACTIVE-EXPIRE 0` leaves them to who asks.
    pub expires_actively: AtomicBool,
    pub started: Instant,
    pub client_addr: SocketAddr,
    pub config_file: Option<PathBuf>,
    /// To the keeper, who frees what is large.
    pub garbage: Sender<Garbage>,
}

/// What one worker has counted. Only that worker writes, so a plain load and store will do; on cache
/// lines of its own.
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

    /// Frees something large on another thread.
    pub(crate) fn discard(&self, garbage: Garbage) {
        // The keeper is gone only when the node stops, and then it is freed here.
        let _ = self.garbage.send(garbage);
    }

    /// Asks the allocator how much memory is in use, and the links how much of it waits for others.
    pub(crate) fn refresh_memory(&self) -> MemoryReport {
        self.memory.refresh(self.data.buffered_bytes())
    }

    /// The map this node goes by.
    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(self.cluster.load().map())
    }

    /// Has what others than workers have appended to links written by one. They would be interrupted in the
    /// middle of it, by whom they have woken, and with a lock that those who serve clients need.
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
