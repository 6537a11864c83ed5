//! The any-port: a second listener for clients that know nothing of clusters. The node that they are
//! connected to forwards each command to the node that serves its key, and merges the answers of
//! commands with keys on several nodes.
//!
//! Every client has a thread and, as needed, connections to nodes of its own, so its state (its
//! protocol, its password, a transaction) is never mixed with another's. `pipeline.rs` decides which
//! command is sent when and where, and what the client is answered; it is pure. `session.rs` has the
//! sockets.

mod forwarded; //    A request on its way, and the merging of its answers.
mod framing; //      The end of a reply that streams through.
mod introduction; // The properties of a connection that every node must know.
mod pipeline; //     One client's requests and answers, without sockets.
mod plan; //         The way of a command.
mod routes; //       Nodes, slots and redirections.
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
    /// True if clients must show a password.
    fn wants_password(&self) -> bool;
    /// The most bytes of requests that are held unparsed.
    fn query_bytes_max(&self) -> u64;
}

/// The time between two looks of a waiting thread at the node's end.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The socket, before anybody is let in.
pub(crate) fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(addr)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Lets clients in until the node stops.
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

/// The time between two looks for new clients.
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
