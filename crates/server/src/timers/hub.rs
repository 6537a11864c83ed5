//! The timers core behind its lock: all inputs to it come through here.
//!
//! Called by HTTP handlers, by the control thread (maps, leases) and by `service.rs`. Nothing in here blocks:
//! messages, callbacks and answers are passed on to their senders.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::Moment;
use cluster::map::{Endpoints, Map, Peer};
use parking_lot::{Mutex, RwLock};
use settings::{ExtraPort, Secret, Settings};
use timers::{
    AllowRules, Call, MembersEpoch, MonotonicMillis, Now, Parted, RequestId, Stats, TimerAction,
    TimerAnswer, TimerInput, TimerMember, TimerMessage, TimerRequest, TimerSettings, Timers,
};
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::sync::oneshot;

use super::keep::{self, FoundFile, TimerFiles};
use crate::clock;
use crate::data::boottime;
use crate::peer::{ControlHandle, LinkMaker, draw_number};

/// Maximum number of messages to one node that wait for its link. An excess message is lost, as when a link
/// breaks: a sender that waits for an answer retries.
pub(super) const QUEUE_MAX: usize = 10_000;

/// Maximum sleep of the thread when nothing is due.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// Maximum wait for the timers to get the map; after that the node accepts clients without them.
const MAP_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AT_HANDS_EVERY: Duration = Duration::from_millis(50);

/// A message that waits for its link.
pub(super) struct QueuedMessage {
    pub(super) since: Instant,
    pub(super) message: TimerMessage,
}

/// Work for the thread of `service.rs`.
pub(super) enum Work {
    /// Something is due before the thread would wake.
    Wake,
    Call(Call),
    Map(Arc<Map>),
    Lease(MonotonicMillis),
    /// The means to open links to other nodes.
    Links(LinkMaker),
    /// Another node has opened a link to this one.
    Accepted(Peer, TcpStream),
    Stop,
}

pub(crate) struct Hub {
    me: Peer,
    /// Channel to the control thread: reports that this node may not leave yet, and client demand.
    control: ControlHandle,
    inner: Mutex<HubState>,
    pub(super) work: UnboundedSender<Work>,
    pub(super) rules: RwLock<AllowRules>,
    /// The files for timers while no node runs.
    pub(super) files: Option<TimerFiles>,
    /// The password for the client port, which commands of timers need, too.
    password: RwLock<Secret>,
    /// This node's any-port, which is not in the map.
    any_port: Option<SocketAddr>,
    /// The memory of this node's timers.
    pub(crate) bytes: Arc<AtomicU64>,
}

struct HubState {
    core: Timers,
    /// Clients that wait for an answer.
    waiting: BTreeMap<RequestId, oneshot::Sender<TimerAnswer>>,
    last_request: u64,
    /// Queues to the other nodes' links.
    queues: BTreeMap<timers::TimerPeer, Sender<QueuedMessage>>,
    /// Time until which the thread sleeps, unless something wakes it.
    sleeps_until: Option<MonotonicMillis>,
    /// The last map basis given to the core.
    basis: u64,
    /// Number of members in that map; below, its generation counter.
    members: usize,
    beginnings: u64,
    /// The point at which this node took over alone, if it did.
    parted: Option<Parted>,
    /// The files found at the start, until this node is a member; then `None`.
    found: Option<Vec<FoundFile>>,
    /// Set while this node leaves: the last state reported to the control thread.
    leaving: Option<Hands>,
}

/// State of a leaving node: `Full` while it has timers that no other node has taken over yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hands {
    Full,
    Empty,
}

pub(super) fn now() -> Now {
    Now::at(boottime::now().clock_reading(), clock::now().0)
}

/// Returns a time on the clock of leases as timers count it.
fn to_millis(moment: Moment) -> MonotonicMillis {
    MonotonicMillis(u64::try_from(moment.clock_reading().as_millis()).unwrap_or(u64::MAX))
}

impl Hub {
    pub(super) fn new(
        me: Peer,
        work: UnboundedSender<Work>,
        settings: &Settings,
        control: ControlHandle,
    ) -> Hub {
        let limits =
            TimerSettings { bytes_max: settings.timer_bytes_max(), ..TimerSettings::default() };
        let core = Timers::new(timer_peer(me), draw_number(), now(), limits);
        let inner = HubState {
            core,
            waiting: BTreeMap::new(),
            last_request: 0,
            queues: BTreeMap::new(),
            sleeps_until: None,
            basis: 0,
            members: 0,
            beginnings: 0,
            parted: None,
            found: Some(Vec::new()),
            leaving: None,
        };
        let files = settings.data_dir.as_deref().map(TimerFiles::within);
        let password = RwLock::new(settings.requirepass.clone());
        let rules = RwLock::new(settings.callback_rules());
        let (inner, bytes) = (Mutex::new(inner), Arc::default());
        let any_port = match settings.any_port {
            ExtraPort::At(port) => Some(SocketAddr::new(settings.bind, port)),
            ExtraPort::Off => None,
        };
        Hub { me, inner, work, control, rules, files, password, any_port, bytes }
    }

