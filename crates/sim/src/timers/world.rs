//! Nodes, messages, time, and the map's authority. The nodes run the real core; everything around them is
//! simulated here, from a seed.
//!
//! The authority stands for the consensus of the real cluster: it grants leases for a second, removes nodes
//! from the map that have had none for a while, and admits every node that asks. Nodes learn of each new list
//! a little later, each in its own time.

use std::collections::BTreeMap;

use sim_engine::{Links, Queue};
use timers::{
    CallId, MembersEpoch, MonotonicMillis, Now, Parted, RequestId, TimerAction, TimerAnswer,
    TimerInput, TimerMember, TimerMessage, TimerPeer, TimerRefusal, TimerRequest, TimerSettings,
    Timers,
};

use super::history::{Called, History, Outcome, Time};
use super::weather::Weather;
use crate::Rng;

/// Interval between requests for a lease, and duration of a lease from its request.
const RENEW_EVERY: Time = 200;
const LEASE: Time = 1000;
/// Time without a new lease after which a node is removed from the map.
const DEAD_AFTER: Time = 1250;

pub(crate) struct Node {
    id: TimerPeer,
    /// Identifies this start of the node.
    process: u64,
    core: Timers,
    /// Offset of its moments from the true time.
    origin: u64,
    /// Offset of its calendar from the true time.
    pub(crate) calendar: u64,
    paused_until: Option<Time>,
    /// Events that arrived while it was paused.
    inbox: Vec<Event>,
    /// The last list it received, and the time of its last lease.
    applied: MembersEpoch,
    granted_at: Time,
    is_leaving: bool,
    wakes_at: Option<Time>,
}

#[derive(Clone)]
enum Event {
    Deliver { link: Link, breaks: u64, from: TimerPeer, to: TimerPeer, message: Box<TimerMessage> },
    CallEnded { node: u64, process: u64, call: CallId, result: Result<(), String> },
    Members { node: TimerPeer, epoch: MembersEpoch, members: Vec<TimerMember> },
    Renew,
    Wake { node: u64 },
}

/// A link from one node to another.
type Link = (u64, u64);

/// One cluster and its world.
pub struct World {
    pub now: Time,
    pub history: History,
    pub(crate) weather: Weather,
    pub(crate) rng: Rng,
    /// A timer's number; messages and actions about it are printed: `OPENCLUSTER_TRACE=1280564370404161875`.
    trace: Option<String>,
    /// The only node that clients ask, if one is named.
    pub clients_of: Option<u64>,
    settings: TimerSettings,
    events: Queue<Event, Time>,
    pub(crate) nodes: BTreeMap<u64, Node>,
    /// The map, as the authority knows it.
    epoch: MembersEpoch,
    members: Vec<TimerMember>,
    /// Links between nodes. The far side of a partition is the one without the authority.
    links: Links<u64, Time>,
    /// Nodes that have taken over, each with a map of its own, and the time they did.
    alone: BTreeMap<u64, Parted>,
    /// True if the authority is inactive: the map stays, and every node has a lease.
    looks_away: bool,
    /// Requests in flight: the entry of the history, and the node.
    requests: BTreeMap<RequestId, (usize, TimerPeer)>,
    next_id: u64,
    next_boot: u64,
}

impl World {
    pub fn new(seed: u64, weather: Weather, settings: TimerSettings) -> World {
        let mut world = World {
            now: 0,
            history: History::default(),
            weather,
            rng: Rng::new(seed),
            trace: std::env::var("OPENCLUSTER_TRACE").ok(),
            clients_of: None,
            settings,
            events: Queue::default(),
            nodes: BTreeMap::new(),
            epoch: MembersEpoch(0),
            members: Vec::new(),
            links: Links::default(),
            alone: BTreeMap::new(),
            looks_away: false,
            requests: BTreeMap::new(),
            next_id: 1,
            next_boot: 1,
        };
        (0..weather.nodes).for_each(|_| world.add_node());
        world.commit();
        world.at(0, Event::Renew);
        world
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Time) {
        let end = self.now + time;
        while let Some((at, event)) = self.events.pop_by(end) {
            self.now = at;
            self.happen(event);
        }
        self.now = end;
    }

