//! A running node: its workers, its keeper, its HTTP surface. The binary starts one; tests may start
//! several in one process.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use arc_swap::ArcSwap;
use cluster::map::{Boot, Endpoints, Map, Member, NodeId, Zone};
use cluster::replication::Role;
use commands::Table;
use commands::cluster::View;
use commands::settings::{ExtraPort, Settings};
use parking_lot::Mutex;
use placement::Mask;
use store::Seed;

use crate::accept::listen;
use crate::any_port;
use crate::clients::Clients;
use crate::config::ConfigChanges;
use crate::data::{Data, Mover};
use crate::http::{self, HttpOptions, HttpServer};
use crate::keeper::Keeper;
use crate::keyspace::Keyspace;
use crate::memory::{MemoryGauge, MemoryProbe};
use crate::pause::Pauses;
use crate::pubsub::Exchange;
use crate::shared::{Counters, Shared};
use crate::system::raise_file_limit;
use crate::watching::Watching;
use crate::worker::{self, Worker};

/// Most I/O threads by default; beyond them, clients are served no faster.
const IO_THREADS_MAX: usize = 8;

pub struct NodeOptions {
    pub settings: Settings,
    pub memory: Arc<dyn MemoryProbe>,
    /// Where the settings came from, and where `CONFIG REWRITE` writes them.
    pub config_file: Option<PathBuf>,
}

/// The node did not start, and nothing is left behind: an address could not be had, or (named by the
/// client address) the system had no more threads.
#[derive(Debug)]
pub struct StartError {
    pub addr: SocketAddr,
    pub error: io::Error,
}

pub struct Node {
    shared: Arc<Shared>,
    client_addr: SocketAddr,
    http: Option<HttpServer>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Node {
    pub fn start(options: NodeOptions) -> Result<Node, StartError> {
        raise_file_limit();
        let settings = options.settings;
        let wanted = SocketAddr::new(settings.bind, settings.port);
        let failed = |error| StartError { addr: wanted, error };
        let listener = listen(wanted, settings.tcp_backlog).map_err(failed)?;
        let client_addr = listener.local_addr().map_err(failed)?;

        let count = io_threads(&settings);
        let prepared: io::Result<Vec<_>> = (0..count).map(|_| worker::prepare()).collect();
        let (polls, mailboxes): (Vec<_>, Vec<_>) = prepared.map_err(failed)?.into_iter().unzip();
        let (garbage, garbage_in) = mpsc::channel();
        let view = alone(&settings, client_addr);
        let (orders, orders_in) = mpsc::channel();
        let seed = Seed::new(RandomState::new().hash_one(client_addr));
        let table = Table::default();
        let shared = Arc::new(Shared {
            keyspace: Keyspace::new(Role::Serving),
            data: Data::new(view.me(), count, seed.clone(), orders),
            watching: Watching::new(count, &table),
            id: node_id(),
            table,
            clients: Clients::default(),
            pauses: Pauses::default(),
            config: ConfigChanges::default(),
            seed,
            memory: MemoryGauge::new(options.memory),
            exchange: Exchange::new(count),
            mailboxes,
            // One for each worker and one for the keeper.
            counters: (0..=count).map(|_| Counters::default()).collect(),
            connections: (0..count).map(|_| AtomicUsize::new(0)).collect(),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            next_client: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            expires_actively: AtomicBool::new(true),
            started: Instant::now(),
            garbage,
            client_addr,
            config_file: options.config_file,
            cluster: ArcSwap::from_pointee(view),
            settings: ArcSwap::from_pointee(settings),
        });
        let http = start_http(&shared)?;
        let node = Node { client_addr, http, threads: Mutex::default(), shared };
        let mut listener = Some(listener);
        for (number, poll) in polls.into_iter().enumerate() {
            let shared = Arc::clone(&node.shared);
            let listener = listener.take(); // The first worker's.
            node.spawn(&format!("io-{number}"), move || {
                Worker::new(number, &shared, poll).run(listener);
            })?;
        }
        let keeper = Keeper::new(Arc::clone(&node.shared), garbage_in);
        node.spawn("keeper", move || keeper.run())?;
        let mover = Mover::new(Arc::clone(&node.shared), orders_in);
        node.spawn("mover", move || mover.run())?;
        node.start_any_port()?;
        Ok(node)
    }

    pub fn client_addr(&self) -> SocketAddr {
        self.client_addr
    }

    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpServer::addr)
    }

    /// Asks all threads to end. Replies that are ready still go out.
    pub fn shutdown(&self) {
        self.shared.stop();
    }

    /// Waits until all threads have ended.
    pub fn wait(&self) {
        let threads = core::mem::take(&mut *self.threads.lock());
        for thread in threads {
            thread.join().expect("a thread of the node panicked");
        }
    }

    /// Opens the port for clients that know nothing of clusters, if it is wanted.
    fn start_any_port(&self) -> Result<(), StartError> {
        let settings = self.shared.settings.load();
        let ExtraPort::At(port) = settings.any_port else { return Ok(()) };
        let addr = SocketAddr::new(settings.bind, port);
        let listener = any_port::bind(addr).map_err(|error| StartError { addr, error })?;
        let shared = Arc::clone(&self.shared);
        self.spawn("any-port", move || any_port::run(&shared, &listener))
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|error| StartError { addr: self.client_addr, error })?;
        self.threads.lock().push(thread);
        Ok(())
    }
}

/// What a node sees that founds a cluster: itself.
fn alone(settings: &Settings, client_addr: SocketAddr) -> View {
    let chance = || RandomState::new().hash_one(client_addr).max(1);
    // One that listens on all addresses has none to tell; a client is told the one it has used.
    let bound = Some(client_addr.ip()).filter(|ip| !ip.is_unspecified());
    let advertised = settings.advertise.as_ref();
    let host = advertised.map(|to| to.host.clone()).or(bound.map(|ip| ip.to_string()));
    let at = Endpoints {
        host: host.unwrap_or_default(),
        client: advertised.and_then(|to| to.port).unwrap_or(client_addr.port()),
        peer: settings.effective_peer_port().unwrap_or(0),
        http: settings.effective_http_port().unwrap_or(0),
    };
    let me = Member {
        id: NodeId(chance()),
        boot: Boot(chance()),
        name: settings.name.clone(),
        weight: 1,
        zone: Zone::default(),
        at,
    };
    let id = me.id;
    View::new(Arc::new(Map::found(me, Mask::M00FF, cluster::map::Settings::default())), id)
}

/// An id that no other node has: forty hexadecimal digits of chance.
fn node_id() -> String {
    let digits = (0..3).map(|part: u8| format!("{:016x}", RandomState::new().hash_one(part)));
    digits.collect::<String>()[..40].to_owned()
}

fn io_threads(settings: &Settings) -> usize {
    match settings.io_threads {
        0 => thread::available_parallelism().map_or(1, |cores| cores.get().min(IO_THREADS_MAX)),
        count => usize::from(count),
    }
}

fn start_http(shared: &Arc<Shared>) -> Result<Option<HttpServer>, StartError> {
    let settings = shared.settings.load();
    let Some(port) = settings.effective_http_port() else { return Ok(None) };
    let addr = SocketAddr::new(settings.bind, port);
    let host_names = settings.advertise.iter().map(|advertise| advertise.host.clone()).collect();
    let options = HttpOptions { addr, host_names };
    let server = http::start(options, Arc::clone(shared) as Arc<dyn http::HttpSource>);
    server.map(Some).map_err(|error| StartError { addr, error })
}
