//! The node's figures, for INFO, MEMORY and CLUSTER.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use commands::{
    ClientFacts, ClientNumbers, CommandCounts, Facts, Identity, Kind, Memory, NodeFacts, Traffic,
};

use super::NodeHost;
use crate::shared::Shared;
use crate::system;

impl Facts for NodeHost<'_> {
    fn facts(&self) -> NodeFacts {
        NodeFacts {
            identity: self.identity(),
            uptime: self.shared.started.elapsed(),
            clients: client_numbers(self.shared, self.now),
            memory: self.memory(),
            machine_bytes: system::machine_bytes(),
            traffic: traffic(self.shared),
            keyspace: self.shared.data.keyspace.numbers(self.now),
            cpu: system::cpu_times(),
        }
    }

    fn identity(&self) -> Identity {
        let cluster = self.shared.data.view.load();
        let (host, port) = address(self.shared, self.card.local_address);
        Identity {
            id: self.shared.id.clone(),
            version: env!("CARGO_PKG_VERSION"),
            os: system::os_name(),
            process: std::process::id(),
            executable: path_text(std::env::current_exe().ok()),
            config_file: path_text(self.shared.config_file.clone()),
            host,
            port,
            peer_port: cluster.myself().map_or(0, |me| me.at.peer),
            io_threads: self.shared.mailboxes.len(),
        }
    }

    fn command_counts(&self) -> Vec<CommandCounts> {
        self.shared.watching.command_counts(&self.shared.table)
    }

    fn error_counts(&self) -> Vec<(String, u64)> {
        self.shared.watching.errors.all()
    }

    fn reset_statistics(&mut self) {
        self.shared.watching.reset(&self.shared.counters, &self.shared.table);
    }

    fn time(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

fn path_text(path: Option<std::path::PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// Returns the address where clients reach this node: the advertised one, or the one this client has used.
fn address(shared: &Shared, reached: SocketAddr) -> (String, u16) {
    let settings = shared.settings.load();
    match &settings.advertise {
        Some(advertise) => {
            let port = advertise.port.unwrap_or(shared.client_addr.port());
            (advertise.host.clone(), port)
        }
        None => (reached.ip().to_string(), shared.client_addr.port()),
    }
}

fn client_numbers(shared: &Shared, now: store::UnixMillis) -> ClientNumbers {
    let cards = shared.clients.all();
    let clients: Vec<ClientFacts> =
        cards.iter().map(|card| card.facts(now, &shared.table)).collect();
    let listens =
        |client: &&ClientFacts| client.channels + client.patterns + client.sharded_channels > 0;
    ClientNumbers {
        connected: clients.len(),
        max: u64::from(shared.settings.load().maxclients),
        pubsub: clients.iter().filter(listens).count(),
        input_bytes_max: clients.iter().map(|client| client.input_bytes).max().unwrap_or(0),
        output_bytes_max: clients.iter().map(|client| client.output_bytes).max().unwrap_or(0),
    }
}

fn traffic(shared: &Shared) -> Traffic {
    let sums = shared.watching.counters(&shared.counters);
    let rates = shared.watching.rates.per_second();
    Traffic {
        connections_accepted: sums.accepted,
        connections_rejected: sums.rejected,
        commands: sums.commands,
        commands_per_second: rates.commands,
        bytes_in: sums.bytes_in,
        bytes_out: sums.bytes_out,
        bytes_in_per_second: rates.bytes_in,
        bytes_out_per_second: rates.bytes_out,
        expired: sums.expired,
        evicted: sums.evicted,
        hits: sums.hits,
        misses: sums.misses,
        changes: shared.counters.total(|counters| &counters.changes),
        errors: shared.watching.errors.total(),
        channels: shared.exchange.names(Kind::Channel),
        patterns: shared.exchange.names(Kind::Pattern),
        sharded_channels: shared.exchange.names(Kind::ShardChannel),
    }
}
