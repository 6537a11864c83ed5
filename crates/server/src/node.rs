//! A running node: its workers, its janitor, its HTTP server. The binary starts one; tests may start
//! several in one process.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use cluster::Moment;
use cluster::consensus::{Begin, Saved};
use cluster::control::{Answer, Gone, Input, KeptCopy, OperatorRequest};
use cluster::data::MoverInput;
use cluster::map::{ClusterId, Endpoints, LeaveWay, Map, Member};
use cluster::replication::Role;
use commands::cluster::View;
use commands::{ClientPort, Table};
use mio::net::TcpListener;
use net::Poller;
use parking_lot::Mutex;
use placement::Mask;
use settings::{ExtraPort, JoinAddress, Settings};
use store::{Garbage, Seed};

use crate::any_port;
use crate::clients::Clients;
use crate::cluster_view::ClusterView;
use crate::config::ConfigChanges;
use crate::counters::AllCounters;
use crate::data::{Data, run_mover};
use crate::data_plane::{hand_over_if_wanted, report_to};
use crate::descriptors::DescriptorShares;
use crate::enter::{Membership, NodeIdentity, Ports, Unheard, enter, identify, identify_again};
use crate::http::{self, HttpOptions, HttpServer};
use crate::janitor::Janitor;
use crate::keep::{self, Copies, KeptCopies};
use crate::keyspace::Keyspace;
use crate::life::{self, Life, OldPorts};
use crate::log;
use crate::mailbox::{Mail, Mailboxes};
use crate::memory::MemoryProbe;
use crate::merge::Merging;
use crate::pause::Pauses;
use crate::peer::{self, ControlHandle, DataPlane, PeerStart, Prepared, Running, StartupPhase};
use crate::pubsub::Exchange;
use crate::shared::Shared;
use crate::system::{default_name, file_limit, raise_file_limit};
use crate::timers;
use crate::watching::Watching;
use crate::worker::{self, Worker};

/// Default maximum number of I/O threads; more threads do not serve clients faster.
const IO_THREADS_MAX: usize = 8;
/// Interval at which a node that restarts from its log checks whether the others go on without it.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Time a process that was declared dead tries to return with its log alone, before it asks to be admitted.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for a decision that needs no other node.
const DECIDED_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for a new member to get the map and its links to all others.
const READY_WITHIN: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct NodeOptions {
    pub settings: Settings,
    pub memory: Arc<dyn MemoryProbe>,
    /// The file that the settings came from and that `CONFIG REWRITE` writes.
    pub config_file: Option<PathBuf>,
}

/// Reason why the node did not start. It leaves nothing behind.
#[derive(Debug)]
pub enum StartError {
    /// The address is not available, or (reported with the client address) the system has no more threads.
    Address { addr: SocketAddr, error: io::Error },
    /// The node could not enter a cluster; the reason is one line.
    Refused(String),
    /// The node started from its log, but its cluster has gone on without it: start it again.
    LeftBehind,
    /// While the node returned, another side of the cluster won: start over without the data it had.
    Yielded,
    /// A stop was requested while the node returned. With a data directory, its data is written there.
    Stopped,
}

pub struct Node {
    shared: Arc<Shared>,
    client_addr: SocketAddr,
    http: Option<HttpServer>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    peers: Mutex<Option<Running>>,
    timers: Mutex<Option<timers::Service>>,
    /// Timers that the next life of this process inherits.
    carried: Mutex<Option<timers::Carried>>,
    /// This process as a member, once it has taken its place in a cluster.
    place: Mutex<Option<(Member, ClusterId)>>,
    /// The log and vote of the control plane at its end.
    saved: Mutex<Option<Saved>>,
    /// Present if the process was a member in an earlier life; true once it is not to return any more.
    returning: Option<Arc<AtomicBool>>,
}

impl Node {
    /// Starts a node and returns when it serves: alone, or as a member with all its links.
    pub fn start(options: NodeOptions) -> Result<Node, StartError> {
        Node::start_with(options, &mut None)
    }

