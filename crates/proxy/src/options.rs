//! What a proxy is told when it starts.

use std::net::SocketAddr;
use std::time::Duration;

use fleet::Address;
use placement::ServerMap;

use crate::servers::Access;

#[derive(Clone, Debug)]
pub struct Options {
    pub listen: SocketAddr,
    /// Where the HTTP face listens; `None` for none.
    pub http: Option<SocketAddr>,
    /// The fleet's servers, in the order of the map.
    pub servers: Vec<Address>,
    /// Needed only for servers that belong to no fleet yet; must agree with the servers' otherwise.
    pub map: Option<ServerMap>,
    /// How to talk to the servers.
    pub access: Access,
    /// What clients must say to AUTH; `None` lets everybody in.
    pub password: Option<String>,
    pub threads: usize,
    pub limits: Limits,
}

impl Options {
    /// A proxy on this address before these servers, with all defaults.
    pub fn new(listen: SocketAddr, servers: Vec<Address>) -> Options {
        Options {
            listen,
            http: None,
            servers,
            map: None,
            access: Access::default(),
            password: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX),
            limits: Limits::default(),
        }
    }
}

/// More threads make more connections to every server, and rarely more speed.
const THREADS_MAX: usize = 4;

/// How much of everything there may be. Nothing a client or a server does makes us hold more.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub clients_max: usize,
    /// Requests of one client under way at once; beyond, it is not read.
    pub requests_per_client_max: usize,
    /// Answers one client leaves unread before it is not served further.
    pub unread_bytes_max: usize,
    /// Answers one client leaves unread before it is cut off.
    pub unread_bytes_hard_max: usize,
    /// Bytes one server does not take before commands for it are refused.
    pub unsent_bytes_max: usize,
    /// Bytes of one answer of a server.
    pub reply_bytes_max: usize,
    /// Requests that wait for a switch of maps or for a connection, a thread.
    pub parked_max: usize,
    /// How long a server may take to answer; then its connections are closed.
    pub server_silence_max: Duration,
    /// How long a request may wait for a switch of maps.
    pub parked_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients_max: 10_000,
            requests_per_client_max: 1_024,
            unread_bytes_max: 4 << 20,
            unread_bytes_hard_max: 1 << 30,
            unsent_bytes_max: 256 << 20,
            reply_bytes_max: 1 << 30,
            parked_max: 100_000,
            server_silence_max: Duration::from_secs(5),
            parked_time_max: Duration::from_secs(10),
        }
    }
}
