//! The world: nodes, events in flight between them, and the true time. `World::step` runs the next event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::Moment;
use cluster::balance::{Condition, Vitals};
use cluster::consensus::{Begin, Saved};
use cluster::control::{
    Action, Control, Input, JoinAnswer, JoinRequest, MapChanged, Message, OperatorRequest,
    ProtocolRange, Start, Welcome,
};
use cluster::data::MoverInput;
use cluster::map::{Boot, ClusterId, ClusterSettings, Endpoints, Map, Member, NodeId, Peer, Zone};
use cluster::merge::{MergeReply, MergeRequest};
use placement::Mask;
use sim_engine::{Network, Quality, Queue, StreamId, Streams, Way};

use super::Sabotage;
use super::asking::Redirects;
use super::checkers::{self, Checkers};
use super::clients::{Clients, Request, Told};
use super::clock::Clock;
use super::keeping::Copies;
use super::leaving::{self, Leaves};
use super::node::Node;
use super::steps::Death;
use crate::Rng;

const CLUSTER: ClusterId = ClusterId(77);
/// Maximum number of wake-ups at one moment: all nodes may be woken, each a few times.
const WAKES_MAX: u32 = 1_000;

pub(super) struct World {
    pub now: Moment,
    pub nodes: BTreeMap<NodeId, Node>,
    pub network: Network<NodeId, Moment>,
    pub streams: Streams<Peer, Moment>,
    pub clients: Clients,
    /// The database that all clients use.
    pub database: store::Database,
    pub rng: Rng,
    pub checkers: Checkers,
    pub sabotage: Option<Sabotage>,
    /// True if clients go on asking.
    pub is_busy: bool,
    /// True if events are printed.
    pub tells: bool,
    events: Queue<Event, Moment>,
    pub joining: BTreeMap<u64, (JoinRequest, Clock)>,
    joining_through: BTreeMap<u64, NodeId>,
    /// Copies that processes have left for the next one of their node, on disk or in memory.
    pub kept: BTreeMap<NodeId, Copies>,
    /// Processes that ended and come back if somebody starts them.
    pub ended: Vec<EndedProcess>,
    /// Processes that were declared dead and come back by themselves soon.
    pub returning: BTreeMap<NodeId, EndedProcess>,
    /// The last request of each client that was redirected.
    pub(super) redirects: BTreeMap<usize, Redirects>,
    last_boot: u64,
    last_ask: u64,
    pub broken: Option<String>,
    pub leaves: Leaves,
    /// Processes that have ended because the others go on without them.
    pub gone: Vec<NodeId>,
    /// The present moment, and the number of wake-ups at it.
    woken: (Moment, u32),
    /// A node that has just begun to hand over a bucket.
    pub hands_over: Option<NodeId>,
    /// Time since which all nodes are suspended, if they are.
    pub lid_since: Option<Moment>,
    /// Nodes whose memory is full.
    pub full: BTreeSet<NodeId>,
    /// True if the settings promise that histories are linearizable.
    pub is_linear: bool,
    /// Times at which a node's wall clock was set.
    pub clocks_set_at: Vec<Moment>,
    /// True if nodes evict keys now and then.
    pub evicts: bool,
    /// Decides the number of buckets at the start.
    pub mask: Mask,
    /// True if nodes report their condition.
    pub has_vitals: bool,
    /// Answers received, if somebody other than `clients` asks.
    pub heard: Option<Vec<(u64, Told)>>,
    /// A process that ends within one of its next steps, and the way it ends.
    pub dies: Option<(NodeId, Death)>,
    /// State that such processes have left on their disks.
    pub died: Vec<EndedProcess>,
}

/// The remains of an ended process, with which the next process of its node starts.
pub(super) struct EndedProcess {
    pub disk: Saved,
    pub me: Peer,
    pub clock: Clock,
}

/// Maximum time without traffic on a connection; after it the connection is dropped, with all that waits.
const QUEUED_FOR: Duration = Duration::from_secs(3);

