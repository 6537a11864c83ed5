//! The node's numbers, for HTTP.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use axum::Router;
use cluster::status::Status;
use commands::{Flag, Group, Spec};

use crate::http::{CommandClass, HttpSource, MemoryMetrics, NodeMetrics, Readiness};
use crate::merge::merged;
use crate::news;
use crate::peer::Progress;
use crate::shared::Shared;

impl HttpSource for Shared {
    fn timers(&self) -> Router<Arc<dyn HttpSource>> {
        crate::timers::routes(Arc::clone(&self.timers))
    }

    fn timer_metrics(&self) -> String {
        crate::timers::prometheus(&self.timers.stats())
    }

    fn metrics(&self) -> NodeMetrics {
        let settings = self.settings.load();
        let population = self.keyspace.population();
        let report = self.memory.refresh();
        NodeMetrics {
            name: settings.name.clone(),
            client_addr: self.client_addr,
            uptime: self.started.elapsed(),
            io_threads: u16::try_from(self.mailboxes.len()).unwrap_or(u16::MAX),
            clients_connected: self.client_count() as u64,
            clients_max: u64::from(settings.maxclients),
            connections_accepted: self.accepted.load(Relaxed),
            connections_refused: self.rejected.load(Relaxed),
            bytes_in: self.total(|counters| &counters.bytes_in),
            bytes_out: self.total(|counters| &counters.bytes_out),
            commands: command_classes(self),
            keys: population.keys,
            keys_with_expiry: population.expiring,
            keys_expired: self.total(|counters| &counters.expired),
            keys_evicted: self.total(|counters| &counters.evicted),
            lookups_hit: self.total(|counters| &counters.hits),
            lookups_missed: self.total(|counters| &counters.misses),
            merged: merged(self),
            memory: MemoryMetrics {
                allocated: report.allocated,
                resident: report.resident,
                max: settings.maxmemory,
            },
        }
    }

    fn readiness(&self) -> Readiness {
        match self.outlook.progress() {
            _ if self.is_stopping() => Readiness::NotReady("stopping"),
            Progress::Joining => Readiness::NotReady("joining the cluster"),
            Progress::Linking { .. } => Readiness::NotReady("connecting to the other nodes"),
            Progress::Gone(_) => Readiness::NotReady("it has left the cluster"),
            Progress::Ready if self.data.lease.is_valid() => Readiness::Ready,
            Progress::Ready => Readiness::NotReady("cut off from the cluster"),
        }
    }

    fn cluster(&self) -> Status {
        news::status(self)
    }
}

/// What was asked for, by class, all of them even if nothing was.
fn command_classes(shared: &Shared) -> Vec<CommandClass> {
    const CLASSES: [&str; 6] = ["read", "write", "pubsub", "transaction", "admin", "other"];
    let mut classes = CLASSES.map(|class| CommandClass { class, calls: 0, failed: 0 });
    for counts in shared.watching.totals(&shared.table) {
        let name = class_of(counts.spec);
        let class = classes.iter_mut().find(|class| class.class == name).expect("one of them");
        class.calls += counts.calls + counts.rejected;
        class.failed += counts.failed + counts.rejected;
    }
    classes.into()
}

fn class_of(spec: &Spec) -> &'static str {
    if spec.has(Flag::Write) {
        "write"
    } else if spec.has(Flag::ReadOnly) {
        "read"
    } else if spec.has(Flag::Admin) {
        "admin"
    } else {
        match spec.group {
            Group::PubSub => "pubsub",
            Group::Transactions => "transaction",
            Group::Generic
            | Group::String
            | Group::Bitmap
            | Group::Connection
            | Group::Server
            | Group::Cluster
            | Group::Timers => "other",
        }
    }
}