    /// Begins the next life of a process that was declared dead, with all its data. Returns when the node
    /// serves, however long that takes. After an error, `life` is unchanged. The settings are those in `life`.
    pub fn start_again(options: NodeOptions, life: Life) -> Result<Node, (StartError, Box<Life>)> {
        let mut life = Some(Box::new(life));
        let started = Node::start_with(options, &mut life);
        let kept = "`life` is consumed only by a successful start";
        started.map_err(|error| (error, life.expect(kept)))
    }

    fn start_with(
        mut options: NodeOptions,
        life: &mut Option<Box<Life>>,
    ) -> Result<Node, StartError> {
        fit_to_descriptors(&mut options.settings);
        // 1) Bind the ports first, so that nothing else is done if one is taken.
        if let Some(life) = life {
            options.settings = life.settings.clone();
        }
        let clients = bind(&options.settings, options.settings.port)?;
        if options.settings.name.is_empty() {
            options.settings.name = default_name(clients.address.port());
        }
        let settings = options.settings.clone();
        let others =
            settings.effective_peer_port().map(|port| bind(&settings, port)).transpose()?;
        let replicas =
            settings.effective_replica_port().map(|port| bind(&settings, port)).transpose()?;
        let client_addr = clients.address;
        let port_of = |bound: &Option<BoundListener>| bound.as_ref().map_or(0, BoundListener::port);
        let (peer, replica) = (port_of(&others), port_of(&replicas));
        let ports = Ports { client: client_addr.port(), peer, http: 0, replica };
        // 2) Identify this process.
        let failed = |error| StartError::Address { addr: client_addr, error };
        let identity = match life.as_deref() {
            Some(life) => identify_again(life, &settings, ports),
            None => identify(&settings, ports),
        };
        let mut identity = identity.map_err(StartError::Refused)?;
        let prepared = peer::prepare().map_err(failed)?;
        // 3) Start the threads; they serve no client yet.
        let control = prepared.control_handle.clone();
        let (node, parts) =
            Node::prepare(options, client_addr, &identity, life.as_deref(), control)?;
        identity.me.at.http = node.http_addr().map_or(0, |addr| addr.port());
        let copies = life.as_mut().and_then(|life| life.copies.take());
        let carried =
            copies.map(|copies| copies.give_to(&node.shared.data.keyspace, &node.shared.data.kept));
        let begun = node.begin(parts).and_then(|()| {
            // 4) Read the kept data and enter the cluster.
            let found = match carried {
                Some(found) => Some(found),
                None => node.read_kept(&identity).map_err(StartError::Refused)?,
            };
            let place = enter(identity, &settings).map_err(StartError::Refused)?;
            let offers = found.as_ref().map(keep::RestoredCopies::offers).unwrap_or_default();
            node.take_place(place, others.map(|bound| bound.listener), prepared, offers)?;
            node.bring_back(found.as_ref()).map_err(StartError::Refused)
        });
        if let Err(error) = begun {
            node.shutdown();
            node.wait();
            if matches!(error, StartError::Stopped) {
                node.save();
            }
            if let Some(life) = life {
                node.give_back(life, &error);
            }
            return Err(error);
        }
        // 5) Accept clients.
        *life = None;
        let acceptor = &node.shared.mailboxes[0];
        acceptor.send(Mail::Listen(clients.listener, ClientPort::Ordinary));
        if let Some(bound) = replicas {
            acceptor.send(Mail::Listen(bound.listener, ClientPort::Replica));
        }
        Ok(node)
    }

