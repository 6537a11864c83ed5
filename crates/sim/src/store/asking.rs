//! Requests of clients: clients ask, are redirected, and receive an answer or nothing.

use std::time::Duration;

use cluster::Moment;
use cluster::map::{Member, NodeId};

use super::clients::{KEYS, Request, Told, Work, patience};
use super::linear::Op;
use super::world::{Event, World, ms, tell};

/// Redirects that a client follows for one request; redis-rs gives up after 16 attempts by default.
const REDIRECTS_MAX: u32 = 12;
/// Time within which nodes that may serve learn of a new map, faults aside. Until then one may redirect to another
/// that does not know yet that it is primary.
const NEWS_WITHIN: Duration = Duration::from_millis(300);
/// Timeout of a client that is assigned one request; longer than that of others.
const LONG_PATIENCE: Duration = Duration::from_secs(5);

/// Redirects in a row of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Redirects {
    number: u64,
    since: Moment,
    count: u32,
}

impl World {
    pub(super) fn begin(&mut self, client: usize) {
        if !self.is_busy || !self.clients.has_room(client) {
            return;
        }
        let request = self.clients.begin(client, self.now, &mut self.rng);
        let goes_on = request.is_some() && self.clients.has_room(client);
        self.issue(client, request);
        if goes_on {
            let pause = ms(self.rng.below(20));
            self.push(pause, Event::Begin { client });
        }
    }

    /// Makes a client read a key.
    pub(super) fn read(&mut self, client: usize, key: &'static str) {
        self.operate(client, key, Op::Get);
    }

    /// Makes a client run this operation on a key.
    pub(super) fn operate(&mut self, client: usize, key: &'static str, op: Op) {
        self.work(client, key, Work::One(op));
    }

    /// Makes a client do just this, and nothing else meanwhile.
    pub(super) fn work(&mut self, client: usize, key: &'static str, work: Work) {
        self.hang_up(client);
        let request = self.clients.begin_alone(client, self.now, key, work);
        self.issue(client, request);
    }

    /// Makes a client do just this, and ask this node for it.
    pub(super) fn work_at(&mut self, client: usize, node: NodeId, key: &'static str, work: Work) {
        self.hang_up(client);
        if let Some(request) = self.clients.begin_alone(client, self.now, key, work) {
            self.push(LONG_PATIENCE, Event::GiveUp { client, number: request.number });
            self.request(node, request);
        }
    }

    fn issue(&mut self, client: usize, request: Option<Request>) {
        let Some(request) = request else {
            return self.push(ms(200), Event::Begin { client });
        };
        let number = request.number;
        self.push(patience(client), Event::GiveUp { client, number });
        self.ask_somebody(request);
    }

    fn ask_somebody(&mut self, request: Request) {
        let known = self.clients.all[request.client].asks;
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        let stays = self.rng.below(4) > 0;
        let known = known.filter(|node| stays && self.nodes.contains_key(node));
        if let Some(to) = known.or_else(|| self.rng.choose(&nodes).copied()) {
            let delay = Duration::from_micros(100 + self.rng.below(900));
            self.push(delay, Event::Request { to, request });
        }
    }

    /// Sends a request to this node.
    pub(super) fn request(&mut self, to: NodeId, request: Request) {
        self.push(ms(1), Event::Request { to, request });
    }

    pub(super) fn on_request(&mut self, to: NodeId, request: Request) {
        let Some(node) = self.nodes.get_mut(&to) else {
            return self.push(ms(1), Event::Told { request, told: Told::NotNow });
        };
        if node.is_stopped {
            return node.requests.push(request);
        }
        node.plane.now.set(node.clock.at(self.now));
        node.execute(self.now, request);
        if node.has_parked() {
            node.mover_due = node.mover_due.min(self.now + ms(2));
        }
        self.after(to);
    }

    pub(super) fn on_told(&mut self, request: &Request, told: Told) {
        let Request { client, number, .. } = *request;
        if let Some(heard) = &mut self.heard {
            return heard.push((number, told));
        }
        if self.clients.waiting(client, number).is_none() {
            return;
        }
        match told {
            Told::Moved(node) => {
                tell!(self, "client {client}: {} is redirected to {node}", request.key);
                self.count_redirect(request, node);
                self.clients.all[client].asks = Some(node);
                let delay = Duration::from_micros(200 + self.rng.below(2000));
                return self.push(delay, Event::Request { to: node, request: request.clone() });
            }
            // A retry would empty slots twice.
            Told::NotNow if request.work == Work::Flush => {
                self.clients.end(client, number, self.now, None);
            }
            Told::NotNow => {
                self.redirects.remove(&client);
                self.clients.all[client].asks = None;
                let delay = ms(10 + self.rng.below(60));
                let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
                if let Some(to) = self.rng.choose(&nodes).copied() {
                    self.push(delay, Event::Request { to, request: request.clone() });
                }
                return;
            }
            Told::Answer(answers) => {
                tell!(self, "client {client}: {} {:?} -> {answers:?}", request.key, request.work);
                self.clients.end(client, number, self.now, Some(answers));
            }
            Told::NotDone | Told::Aborted => self.clients.void(client, number),
            Told::Closed => self.clients.end(client, number, self.now, None),
        }
        let pause = ms(1 + self.rng.below(120));
        self.push(pause, Event::Begin { client });
    }

    /// Detects nodes that redirect a request to each other: real clients give up after some redirects. A process
    /// that is no member knows an old map, and does not count; nor does one that does not hear the others.
    fn count_redirect(&mut self, request: &Request, to: NodeId) {
        let Request { client, number, key, .. } = *request;
        let process = self.nodes.get(&to).map(|node| node.me);
        let member = self.map().and_then(|map| map.member(to).map(Member::peer));
        if process.is_none() || process != member || !self.hears_all(to) {
            self.redirects.remove(&client);
            return;
        }
        let fresh = Redirects { number, since: self.now, count: 0 };
        let redirects = self.redirects.entry(client).or_insert(fresh);
        if redirects.number != number {
            *redirects = fresh;
        }
        redirects.count += 1;
        let lasts = self.now.since(redirects.since);
        if redirects.count > REDIRECTS_MAX && lasts > NEWS_WITHIN {
            let what = format!("a request of client {client} for {key} is redirected without end");
            self.broken.get_or_insert(what);
        }
    }

    /// Returns whether messages of all members reach this node without a fault's delay: then it gets news of the map.
    fn hears_all(&self, node: NodeId) -> bool {
        let hears = |from: NodeId| {
            !self.network.is_cut(from, node) && !self.network.slow.contains_key(&(from, node))
        };
        self.map().is_none_or(|map| map.members().iter().all(|member| hears(member.id)))
    }

    /// Closes the connections of a client.
    pub(super) fn hang_up(&mut self, client: usize) {
        self.nodes.values_mut().for_each(|node| node.counter.hang_up(client));
    }

    /// Evicts a key from a node to make room, if the node holds it.
    pub(super) fn evict(&mut self, id: NodeId) {
        let key = *self.rng.choose(&KEYS).expect("there are keys");
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.has_lease(self.now)) else {
            return;
        };
        if self.clients.may_evict(key) && node.evict(self.now, key) {
            self.clients.may_be_gone(key);
        }
    }
}
