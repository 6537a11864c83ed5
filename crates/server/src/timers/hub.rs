//! The core behind its lock: whoever has something for it comes here.
//!
//! Called by HTTP handlers, by the control thread (maps, leases) and by `service.rs`. Nothing in here
//! waits: what has to be sent, called or answered is left with whoever does that.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::map::{Map, Peer};
use commands::settings::Secret;
use parking_lot::{Mutex, RwLock};
use timers::{
    Action, AllowRules, Answer, Call, Epoch, Input, Member, Message, Moment, NodeId, Now, Parted,
    RequestId, Settings, Stats, Timers, Wish,
};
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::sync::oneshot;

use super::keep;
use crate::clock;
use crate::data::boottime;
use crate::peer::{ControlLine, LinkMaker, draw_number};

/// Messages to one node that wait for its link. What does not fit is lost, as with a link that
/// breaks: whoever waits for an answer asks again.
pub(super) const QUEUE_MAX: usize = 10_000;

/// With nothing due, the thread still looks around once in a while.
const SLEEP_MAX: Duration = Duration::from_secs(60);
/// A node that has a map for longer than this, and timers that do not, takes clients all the same.
const MAP_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AT_HANDS_EVERY: Duration = Duration::from_millis(50);

/// A message that waits for its link.
pub(super) struct Waiting {
    pub(super) since: Instant,
    pub(super) message: Message,
}

/// For the thread of `service.rs`.
pub(super) enum Work {
    /// Something is due earlier than it thinks.
    Wake,
    Call(Call),
    Map(Arc<Map>),
    Lease(Moment),
    /// This is how links to them are made.
    Links(LinkMaker),
    /// Another node has made a link to this one.
    Accepted(Peer, TcpStream),
    Stop,
}

pub(crate) struct Hub {
    me: Peer,
    /// To be told when this node may not leave yet, and when clients turn to it.
    control: ControlLine,
    inner: Mutex<Inner>,
    pub(super) work: UnboundedSender<Work>,
    pub(super) rules: RwLock<AllowRules>,
    /// Where timers are kept while no node runs.
    pub(super) file: Option<PathBuf>,
    /// What clients of the store have to know, us among them.
    password: RwLock<Secret>,
}

struct Inner {
    core: Timers,
    /// Clients that wait for an answer.
    waiting: BTreeMap<RequestId, oneshot::Sender<Answer>>,
    last_request: u64,
    /// Ways to the other nodes.
    queues: BTreeMap<NodeId, Sender<Waiting>>,
    /// Until when the thread sleeps, if nobody wakes it.
    sleeps_until: Option<Moment>,
    /// The map's basis that the core was last told of.
    basis: u64,
    /// How many members there were then, and how often the cluster had begun anew.
    members: usize,
    beginnings: u64,
    /// When this node has taken over, if it has.
    parted: Option<Parted>,
    /// This node leaves, and what the control thread was last told of its hands.
    leaving: Option<Hands>,
}

/// Whether a node that leaves has timers that nobody has taken over yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hands {
    Full,
    Empty,
}

pub(super) fn now() -> Now {
    let moment = Moment(u64::try_from(boottime::now().as_millis()).unwrap_or(u64::MAX));
    Now { moment, wall: clock::now().0 }
}

impl Hub {
    pub(super) fn new(
        me: Peer,
        work: UnboundedSender<Work>,
        settings: &commands::settings::Settings,
        control: ControlLine,
    ) -> Hub {
        let core = Timers::new(node_id(me), draw_number(), now(), Settings::default());
        let inner = Inner {
            core,
            waiting: BTreeMap::new(),
            last_request: 0,
            queues: BTreeMap::new(),
            sleeps_until: None,
            basis: 0,
            members: 0,
            beginnings: 0,
            parted: None,
            leaving: None,
        };
        let file = settings.data_dir.as_deref().map(keep::file);
        let password = RwLock::new(settings.requirepass.clone());
        let rules = RwLock::new(settings.timers_allow_callbacks.rules().clone());
        Hub { me, inner: Mutex::new(inner), work, control, rules, file, password }
    }

    /// Hands something to the core, and carries out what comes of it.
    pub(super) fn input(&self, input: Input) {
        let mut inner = self.inner.lock();
        self.handle(&mut inner, input);
    }

