//! The node's metrics, for HTTP.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cluster::status::{Status, name};
use commands::{Flag, Group, Histogram, Spec};
use settings::Secret;

use crate::http::{
    ClassDurations, ClusterMetrics, CommandClass, HttpSource, LinkMetrics, MemoryMetrics,
    NodeMetrics, NodeReadiness,
};
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
        let population = self.data.keyspace.population();
        let report = self.data.refresh_memory();
        NodeMetrics {
            name: settings.name.clone(),
            client_addr: self.client_addr,
            uptime: self.started.elapsed(),
            io_threads: u16::try_from(self.mailboxes.len()).unwrap_or(u16::MAX),
            clients_connected: self.counters.client_count() as u64,
            clients_max: u64::from(settings.maxclients),
            connections_accepted: self.counters.accepted.load(Relaxed),
            connections_refused: self.counters.rejected.load(Relaxed),
            auth_failed: self.guesses.wrong(),
            bytes_in: self.counters.total(|counters| &counters.bytes_in),
            bytes_out: self.counters.total(|counters| &counters.bytes_out),
            commands: command_classes(self),
            keys: population.keys,
            keys_with_expiry: population.expiring,
            keys_expired: self.counters.total(|counters| &counters.expired),
            keys_evicted: self.counters.total(|counters| &counters.evicted),
            lookups_hit: self.counters.total(|counters| &counters.hits),
            lookups_missed: self.counters.total(|counters| &counters.misses),
            merged: self.merging.tally(),
            memory: MemoryMetrics {
                allocated: report.allocated,
                resident: report.resident,
                max: settings.maxmemory,
            },
        }
    }

    fn readiness(&self) -> NodeReadiness {
        self.unready().map_or(NodeReadiness::Ready, |problem| NodeReadiness::NotReady(problem.what))
    }

    fn password(&self) -> Secret {
        self.settings.load().requirepass.clone()
    }

    fn cluster(&self) -> Status {
        self.status()
    }

    fn cluster_metrics(&self) -> ClusterMetrics {
        let status = self.status();
        let mine = status.members.iter().find(|member| member.name == status.node);
        let holders = |count: fn(usize) -> bool| {
            status.buckets.iter().filter(|bucket| count(bucket.holders.len())).count() as u64
        };
        let (fills, waits) = (&self.data.fills, &self.data.handover_waits);
        ClusterMetrics {
            epoch: status.epoch,
            map_steps: self.data.map_number(),
            generation: status.generation,
            members: status.members.len() as u64,
            leads: status.leader.as_ref() == Some(&status.node),
            health: status.health.clone(),
            lease_valid: self.data.lease.is_valid(),
            lease_left: self.data.lease.left(),
            clock_skew: largest_skew(&status),
            primaries: mine.map_or(0, |member| u64::from(member.primaries)),
            backups: mine.map_or(0, |member| u64::from(member.backups)),
            buckets: status.buckets.len() as u64,
            buckets_without_backup: holders(|count| count < 2),
            buckets_lost: holders(|count| count == 0),
            moves: status.moves.len() as u64,
            fill_sent_bytes: status.moves.iter().map(|this| this.sent_bytes).sum(),
            fills_done: fills.done.load(Relaxed),
            fills_failed: fills.failed.load(Relaxed),
            handover_waits: waits.count.load(Relaxed),
            handover_waited: Duration::from_micros(waits.total_micros.load(Relaxed)),
            handover_longest: Duration::from_micros(waits.longest_micros.load(Relaxed)),
            links: links(self),
            durations: class_durations(self),
        }
    }
}

fn largest_skew(status: &Status) -> Duration {
    let known = status.members.iter().filter_map(|member| member.clock_ahead_millis);
    Duration::from_millis(known.map(i64::unsigned_abs).max().unwrap_or(0))
}

/// Returns the replication backlog of each link.
fn links(shared: &Shared) -> Vec<LinkMetrics> {
    let map = shared.map();
    let living = shared.data.links.living();
    let told = living.iter().map(|link| LinkMetrics {
        to: name(&map, link.peer.id),
        bytes: link.unacknowledged_bytes() as u64,
        frames: link.last().0.saturating_sub(link.acked().0),
    });
    told.collect()
}

/// Returns the durations of all commands, summed by class.
fn class_durations(shared: &Shared) -> Vec<ClassDurations> {
    let new = |class| ClassDurations {
        class,
        total: Duration::ZERO,
        histogram: Histogram { counts: vec![0; Histogram::STEPS] },
    };
    let mut classes = CLASSES.map(new);
    for counts in shared.watching.totals(&shared.table) {
        let name = class_of(counts.spec);
        let class = classes.iter_mut().find(|class| class.class == name).expect("one of them");
        class.total += counts.time;
        for (sum, more) in class.histogram.counts.iter_mut().zip(&counts.histogram.counts) {
            *sum += more;
        }
    }
    classes.into()
}

const CLASSES: [&str; 6] = ["read", "write", "pubsub", "transaction", "admin", "other"];

/// Returns the calls by class, including classes without calls.
fn command_classes(shared: &Shared) -> Vec<CommandClass> {
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
            | Group::HyperLogLog
            | Group::Geo
            | Group::Hash
            | Group::List
            | Group::SortedSet
            | Group::Set
            | Group::Stream
            | Group::Connection
            | Group::Server
            | Group::Cluster
            | Group::Timers
            | Group::Scripting => "other",
        }
    }
}
