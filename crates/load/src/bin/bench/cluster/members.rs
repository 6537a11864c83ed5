//! A cluster of servers: starts it, adds to it, checks its balance. Ours forms by itself; the
//! others are formed with `redis-cli --cluster`.
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::measure::SERVER_CORE;
use crate::servers::{Kind, Placement, Server, Tools};

/// Number of primaries at the start.
pub(super) const PRIMARIES: usize = 3;
const EVEN_WITHIN: Duration = Duration::from_secs(120);
const CALM: Duration = Duration::from_millis(200);
const ATTEMPTS: usize = 3;

pub(crate) struct Members {
    pub(crate) kind: Kind,
    pub(crate) servers: Vec<Server>,
}

impl Members {
    /// Starts a cluster, with retries: `redis-cli --cluster create` sometimes fails for reasons of its own.
    pub(super) fn start(tools: &Tools, kind: Kind) -> io::Result<Members> {
        let mut last = Members::try_start(tools, kind);
        for _ in 1..ATTEMPTS {
            if last.is_ok() {
                break;
            }
            last = Members::try_start(tools, kind);
        }
        last
    }

    fn try_start(tools: &Tools, kind: Kind) -> io::Result<Members> {
        let mut members = Members { kind, servers: Vec::new() };
        let count = if kind == Kind::Ours { PRIMARIES } else { 2 * PRIMARIES };
        for _ in 0..count {
            members.add(tools)?;
        }
        if kind != Kind::Ours {
            let addresses = members.servers.iter().map(|server| server.address.to_string());
            let mut create = Command::new("redis-cli");
            create.args(["--cluster", "create"]).args(addresses);
            create.args(["--cluster-replicas", "1", "--cluster-yes"]);
            succeed(&mut create)?;
        }
        members.wait_until_even(PRIMARIES)?;
        Ok(members)
    }