    fn at(&mut self, time: Time, event: Event) {
        self.events.push(time.max(self.now), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Renew => self.renew(),
            Event::Deliver { link, breaks, from, to, message } => {
                if self.links.delivers(link, breaks) {
                    let event = Event::Deliver { link, breaks, from, to, message };
                    self.give(to, event);
                }
            }
            Event::Members { node, .. } => self.give(node, event),
            Event::CallEnded { node, process, .. } => {
                // The node may be in another life by now, but the same process must wait for the call.
                let same = self.nodes.get(&node).filter(|node| node.process == process);
                if let Some(id) = same.map(|node| node.id) {
                    self.give(id, event);
                }
            }
            Event::Wake { node } => {
                if let Some(entry) = self.nodes.get_mut(&node)
                    && entry.wakes_at == Some(self.now)
                {
                    entry.wakes_at = None;
                    let id = entry.id;
                    if entry.paused_until.is_none() {
                        self.input(id, TimerInput::Tick);
                    }
                }
            }
        }
    }

    /// Hands an event to a node, now or when it is awake again.
    fn give(&mut self, to: TimerPeer, event: Event) {
        let Some(node) = self.nodes.get_mut(&to.id).filter(|node| node.id == to) else { return };
        if node.paused_until.is_some() {
            return node.inbox.push(event);
        }
        match event {
            Event::Deliver { from, message, .. } => {
                self.tell(|| format!("{from:?} -> {to:?}: {message:?}"));
                self.input(to, TimerInput::Peer { from, message: *message });
            }
            Event::CallEnded { call, result, .. } => {
                self.input(to, TimerInput::CallEnded { call, result });
            }
            Event::Members { epoch, members, .. } => {
                node.applied = node.applied.max(epoch);
                if self.trace.is_some() {
                    let ids: Vec<TimerPeer> = members.iter().map(|member| member.id).collect();
                    eprintln!("{} {to:?} enters {epoch:?}: {ids:?}", self.now);
                }
                let is_out = !members.iter().any(|member| member.id == to);
                self.input(to, TimerInput::Members { epoch, members });
                if is_out {
                    self.come_back(to);
                }
            }
            Event::Renew | Event::Wake { .. } => {}
        }
    }

    fn input(&mut self, to: TimerPeer, input: TimerInput) {
        let now = self.now;
        let node = self.nodes.get_mut(&to.id).expect("the caller saw it");
        let time = Now::exact(MonotonicMillis(now + node.origin), now + node.calendar);
        let mut actions = Vec::new();
        node.core.handle(time, input, &mut actions);
        let wake = node.core.next_wake().map(|moment| moment.0.saturating_sub(node.origin));
        let wake = wake.map(|wake| wake.max(now + 1));
        if let Some(wake) = wake.filter(|wake| node.wakes_at.is_none_or(|known| *wake < known)) {
            node.wakes_at = Some(wake);
            self.at(wake, Event::Wake { node: to.id });
        }
        actions.into_iter().for_each(|action| self.act(to, action));
    }

    /// Prints a line if it names the traced timer.
    fn tell(&self, what: impl FnOnce() -> String) {
        if let Some(number) = &self.trace {
            let line = what();
            if line.contains(number) {
                eprintln!("{} {line}", self.now);
            }
        }
    }

