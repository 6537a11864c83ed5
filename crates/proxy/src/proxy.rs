//! Starts and stops the threads of a proxy: one that watches the map, and some that serve clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread::JoinHandle;

use arc_swap::ArcSwap;
use fleet::{Config, View};
use parking_lot::Mutex;

use crate::http::{Behind, Http};
use crate::options::Options;
use crate::servers::resolve;
use crate::shared::{Counts, Fleet, Known, Shared};
use crate::start::{StartError, look_at_servers};
use crate::watcher::Watcher;
use crate::worker::{self, Worker};

/// Number of connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// A running proxy. It stops when it is dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
    http: Option<Http>,
    notes: Vec<String>,
}

impl Proxy {
    /// Checks the servers, makes them a fleet if they are none yet, and starts to serve clients.
    pub fn start(options: Options) -> Result<Proxy, StartError> {
        let found = look_at_servers(&options)?;
        let listener = net::listen(options.listen, BACKLOG).map_err(|error| {
            StartError::Listen { address: options.listen, why: error.to_string() }
        })?;
        let address = listener.local_addr().map_err(|error| StartError::system(&error))?;
        let mut pollers = Vec::new();
        let mut mailboxes = Vec::new();
        for _ in 0..options.threads.max(1) {
            let (poller, mailbox) =
                worker::prepare().map_err(|error| StartError::system(&error))?;
            pollers.push(poller);
            mailboxes.push(mailbox);
        }
        let workers = pollers.len();
        let counters = || (0..workers).map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(Shared {
            id: identity().map_err(|error| StartError::system(&error))?,
            fleet: ArcSwap::from_pointee(fleet_of(found.config.clone())),
            mailboxes,
            stopping: AtomicBool::new(false),
            clients: AtomicUsize::new(0),
            loads: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            next_client: AtomicU64::new(1),
            commands: counters(),
            next_token: AtomicU64::new(1),
            counts: Counts::default(),
            guesses: Default::default(),
            look_again: Mutex::new(None),
            options,
        });
        let mut proxy =
            Proxy { shared, address, threads: Vec::new(), http: None, notes: found.notes };
        let watcher = Watcher::new(Arc::clone(&proxy.shared), found.config);
        proxy.spawn("fleet-watcher".to_owned(), move || watcher.run())?;
        let mut listener = Some(listener);
        for (number, poller) in pollers.into_iter().enumerate() {
            let (shared, listener) = (Arc::clone(&proxy.shared), listener.take());
            proxy.spawn(format!("fleet-{number}"), move || {
                Worker::new(number, &shared, poller).run(listener);
            })?;
        }
        proxy.start_http()?;
        Ok(proxy)
    }

    fn start_http(&mut self) -> Result<(), StartError> {
        let options = &self.shared.options;
        let Some(address) = options.http else { return Ok(()) };
        let behind = Behind { proxy: self.address, shared: Arc::clone(&self.shared) };
        let http = Http::start(address, behind);
        let failed = |error: io::Error| StartError::Listen { address, why: error.to_string() };
        self.http = Some(http.map_err(failed)?);
        Ok(())
    }

    fn spawn(
        &mut self,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        let thread = std::thread::Builder::new().name(name).spawn(run);
        self.threads.push(thread.map_err(|error| StartError::system(&error))?);
        Ok(())
    }

    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the HTTP interface, if there is one.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::address)
    }

    /// Returns what the operator should know although it does not prevent the start.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the servers' configuration as of the last read.
    pub fn config(&self) -> Config {
        self.shared.fleet.load().config.clone()
    }

    /// Stops the proxy, and waits until all its threads have ended.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.http.take());
        self.shared.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // A thread that panicked has reported it already.
        }
    }
}

fn fleet_of(config: Config) -> Fleet {
    let known = |address: &fleet::Address| Known {
        address: address.clone(),
        socket: resolve(address).ok(),
    };
    let servers = config.servers.iter().map(known).collect();
    Fleet { view: View::of(&config), servers, config, trouble: None }
}

/// Returns a unique identity of sixteen hexadecimal digits.
fn identity() -> io::Result<String> {
    use std::io::Read;
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
