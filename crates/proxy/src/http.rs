//! The proxy's small HTTP interface: `GET|PUT|DELETE /keys/KEY` and the endpoints for an operator's tools
//! (`metrics.rs`), on a thread of its own.
//!
//! Each request on a key becomes a command to our own port (`inside.rs`), so that it takes the same path as
//! every other: to the right server, by the rules for moving keys. `keys.rs` interprets requests, `guard.rs`
//! decides which ones to accept.

mod guard;
mod inside;
mod keys;
mod metrics;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use self::inside::Inside;
use crate::shared::Shared;

/// Maximum number of connections. More wait in the kernel's queue until one of these ends.
const CONNECTIONS_MAX: usize = 128;
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Maximum lifetime of a connection, even of a well-behaved one.
const CONNECTION_FOR: Duration = Duration::from_secs(120);
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Pause after a failed accept, mostly for lack of file descriptors: an immediate retry would spin.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The running HTTP interface. Dropping it stops it.
pub(crate) struct Http {
    address: SocketAddr,
    stop: watch::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

/// The proxy behind the HTTP interface.
pub(crate) struct Behind {
    /// Address on which the proxy itself listens.
    pub proxy: SocketAddr,
    pub shared: Arc<Shared>,
}

impl Http {
    pub(crate) fn start(address: SocketAddr, behind: Behind) -> io::Result<Http> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(());
        let serve = async move {
            let inside = Inside::new(reachable(behind.proxy), behind.shared);
            accept(TcpListener::from_std(listener)?, Arc::new(inside), stopped).await;
            io::Result::Ok(())
        };
        let run = move || runtime.block_on(serve).expect("a bound listener joins the runtime");
        let thread = std::thread::Builder::new().name("fleet-http".to_owned()).spawn(run)?;
        Ok(Http { address, stop, thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.stop.send_replace(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // A panic there was reported where it happened.
        }
    }
}

/// Returns an address that can be connected to: the loopback address for one that listens on every address.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            address.set_ip(Ipv6Addr::LOCALHOST.into());
        }
        SocketAddr::V4(_) | SocketAddr::V6(_) => {}
    }
    address
}

async fn accept(listener: TcpListener, inside: Arc<Inside>, mut stopped: watch::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let accepted = async { (place.await, listener.accept().await) };
        let (place, stream) = tokio::select! {
            _ = stopped.changed() => return,
            (place, stream) = accepted => (place.expect("nobody closes the semaphore"), stream),
        };
        match stream {
            Ok((stream, from)) => {
                tokio::spawn(serve(stream, from.ip(), Arc::clone(&inside), place));
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN_AFTER).await,
        }
    }
}

/// Serves one connection until it ends or reaches its maximum lifetime.
async fn serve(stream: TcpStream, from: IpAddr, inside: Arc<Inside>, _place: OwnedSemaphorePermit) {
    let _ = stream.set_nodelay(true); // Only speed depends on it.
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(
            TokioIo::new(stream),
            TowerToHyperService::new(keys::router(inside, from)),
        );
    // Any error on a connection ends it; there is nobody else to inform.
    let _ = tokio::time::timeout(CONNECTION_FOR, serving).await;
}