    fn act(&mut self, node: TimerPeer, action: TimerAction) {
        self.tell(|| format!("{node:?} does {action:?}"));
        match action {
            TimerAction::Send { to, message } => self.send(node, to, message),
            TimerAction::Answer { request, answer } => self.answered(request, &answer),
            TimerAction::Call(call) => {
                let taken = self.rng.below(1000) >= self.weather.failing;
                let is_slow = self.rng.below(1000) < self.weather.slow;
                let most = if is_slow { call.callback.timeout().0 } else { 40 };
                let takes = 1 + self.rng.below(most);
                let (id, sequence) = (call.id, call.sequence);
                self.history.called.push(Called { at: self.now, by: node.id, id, sequence, taken });
                let result = if taken { Ok(()) } else { Err("503".to_owned()) };
                let process = self.nodes[&node.id].process;
                let ended = Event::CallEnded { node: node.id, process, call: call.call, result };
                self.at(self.now + takes, ended);
            }
            // No takeover here: `store/meeting.rs` covers it.
            TimerAction::ClientDemand => {}
        }
    }

    fn send(&mut self, from: TimerPeer, to: TimerPeer, message: TimerMessage) {
        let link = (from.id, to.id);
        if self.links.is_cut(link) {
            return;
        }
        let is_straggler = self.rng.below(1000) < self.weather.stragglers;
        let most = self.weather.delay_ms * if is_straggler { 10 } else { 1 };
        let arrives = self.links.arrival(link, self.now + 1 + self.rng.below(most));
        let (breaks, message) = (self.links.breaks(link), Box::new(message));
        self.at(arrives, Event::Deliver { link, breaks, from, to, message });
    }
}

// Clients.
impl World {
    /// Sends a request to a node. It must be the last entry of the history.
    pub(crate) fn ask(&mut self, node: TimerPeer, wish: TimerRequest) {
        let entry = self.history.asked.len() - 1;
        let request = RequestId(entry as u64);
        self.requests.insert(request, (entry, node));
        self.input(node, TimerInput::Request { request, wish });
    }

    fn answered(&mut self, request: RequestId, answer: &TimerAnswer) {
        let Some((entry, _)) = self.requests.remove(&request) else { return };
        let asked = &mut self.history.asked[entry];
        match answer {
            TimerAnswer::Done(id) => {
                asked.id = Some(*id);
                asked.outcome = Outcome::Done { at: self.now };
            }
            TimerAnswer::Refused(TimerRefusal::Unknown | TimerRefusal::Unseen) => {}
            TimerAnswer::Refused(
                TimerRefusal::NotReady | TimerRefusal::Busy | TimerRefusal::Full,
            ) => {
                asked.outcome = Outcome::Refused;
            }
            TimerAnswer::Timer(_)
            | TimerAnswer::Page(_)
            | TimerAnswer::Stats(_)
            | TimerAnswer::Dead(_) => {}
        }
    }

    /// Returns the nodes that answer clients now.
    pub(crate) fn awake(&self) -> Vec<TimerPeer> {
        let is_awake = |node: &&Node| node.paused_until.is_none() && node.applied > MembersEpoch(0);
        let awake = self.nodes.values().filter(is_awake);
        awake.map(|node| node.id).collect()
    }
}

// The authority, and the events of machines.
impl World {
    /// Adds a new machine. It is in the map with the next `commit`.
    fn add_node(&mut self) {
        let id = TimerPeer { id: self.next_id, boot: self.next_boot };
        self.next_id += 1;
        self.start_node(id);
    }

    fn start_node(&mut self, id: TimerPeer) {
        self.next_boot += 1;
        let origin = self.rng.below(1 << 40);
        let calendar = 1_800_000_000_000 + self.rng.below(self.weather.skew_ms + 1);
        let time = Now::exact(MonotonicMillis(self.now + origin), self.now + calendar);
        let seed = self.rng.draw();
        let node = Node {
            id,
            process: id.boot,
            core: Timers::new(id, seed, time, self.settings),
            origin,
            calendar,
            paused_until: None,
            inbox: Vec::new(),
            applied: MembersEpoch(0),
            granted_at: self.now,
            is_leaving: false,
            wakes_at: None,
        };
        self.nodes.insert(id.id, node);
        self.members.retain(|member| member.id.id != id.id);
        self.members.push(TimerMember { id, name: format!("10.0.0.{}:6379", id.id), weight: 1 });
        self.members.sort_by_key(|member| member.id);
    }

