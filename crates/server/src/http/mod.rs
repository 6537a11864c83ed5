//! A node's HTTP surface: health checks, metrics and the console, on its own thread.
//!
//! Started by `Node::start`; the numbers come from an [`HttpSource`]. Nothing here is on the path of a command:
//! a slow or hostile HTTP client costs one of a bounded number of connections, and each of them has a time
//! limit.

mod routes; //  Start here: paths and their handlers.
mod guard; //   Host and Origin checks against requests not meant for this node.
mod door; //    Passwords and tokens.
mod body; //    Request bodies: read whole, in time, before any handler.
mod metrics; // The metrics, for Prometheus and for the page.
mod console; // The page that shows the cluster, and its API.
mod patient; // A socket with a timeout for stalled writes.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use cluster::status::Status;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use net::Guesses;
use settings::{HttpOpen, Secret};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tower_service::Service;

pub use console::{ConsoleSource, Sample};
pub use metrics::{
    ClassDurations, ClusterMetrics, CommandClass, LinkMetrics, MemoryMetrics, NodeMetrics,
    NodeReadiness,
};

use console::Console;
use patient::Patient;

/// Resource limits for one client and for all together.
#[derive(Clone, Copy)]
struct HttpLimits {
    /// Maximum number of connections. Further ones wait in the kernel's queue until one of these ends.
    connections: u32,
    /// Number of connections beyond these that are accepted for `/healthz` and `/readyz` only, so that a crowd does
    /// not make the node look dead.
    health_connections: u32,
    /// Timeout for a request's head, for the next request on a kept-alive connection, and for a request's body.
    head_within: Duration,
    /// The same once three quarters of the connections are taken, so that a client that holds many silent
    /// connections does not keep the others out.
    crowded_head_within: Duration,
    /// Maximum lifetime of a connection, even of a well-behaved one, so that no client holds one for ever by
    /// reading one byte a minute.
    connection_for: Duration,
    /// Timeout for a client to read some of the data that waits for it.
    take_within: Duration,
    /// Time for a connection to finish its current request when it is to close.
    close_within: Duration,
}

const LIMITS: HttpLimits = HttpLimits {
    connections: 512,
    health_connections: 32,
    head_within: Duration::from_secs(5),
    crowded_head_within: Duration::from_millis(500),
    connection_for: Duration::from_secs(120),
    take_within: Duration::from_secs(10),
    close_within: Duration::from_secs(2),
};

impl HttpLimits {
    /// Returns the timeout for heads and bodies on a new connection, given the number of free places.
    fn head_within(&self, places_left: usize) -> Duration {
        let is_crowded = places_left < self.connections as usize / 4;
        if is_crowded { self.crowded_head_within } else { self.head_within }
    }
}

/// Maximum size of a request's head: our own are a few hundred bytes, a browser's with cookies a few thousand.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// Pause after a failed accept, mostly for lack of file descriptors: retrying at once would spin.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Source of the node's metrics. Called on the HTTP thread, once per request.
pub trait HttpSource: ConsoleSource {
    fn metrics(&self) -> NodeMetrics;
    fn readiness(&self) -> NodeReadiness;
    /// Returns the password of the client port; empty if there is none.
    fn password(&self) -> Secret;
    /// Returns the routes under `/timers`.
    fn timers(&self) -> Router<Arc<dyn HttpSource>> {
        Router::new()
    }
    /// Returns the node's timer metrics, in the format of `/metrics`.
    fn timer_metrics(&self) -> String {
        String::new()
    }
    fn cluster(&self) -> Status;
    /// Returns metrics of the cluster, and command durations.
    fn cluster_metrics(&self) -> ClusterMetrics {
        ClusterMetrics::default()
    }
}

/// The listen address, host names and admin token.
pub struct HttpOptions {
    pub addr: SocketAddr,
    /// Host names besides `localhost` and addresses under which this node answers.
    pub host_names: Vec<String>,
    /// The token with which the console may operate the cluster; if empty, it may not.
    pub admin_token: Secret,
    /// The paths that need no password.
    pub open: HttpOpen,
    /// Wrong passwords and tokens of all ports.
    pub guesses: Arc<Guesses>,
    /// Maximum number of connections, for health checks and all else.
    pub connections_max: u32,
}

/// The sender of a request.
#[derive(Clone, Copy)]
struct HttpClient {
    address: IpAddr,
    /// Time limit for a request's body.
    body_within: Duration,
}