    /// Builds the state that all threads share, and starts HTTP, which reports "not ready" from now on.
    fn prepare(
        options: NodeOptions,
        client_addr: SocketAddr,
        identity: &NodeIdentity,
        life: Option<&Life>,
        control: ControlHandle,
    ) -> Result<(Node, NodeParts), StartError> {
        let settings = options.settings;
        let failed = |error| StartError::Address { addr: client_addr, error };
        let count = io_threads(&settings);
        let prepared: io::Result<Vec<_>> = (0..count).map(|_| worker::prepare()).collect();
        let (pollers, mailboxes): (Vec<_>, Vec<_>) = prepared.map_err(failed)?.into_iter().unzip();
        let mailboxes = Mailboxes::new(mailboxes);
        let (garbage, garbage_in) = mpsc::channel();
        let (mover, mover_inputs) = mpsc::channel();
        let carried = life.and_then(|life| life.timers.as_ref());
        let timers = timers::prepare(identity.me.peer(), &settings, control.clone(), carried);
        let timers = timers.map_err(failed)?;
        let table = Table::default();
        let watching = Watching::new(count, &table);
        let seed = seed(life, client_addr);
        let keyspace = Keyspace::new(Role::Absent, seed, options.memory, garbage);
        keyspace.memory.leave_out(Arc::clone(&timers.hub.bytes));
        let kept = KeptCopies::on(identity.directory.clone());
        let view = unentered(&identity.me);
        let shared = Arc::new(Shared {
            data: Data::new(identity.me.peer(), keyspace, kept, view, mailboxes.clone(), mover),
            watching,
            id: node_id(),
            table,
            clients: Clients::default(),
            pauses: Pauses::default(),
            config: ConfigChanges::default(),
            exchange: Exchange::new(count),
            mailboxes,
            counters: AllCounters::new(count),
            next_client: AtomicU64::new(1),
            expires_actively: AtomicBool::new(true),
            started: Instant::now(),
            client_addr,
            config_file: options.config_file,
            control,
            startup: Arc::default(),
            merging: Merging::default(),
            guesses: Arc::default(),
            cluster_view: ClusterView::default(),
            timers: Arc::clone(&timers.hub),
            settings: ArcSwap::from_pointee(settings),
        });
        let http = start_http(&shared)?;
        let timers = Mutex::new(Some(timers.start(client_addr).map_err(failed)?));
        let node = Node {
            shared,
            client_addr,
            http,
            threads: Mutex::default(),
            peers: Mutex::default(),
            timers,
            carried: Mutex::default(),
            place: Mutex::default(),
            saved: Mutex::default(),
            returning: life.map(|life| Arc::clone(&life.stop)),
        };
        Ok((node, NodeParts { pollers, garbage_in, mover_inputs }))
    }

    fn begin(&self, parts: NodeParts) -> Result<(), StartError> {
        let NodeParts { pollers, garbage_in, mover_inputs } = parts;
        for (number, poller) in pollers.into_iter().enumerate() {
            let shared = Arc::clone(&self.shared);
            self.spawn(&format!("io-{number}"), move || {
                Worker::new(number, &shared, poller).run();
            })?;
        }
        let janitor = Janitor::new(Arc::clone(&self.shared), garbage_in);
        self.spawn("janitor", move || janitor.run())?;
        let shared = Arc::clone(&self.shared);
        self.spawn("mover", move || {
            run_mover(&shared.data, &mover_inputs, || hand_over_if_wanted(&shared));
        })?;
        self.start_any_port()
    }

    /// Starts the control plane and waits until this node has the map and its links.
    fn take_place(
        &self,
        place: Membership,
        listener: Option<TcpListener>,
        prepared: Prepared,
        offers: Vec<KeptCopy>,
    ) -> Result<(), StartError> {
        let Membership { start, roster, directory, unheard } = place;
        *self.place.lock() = Some((start.me.clone(), start.cluster));
        if matches!(start.begin, Begin::Resume(_)) {
            // The log's entry about this node's membership is about an earlier process.
            self.shared.data.lease.set(Moment::START);
        }
        let secret = self.shared.settings.load().secret.clone();
        let startup = Arc::clone(&self.shared.startup);
        let beginning = PeerStart { start, roster, secret, directory, listener, startup };
        report_to(&self.shared.data, prepared.control_handle.clone());
        let data = Arc::clone(&self.shared) as Arc<dyn DataPlane>;
        let running = peer::start(prepared, beginning, data);
        let failed = |error| StartError::Address { addr: self.client_addr, error };
        let running = running.map_err(failed)?;
        self.shared.timers.link_with(running.link_maker());
        self.shared.merging.link_with(running.link_maker());
        *self.peers.lock() = Some(running);
        self.shared.control.tell(Input::Found(offers));
        self.wait_for_place(&unheard)
    }