pub(super) enum Event {
    Control {
        to: Peer,
        from: Peer,
        message: Message,
        sent_at: Moment,
    },
    /// A slow disk has done the write that a process waits for.
    DiskDone {
        of: Peer,
    },
    /// Half of the histories split buckets by the usual rule, the others never.
    Unblock {
        of: Peer,
    },
    Pump {
        stream: StreamId,
        way: Way,
    },
    Dial {
        from: Peer,
        to: Peer,
    },
    Request {
        to: NodeId,
        request: Request,
    },
    Told {
        request: Request,
        told: Told,
    },
    /// A client begins its next operation.
    Begin {
        client: usize,
    },
    GiveUp {
        client: usize,
        number: u64,
    },
    JoinAgain {
        id: u64,
    },
    /// A process that was declared dead starts again.
    Return {
        node: NodeId,
    },
    /// The operating system of an ended process has closed its control link.
    HungUp {
        to: Peer,
        node: NodeId,
    },
    /// A process that hands over its data asks its next question.
    HandOver {
        from: Peer,
    },
    Merge {
        from: Peer,
        to: NodeId,
        question: MergeRequest,
        /// True for the first question on a new link.
        is_new: bool,
    },
    Merged {
        to: Peer,
        by: NodeId,
        reply: MergeReply,
    },
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

macro_rules! tell {
    ($world:expr, $($text:tt)*) => {
        if $world.tells {
            println!("{:>10.4} {}", $world.now.clock_reading().as_secs_f64(), format_args!($($text)*));
        }
    };
}
pub(super) use tell;

/// Returns a process of the node with this number.
pub(super) fn member(id: u64, boot: Boot) -> Member {
    Member {
        id: NodeId(id),
        boot,
        name: format!("n{id}"),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints {
            host: "here".into(),
            client: u16::try_from(id).unwrap_or(0), // So that MOVED names the node.
            peer: u16::try_from(id).unwrap_or(0),
            http: 0,
            replica: 0,
        },
    }
}

impl World {
    pub(super) fn new(seed: u64, quality: Quality, clients: usize) -> World {
        World {
            now: Moment::START + Duration::from_secs(100),
            nodes: BTreeMap::new(),
            network: Network::new(quality),
            streams: Streams::default(),
            clients: Clients::new(clients, seed),
            // Half of all runs.
            database: store::Database::new(if seed.is_multiple_of(2) { 0 } else { 3 })
                .expect("small enough"),
            rng: Rng::new(seed),
            checkers: Checkers::default(),
            sabotage: None,
            is_busy: true,
            tells: false,
            events: Queue::default(),
            joining: BTreeMap::new(),
            joining_through: BTreeMap::new(),
            kept: BTreeMap::new(),
            ended: Vec::new(),
            returning: BTreeMap::new(),
            redirects: BTreeMap::new(),
            last_boot: 1000,
            last_ask: 1_000_000,
            broken: None,
            leaves: Leaves::default(),
            gone: Vec::new(),
            woken: (Moment::START, 0),
            hands_over: None,
            lid_since: None,
            full: BTreeSet::new(),
            is_linear: true,
            clocks_set_at: Vec::new(),
            evicts: false,
            mask: Mask::M000F,
            has_vitals: false,
            heard: None,
            dies: None,
            died: Vec::new(),
        }
    }

    // ---- Actions.

    pub(super) fn found(&mut self, settings: ClusterSettings, clock: Clock) {
        let me = self.member(1);
        let map = Map::found(me.clone(), self.mask, settings);
        self.start(&me, Begin::Found(map), None, clock);
        for client in 0..self.clients.all.len() {
            let after = ms(self.rng.below(50));
            self.push(after, Event::Begin { client });
        }
    }

    pub(super) fn join(&mut self, id: u64, clock: Clock) {
        self.want_to_join(id, clock);
        self.push(Duration::ZERO, Event::JoinAgain { id });
    }

    /// Asks this member until the node is admitted.
    pub(super) fn join_through(&mut self, member: NodeId, id: u64, clock: Clock) {
        self.want_to_join(id, clock);
        self.joining_through.insert(id, member);
        self.push(Duration::ZERO, Event::JoinAgain { id });
    }

