//! The metrics of a node as plain data, and their two output forms: Prometheus's text for `/metrics` and JSON
//! for `/api/node`. An `HttpSource` fills them in. Metrics of the cluster are in `metrics/cluster.rs`.
//! docs/metrics.md is generated from the output of a node.

mod cluster; // The map, leases, links and moves, and command durations.
mod page; //    The text format.

use std::net::SocketAddr;
use std::time::Duration;

use ::cluster::merge::Tally;
use serde_json::{Value, json};

pub use self::cluster::{ClassDurations, ClusterMetrics, LinkMetrics};
use self::page::MetricsPage;

/// State of readiness to serve clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeReadiness {
    Ready,
    /// The reason: "node a does not serve: it is stopping".
    NotReady(String),
}

/// A node's metrics at one moment. Counters count from the start of the process.
#[derive(Clone, Debug)]
pub struct NodeMetrics {
    pub name: String,
    pub client_addr: SocketAddr,
    pub uptime: Duration,
    pub io_threads: u16,

    pub clients_connected: u64,
    pub clients_max: u64,
    pub connections_accepted: u64,
    pub connections_refused: u64,
    /// Wrong passwords and tokens, on all ports.
    pub auth_failed: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,

    /// Commands by class: "read", "write", "pubsub", ...
    pub commands: Vec<CommandClass>,

    pub keys: u64,
    pub keys_with_expiry: u64,
    pub keys_expired: u64,
    pub keys_evicted: u64,
    pub lookups_hit: u64,
    pub lookups_missed: u64,

    /// Keys that another side of the cluster had changed.
    pub merged: Tally,

    pub memory: MemoryMetrics,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandClass {
    pub class: &'static str,
    pub calls: u64,
    /// Number of `calls` answered with an error.
    pub failed: u64,
}

/// Memory figures in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryMetrics {
    pub allocated: u64,
    pub resident: u64,
    /// `maxmemory`; 0 for no limit.
    pub max: u64,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

impl NodeMetrics {
    /// Returns the metrics in the text format of Prometheus, version 0.0.4.
    pub(super) fn prometheus(&self) -> String {
        let mut page = MetricsPage::default();
        page.family("info", "gauge", "Version and name of this node; always 1.");
        page.labelled("info", &[("version", VERSION), ("name", &self.name)], 1);
        page.family("uptime_seconds", "gauge", "Seconds since the process started.");
        page.value("uptime_seconds", format_args!("{:.3}", self.uptime.as_secs_f64()));
        page.gauge("io_threads", "Threads that serve clients.", u64::from(self.io_threads));
        self.prometheus_clients(&mut page);
        self.prometheus_commands(&mut page);
        self.prometheus_keys(&mut page);
        self.prometheus_memory(&mut page);
        self.prometheus_merged(&mut page);
        page.text()
    }

    fn prometheus_clients(&self, page: &mut MetricsPage) {
        page.gauge("clients_connected", "Clients connected now.", self.clients_connected);
        page.gauge("clients_max", "Clients that may be connected.", self.clients_max);
        let accepted = "Client connections accepted.";
        page.counter("connections_accepted_total", accepted, self.connections_accepted);
        let refused = "Client connections refused because clients_max was reached.";
        page.counter("connections_refused_total", refused, self.connections_refused);
        let failed = "Wrong passwords and tokens, on the client port and over HTTP.";
        page.counter("auth_failed_total", failed, self.auth_failed);
        page.counter("network_in_bytes_total", "Bytes read from clients.", self.bytes_in);
        page.counter("network_out_bytes_total", "Bytes written to clients.", self.bytes_out);
    }

    fn prometheus_commands(&self, page: &mut MetricsPage) {
        page.family("commands_total", "counter", "Commands run, by class.");
        for class in &self.commands {
            page.labelled("commands_total", &[("class", class.class)], class.calls);
        }
        page.family("commands_failed_total", "counter", "Commands answered with an error.");
        for class in &self.commands {
            page.labelled("commands_failed_total", &[("class", class.class)], class.failed);
        }
    }

    fn prometheus_keys(&self, page: &mut MetricsPage) {
        page.gauge("keys", "Keys held.", self.keys);
        page.gauge("keys_with_expiry", "Keys that will expire.", self.keys_with_expiry);
        page.counter("keys_expired_total", "Keys that expired.", self.keys_expired);
        page.counter("keys_evicted_total", "Keys evicted for maxmemory.", self.keys_evicted);
        page.family("lookups_total", "counter", "Keys looked up by reading commands.");
        page.labelled("lookups_total", &[("result", "hit")], self.lookups_hit);
        page.labelled("lookups_total", &[("result", "miss")], self.lookups_missed);
    }

    fn prometheus_merged(&self, page: &mut MetricsPage) {
        let help = "Keys changed by another side of a split cluster, by outcome of the merge.";
        page.family("merged_keys_total", "counter", help);
        let Tally { taken, same, lost_here, lost_there, unsure } = self.merged;
        for (outcome, count) in [
            ("taken", taken),
            ("same", same),
            ("conflict_lost_here", lost_here),
            ("conflict_lost_there", lost_there),
            ("conflict_unsure", unsure),
        ] {
            page.labelled("merged_keys_total", &[("outcome", outcome)], count);
        }
    }

    fn prometheus_memory(&self, page: &mut MetricsPage) {
        let memory = &self.memory;
        page.gauge("memory_allocated_bytes", "Memory in use, by the allocator.", memory.allocated);
        page.gauge("memory_resident_bytes", "Physical memory mapped.", memory.resident);
        page.gauge("memory_max_bytes", "maxmemory; 0 for no limit.", memory.max);
    }

    /// Returns the metrics that the start page shows.
    pub(super) fn json(&self) -> Value {
        let total = |count: fn(&CommandClass) -> u64| self.commands.iter().map(count).sum::<u64>();
        let by_class =
            self.commands.iter().map(|class| (class.class.to_owned(), class.calls.into()));
        json!({
            "name": self.name,
            "version": VERSION,
            "address": self.client_addr.to_string(),
            "port": self.client_addr.port(),
            "uptime_ms": u64::try_from(self.uptime.as_millis()).unwrap_or(u64::MAX),
            "io_threads": self.io_threads,
            "clients": { "connected": self.clients_connected, "max": self.clients_max },
            "commands": {
                "total": total(|class| class.calls),
                "failed": total(|class| class.failed),
                "by_class": Value::Object(by_class.collect()),
            },
            "network": { "in_bytes": self.bytes_in, "out_bytes": self.bytes_out },
            "keys": {
                "held": self.keys,
                "with_expiry": self.keys_with_expiry,
                "expired": self.keys_expired,
                "evicted": self.keys_evicted,
            },
            "lookups": { "hit": self.lookups_hit, "miss": self.lookups_missed },
            "memory": {
                "allocated_bytes": self.memory.allocated,
                "resident_bytes": self.memory.resident,
                "max_bytes": self.memory.max,
            },
        })
    }
}