    fn wait_for_place(&self, unheard: &Unheard) -> Result<(), StartError> {
        let begun = Instant::now();
        loop {
            let progress = self.shared.startup.wait(LOOK_AGAIN);
            let waits = match &progress {
                StartupPhase::Ready => {
                    self.shared.timers.wait_for_map();
                    return Ok(());
                }
                StartupPhase::Joining | StartupPhase::Linking { .. } | StartupPhase::Leaseless => {
                    self.returning.is_some() || begun.elapsed() < READY_WITHIN
                }
                // Admitted, and declared dead before it could serve.
                StartupPhase::Gone(Gone::Removed) => return Err(StartError::LeftBehind),
                StartupPhase::Gone(Gone::Yielded(_)) if self.returning.is_some() => {
                    return Err(StartError::Yielded);
                }
                // A restarted node may meet the other side of a split brain before it is ready. It has handed
                // over its writes: `wait` returns that at once, and the process starts over as at any time.
                StartupPhase::Gone(Gone::Yielded(_)) => return Ok(()),
                StartupPhase::Gone(_) => false,
            };
            if self.returning.as_ref().is_some_and(|stop| stop.load(Ordering::Acquire)) {
                return Err(StartError::Stopped);
            }
            // A process that was declared dead is no member at first, but it still has its vote.
            let may_look = self.returning.is_none() || begun.elapsed() > HEARD_WITHIN;
            if may_look && unheard.is_left_behind() {
                return Err(StartError::LeftBehind);
            }
            if !waits {
                let (seconds, words) = (begun.elapsed().as_secs(), progress.words());
                let line = format!("not ready after {seconds} s: {words}");
                return Err(StartError::Refused(line));
            }
        }
    }

    /// Reads the data this node held when it stopped. A read error is fatal only if no other node has the data.
    fn read_kept(&self, identity: &NodeIdentity) -> Result<Option<keep::RestoredCopies>, String> {
        let (settings, data) = (self.shared.settings.load(), &self.shared.data);
        match identity.while_loading(&settings, || data.kept.read(&data.keyspace)) {
            Ok(found) => Ok(found),
            Err(error) if identity.is_alone() => Err(error.to_string()),
            Err(error) => {
                let line =
                    format!("{error}; ignoring the saved items, the other nodes send a full copy");
                log::warn("data", &line);
                Ok(None)
            }
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns the name of this node in listings.
    pub fn name(&self) -> String {
        self.shared.settings.load().name.clone()
    }

    pub fn client_addr(&self) -> SocketAddr {
        self.client_addr
    }

    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpServer::addr)
    }

    /// Asks all threads to end. Replies that are ready are still sent.
    pub fn shutdown(&self) {
        self.shared.stop();
    }

    /// Makes the others take over everything this node holds, then stops; stops at once if there are none.
    pub fn leave(&self) {
        self.shared.control.ask(OperatorRequest::Leave(LeaveWay::Safe), |_| {});
    }

    /// Returns the number of nodes in the cluster, including this one.
    pub fn members(&self) -> usize {
        self.shared.map().members().len()
    }

    /// Returns the known client addresses of the other nodes. Nodes on another side of a split cluster come
    /// first.
    pub fn others(&self) -> Vec<String> {
        let all = self.endpoints_of_others().into_iter();
        all.map(|at| format!("{}:{}", at.host, at.client)).collect()
    }

