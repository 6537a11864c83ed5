//! `/healthz`, `/readyz` and `/metrics` of a proxy: its counters, and its knowledge of the fleet.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use fleet::config::weight;
use fleet::{Server, Status};

use crate::shared::{Fleet, Shared};

/// Reports that the process is alive.
pub(super) fn healthz() -> Response {
    "ok\n".into_response()
}

/// Reports whether applications should be sent here.
pub(super) fn readyz(shared: &Shared) -> Response {
    let why = match &shared.fleet.load().trouble {
        None if !shared.is_stopping() => return "ready\n".into_response(),
        None => "stopping".to_owned(),
        Some(trouble) => trouble.clone(),
    };
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response()
}

pub(super) fn metrics(shared: &Shared) -> Response {
    let kind = [
        (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (kind, text(shared)).into_response()
}

/// Builds the metrics in the text format of Prometheus, version 0.0.4.
fn text(shared: &Shared) -> String {
    let mut page = Page(String::new());
    page.family("info", "gauge", "Version and ID of this proxy; always 1.");
    page.line(
        "info",
        &format!("version=\"{}\",id=\"{}\"", env!("CARGO_PKG_VERSION"), shared.id),
        1,
    );
    let clients = shared.clients.load(Relaxed) as u64;
    page.one("clients_connected", "gauge", "Connected clients.", clients);
    let requests = shared.commands.iter().map(|count| count.load(Relaxed)).sum();
    page.one("requests_total", "counter", "Requests of clients.", requests);
    let counts = &shared.counts;
    page.family("moving_requests_total", "counter", "Requests on moving keys.");
    for (kind, count) in [("read", &counts.moving_reads), ("write", &counts.moving_writes)] {
        page.line("moving_requests_total", &format!("kind=\"{kind}\""), count.load(Relaxed));
    }
    let lost = counts.links_lost.load(Relaxed);
    page.one("connections_lost_total", "counter", "Lost connections to servers.", lost);
    page.fleet(&shared.fleet.load());
    page.0
}

struct Page(String);

impl Page {
    fn fleet(&mut self, fleet: &Fleet) {
        let config = &fleet.config;
        self.one("epoch", "gauge", "Epoch of the fleet's maps.", config.epoch.number());
        let status = match config.status {
            Status::NotStarted => 0,
            Status::InProgress => 1,
            Status::Completed => 2,
        };
        let help = "0 none yet, 1 a migration is in progress, 2 the last one is completed.";
        self.one("migration_status", "gauge", help, status);
        let held = u64::from(fleet.view.holds_keys());
        self.one("keys_held", "gauge", "1 while some keys wait for a switch of maps.", held);
        let sound = u64::from(fleet.trouble.is_none());
        self.one(
            "ready",
            "gauge",
            "0 while the servers' configuration is missing or invalid.",
            sound,
        );
        let help = "Each server's weight in the current and the previous map.";
        self.family("server_weight", "gauge", help);
        let maps = [("current", &config.current), ("previous", &config.previous)];
        for (name, map) in maps {
            for (number, address) in config.servers.iter().enumerate() {
                let labels = format!("map=\"{name}\",server=\"{address}\"");
                self.line("server_weight", &labels, u64::from(weight(map, Server(number))));
            }
        }
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let name = format!("opencluster_fleet_{name}");
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: u64) {
        let _ = writeln!(self.0, "opencluster_fleet_{name}{{{labels}}} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.family(name, kind, help);
        let _ = writeln!(self.0, "opencluster_fleet_{name} {value}");
    }
}