/// The running HTTP surface. Dropping it stops it.
pub struct HttpServer {
    addr: SocketAddr,
    stop: watch::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

/// Listens and serves. An error is from binding, or from starting the thread.
pub fn start(options: HttpOptions, source: Arc<dyn HttpSource>) -> io::Result<HttpServer> {
    let most = options.connections_max;
    let health_connections = LIMITS.health_connections.min(most.div_ceil(4)).max(1);
    let connections = LIMITS.connections.min(most.saturating_sub(health_connections)).max(1);
    start_within(HttpLimits { connections, health_connections, ..LIMITS }, options, source)
}

fn start_within(
    limits: HttpLimits,
    options: HttpOptions,
    source: Arc<dyn HttpSource>,
) -> io::Result<HttpServer> {
    let listener = std::net::TcpListener::bind(options.addr)?;
    listener.set_nonblocking(true)?;
    let addr = listener.local_addr()?;
    let runtime = crate::runtime::runtime()?;
    let (stop, stopped) = watch::channel(());
    let door = door::Door::new(Arc::clone(&source), options.admin_token, options.guesses);
    let door = Arc::new(door);
    let console = Console::new(Arc::clone(&source), Arc::clone(&door), stopped.clone());
    let names = guard::HostNames::new(options.host_names);
    let gates = routes::Gates { names, door, open: options.open };
    let router = routes::router(source, console, gates);
    let surface = Surface { router, limits, stopped };
    let serve = async move {
        surface.accept(TcpListener::from_std(listener)?).await;
        io::Result::Ok(())
    };
    let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        runtime.block_on(serve).expect("a bound listener joins the runtime");
    })?;
    Ok(HttpServer { addr, stop, thread: Some(thread) })
}

impl HttpServer {
    /// Returns the listen address; if port 0 was requested, with the port that the system picked.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops accepting, gives requests in flight a moment to finish, and ends the thread.
    pub fn shutdown(&mut self) {
        self.stop.send_replace(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // A panic there was reported where it happened.
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// State given to every connection.
#[derive(Clone)]
struct Surface {
    router: Router,
    limits: HttpLimits,
    stopped: watch::Receiver<()>,
}

/// A connection's place among the limited number of them.
struct Place {
    _permit: OwnedSemaphorePermit,
    /// True if all ordinary places are taken: only health checks are answered.
    is_for_health: bool,
}

/// Waits for a free place.
async fn free_place(ordinary: &Arc<Semaphore>, health: &Arc<Semaphore>) -> Place {
    let (permit, is_for_health) = tokio::select! {
        biased;
        permit = Arc::clone(ordinary).acquire_owned() => (permit, false),
        permit = Arc::clone(health).acquire_owned() => (permit, true),
    };
    Place { _permit: permit.expect("nobody closes the semaphore"), is_for_health }
}

impl Surface {
    async fn accept(mut self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(self.limits.connections as usize));
        let health = Arc::new(Semaphore::new(self.limits.health_connections as usize));
        loop {
            let accepted = async { (free_place(&places, &health).await, listener.accept().await) };
            let (mut place, stream) = tokio::select! {
                _ = self.stopped.changed() => break,
                (place, stream) = accepted => (place, stream),
            };
            match stream {
                Ok((stream, address)) => {
                    // An ordinary place may have become free while nobody connected.
                    if let (true, Ok(permit)) =
                        (place.is_for_health, Arc::clone(&places).try_acquire_owned())
                    {
                        place = Place { _permit: permit, is_for_health: false };
                    }
                    let body_within = self.limits.head_within(places.available_permits());
                    let client = HttpClient { address: address.ip(), body_within };
                    tokio::spawn(self.clone().connection(stream, client, place));
                }
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN_AFTER).await,
            }
        }
        drop(listener);
        // The connections have seen the same signal; every one that ends returns its permit.
        let all_ended = places.acquire_many(self.limits.connections);
        let _ = timeout(self.limits.close_within, all_ended).await;
    }

    /// Serves one connection until it ends, its time is up or the node stops.
    async fn connection(mut self, stream: TcpStream, client: HttpClient, place: Place) {
        let _ = stream.set_nodelay(true); // Affects only speed.
        let stream = Patient::new(stream, self.limits.take_within);
        let router = self.router;
        let is_for_health = place.is_for_health;
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(client);
            let is_refused = is_for_health && !routes::is_health(request.uri().path());
            let mut router = router.clone();
            async move { if is_refused { Ok(crowded()) } else { router.call(request).await } }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(!is_for_health)
            .header_read_timeout(client.body_within)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            // Any error on a connection ends it; there is no one to report it to.
            _ = serving.as_mut() => return,
            _ = self.stopped.changed() => {}
            () = tokio::time::sleep(self.limits.connection_for) => {}
        }
        serving.as_mut().graceful_shutdown();
        let _ = timeout(self.limits.close_within, serving).await;
    }
}

/// Refuses a request for which no ordinary place is free.
fn crowded() -> Response {
    let why = "too many connections to this port; try again\n";
    (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")], why).into_response()
}

#[cfg(test)]
mod tests;