    fn want_to_join(&mut self, id: u64, clock: Clock) {
        let request = JoinRequest {
            versions: ProtocolRange::OURS,
            member: self.member(id),
            cluster: None,
            skew: Duration::ZERO,
            is_loading: false,
        };
        self.joining.insert(id, (request, clock));
    }

    fn member(&mut self, id: u64) -> Member {
        self.last_boot += 1;
        member(id, Boot(self.last_boot))
    }

    fn start(&mut self, me: &Member, begin: Begin, welcome: Option<Welcome>, clock: Clock) {
        let id = me.id;
        let (disk, copies) = match &begin {
            Begin::Resume(saved) => (saved.clone(), self.kept.remove(&id)),
            Begin::Found(_) | Begin::Join => (Saved::default(), None),
        };
        let start = Start { me: me.clone(), cluster: CLUSTER, seed: 5, begin, welcome };
        let control = Control::new(clock.at(self.now), start);
        let mut node = Node::new(me, clock, self.now, control, disk);
        node.sabotage = self.sabotage;
        node.plane.database = self.database;
        let found = copies.map(|copies| copies.give_to(&mut node));
        let found = found.unwrap_or_else(|| Input::Found(Vec::new()));
        self.nodes.insert(id, node);
        self.give(id, Input::Tick);
        self.give(id, found);
    }

    /// Ends a process without notice. Returns the state on its disk.
    pub(super) fn kill(&mut self, id: NodeId) -> Option<EndedProcess> {
        let mut node = self.nodes.remove(&id)?;
        if self.rng.below(2) == 0 {
            self.deliver_last_bytes(node.me);
        }
        for request in node.end().into_iter().chain(core::mem::take(&mut node.requests)) {
            self.push(ms(1), Event::Told { request, told: Told::Closed });
        }
        for stream in self.streams.which(|it| it.way_from(node.me).is_some()) {
            self.break_stream(stream);
        }
        let others: Vec<Peer> = self.nodes.values().map(|other| other.me).collect();
        for to in
            others.into_iter().filter(|to| !self.network.is_cut(id, to.id)).collect::<Vec<_>>()
        {
            self.push(ms(1), Event::HungUp { to, node: id });
        }
        Some(EndedProcess { disk: node.disk, me: node.me, clock: node.clock })
    }

    /// Starts another process of the same node, with the state on its disk.
    pub(super) fn restart(&mut self, ended: EndedProcess) {
        self.leaves.forget(ended.me.id);
        let mut me = self.member(ended.me.id.0);
        if self.sabotage == Some(Sabotage::RestartKeepsPlace) {
            me.boot = ended.me.boot;
        }
        self.start(&me, Begin::Resume(ended.disk), None, ended.clock);
    }

    pub(super) fn go_on(&mut self, id: NodeId) {
        let workers_first = self.rng.below(2) == 0;
        self.go_on_by(id, workers_first);
    }

    /// Resumes a stopped process, with its workers or its control thread the first to wake.
    pub(super) fn go_on_by(&mut self, id: NodeId, workers_first: bool) {
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.is_stopped) else { return };
        node.is_stopped = false;
        node.runs_since = self.now;
        let inputs = core::mem::take(&mut node.inbox);
        let requests = core::mem::take(&mut node.requests);
        if workers_first {
            requests.iter().for_each(|request| self.on_request(id, request.clone()));
        }
        inputs.into_iter().for_each(|input| self.give(id, input));
        if !workers_first {
            requests.into_iter().for_each(|request| self.on_request(id, request));
        }
    }

    pub(super) fn ask(&mut self, node: NodeId, ask: OperatorRequest) {
        self.last_ask += 1;
        let id = self.last_ask;
        self.leaves.note(node, self.now, &ask);
        self.give(node, Input::OperatorRequest { id, ask });
    }