    /// Passes an input to the core, and carries out the resulting actions.
    pub(super) fn input(&self, input: TimerInput) {
        let mut inner = self.inner.lock();
        self.handle(&mut inner, input);
    }

    fn handle(&self, inner: &mut HubState, input: TimerInput) {
        let mut actions = Vec::new();
        inner.core.handle(now(), input, &mut actions);
        for action in actions {
            match action {
                TimerAction::Send { to, message } => {
                    if let Some(queue) = inner.queues.get(&to) {
                        // If the queue is full, the message is lost and requested again.
                        let _ = queue.try_send(QueuedMessage { since: Instant::now(), message });
                    }
                }
                TimerAction::Answer { request, answer } => {
                    if let Some(waiting) = inner.waiting.remove(&request) {
                        let _ = waiting.send(answer); // The client may have disconnected.
                    }
                }
                TimerAction::Call(call) => self.do_later(Work::Call(call)),
                TimerAction::ClientDemand => {
                    self.control.tell(cluster::control::Input::ClientDemand);
                }
            }
        }
        self.bytes.store(inner.core.bytes(), Relaxed);
        let due = inner.core.next_wake();
        if due.is_some_and(|due| inner.sleeps_until.is_none_or(|until| due < until)) {
            inner.sleeps_until = due;
            self.do_later(Work::Wake);
        }
    }

    /// Handles everything that is due. Returns the time to sleep. Called by the timer thread.
    pub(super) fn tick(&self) -> Duration {
        let mut inner = self.inner.lock();
        self.handle(&mut inner, TimerInput::Tick);
        self.look_at_hands(&mut inner);
        inner.sleeps_until = inner.core.next_wake();
        let sleep =
            inner.sleeps_until.map(|until| Duration::from_millis(now().moment.until(until).0));
        let most = if inner.leaving.is_some() { LOOK_AT_HANDS_EVERY } else { SLEEP_MAX };
        sleep.unwrap_or(most).min(most)
    }

    /// Makes a request on behalf of a client.
    pub(crate) async fn ask(&self, wish: TimerRequest) -> Option<TimerAnswer> {
        self.begin(wish).await.ok()
    }

    /// Begins a request like [`Hub::ask`], for a caller that does not wait for the answer here.
    pub(crate) fn begin(&self, wish: TimerRequest) -> oneshot::Receiver<TimerAnswer> {
        let (answer, answered) = oneshot::channel();
        let mut inner = self.inner.lock();
        inner.last_request += 1;
        let request = RequestId(inner.last_request);
        inner.waiting.insert(request, answer);
        self.handle(&mut inner, TimerInput::Request { request, wish });
        answered
    }

    /// Returns this node's own statistics.
    pub(crate) fn stats(&self) -> Stats {
        self.inner.lock().core.stats()
    }

    /// Returns the encoded timers of this node, for its next life.
    pub(super) fn carried(&self) -> Vec<u8> {
        let mut inner = self.inner.lock();
        self.handle(&mut inner, TimerInput::Tick);
        inner.core.carried(inner.parted)
    }

    /// Takes a new map. The control thread calls this for one map after the other.
    pub(crate) fn map_changed(&self, map: &Arc<Map>) {
        // Before any other decision by this map: a node with timers does not leave at once.
        let leaves = map.member(self.me.id).is_some_and(|member| member.weight == 0);
        let mut inner = self.inner.lock();
        if leaves && inner.leaving.is_none() {
            let hands = if inner.core.holds_any() { Hands::Full } else { Hands::Empty };
            inner.leaving = Some(hands);
            self.control.tell(cluster::control::Input::HoldsTimers(hands == Hands::Full));
        }
        // The rest would take the control thread too long.
        self.do_later(Work::Map(Arc::clone(map)));
    }

