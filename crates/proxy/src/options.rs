//! Options of a proxy.

use std::net::SocketAddr;
use std::time::Duration;

use fleet::Address;
use placement::ServerMap;

use crate::servers::Access;

#[derive(Clone, Debug)]
pub struct Options {
    pub listen: SocketAddr,
    /// Address of the HTTP interface; `None` for none.
    pub http: Option<SocketAddr>,
    /// The fleet's servers, in the order of the map.
    pub servers: Vec<Address>,
    /// Needed only for servers that belong to no fleet yet; otherwise it must match the servers' map.
    pub map: Option<ServerMap>,
    /// Credentials and TLS for the connections to the servers.
    pub access: Access,
    /// Password that clients must send with AUTH; `None` accepts everybody.
    pub password: Option<String>,
    pub threads: usize,
    pub limits: Limits,
}

impl Options {
    /// Returns the options of a proxy on this address in front of these servers, with all defaults.
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

/// Maximum default number of threads. More threads open more connections to every server, and rarely add speed.
const THREADS_MAX: usize = 4;

/// Limits on resources. No behaviour of a client or a server makes the proxy hold more.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub clients_max: usize,
    /// Maximum requests of one client in flight; beyond, the client is not read.
    pub requests_per_client_max: usize,
    /// Unread answer bytes of one client beyond which it is not served further.
    pub unread_bytes_max: usize,
    /// Unread answer bytes of one client beyond which it is disconnected.
    pub unread_bytes_hard_max: usize,
    /// Unsent bytes for one server beyond which commands for it are refused.
    pub unsent_bytes_max: usize,
    /// Maximum size of one answer of a server.
    pub reply_bytes_max: usize,
    /// Maximum requests per thread that wait for a switch of maps or for a connection.
    pub parked_max: usize,
    /// Maximum time for a server to answer; after that its connections are closed.
    pub server_silence_max: Duration,
    /// Maximum time a request waits for a switch of maps.
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