    /// Starts one more process; one of ours joins by itself.
    pub(super) fn add(&mut self, tools: &Tools) -> io::Result<()> {
        let on = Placement { cores: vec![SERVER_CORE], io_threads: 1 };
        let flags: Vec<String> = match (self.kind, self.servers.first()) {
            (Kind::Ours, None) => Vec::new(),
            (Kind::Ours, Some(first)) => vec!["--join".to_owned(), first.address.to_string()],
            (Kind::Redis | Kind::Valkey, _) => {
                let name = fresh(&format!("{:?}-{}", self.kind, self.servers.len()))?;
                // A backup would save its primary's data to a file, which the next process would load.
                ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]
                    .into_iter()
                    .chain([
                        "--repl-diskless-load",
                        "swapdb",
                        "--dbfilename",
                        &format!("{name}.rdb"),
                    ])
                    .chain(["--cluster-config-file", &format!("nodes-{name}.conf")])
                    .map(str::to_owned)
                    .collect()
            }
        };
        self.servers.push(tools.start_with(self.kind, &on, &flags)?);
        Ok(())
    }

    /// Adds the fourth process as a primary, and the fifth as its backup.
    pub(super) fn take_in(&self) -> io::Result<()> {
        let first = self.servers[0].address.to_string();
        let [.., new, backup] = self.servers.as_slice() else { return Ok(()) };
        let run = |args: &[&str]| succeed(Command::new("redis-cli").arg("--cluster").args(args));
        run(&["add-node", &new.address.to_string(), &first])?;
        std::thread::sleep(Duration::from_secs(2)); // Until all nodes know of it.
        let id = text(&new.client()?.call(&["CLUSTER", "MYID"])?);
        let with = ["--cluster-slave", "--cluster-master-id", id.trim()];
        run(&[&["add-node", &backup.address.to_string(), &first], &with[..]].concat())?;
        wait_until_linked(backup)
    }

    /// Moves slots until all primaries have equally many. A slot's move can fail (Valkey refuses it while the backup
    /// of the new primary lags): then what is half moved is mended, and the rest is moved, as an operator would.
    pub(super) fn rebalance(&self) -> io::Result<()> {
        let first = self.servers[0].address.to_string();
        let run = |args: &[&str]| succeed(Command::new("redis-cli").arg("--cluster").args(args));
        let rebalance =
            || run(&["rebalance", &first, "--cluster-use-empty-masters", "--cluster-yes"]);
        let mut moved = rebalance();
        for _ in 1..ATTEMPTS {
            if moved.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
            run(&["fix", &first, "--cluster-yes"])?;
            moved = rebalance();
        }
        moved
    }

    /// Waits until the cluster is balanced, and returns since when.
    pub(super) fn wait_until_even(&self, primaries: usize) -> io::Result<Instant> {
        let begun = Instant::now();
        loop {
            let since = self.wait_until_calm(begun)?;
            if self.is_even(primaries) {
                return Ok(since);
            }
            if begun.elapsed() > EVEN_WITHIN {
                let name = self.kind.name();
                return Err(io::Error::other(format!("{name} did not become balanced in time")));
            }
        }
    }

    /// Waits until the map has not changed for a while, and returns since when. Reading the whole
    /// map again and again would be a load of its own, and would show in the measurements.
    fn wait_until_calm(&self, begun: Instant) -> io::Result<Instant> {
        let mut client = self.servers[0].client()?;
        let mut last = (String::new(), Instant::now());
        while last.1.elapsed() < CALM && begun.elapsed() < EVEN_WITHIN {
            let info = text(&client.call(&["CLUSTER", "INFO"])?);
            let is_epoch = |line: &&str| line.starts_with("cluster_current_epoch:");
            let epoch = info.lines().find(is_epoch).unwrap_or_default();
            if epoch != last.0 {
                last = (epoch.to_owned(), Instant::now());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(last.1)
    }

    fn is_even(&self, primaries: usize) -> bool {
        let asked = |server: &Server, words: &[&str]| {
            server.client().and_then(|mut client| client.call(words)).map(|reply| text(&reply))
        };
        if self.kind == Kind::Ours {
            let Ok(status) = asked(&self.servers[0], &["CLUSTER", "STATUS"]) else { return false };
            return is_even_status(&status, primaries);
        }
        let ok = |server: &Server| {
            asked(server, &["CLUSTER", "INFO"]).is_ok_and(|info| info.contains("cluster_state:ok"))
        };
        self.servers.iter().all(ok)
    }
}

/// Waits until a backup follows its primary: Valkey refuses to move slots to a primary without a backup that it hears.
fn wait_until_linked(backup: &Server) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        if backup.info("replication", "master_link_status")?.as_deref() == Some("up") {
            // Until the primary has heard the first acknowledgement, too.
            std::thread::sleep(Duration::from_secs(2));
            return Ok(());
        }
        if begun.elapsed() > EVEN_WITHIN {
            return Err(io::Error::other("the added backup does not follow its primary"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns whether no member has more than one copy or one primary more than another.
fn is_even_status(status: &str, members: usize) -> bool {
    let json = status.find('{').map_or("", |start| &status[start..]);
    let Ok(status) = serde_json::from_str::<serde_json::Value>(json.trim_end()) else {
        return false;
    };
    let list = status["members"].as_array().cloned().unwrap_or_default();
    let counts = |of: &dyn Fn(&serde_json::Value) -> u64| {
        let counts: Vec<u64> = list.iter().map(of).collect();
        counts.iter().max().copied().unwrap_or(0) - counts.iter().min().copied().unwrap_or(0)
    };
    let primaries = |member: &serde_json::Value| member["primaries"].as_u64().unwrap_or(0);
    let total =
        |member: &serde_json::Value| primaries(member) + member["backups"].as_u64().unwrap_or(0);
    let copies: u64 = list.iter().map(total).sum();
    let buckets: u64 = list.iter().map(primaries).sum();
    list.len() == members && copies == 2 * buckets && counts(&primaries) <= 1 && counts(&total) <= 1
}

pub(super) fn text(reply: &[u8]) -> String {
    let text = String::from_utf8_lossy(reply).into_owned();
    match text.split_once("\r\n") {
        Some((header, rest)) if header.starts_with(['$', '=']) => rest.to_owned(),
        _ => text,
    }
}

/// Returns a file name that no earlier run has used.
fn fresh(name: &str) -> io::Result<String> {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_err(io::Error::other)?
        .as_nanos();
    Ok(format!("{nanos}-{name}"))
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Err(io::Error::other(format!("{command:?}: {said}")))
}
