//! State shared by all threads of a node. Everything here is immutable, atomic, or behind a lock that is held
//! only briefly.

use core::sync::atomic::{AtomicBool, AtomicU64};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use cluster::balance::Vitals;
use cluster::map::Map;
use cluster::status::{Health, NodeFacts, Problem, Status};
use commands::{CommandEnv, Table};
use net::Guesses;
use settings::Settings;

use crate::clients::Clients;
use crate::cluster_view::ClusterView;
use crate::command_env::command_env;
use crate::config::ConfigChanges;
use crate::counters::AllCounters;
use crate::data::Data;
use crate::mailbox::Mailboxes;
use crate::merge::Merging;
use crate::pause::Pauses;
use crate::peer::{ControlHandle, StartupPhase, StartupState};
use crate::pubsub::Exchange;
use crate::timers::Hub;
use crate::watching::Watching;

pub(crate) struct Shared {
    /// The slots, and replication traffic to and from other nodes.
    pub data: Data,
    pub settings: ArcSwap<Settings>,
    pub timers: Arc<Hub>,
    /// Channel to the control thread.
    pub control: ControlHandle,
    /// The node's progress in entering its cluster.
    pub startup: Arc<StartupState>,
    /// Data handed over by, or to, another side of the cluster.
    pub merging: Merging,
    /// Other knowledge about the other nodes.
    pub cluster_view: ClusterView,
    pub table: Table,
    pub clients: Clients,
    pub pauses: Pauses,
    pub config: ConfigChanges,
    /// Wrong passwords and tokens, by address.
    pub guesses: Arc<Guesses>,
    pub exchange: Exchange,
    pub watching: Watching,
    /// Forty hexadecimal digits, new at each start.
    pub id: String,
    pub mailboxes: Mailboxes,
    pub counters: AllCounters,
    pub next_client: AtomicU64,
    /// True if expired keys are removed actively; after `DEBUG SET-ACTIVE-EXPIRE 0` only on access.
    pub expires_actively: AtomicBool,
    pub started: Instant,
    pub client_addr: SocketAddr,
    pub config_file: Option<PathBuf>,
}

impl Shared {
    /// Returns the map this node currently uses.
    pub(crate) fn map(&self) -> Arc<Map> {
        self.data.map()
    }

    /// Returns the values that hold for all commands of one round.
    pub(crate) fn command_env(&self) -> CommandEnv {
        let Data { view, keyspace, scripts, .. } = &self.data;
        command_env(&self.settings.load(), view.load_full(), &keyspace.seed, scripts)
    }

    /// Returns this node's condition.
    pub(crate) fn vitals(&self) -> Vitals {
        self.data.vitals(&self.settings.load(), self.watching.rates.per_second().commands)
    }

    /// Returns the status of the cluster, as this node knows it.
    pub(crate) fn status(&self) -> Status {
        let status = self.cluster_view.status(&self.data, &self.merging, self.vitals());
        self.with_health(status)
    }

    /// Returns the status without the buckets, for a viewer who has them already.
    pub(crate) fn status_without_buckets(&self) -> Status {
        let view = &self.cluster_view;
        self.with_health(view.status_without_buckets(&self.data, &self.merging, self.vitals()))
    }

    /// Judges the cluster by what this node knows already: nobody is asked for it.
    pub(crate) fn health(&self) -> Health {
        self.known_status().health
    }

    /// Returns the problem for which this node should get no clients.
    pub(crate) fn unready(&self) -> Option<Problem> {
        let Status { health, node, .. } = self.known_status();
        health.unready(&node).cloned()
    }

    fn known_status(&self) -> Status {
        let view = &self.cluster_view;
        self.with_health(view.known_status(&self.data, &self.merging, self.vitals()))
    }

    fn with_health(&self, mut status: Status) -> Status {
        status.health = Health::of(&status, &self.facts());
        status
    }

    fn facts(&self) -> NodeFacts {
        let not_serving = match self.startup.progress() {
            _ if self.is_stopping() => Some("it is stopping".to_owned()),
            StartupPhase::Ready => None,
            phase @ (StartupPhase::Joining
            | StartupPhase::Linking { .. }
            | StartupPhase::Leaseless
            | StartupPhase::Gone(_)) => Some(phase.words()),
        };
        NodeFacts {
            not_serving,
            has_lease: self.data.lease.is_valid(),
            stalled: self.data.stalled.lock().map(|stalled| stalled.to_string()),
        }
    }

    /// Asks all threads to end.
    pub(crate) fn stop(&self) {
        self.data.stop();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.data.is_stopping()
    }
}