    fn endpoints_of_others(&self) -> Vec<Endpoints> {
        let map = self.shared.map();
        let others = map.members().iter().filter(|member| member.id != self.shared.data.me);
        let others = others.map(|member| member.at.clone());
        self.shared.merging.other_sides(&map).into_iter().chain(others).collect()
    }

    /// Waits until all threads have ended. Returns the reason unless [`Node::shutdown`] ended them.
    pub fn wait(&self) -> Option<Gone> {
        let threads = core::mem::take(&mut *self.threads.lock());
        for thread in threads {
            thread.join().expect("a thread of the node panicked");
        }
        if let Some(mut peers) = self.peers.lock().take() {
            peers.stop();
            *self.saved.lock() = peers.wait();
        }
        let gone = match self.shared.startup.progress() {
            StartupPhase::Gone(gone) => Some(gone),
            StartupPhase::Joining
            | StartupPhase::Linking { .. }
            | StartupPhase::Leaseless
            | StartupPhase::Ready => None,
        };
        if let Some(timers) = self.timers.lock().take() {
            match &gone {
                Some(Gone::Removed | Gone::Yielded(_)) => {
                    *self.carried.lock() = timers.start_over();
                }
                None if self.returning.is_some() => *self.carried.lock() = timers.start_over(),
                Some(Gone::Left | Gone::LeftFor(_) | Gone::LeftAsTheLast | Gone::Refused(_))
                | None => timers.stop(),
            }
        }
        let gone = gone?;
        match gone {
            // No other node has the data, or this node will return.
            Gone::LeftAsTheLast | Gone::LeftFor(_) => self.save(),
            Gone::Yielded(_) => self.shared.data.kept.begin_anew(),
            // A node that was declared dead keeps everything in memory: `next_life`.
            Gone::Removed | Gone::Left | Gone::Refused(_) => {}
        }
        Some(gone)
    }

    /// Takes all state out of a node that was declared dead, for [`Node::start_again`]. Call it once, after
    /// [`Node::wait`]. Drop the node before the next life begins, because it owns the ports.
    pub fn next_life(&self) -> Option<Life> {
        let (me, cluster) = self.place.lock().clone()?;
        let saved = self.saved.lock().take()?;
        let http = self.http_addr().map_or(0, |addr| addr.port());
        let Endpoints { peer, replica, .. } = me.at;
        let ports = OldPorts { client: self.client_addr.port(), peer, http, replica };
        let settings = Settings::clone(&self.shared.settings.load());
        let address = |at: Endpoints| JoinAddress { host: at.host, port: at.client };
        let others = self.endpoints_of_others().into_iter().map(address).collect();
        Some(Life {
            node: me.id,
            cluster,
            host: me.at.host,
            settings: life::with_assigned_ports(settings, &ports, others),
            saved,
            directory: self.shared.data.kept.directory(),
            copies: Some(self.take_copies()),
            timers: self.carried.lock().take(),
            asks_first: false,
            stop: Arc::default(),
        })
    }

    fn take_copies(&self) -> Copies {
        let data = &self.shared.data;
        Copies::take(&data.keyspace, &data.kept, &data.map())
    }

    /// Saves the items to the data directory, if there is one. Called when no thread runs any more.
    fn save(&self) {
        let data = &self.shared.data;
        data.kept.save(&data.keyspace, &data.map());
    }

    /// Restores lost buckets if this node is alone. An error is one line.
    fn bring_back(&self, found: Option<&keep::RestoredCopies>) -> Result<(), String> {
        let data = &self.shared.data;
        let Some(from) = data.kept.source_of_lost(&data.map(), found) else { return Ok(()) };
        let recreate = OperatorRequest::Recreate(from);
        match self.shared.control.ask_and_wait(recreate, DECIDED_WITHIN) {
            Some(Answer::Done) => Ok(()),
            Some(Answer::Refused(why) | Answer::Unknown(why)) => Err(why),
            Some(Answer::Join(_)) | None => {
                Err("no decision on the saved items within 10 s: the map did not change".to_owned())
            }
        }
    }

