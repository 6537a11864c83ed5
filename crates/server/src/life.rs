//! The next life of a process that was declared dead. The process keeps its tables, its id, its log and so its
//! vote, and joins again under a new boot id without restarting. It discards no data before another node is
//! known to have it. A life is another `Node`: the sockets of the previous one are closed, so clients reconnect.
//! `Node::next_life` makes a `Life`, `Node::start_again` begins it.

use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use cluster::consensus::Saved;
use cluster::map::{ClusterId, NodeId};
use settings::{JoinAddress, Settings, SidePort};

use crate::disk::SharedDirectory;
use crate::keep::Copies;
use crate::timers::Carried;

pub struct Life {
    pub(crate) node: NodeId,
    pub(crate) cluster: ClusterId,
    /// The host under which the other nodes know this one.
    pub(crate) host: String,
    /// Settings at the end of the last life, with the ports that the system assigned.
    pub(crate) settings: Settings,
    /// The log and vote, unless a data directory has them.
    pub(crate) saved: Saved,
    pub(crate) directory: Option<SharedDirectory>,
    pub(crate) copies: Option<Copies>,
    pub(crate) timers: Option<Carried>,
    /// True if the process asks for admission before it begins, because its log alone got no answer.
    pub(crate) asks_first: bool,
    /// Set by the caller to abandon the return.
    pub stop: Arc<AtomicBool>,
}

impl Life {
    /// Returns the known client addresses of the other nodes.
    pub fn others(&self) -> Vec<String> {
        self.settings.join.0.iter().map(|at| format!("{}:{}", at.host, at.port)).collect()
    }
}

/// The ports a node had.
pub(crate) struct OldPorts {
    pub client: u16,
    pub peer: u16,
    pub http: u16,
    pub replica: u16,
}

/// Returns the settings with the ports that the system assigned, and with `others` as the first addresses to
/// join.
pub(crate) fn with_assigned_ports(
    mut settings: Settings,
    ports: &OldPorts,
    others: Vec<JoinAddress>,
) -> Settings {
    if settings.effective_peer_port() == Some(0) {
        settings.peer_port = SidePort::At(ports.peer);
    }
    if settings.effective_http_port() == Some(0) {
        settings.http_port = SidePort::At(ports.http);
    }
    if settings.effective_replica_port() == Some(0) {
        settings.replica_port = SidePort::At(ports.replica);
    }
    if settings.port == 0 {
        settings.port = ports.client;
    }
    // These settings belong to the cluster, and may have changed since. What was given at start counted then.
    (settings.backups, settings.ack, settings.buckets) = (None, None, None);
    settings.given.clear();
    // The configured addresses may be of nodes long gone: try the known members first.
    let given = core::mem::take(&mut settings.join.0);
    settings.join.0 = others;
    for address in given {
        if !settings.join.0.contains(&address) {
            settings.join.0.push(address);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> JoinAddress {
        JoinAddress { host: "here".to_owned(), port }
    }

    #[test]
    fn a_node_comes_back_at_the_ports_it_had_and_asks_its_last_members_first() {
        let replica_port = SidePort::Offset;
        let mut settings = Settings { port: 0, replica_port, ..Settings::default() };
        settings.join.0 = vec![address(1), address(2)];
        let ports = OldPorts { client: 7001, peer: 7002, http: 7003, replica: 7004 };
        let settings = with_assigned_ports(settings, &ports, vec![address(2), address(3)]);
        assert_eq!(settings.port, 7001);
        assert_eq!(settings.effective_peer_port(), Some(7002));
        assert_eq!(settings.effective_http_port(), Some(7003));
        assert_eq!(settings.effective_replica_port(), Some(7004));
        assert_eq!(settings.join.0, [address(2), address(3), address(1)]);
    }
}