    /// Commits a new list of members: every reachable node learns of it in its own time.
    fn commit(&mut self) {
        self.epoch = MembersEpoch(self.epoch.0 + 1);
        let reached: Vec<u64> =
            self.nodes.keys().copied().filter(|node| !self.links.apart.contains(node)).collect();
        reached.into_iter().for_each(|node| self.announce(node));
    }

    fn announce(&mut self, node: u64) {
        let lag = 1 + self.rng.below(self.weather.map_lag_ms);
        let (epoch, members) = (self.epoch, self.members.clone());
        let node = self.nodes[&node].id;
        self.at(self.now + lag, Event::Members { node, epoch, members });
    }

    /// Runs every `RENEW_EVERY`: grants leases to the reachable nodes that follow, removes nodes that have
    /// had none for too long, and removes leaving nodes that hold nothing.
    fn renew(&mut self) {
        self.at(self.now + RENEW_EVERY, Event::Renew);
        let now = self.now;
        let mut granted = Vec::new();
        for (name, node) in &mut self.nodes {
            let is_member = self.members.iter().any(|member| member.id == node.id);
            let is_reached = node.paused_until.is_none() && !self.links.apart.contains(name);
            let is_reached = is_reached || self.looks_away;
            if is_reached && is_member {
                node.granted_at = now;
                if node.applied == self.epoch {
                    granted.push((node.id, MonotonicMillis(now + LEASE + node.origin)));
                }
            }
            if self.alone.contains_key(name) {
                granted.push((node.id, MonotonicMillis(now + LEASE + node.origin)));
            }
        }
        for (node, until) in granted {
            self.input(node, TimerInput::Lease { until });
        }
        if !self.looks_away {
            self.remove_dead();
            self.remove_left();
        }
    }

    fn remove_dead(&mut self) {
        let (now, nodes) = (self.now, &self.nodes);
        let count = self.members.len();
        self.members.retain(|member| match nodes.get(&member.id.id) {
            Some(node) => node.id != member.id || node.granted_at + DEAD_AFTER > now,
            None => false,
        });
        if self.members.len() < count {
            self.commit();
        }
    }

    fn remove_left(&mut self) {
        let gone = |node: &&Node| node.is_leaving && node.core.is_empty_handed();
        let gone: Vec<TimerPeer> = self.nodes.values().filter(gone).map(|node| node.id).collect();
        for id in gone {
            self.nodes.remove(&id.id);
            self.members.retain(|member| member.id != id);
            self.commit();
        }
    }

    /// Makes a node that finds itself out of the map join again, in a new life.
    fn come_back(&mut self, id: TimerPeer) {
        let is_current = self.members.iter().any(|member| member.id == id);
        if is_current || self.nodes[&id.id].is_leaving {
            return;
        }
        self.start_over(id.id, None);
    }

    /// Starts a process anew, with nothing but its timers, and makes it join.
    fn start_over(&mut self, node: u64, parted: Option<Parted>) {
        let last = &self.nodes[&node];
        let (carried, calendar) = (last.core.carried(parted), last.calendar);
        let id = TimerPeer { id: node, boot: self.next_boot };
        self.start_node(id);
        let next = self.nodes.get_mut(&node).expect("started above");
        next.calendar = calendar;
        let time = Now::exact(MonotonicMillis(self.now + next.origin), self.now + calendar);
        next.core.handle(time, TimerInput::Tick, &mut Vec::new());
        next.core.load_carried(&carried).expect("written a moment ago");
        self.commit();
    }

    /// Makes a node that is cut off take over: it goes on with a map that has no other member.
    pub fn take_over(&mut self, node: u64) {
        let entry = self.nodes.get_mut(&node).expect("only who is here can take over");
        let at = MonotonicMillis(self.now + entry.origin);
        let parted = Parted { epoch: entry.applied, at };
        // Its map may well change more often than that of the others.
        entry.applied = MembersEpoch(entry.applied.0 + 100);
        let (id, epoch) = (entry.id, entry.applied);
        self.alone.insert(node, parted);
        let member = TimerMember { id, name: format!("10.0.0.{node}:6379"), weight: 1 };
        self.input(id, TimerInput::Members { epoch, members: vec![member] });
    }

