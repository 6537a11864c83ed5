//! The any-port: a second listener for clients without cluster support. The node they are connected to forwards
//! each command to the node that serves its key, and merges the replies of commands with keys on several nodes.
//!
//! Every client has a thread and, as needed, its own connections to nodes, so its state (its protocol, its
//! password, a transaction) is never mixed with another's. `pipeline.rs` decides when and to which node each
//! command is sent, and the reply to the client; it is pure. `session.rs` has the sockets.

mod forwarded; //    A request in flight, and the merging of its replies.
mod framing; //      The end of a reply that streams through.
mod introduction; // Connection properties that every node must know.
mod pipeline; //     One client's requests and replies, without sockets.
mod plan; //         The route of a command.
mod routes; //       Nodes, slots and redirects.
mod session; //      One client's sockets.
#[cfg(test)]
mod tests;
mod upstream; //     A connection to a node, without its socket.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use commands::Table;
use placement::Slot;

use routes::{NodeAddress, Routes};
use session::Session;

use crate::shared::Shared;

/// The node that a session belongs to.
trait Home: Routes {
    fn table(&self) -> &Table;
    fn is_stopping(&self) -> bool;
    /// Returns true if clients must authenticate.
    fn wants_password(&self) -> bool;
    /// Returns the maximum number of unparsed request bytes.
    fn query_bytes_max(&self) -> u64;
}

/// Interval at which a waiting thread checks whether the node stops.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Binds the socket, before any client is accepted.
pub(crate) fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(addr)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts clients until the node stops.
pub(crate) fn run(shared: &Arc<Shared>, listener: &TcpListener) {
    let clients = Arc::new(AtomicUsize::new(0));
    while !shared.is_stopping() {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) => {
                thread::sleep(ACCEPT_EVERY);
                continue;
            }
        };
        let max = shared.settings.load().maxclients as usize;
        if clients.load(Ordering::Relaxed) >= max {
            let mut stream = stream;
            let _ = stream.write(b"-ERR max number of clients reached\r\n");
            continue;
        }
        clients.fetch_add(1, Ordering::Relaxed);
        let (shared, counted) = (Arc::clone(shared), Arc::clone(&clients));
        let serve = move || {
            if let Ok(session) = Session::new(&*shared, stream) {
                session.run();
            }
            counted.fetch_sub(1, Ordering::Relaxed);
        };
        let started = thread::Builder::new().name("any".to_owned()).spawn(serve);
        if started.is_err() {
            clients.fetch_sub(1, Ordering::Relaxed); // No more threads: the client is closed.
        }
    }
}

/// Interval between checks for new clients.
const ACCEPT_EVERY: Duration = Duration::from_millis(5);

impl Routes for Shared {
    fn here(&self) -> NodeAddress {
        let (ip, port) = (self.client_addr.ip(), self.client_addr.port());
        let host = if ip.is_unspecified() { "127.0.0.1".to_owned() } else { ip.to_string() };
        NodeAddress { host, port }
    }

    fn node_of(&self, slot: Slot) -> NodeAddress {
        let map = self.map();
        let primary = map.bucket_of(slot).primary().filter(|primary| *primary != self.data.me);
        let member = primary.and_then(|primary| map.member(primary));
        member.map_or_else(
            || self.here(),
            |member| NodeAddress { host: member.at.host.clone(), port: member.at.client },
        )
    }
}

impl Home for Shared {
    fn table(&self) -> &Table {
        &self.table
    }

    fn is_stopping(&self) -> bool {
        Shared::is_stopping(self)
    }

    fn wants_password(&self) -> bool {
        !self.settings.load().requirepass.is_empty()
    }

    fn query_bytes_max(&self) -> u64 {
        self.settings.load().client_query_buffer_limit
    }
}