    /// Puts all state back into a life that could not begin.
    fn give_back(&self, life: &mut Life, error: &StartError) {
        life.copies = Some(self.take_copies());
        life.timers = self.carried.lock().take();
        if let Some(saved) = self.saved.lock().take() {
            (life.node, life.saved) = (self.shared.data.me, saved);
        }
        life.asks_first = matches!(error, StartError::LeftBehind) && !life.asks_first;
    }

    /// Returns the environment variable (name and value) that a process passes to itself when it starts over.
    pub fn carried(&self) -> Option<(&'static str, String)> {
        self.carried.lock().as_ref().map(|carried| (timers::CARRIED, carried.name()))
    }

    /// Opens the port for clients without cluster support, if it is configured.
    fn start_any_port(&self) -> Result<(), StartError> {
        let settings = self.shared.settings.load();
        let ExtraPort::At(port) = settings.any_port else { return Ok(()) };
        let addr = SocketAddr::new(settings.bind, port);
        let listener = any_port::bind(addr).map_err(|error| StartError::Address { addr, error })?;
        let shared = Arc::clone(&self.shared);
        self.spawn("any-port", move || any_port::run(&shared, &listener))
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
        let failed = |error| StartError::Address { addr: self.client_addr, error };
        let thread = thread.map_err(failed)?;
        self.threads.lock().push(thread);
        Ok(())
    }
}

/// Inputs of the threads, consumed when they start.
struct NodeParts {
    pollers: Vec<Poller>,
    garbage_in: mpsc::Receiver<Garbage>,
    mover_inputs: mpsc::Receiver<MoverInput>,
}

/// A listening socket and its address.
struct BoundListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl BoundListener {
    fn port(&self) -> u16 {
        self.address.port()
    }
}

fn bind(settings: &Settings, port: u16) -> Result<BoundListener, StartError> {
    let addr = SocketAddr::new(settings.bind, port);
    let failed = |error| StartError::Address { addr, error };
    let listener = net::listen(addr, settings.tcp_backlog).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(BoundListener { listener, address })
}

/// Returns the seed; tables of an earlier life are hashed with that life's seed.
fn seed(life: Option<&Life>, client_addr: SocketAddr) -> Seed {
    let inherited = life.and_then(|life| life.copies.as_ref()).map(|copies| copies.seed.clone());
    inherited.unwrap_or_else(|| Seed::new(RandomState::new().hash_one(client_addr)))
}

/// Returns the view of a node that has no map yet; no client is served with it.
fn unentered(me: &Member) -> View {
    let map = Map::found(me.clone(), Mask::M000F, cluster::map::ClusterSettings::default());
    View::new(Arc::new(map), me.id)
}

/// Returns a unique id for this node: forty random hexadecimal digits.
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
    let addr = SocketAddr::new(settings.effective_http_bind(), port);
    let advertised = settings.advertise.iter().map(|advertise| advertise.host.clone());
    let allowed = settings.http_allowed_hosts.0.iter().cloned();
    let options = HttpOptions {
        addr,
        host_names: advertised.chain(allowed).collect(),
        admin_token: settings.admin_token.clone(),
        open: settings.http_open,
        guesses: Arc::clone(&shared.guesses),
        connections_max: DescriptorShares::of(file_limit(), &settings).http,
    };
    let server = http::start(options, Arc::clone(shared) as Arc<dyn http::HttpSource>);
    server.map(Some).map_err(|error| StartError::Address { addr, error })
}

/// Raises the limit of open files, and lowers the settings that it does not allow.
fn fit_to_descriptors(settings: &mut Settings) {
    raise_file_limit();
    let shares = DescriptorShares::of(file_limit(), settings);
    if let Some(line) = shares.fit(settings) {
        log::warn("start", &line);
    }
}