    fn handle(&self, inner: &mut Inner, input: Input) {
        let mut actions = Vec::new();
        inner.core.handle(now(), input, &mut actions);
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    if let Some(queue) = inner.queues.get(&to) {
                        // Full: lost, and asked for again.
                        let _ = queue.try_send(Waiting { since: Instant::now(), message });
                    }
                }
                Action::Answer { request, answer } => {
                    if let Some(waiting) = inner.waiting.remove(&request) {
                        let _ = waiting.send(answer); // The client has hung up.
                    }
                }
                Action::Call(call) => self.do_later(Work::Call(call)),
                Action::ClientTurned => self.control.tell(cluster::control::Input::ClientTurned),
            }
        }
        let due = inner.core.next_wake();
        if due.is_some_and(|due| inner.sleeps_until.is_none_or(|until| due < until)) {
            inner.sleeps_until = due;
            self.do_later(Work::Wake);
        }
    }

    /// Lets due things happen, and says how long there is to sleep. Called by the one who sleeps.
    pub(super) fn tick(&self) -> Duration {
        let mut inner = self.inner.lock();
        self.handle(&mut inner, Input::Tick);
        self.look_at_hands(&mut inner);
        inner.sleeps_until = inner.core.next_wake();
        let sleep =
            inner.sleeps_until.map(|until| Duration::from_millis(now().moment.until(until).0));
        let most = if inner.leaving.is_some() { LOOK_AT_HANDS_EVERY } else { SLEEP_MAX };
        sleep.unwrap_or(most).min(most)
    }

    /// Asks for something on behalf of a client.
    pub(crate) async fn ask(&self, wish: Wish) -> Option<Answer> {
        self.begin(wish).await.ok()
    }

    /// As [`Hub::ask`], for who has other things to do until the answer comes.
    pub(crate) fn begin(&self, wish: Wish) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let mut inner = self.inner.lock();
        inner.last_request += 1;
        let request = RequestId(inner.last_request);
        inner.waiting.insert(request, answer);
        self.handle(&mut inner, Input::Request { request, wish });
        answered
    }

    /// This node's own numbers.
    pub(crate) fn stats(&self) -> Stats {
        self.inner.lock().core.stats()
    }

    /// What this node holds, for its next life.
    pub(super) fn carried(&self) -> Vec<u8> {
        let mut inner = self.inner.lock();
        self.handle(&mut inner, Input::Tick);
        inner.core.carried(inner.parted)
    }

    /// Another map. Called by the control thread, for one after the other.
    pub(crate) fn map_changed(&self, map: &Arc<Map>) {
        // Before anything else is decided by this map: a node with timers does not go at once.
        let leaves = map.member(self.me.id).is_some_and(|member| member.weight == 0);
        let mut inner = self.inner.lock();
        if leaves && inner.leaving.is_none() {
            let hands = if inner.core.holds_any() { Hands::Full } else { Hands::Empty };
            inner.leaving = Some(hands);
            self.control.tell(cluster::control::Input::HandsFull(hands == Hands::Full));
        }
        // The rest takes longer than the control thread has time.
        self.do_later(Work::Map(Arc::clone(map)));
    }

    /// Waits until the thread of timers goes by a map: from then on timers can be set.
    pub(crate) fn wait_for_map(&self) {
        let until = Instant::now() + MAP_WITHIN;
        while self.inner.lock().basis == 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// By the clock of leases, which is ours too. Called by the control thread.
    pub(crate) fn lease_until(&self, until: Duration) {
        let until = Moment(u64::try_from(until.as_millis()).unwrap_or(u64::MAX));
        self.do_later(Work::Lease(until));
    }

    /// The other members of a map.
    pub(super) fn others(&self, map: &Map) -> Vec<Peer> {
        let peers = map.members().iter().map(cluster::map::Member::peer);
        peers.filter(|peer| peer.id != self.me.id).collect()
    }

    pub(super) fn follow(&self, map: &Map) {
        let mut inner = self.inner.lock();
        if map.basis().0 <= inner.basis {
            return; // Only buckets have moved.
        }
        note_parting(&mut inner, map);
        inner.basis = map.basis().0;
        self.rules.write().set_own(own_ports(map));
        let member = |member: &cluster::map::Member| Member {
            id: node_id(member.peer()),
            name: member.name.clone(),
            weight: member.weight,
        };
        let members = map.members().iter().map(member).collect();
        self.handle(&mut inner, Input::Members { epoch: Epoch(map.basis().0), members });
        self.look_at_hands(&mut inner);
    }

    /// A node that leaves stays until others have its timers.
    fn look_at_hands(&self, inner: &mut Inner) {
        let Some(told) = inner.leaving else { return };
        let hands = if inner.core.is_empty_handed() { Hands::Empty } else { Hands::Full };
        if hands != told {
            inner.leaving = Some(hands);
            self.control.tell(cluster::control::Input::HandsFull(hands == Hands::Full));
        }
    }

    /// How links to other nodes are made, from now on.
    pub(crate) fn link_with(&self, links: LinkMaker) {
        self.do_later(Work::Links(links));
    }

    pub(crate) fn accepted(&self, peer: Peer, stream: TcpStream) {
        self.do_later(Work::Accepted(peer, stream));
    }

    pub(super) fn set_queue(&self, to: NodeId, queue: Sender<Waiting>) {
        self.inner.lock().queues.insert(to, queue);
    }

    pub(super) fn keep_queues(&self, to: &[NodeId]) {
        self.inner.lock().queues.retain(|node, _| to.contains(node));
    }

    pub(super) fn with_core<T>(&self, look: impl FnOnce(&mut Timers) -> T) -> T {
        look(&mut self.inner.lock().core)
    }

    /// Whether clients of the store have to know a password.
    pub(super) fn needs_password(&self) -> bool {
        !self.password.read().is_empty()
    }

    pub(super) fn password(&self) -> Secret {
        self.password.read().clone()
    }

    /// The settings have changed while the node runs.
    pub(crate) fn settings_changed(&self, settings: &commands::settings::Settings) {
        *self.password.write() = settings.requirepass.clone();
    }

    fn do_later(&self, work: Work) {
        let _ = self.work.send(work); // The thread is gone only when the node stops.
    }
}

/// A map of a later beginning in which this node is alone, and was not before: it has taken over.
fn note_parting(inner: &mut Inner, map: &Map) {
    let beginnings = map.generation().counter;
    let is_alone = map.members().len() == 1 && inner.members > 1;
    if is_alone && beginnings > inner.beginnings {
        inner.parted = Some(Parted { epoch: Epoch(inner.basis), at: now().moment });
    }
    (inner.members, inner.beginnings) = (map.members().len(), beginnings);
}

pub(super) fn node_id(peer: Peer) -> NodeId {
    NodeId { id: peer.id.0, boot: peer.boot.0 }
}

/// Where the nodes of the cluster listen. One that is known by a name may be at any address.
fn own_ports(map: &Map) -> Vec<SocketAddr> {
    let ports = map.members().iter().flat_map(|member| {
        let ip = member.at.host.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        [member.at.client, member.at.peer, member.at.http].map(|port| SocketAddr::new(ip, port))
    });
    ports.filter(|address| address.port() != 0).collect()
}
