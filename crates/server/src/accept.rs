//! New connections. The first worker accepts them (`net::Acceptor`) and distributes them among the workers.

use std::net::SocketAddr;

use commands::ClientPort;
use net::Stream;

/// A connection on its way to its worker.
pub(crate) struct Accepted {
    pub id: u64,
    pub stream: Stream,
    pub address: SocketAddr,
    pub port: ClientPort,
}
