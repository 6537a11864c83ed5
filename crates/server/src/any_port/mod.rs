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

pub(crate) use routes::{NodeAddress, Routes};
use session::AnyPortSession;

/// The node that a session belongs to.
pub(crate) trait Home: Routes {
    fn table(&self) -> &Table;
    fn is_stopping(&self) -> bool;
    /// Returns true if clients must authenticate.
    fn wants_password(&self) -> bool;
    /// Returns the maximum number of clients of this port.
    fn clients_max(&self) -> usize;
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
pub(crate) fn run<H>(home: &Arc<H>, listener: &TcpListener)
where
    H: Home + Send + Sync + 'static,
{
    let clients = Arc::new(AtomicUsize::new(0));
    while !home.is_stopping() {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) => {
                thread::sleep(ACCEPT_EVERY);
                continue;
            }
        };
        if clients.load(Ordering::Relaxed) >= home.clients_max() {
            let mut stream = stream;
            let _ = stream.write(b"-ERR max number of clients reached\r\n");
            continue;
        }
        clients.fetch_add(1, Ordering::Relaxed);
        let (home, counted) = (Arc::clone(home), Arc::clone(&clients));
        let serve = move || {
            if let Ok(session) = AnyPortSession::new(&*home, stream) {
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