    /// Reconnects a node that has taken over: it gives up its own map and joins the others.
    pub fn meet_again(&mut self, node: u64) {
        let parted = self.alone.remove(&node).expect("only who has taken over yields");
        self.links.apart.remove(&node);
        self.start_over(node, Some(parted));
    }

    pub fn join(&mut self) {
        self.add_node();
        self.commit();
    }

    /// Makes a node begin to leave: it keeps nothing from now on, and goes when it holds nothing.
    pub fn leave(&mut self, node: u64) {
        self.nodes.get_mut(&node).expect("only who is here can leave").is_leaving = true;
        for member in self.members.iter_mut().filter(|member| member.id.id == node) {
            member.weight = 0;
        }
        self.commit();
    }

    /// Kills a machine, with everything it held. The authority has to find that out.
    pub fn crash(&mut self, node: u64) {
        self.nodes.remove(&node);
        self.links.break_all_of(node);
    }

    /// Starts a machine again, empty, under its old name.
    pub fn restart(&mut self, node: u64) {
        let id = TimerPeer { id: node, boot: self.next_boot };
        self.start_node(id);
        self.commit();
    }

    /// Makes the authority inactive: the map stays as it is whatever happens, and nobody is without a lease.
    pub fn look_away(&mut self) {
        self.looks_away = true;
    }

    /// Brings a machine that has died back empty, before anybody has noticed.
    pub fn come_back_empty(&mut self, node: u64) {
        let id = self.members.iter().find(|member| member.id.id == node).expect("in the map").id;
        self.start_node(id);
        self.announce(node);
    }

    pub fn pause(&mut self, node: u64) {
        self.nodes.get_mut(&node).expect("only who is here can stop").paused_until =
            Some(Time::MAX);
    }

    /// Resumes a stopped node: it handles all events that arrived meanwhile.
    pub fn resume(&mut self, node: u64) {
        let Some(entry) = self.nodes.get_mut(&node) else { return };
        entry.paused_until = None;
        entry.wakes_at = None;
        let (id, inbox) = (entry.id, std::mem::take(&mut entry.inbox));
        self.input(id, TimerInput::Tick);
        for event in inbox {
            match event {
                Event::CallEnded { .. } => self.happen(event),
                Event::Deliver { .. }
                | Event::Members { .. }
                | Event::Renew
                | Event::Wake { .. } => {
                    self.give(id, event);
                }
            }
        }
    }

    /// Breaks the links between two nodes: messages in flight are lost.
    pub fn break_link(&mut self, one: u64, other: u64) {
        self.links.break_between(one, other);
    }

    /// Partitions the network: these nodes reach each other, and nobody else.
    pub fn cut(&mut self, nodes: impl IntoIterator<Item = u64>) {
        self.links.apart = nodes.into_iter().collect();
    }

    pub fn heal(&mut self) {
        for node in std::mem::take(&mut self.links.apart) {
            if self.nodes.contains_key(&node) {
                self.announce(node);
            }
        }
    }

    pub fn node_names(&self) -> Vec<u64> {
        self.nodes.keys().copied().collect()
    }

    pub fn core(&self, node: u64) -> &Timers {
        &self.nodes[&node].core
    }

    pub fn is_leaving(&self, node: u64) -> bool {
        self.nodes[&node].is_leaving
    }

    /// Returns whether every node follows the present list and has handed over all timers it does not keep.
    pub fn is_at_rest(&self) -> bool {
        let in_map = |node: &Node| self.members.iter().any(|member| member.id == node.id);
        self.links.apart.is_empty()
            && self.members.len() == self.nodes.len()
            && self.nodes.values().all(|node| {
                node.paused_until.is_none()
                    && in_map(node)
                    && node.applied == self.epoch
                    && node.core.is_settled()
                    && !node.is_leaving
            })
    }
}