    /// Ends the processes that were suspended while every node they knew went away: nobody can find them, and
    /// they find nobody. An operator would start them anew.
    pub(super) fn end_castaways(&mut self) {
        let Some(newest) = self.map() else { return };
        let knows_nobody = |node: &&Node| {
            let known = node.map().map(|map| map.members().to_vec()).unwrap_or_default();
            let others = known.iter().filter(|member| member.id != node.me.id);
            let is_away = |member: &Member| !self.nodes.contains_key(&member.id);
            newest.member(node.me.id).is_none() && !known.is_empty() && others.clone().all(is_away)
        };
        let castaways: Vec<NodeId> =
            self.nodes.values().filter(knows_nobody).map(|node| node.me.id).collect();
        for node in castaways {
            tell!(self, "{node} knows no running node any more; it is killed");
            self.kill(node);
        }
    }

    /// Reports to every node its own condition, as a server's janitor does all the time: sick, if its memory
    /// is full.
    pub(super) fn tell_vitals(&mut self) {
        self.has_vitals = true;
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in nodes {
            let is_full = self.full.contains(&node);
            let condition = if is_full { Condition::Sick } else { Condition::Well };
            self.give(node, Input::Vitals(Vitals { condition, ..Vitals::default() }));
        }
    }

    // ---- Time.

    pub(super) fn push(&mut self, after: Duration, event: Event) {
        self.push_at(self.now + after, event);
    }

    pub(super) fn push_at(&mut self, at: Moment, event: Event) {
        self.events.push(at, event);
    }

    pub(super) fn run_until(&mut self, end: Moment) {
        while self.broken.is_none() && self.step(end) {}
        self.now = self.now.max(end);
    }

    /// Like `run_until`, but stops where a node begins to hand over a bucket.
    pub(super) fn run_to_handover(&mut self, end: Moment) -> Option<NodeId> {
        self.hands_over = None;
        while self.broken.is_none() && self.step(end) {
            if self.hands_over.is_some() {
                return self.hands_over;
            }
        }
        self.now = self.now.max(end);
        None
    }

    /// Runs the next event, if it is due by `end`. Returns false otherwise.
    pub(super) fn step(&mut self, end: Moment) -> bool {
        let running = || self.nodes.values().filter(|node| !node.is_stopped);
        let wake = |node: &Node| (node.clock.when(node.control.wake_at()), node.me.id);
        let wakes = |node: &&Node| !node.is_writing() && node.control.wake_at() < Moment::NEVER;
        let wake = running().filter(wakes).map(wake).min();
        let mover = running().map(|node| (node.mover_due, node.me.id)).min();
        let event = self.events.next_at();
        let times = [wake.map(|it| it.0), mover.map(|it| it.0), event];
        let Some(at) = times.into_iter().flatten().min().filter(|at| *at <= end) else {
            return false;
        };
        self.now = self.now.max(at);
        if event == Some(at) {
            let (_, event) = self.events.pop().expect("looked at just now");
            self.happen(event);
        } else if let Some((_, node)) = mover.filter(|(due, _)| *due == at) {
            self.run_mover(node);
        } else if let Some((_, node)) = wake {
            self.give(node, Input::Tick);
            self.look_whether_it_rests(node);
        }
        true
    }

    /// Detects a node that asks to be woken at once, again and again: it would keep a processor busy for
    /// nothing.
    fn look_whether_it_rests(&mut self, node: NodeId) {
        let (at, times) = self.woken;
        self.woken = if at == self.now { (at, times + 1) } else { (self.now, 1) };
        if self.woken.1 > WAKES_MAX {
            let what = format!("{node} asks to be woken again and again at the same moment");
            self.broken.get_or_insert(what);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Control { to, from, message, sent_at } => {
                self.deliver(to, from, message, sent_at);
            }
            Event::DiskDone { of } => self.on_disk_done(of),
            Event::Unblock { of } => self.on_unblock(of),
            Event::Pump { stream, way } => self.pump(stream, way),
            Event::Dial { from, to } => self.dial(from, to),
            Event::Request { to, request } => self.on_request(to, request),
            Event::Told { request, told } => self.on_told(&request, told),
            Event::Begin { client } => self.begin(client),
            Event::GiveUp { client, number } => {
                if self.clients.waiting(client, number).is_some() {
                    self.clients.give_up(client);
                    self.hang_up(client);
                    self.begin(client);
                }
            }
            Event::JoinAgain { id } => self.join_again(id),
            Event::Return { node } => {
                if let Some(ended) = self.returning.remove(&node) {
                    tell!(self, "{node} comes back with all it had");
                    self.restart(ended);
                }
            }
            Event::HungUp { to, node } => {
                if self.nodes.get(&to.id).is_some_and(|it| it.me == to) {
                    self.give(to.id, Input::HungUp(node));
                }
            }
            Event::HandOver { from } => self.hand_over(from),
            Event::Merge { from, to, question, is_new } => {
                self.on_merge(to, from, question, is_new);
            }
            Event::Merged { to, by, reply } => self.on_merged(to, by, reply),
        }
    }

