//! `opencluster fleet status`: the map, the servers, and how far a migration is.

use clap::Args;
use fleet::Status;
use proxy::admin::{StatusReport, status};
use serde_json::{Value, json};

use super::access::AccessArgs;
use super::{failure, say, shown};
use crate::Failure;

#[derive(Args, Debug)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let report = status(&args.access.servers()?, &args.access.access()?).map_err(failure)?;
    if args.json {
        return say(&format!("{:#}\n", as_json(&report)));
    }
    say(&text(&report))
}

fn text(report: &StatusReport) -> String {
    let config = &report.config;
    let mut text = match config.status {
        Status::InProgress => format!("map {} from {}", config.current, config.previous),
        Status::NotStarted | Status::Completed => format!("map {}", config.current),
    };
    let words = config.status.words();
    text.push_str(&format!(", epoch {}, migration {words}\n", config.epoch.number()));
    if let Some(next) = &config.next {
        text.push_str(&format!("announced: {next}\n"));
    }
    if let Some(lock) = &config.lock {
        text.push_str(&format!("migrator: {}\n", lock.holder));
    }
    if let Some(left) = &report.left {
        let (about, total) = (if left.exact { "" } else { "about " }, left.total());
        let (keys, bytes) = (shown::count(total.keys), shown::bytes(total.bytes));
        text.push_str(&format!("still to be moved: {about}{keys} keys, ~{bytes}\n"));
    }
    let head = ["server", "weight", "keys", "share", "by weight", "memory", "version"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for server in &report.servers {
        rows.push(vec![
            server.address.to_string(),
            server.weight.to_string(),
            shown::count(server.keys),
            format!("{:.1}%", server.share),
            format!("{:.1}%", server.wanted_share),
            shown::bytes(server.memory_bytes),
            server.trouble.clone().unwrap_or_else(|| server.version.clone()),
        ]);
    }
    text.push_str(&shown::table(&rows));
    for server in &report.servers {
        for line in &server.warnings {
            text.push_str(&format!("warning: server {}: {line}\n", server.address));
        }
    }
    for line in &report.problems {
        text.push_str(&format!("problem: {line}\n"));
    }
    text
}

fn as_json(report: &StatusReport) -> Value {
    let config = &report.config;
    let server = |server: &proxy::admin::ServerStatus| {
        json!({
            "address": server.address.to_string(),
            "version": server.version,
            "weight": server.weight,
            "previous_weight": server.previous_weight,
            "keys": server.keys,
            "memory_bytes": server.memory_bytes,
            "share_percent": server.share,
            "wanted_share_percent": server.wanted_share,
            "trouble": server.trouble,
            "warnings": server.warnings,
        })
    };
    let left = report.left.as_ref().map(|left| {
        let total = left.total();
        json!({ "keys": total.keys, "bytes": total.bytes, "exact": left.exact })
    });
    json!({
        "current": config.current.to_string(),
        "previous": config.previous.to_string(),
        "next": config.next.as_ref().map(ToString::to_string),
        "status": config.status.text(),
        "epoch": config.epoch.number(),
        "migrator": config.lock.as_ref().map(|lock| lock.holder.clone()),
        "left": left,
        "servers": report.servers.iter().map(server).collect::<Vec<_>>(),
        "problems": report.problems,
    })
}