    /// Waits until the timer thread has a map: from then on timers can be set.
    pub(crate) fn wait_for_map(&self) {
        let until = Instant::now() + MAP_WITHIN;
        while self.inner.lock().basis == 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Takes a lease renewal, on the clock of leases, which timers use too. Called by the control thread.
    pub(crate) fn lease_until(&self, until: Moment) {
        self.do_later(Work::Lease(to_millis(until)));
    }

    /// Returns the other members of a map.
    pub(super) fn others(&self, map: &Map) -> Vec<Peer> {
        let peers = map.members().iter().map(cluster::map::Member::peer);
        peers.filter(|peer| peer.id != self.me.id).collect()
    }

    pub(super) fn follow(&self, map: &Map) {
        let mut inner = self.inner.lock();
        if map.basis().0 <= inner.basis {
            return; // Only buckets have moved.
        }
        note_divergence(&mut inner, map);
        if map.member(self.me.id).is_some_and(|member| member.peer() == self.me)
            && let Some(found) = inner.found.take()
        {
            keep::settle(self, found);
        }
        inner.basis = map.basis().0;
        let own = own_ports(map).into_iter().chain(self.any_port).collect();
        self.rules.write().set_own(own);
        let member = |member: &cluster::map::Member| TimerMember {
            id: timer_peer(member.peer()),
            name: member.name.clone(),
            weight: member.weight,
        };
        let members = map.members().iter().map(member).collect();
        self.handle(
            &mut inner,
            TimerInput::Members { epoch: MembersEpoch(map.basis().0), members },
        );
        self.look_at_hands(&mut inner);
    }

    /// Reports to the control thread whether this node still has timers: a leaving node stays until others have
    /// them.
    fn look_at_hands(&self, inner: &mut HubState) {
        let Some(told) = inner.leaving else { return };
        let hands = if inner.core.is_empty_handed() { Hands::Empty } else { Hands::Full };
        if hands != told {
            inner.leaving = Some(hands);
            self.control.tell(cluster::control::Input::HoldsTimers(hands == Hands::Full));
        }
    }

    /// Takes the means to open links to other nodes.
    pub(crate) fn link_with(&self, links: LinkMaker) {
        self.do_later(Work::Links(links));
    }

    pub(crate) fn accepted(&self, peer: Peer, stream: TcpStream) {
        self.do_later(Work::Accepted(peer, stream));
    }

    pub(super) fn set_queue(&self, to: timers::TimerPeer, queue: Sender<QueuedMessage>) {
        self.inner.lock().queues.insert(to, queue);
    }

    pub(super) fn keep_queues(&self, to: &[timers::TimerPeer]) {
        self.inner.lock().queues.retain(|node, _| to.contains(node));
    }

    /// Takes the files that the start has found.
    pub(super) fn set_found(&self, found: Vec<FoundFile>) {
        self.inner.lock().found = Some(found);
    }

    /// Returns whether this node has been a member: before that, the files of an earlier process stay.
    pub(super) fn is_settled(&self) -> bool {
        self.inner.lock().found.is_none()
    }

    pub(super) fn with_core<T>(&self, look: impl FnOnce(&mut Timers) -> T) -> T {
        look(&mut self.inner.lock().core)
    }

    pub(super) fn password(&self) -> Secret {
        self.password.read().clone()
    }

    /// Takes settings changed at run time.
    pub(crate) fn settings_changed(&self, settings: &Settings) {
        *self.password.write() = settings.requirepass.clone();
        self.inner.lock().core.set_bytes_max(settings.timer_bytes_max());
    }

    fn do_later(&self, work: Work) {
        let _ = self.work.send(work); // The thread is gone only when the node stops.
    }
}

/// Records a takeover: a map of a later generation in which this node is alone, and was not before.
fn note_divergence(inner: &mut HubState, map: &Map) {
    let beginnings = map.generation().counter;
    let is_alone = map.members().len() == 1 && inner.members > 1;
    if is_alone && beginnings > inner.beginnings {
        inner.parted = Some(Parted { epoch: MembersEpoch(inner.basis), at: now().moment });
    }
    (inner.members, inner.beginnings) = (map.members().len(), beginnings);
}

pub(super) fn timer_peer(peer: Peer) -> timers::TimerPeer {
    timers::TimerPeer { id: peer.id.0, boot: peer.boot.0 }
}

/// Returns the addresses on which the nodes of the cluster listen. A node known by a name may have any address.
fn own_ports(map: &Map) -> Vec<SocketAddr> {
    let ports = map.members().iter().flat_map(|member| {
        let ip = member.at.host.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let Endpoints { client, peer, http, replica, .. } = member.at;
        [client, peer, http, replica].map(|port| SocketAddr::new(ip, port))
    });
    ports.filter(|address| address.port() != 0).collect()
}
