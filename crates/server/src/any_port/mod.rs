//! The any-port: a second listener for clients that know nothing of clusters. Whatever node they are
//! connected to forwards each command to the node that serves its key, and puts the answers of
//! commands with keys on several nodes together.
//!
//! Every client has a thread and, as needed, a connection to each node, so its state (its protocol,
//! its password, a transaction) is never mixed with another's. `plan.rs` decides, `session.rs` carries
//! out, `upstream.rs` is a connection to a node.
mod plan; //     What becomes of a command.
mod session; //  One client.
mod upstream; // A connection to a node, on a client's behalf.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use session::Session;

use crate::shared::Shared;

/// How often a thread that waits looks whether the node stops.
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
            if let Ok(session) = Session::new(&shared, stream) {
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

/// How often new clients are looked for.
const ACCEPT_EVERY: Duration = Duration::from_millis(5);
