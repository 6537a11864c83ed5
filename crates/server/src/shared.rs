//! State shared by all threads of a node. Everything here is immutable, atomic, or behind a lock that is held
//! only briefly.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
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
use crate::counters::AllCounters;
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
    pub counters: AllCounters,
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

impl Shared {
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