    // ---- The control plane.

    fn on_message(&mut self, to: Peer, from: Peer, message: Message) {
        if self.nodes.get(&to.id).is_none_or(|node| node.me != to) {
            return;
        }
        let granted =
            if let Message::LeaseGrant { lease, .. } = &message { Some(*lease) } else { None };
        self.give(to.id, Input::Message { from, message });
        if let (Some(lease), Some(Sabotage::LeaseFromReceipt)) = (granted, self.sabotage)
            && let Some(node) = self.nodes.get_mut(&to.id).filter(|node| !node.is_stopped)
        {
            node.lease_until = node.lease_until.max(node.clock.at(self.now) + lease);
        }
    }

    pub(super) fn carry_out(&mut self, id: NodeId, action: Action) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let from = node.me;
        match action {
            Action::Persist(persist) => node.disk.write(*persist),
            Action::Send { to, message } => self.send(from, to, &message),
            Action::MapChanged(changed) => {
                self.check_map(id, &changed);
                self.apply_in_turn(id, Action::MapChanged(changed));
            }
            Action::Lease { .. }
            | Action::Order(_)
            | Action::Yield { .. }
            | Action::Bring { .. }
            | Action::BackupLag { .. }
            | Action::MakeRoom { .. }
            | Action::Answer { .. }
            | Action::Skew(_)
            | Action::Gone(_) => self.apply_in_turn(id, action),
        }
    }

    fn check_map(&mut self, id: NodeId, changed: &MapChanged) {
        let seen = self.checkers.see_map(&self.nodes, changed);
        self.note(seen);
        if self.checkers.is_new() {
            let just = checkers::is_just(self, changed);
            self.note(just);
            let asked = leaving::leaves_as_asked(self, changed);
            self.note(asked);
        }
        if self.checkers.is_new() {
            let entry = changed.entry.as_ref().map(|entry| &entry.changes);
            tell!(self, "map {} by {id}: {entry:?}", changed.index);
        }
    }

    fn send(&mut self, from: Peer, to: NodeId, message: &Message) {
        let arrives = self.network.accepts(&mut self.rng, from.id, to);
        let Some(to) = self.nodes.get(&to).map(|node| node.me).filter(|_| arrives) else { return };
        for delay in self.network.delays(&mut self.rng, from.id, to.id) {
            let (message, sent_at) = (message.clone(), self.now);
            self.push(delay, Event::Control { to, from, message, sent_at });
        }
    }

    /// Delivers a message; while nothing passes, retries later, as long as the connection would last.
    fn deliver(&mut self, to: Peer, from: Peer, message: Message, sent_at: Moment) {
        if !self.network.queues || !self.network.is_cut(from.id, to.id) {
            self.on_message(to, from, message);
        } else if self.now < sent_at + QUEUED_FOR {
            self.push(ms(20), Event::Control { to, from, message, sent_at });
        }
    }

    fn join_again(&mut self, id: u64) {
        let Some((request, _)) = self.joining.get(&id).cloned() else { return };
        let able = |node: &&Node| node.control.is_member() && !node.is_stopped;
        let members: Vec<NodeId> =
            self.nodes.values().filter(able).map(|node| node.me.id).collect();
        let through = self.joining_through.get(&id).copied();
        let chosen = through.or_else(|| self.rng.choose(&members).copied());
        if let Some(member) = chosen {
            self.give(
                member,
                Input::OperatorRequest { id, ask: OperatorRequest::Join(Box::new(request)) },
            );
        }
        self.push(ms(300), Event::JoinAgain { id });
    }

    pub(super) fn on_join_answer(&mut self, id: u64, answer: JoinAnswer) {
        match answer {
            JoinAnswer::Welcome(welcome) => {
                if let Some((request, clock)) = self.joining.remove(&id) {
                    self.start(&request.member, Begin::Join, Some(welcome), clock);
                }
            }
            JoinAnswer::Wait(_) => {}
            JoinAnswer::Refused(_) => drop(self.joining.remove(&id)),
        }
    }

    // ---- The data plane.

    pub(super) fn tell_mover(&mut self, id: NodeId, input: MoverInput) {
        let after = Duration::from_micros(self.rng.below(2000));
        if let Some(node) = self.nodes.get_mut(&id) {
            node.mover_inputs.push(input);
            node.mover_due = node.mover_due.min(self.now + after);
        }
    }

    fn run_mover(&mut self, id: NodeId) {
        let busy = Duration::from_micros(500 + self.rng.below(3000));
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let clock = node.clock.at(self.now);
        node.plane.now.set(clock);
        node.mover_due = self.now + ms(100);
        if node.plane.known_map().is_none() {
            return;
        }
        node.counter.fence_is_up = !node.has_lease(self.now);
        node.counter.is_full = self.full.contains(&id);
        for input in core::mem::take(&mut node.mover_inputs) {
            node.mover.handle(clock, input, &node.plane);
        }
        node.mover.go_on(clock, &node.plane);
        if node.mover.is_busy() || node.has_parked() {
            node.mover_due = self.now + busy;
        }
        node.resume_parked(self.now);
        if self.evicts && self.rng.below(400) == 0 {
            self.evict(id);
        }
        self.after(id);
    }

    /// Carries out what a node has left to be done (bytes to send, reports, replies), and checks the node.
    pub(super) fn after(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.plane.known_map().is_some() {
            cluster::data::Plane::flush(&node.plane);
            node.send_replies(self.now);
        }
        let me = node.me;
        let sent = node.plane.sent.take();
        let reports = node.plane.reports.take();
        let mut inputs = core::mem::take(&mut node.inputs);
        let told = core::mem::take(&mut node.told);
        let acknowledged = core::mem::take(&mut node.acknowledged);
        let answers = core::mem::take(&mut node.merging.answers);
        if !node.mover_inputs.is_empty() {
            node.mover_due = node.mover_due.min(self.now + Duration::from_micros(300));
        }
        if let Some(broken) = node.broken.take() {
            self.broken.get_or_insert(format!("{id}: {broken}"));
        }
        inputs.extend(reports.into_iter().map(Input::from));
        for (stream, bytes) in sent {
            self.send_bytes(me, stream, Way::Out, bytes);
        }
        for (to, reply) in answers {
            let delay = self.network.delay(&mut self.rng, id, to.id);
            self.push(delay, Event::Merged { to, by: id, reply });
        }
        let promised = self.is_linear;
        for written in acknowledged.into_iter().filter(|_| promised) {
            let checked = self.checkers.see_acknowledged(&self.nodes, id, written);
            self.note(checked);
        }
        for (request, told) in told {
            let delay = Duration::from_micros(100 + self.rng.below(900));
            self.push(delay, Event::Told { request, told });
        }
        let checked = self.checkers.look(&self.nodes, id, self.now);
        self.note(checked);
        for input in inputs {
            self.give(id, input);
        }
    }

    fn note(&mut self, checked: Result<(), String>) {
        if let Err(broken) = checked {
            self.broken.get_or_insert(broken);
        }
    }

    /// Returns the map of the node that has applied most.
    pub(super) fn map(&self) -> Option<Arc<Map>> {
        let with_map = self.nodes.values().filter(|node| node.control.map().is_some());
        with_map.max_by_key(|node| node.control.applied())?.control.map().cloned()
    }
}
