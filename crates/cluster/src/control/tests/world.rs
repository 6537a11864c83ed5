//! A simulated cluster of control planes: virtual time, a network that delays and loses messages,
//! clocks that differ in rate, and a data plane that carries out every request at once.
//!
//! An observer with the true time checks after every step: no two nodes may hold a valid lease and
//! believe that they are primary of the same slot, and the same log index must give the same map.

mod sight;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use placement::{Hashmask, Mask, Slot};
use sim_engine::{ClockRate, Network, Quality, Queue, Rng};

use super::super::*;
use crate::Moment;
use crate::consensus::Saved;
use crate::data::Order;
use crate::map::{
    Boot, ClusterSettings, Endpoints, Epoch, Generation, LeaveWay, Map, NodeId, Peer, Setting, Zone,
};
use crate::rules::{self, BrokenRule, Rule};

pub(super) const CLUSTER: ClusterId = ClusterId(77);

/// Time after which a process that was declared dead starts again.
const RETURN_AFTER: Duration = ms(100);

pub(super) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(super) fn member(id: u64) -> Member {
    Member {
        id: NodeId(id),
        boot: Boot(id * 10),
        name: format!("n{id}"),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints { host: "here".into(), client: 6379, peer: 16379, http: 0, replica: 0 },
    }
}

pub(super) fn request(member: Member) -> JoinRequest {
    JoinRequest {
        versions: ProtocolRange::OURS,
        member,
        cluster: None,
        skew: Duration::ZERO,
        is_loading: false,
    }
}

/// A network that delivers every message after a millisecond.
pub(super) const CALM: Quality =
    Quality { delay_us: (1_000, 1_000), lost: 0, doubled: 0, broken: 0 };

pub(super) struct World {
    pub(super) now: Moment,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) network: Network<NodeId, Moment>,
    pub(super) mask: Mask,
    /// The rule that is broken on all nodes.
    broken: Option<BrokenRule>,
    /// Clock rates of the nodes that will join.
    pub(super) rates: BTreeMap<NodeId, u64>,
    events: Queue<Event, Moment>,
    rng: Rng,
    /// Requests of processes that want to join and are not members yet.
    joining: BTreeMap<u64, JoinRequest>,
    pub(super) refused: BTreeMap<NodeId, String>,
    pub(super) answers: BTreeMap<u64, Answer>,
    /// Reported clock skews: the time, and the node that reported it.
    pub(super) skews: Vec<(Moment, NodeId, Skew)>,
    gone: BTreeMap<NodeId, Gone>,
    /// True if processes that were declared dead come back under a new boot, with their log, as real
    /// ones do.
    pub(super) given_up_return: bool,
    last_boot: u64,
    last_ask: u64,
    /// Maps by history and index.
    log: BTreeMap<(Generation, LogIndex), Arc<Map>>,
}

pub(super) struct Node {
    /// Requests of full nodes to make room.
    pub(super) debts: Vec<(NodeId, u64)>,
    pub(super) control: Control,
    pub(super) me: Peer,
    rate: ClockRate,
    pub(super) disk: Saved,
    /// Time its disk takes for a write.
    pub(super) disk_takes: Duration,
    /// Effects to carry out when the disk is done, if it is busy.
    waits_to_do: Option<Vec<Action>>,
    pub(super) is_stopped: bool,
    inbox: Vec<Input>,
    pub(super) lease_until: Moment,
    pub(super) map: Option<Arc<Map>>,
    paused: BTreeMap<Hashmask, Epoch>,
    /// True if fills begin but never end.
    pub(super) holds_fills: bool,
    pub(super) holds_drains: bool,
    pub(super) fills: Vec<(balance::MoveId, Vec<Hashmask>, NodeId)>,
    pub(super) drains: Vec<(Hashmask, Epoch)>,
    /// Set once it was asked to hand over everything to another generation.
    pub(super) hands_over: bool,
    /// Buckets it was asked to hand over.
    pub(super) brings: Option<Vec<Hashmask>>,
}

enum Event {
    Arrival { to: Peer, from: Peer, message: Message },
    Data { to: Peer, input: Input },
    JoinAgain { id: u64 },
    Return { id: u64, disk: Box<Saved>, rate: u64 },
    DiskDone { of: Peer },
}

/// Returns the time on a clock of this rate.
fn clock_at(now: Moment, rate: ClockRate) -> Moment {
    Moment::from_clock(rate.at(now.clock_reading()))
}

impl Node {
    fn clock(&self, now: Moment) -> Moment {
        clock_at(now, self.rate)
    }

    /// Returns the true time at which its clock shows this time, or a little later.
    fn true_time(&self, clock: Moment) -> Moment {
        Moment::from_clock(self.rate.when(clock.clock_reading()))
    }

    pub(super) fn has_lease(&self, now: Moment) -> bool {
        self.clock(now) < self.lease_until
    }

    fn serves(&self, slot: Slot, now: Moment) -> bool {
        let Some(map) = self.map.as_ref().filter(|_| self.has_lease(now)) else { return false };
        let bucket = map.bucket_of(slot);
        bucket.primary() == Some(self.me.id)
            && self.paused.get(&bucket.hashmask).is_none_or(|epoch| bucket.epoch > *epoch)
    }
}

impl World {
    pub(super) fn new(seed: u64, quality: Quality) -> World {
        World {
            now: Moment::START + Duration::from_secs(100),
            nodes: BTreeMap::new(),
            network: Network::new(quality),
            mask: Mask::M000F,
            broken: None,
            rates: BTreeMap::new(),
            events: Queue::default(),
            rng: Rng::new(seed),
            joining: BTreeMap::new(),
            refused: BTreeMap::new(),
            answers: BTreeMap::new(),
            skews: Vec::new(),
            gone: BTreeMap::new(),
            given_up_return: false,
            last_boot: 1_000_000,
            last_ask: 1000,
            log: BTreeMap::new(),
        }
    }

    /// Returns a balanced cluster of this many nodes.
    pub(super) fn of(nodes: u64) -> World {
        let mut world = World::new(1, CALM);
        world.found(1);
        for id in 2..=nodes {
            world.join(id);
            world.run_until(|world| world.is_member(id));
        }
        world.settle();
        world
    }

    // ---- Actions of a scenario.

    pub(super) fn found(&mut self, id: u64) {
        let map = Map::found(member(id), self.mask, ClusterSettings::default());
        self.start(member(id), Begin::Found(map), None, 1000);
    }

    pub(super) fn join(&mut self, id: u64) {
        self.join_as(request(member(id)));
    }

    pub(super) fn join_as(&mut self, request: JoinRequest) {
        let id = request.member.id.0;
        self.joining.insert(id, request);
        self.push(Duration::ZERO, Event::JoinAgain { id });
    }

    pub(super) fn ask(&mut self, node: u64, ask: OperatorRequest) -> u64 {
        self.last_ask += 1;
        let id = self.last_ask;
        self.give(NodeId(node), Input::OperatorRequest { id, ask });
        id
    }

    pub(super) fn leave(&mut self, node: u64) -> u64 {
        self.ask(node, OperatorRequest::Leave(LeaveWay::Safe))
    }

    pub(super) fn set(&mut self, node: u64, setting: Setting) -> u64 {
        self.ask(node, OperatorRequest::Set(setting))
    }

    /// Kills the process without warning; its disk remains.
    pub(super) fn kill(&mut self, node: u64) -> Option<Saved> {
        let ended = self.nodes.remove(&NodeId(node))?;
        self.hang_up(ended.me.id);
        Some(ended.disk)
    }

    /// Closes the links of an ended process, as its operating system does.
    fn hang_up(&mut self, node: NodeId) {
        let is_cut = |other: &Peer| self.network.is_cut(node, other.id);
        let others: Vec<Peer> = self.nodes.values().map(|node| node.me).collect();
        for to in others.into_iter().filter(|other| !is_cut(other)).collect::<Vec<_>>() {
            self.push(ms(1), Event::Data { to, input: Input::HungUp(node) });
        }
    }

    /// Starts another process of the same node, with the state on its disk.
    pub(super) fn restart(&mut self, id: u64, boot: u64, disk: Saved) {
        let me = Member { boot: Boot(boot), ..member(id) };
        self.start(me, Begin::Resume(disk), None, 1000);
    }

    /// Does the same for a process that `leader` has admitted by its log, and that is cut off from all
    /// others since.
    pub(super) fn restart_let_in_by(&mut self, leader: u64, id: u64, boot: u64, disk: Saved) {
        let me = Member { boot: Boot(boot), ..member(id) };
        let (cluster, control) = (CLUSTER, self.control(leader));
        let (generation, index) = (control.generation().unwrap(), control.applied());
        let members = control.map().unwrap().members().to_vec();
        let welcome = Welcome { cluster, generation, members, index };
        self.start(me, Begin::Resume(disk), Some(welcome), 1000);
        self.cut_off(&[id]);
    }

    pub(super) fn stop(&mut self, node: u64) {
        self.nodes.get_mut(&NodeId(node)).unwrap().is_stopped = true;
    }

    pub(super) fn go_on(&mut self, node: u64) {
        let node = self.nodes.get_mut(&NodeId(node)).unwrap();
        node.is_stopped = false;
        let (id, inbox) = (node.me.id, std::mem::take(&mut node.inbox));
        for input in inbox {
            self.give(id, input);
        }
    }

    /// Cuts these nodes off from all others, in both directions.
    pub(super) fn cut_off(&mut self, nodes: &[u64]) {
        let inside: Vec<NodeId> = nodes.iter().map(|id| NodeId(*id)).collect();
        let outside: Vec<NodeId> =
            self.nodes.keys().copied().filter(|node| !inside.contains(node)).collect();
        self.network.cut_apart(&inside, &outside);
    }

    /// Lets fills from this node begin, but not end.
    pub(super) fn hold_fills(&mut self, node: u64) {
        self.nodes.get_mut(&NodeId(node)).unwrap().holds_fills = true;
    }

    pub(super) fn release_fills(&mut self, node: u64) {
        let node = self.nodes.get_mut(&NodeId(node)).unwrap();
        node.holds_fills = false;
        let (id, fills) = (node.me.id, std::mem::take(&mut node.fills));
        for (move_id, buckets, _) in fills {
            self.finish_fill(id, move_id, &buckets);
        }
    }

    /// Keeps paused buckets of this node from draining.
    pub(super) fn hold_drains(&mut self, node: u64) {
        self.nodes.get_mut(&NodeId(node)).unwrap().holds_drains = true;
    }

    pub(super) fn release_drains(&mut self, node: u64) {
        self.nodes.get_mut(&NodeId(node)).unwrap().holds_drains = false;
    }

    pub(super) fn break_rule(&mut self, rule: Option<Rule>) {
        self.broken = None; // Dropping it later would repair the next one.
        self.broken = Some(rules::break_rule(rule));
    }

    /// Lets nodes of different generations say hello, until all belong to one.
    pub(super) fn meet_all(&mut self) {
        let mut rounds = 0;
        while let Some((one, two)) = self.partitioned_members() {
            rounds += 1;
            assert!(rounds < 100, "{one} and {two} do not come together\n{}", self.picture());
            self.meet(one, two);
            let has_yielded = |node: &&Node| node.control.yields_to().is_some();
            let ended = self.nodes.values().filter(has_yielded).map(|node| node.me.id);
            for node in ended.collect::<Vec<_>>() {
                self.give(node, Input::Merged);
            }
            self.run(ms(1_000));
        }
    }

    /// Returns two nodes of different generations.
    fn partitioned_members(&self) -> Option<(u64, u64)> {
        let with_map = || self.nodes.values().filter(|node| node.map.is_some());
        let generation = |node: &Node| node.control.generation().unwrap();
        let differ = |one: &Node, two: &Node| !generation(one).is_one_with(generation(two));
        with_map().find_map(|one| {
            let other = with_map().find(|two| differ(one, two))?;
            Some((one.me.id.0, other.me.id.0))
        })
    }

    pub(super) fn stopped(&self) -> Vec<u64> {
        let stopped = self.nodes.values().filter(|node| node.is_stopped);
        stopped.map(|node| node.me.id.0).collect()
    }

    pub(super) fn client_turns_to(&mut self, node: u64) {
        self.give(NodeId(node), Input::ClientDemand);
    }

    /// Lets two nodes of different generations say hello.
    pub(super) fn meet(&mut self, one: u64, two: u64) {
        let generation = |id: u64| self.control(id).generation().unwrap();
        let generations = (generation(one), generation(two));
        if !generations.0.is_one_with(generations.1) {
            self.give(NodeId(one), Input::Met(generations.1));
            self.give(NodeId(two), Input::Met(generations.0));
        }
    }

    /// Lets a node join through this member.
    pub(super) fn join_at(&mut self, member_id: u64, id: u64) {
        let request = request(member(id));
        self.joining.insert(id, request.clone());
        let ask = OperatorRequest::Join(Box::new(request));
        self.give(NodeId(member_id), Input::OperatorRequest { id, ask });
    }

    // ---- Time.

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    pub(super) fn run_until(&mut self, is_so: impl Fn(&World) -> bool) {
        let end = self.now + Duration::from_secs(120);
        while !is_so(self) {
            assert!(self.step(end), "it is not so after two minutes\n{}", self.picture());
        }
    }

    pub(super) fn settle(&mut self) {
        self.run_until(World::is_at_rest);
    }

    pub(super) fn picture(&self) -> String {
        let line = |node: &Node| {
            format!(
                "{} leader {:?} applied {} lease {} member {} voters {:?} members {:?} loads {:?} engaged {:?}\n",
                node.me.id,
                node.control.leader(),
                node.control.applied(),
                node.has_lease(self.now),
                node.control.is_member(),
                node.control.configuration(),
                node.map.as_ref().map(|map| map
                    .members()
                    .iter()
                    .map(|it| (it.id.0, it.weight))
                    .collect::<Vec<_>>()),
                node.map.as_ref().map(|map| map
                    .loads()
                    .iter()
                    .map(|it| (it.primaries, it.backups))
                    .collect::<Vec<_>>()),
                node.control.engagement(),
            )
        };
        self.nodes.values().map(line).collect()
    }

    /// Runs the next event, if it is due before `end`.
    fn step(&mut self, end: Moment) -> bool {
        let wake = |node: &Node| (node.true_time(node.control.wake_at()), node.me.id);
        let is_awake = |node: &&Node| !node.is_stopped && node.waits_to_do.is_none();
        let wake = self.nodes.values().filter(is_awake).map(wake).min();
        let event = self.events.next_at();
        let next = wake.map(|(at, _)| at).into_iter().chain(event).min();
        let Some(at) = next.filter(|at| *at <= end) else { return false };
        self.now = self.now.max(at);
        match wake {
            Some((wake_at, node)) if event.is_none_or(|event| wake_at < event) => {
                self.give(node, Input::Tick);
            }
            Some(_) | None => {
                let (_, event) = self.events.pop().unwrap();
                self.happen(event);
            }
        }
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival { to, from, message } => {
                self.give_to(to, Input::Message { from, message });
            }
            Event::Data { to, input } => self.give_to(to, input),
            Event::JoinAgain { id } => {
                let Some(request) = self.joining.get(&id).cloned() else { return };
                let able = |node: &&Node| node.control.is_member() && !node.is_stopped;
                let members: Vec<NodeId> =
                    self.nodes.values().filter(able).map(|node| node.me.id).collect();
                if !members.is_empty() {
                    let member = members[(self.draw() % members.len() as u64) as usize];
                    let ask = OperatorRequest::Join(Box::new(request));
                    self.give(member, Input::OperatorRequest { id, ask });
                }
                self.push(ms(300), Event::JoinAgain { id });
            }
            Event::Return { id, disk, rate } => {
                self.last_boot += 1;
                let me = Member { boot: Boot(self.last_boot), ..member(id) };
                self.start(me, Begin::Resume(*disk), None, rate);
            }
            Event::DiskDone { of } => self.on_disk_done(of),
        }
    }

    /// Ends a slow write: the node carries out the effects that waited for it, then handles its inbox.
    fn on_disk_done(&mut self, of: Peer) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&of.id).filter(|node| node.me == of) else { return };
        let Some(actions) = node.waits_to_do.take() else { return };
        node.control.note_disk_wait(node.disk_takes);
        self.carry_out_all(of.id, actions);
        while let Some(node) = self.nodes.get_mut(&of.id).filter(|node| node.waits_to_do.is_none())
        {
            if node.inbox.is_empty() {
                let clock = node.clock(now);
                return node.control.note_read_until(clock);
            }
            let input = node.inbox.remove(0);
            self.give(of.id, input);
        }
    }

    /// Returns whether a node waits for the disk. It waits only for promises to others.
    fn takes_time(&self, id: NodeId, action: &Action) -> bool {
        let slow = self.nodes.get(&id).filter(|node| !node.disk_takes.is_zero());
        let Action::Persist(persist) = action else { return false };
        slow.is_some_and(|node| persist.is_promise(&node.disk))
    }

    fn carry_out_all(&mut self, id: NodeId, actions: Vec<Action>) {
        let mut actions = actions.into_iter();
        while let Some(action) = actions.next() {
            let takes_time = self.takes_time(id, &action);
            self.carry_out(id, action);
            let Some(node) = self.nodes.get_mut(&id) else { return };
            if takes_time {
                node.waits_to_do = Some(actions.collect());
                let (of, takes) = (node.me, node.disk_takes);
                return self.push(takes, Event::DiskDone { of });
            }
        }
    }

    fn give_to(&mut self, to: Peer, input: Input) {
        if self.nodes.get(&to.id).is_some_and(|node| node.me == to) {
            self.give(to.id, input);
        }
    }

    pub(super) fn give(&mut self, to: NodeId, input: Input) {
        let Some(node) = self.nodes.get_mut(&to) else { return };
        if node.is_stopped || node.waits_to_do.is_some() {
            return node.inbox.push(input);
        }
        let clock = node.clock(self.now);
        let mut actions = Vec::new();
        node.control.handle(clock, input, &mut actions);
        self.carry_out_all(to, actions);
        let node = self.nodes.get_mut(&to);
        if let Some(node) = node.filter(|it| it.waits_to_do.is_none() && it.inbox.is_empty()) {
            node.control.note_read_until(clock);
        }
        self.look(to);
    }

    fn start(&mut self, me: Member, begin: Begin, welcome: Option<Welcome>, rate: u64) {
        let peer = me.peer();
        let rate = ClockRate(rate);
        let clock = clock_at(self.now, rate);
        let disk = match &begin {
            Begin::Resume(saved) => saved.clone(),
            Begin::Found(_) | Begin::Join => Saved::default(),
        };
        let start = Start { me, cluster: CLUSTER, seed: 5, begin, welcome };
        let node = Node {
            debts: Vec::new(),
            control: Control::new(clock, start),
            me: peer,
            rate,
            disk,
            disk_takes: Duration::ZERO,
            waits_to_do: None,
            is_stopped: false,
            inbox: Vec::new(),
            lease_until: Moment::START,
            map: None,
            paused: BTreeMap::new(),
            holds_fills: false,
            holds_drains: false,
            fills: Vec::new(),
            drains: Vec::new(),
            hands_over: false,
            brings: None,
        };
        self.nodes.insert(peer.id, node);
        self.give(peer.id, Input::Tick);
    }

    fn carry_out(&mut self, id: NodeId, action: Action) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let from = node.me;
        match action {
            Action::Persist(persist) => node.disk.write(*persist),
            Action::Send { to, message } => self.send(from, to, &message),
            Action::MapChanged(changed) => {
                let MapChanged { map, index, .. } = changed;
                node.map = Some(Arc::clone(&map));
                node.paused.retain(|bucket, epoch| {
                    map.bucket(*bucket).is_some_and(|bucket| bucket.epoch <= *epoch)
                });
                let place = (map.generation().joined(), index);
                let known = self.log.entry(place).or_insert_with(|| Arc::clone(&map));
                assert_eq!(*known, map, "the log is the same everywhere, at {index}");
            }
            Action::Lease { until } => node.lease_until = until,
            Action::Order(Order::Fill { move_id, buckets, taker }) => {
                node.fills.push((move_id, buckets.clone(), taker));
                if !node.holds_fills {
                    self.finish_fill(id, move_id, &buckets);
                }
            }
            Action::Order(Order::Narrow { move_id, buckets }) => {
                for (_, known, _) in node.fills.iter_mut().filter(|(it, ..)| *it == move_id) {
                    known.retain(|bucket| buckets.contains(bucket));
                }
            }
            Action::Order(Order::Cancel { move_id }) => {
                node.fills.retain(|(known, ..)| *known != move_id);
            }
            Action::Order(Order::Pause { buckets, .. }) => {
                node.paused.extend(buckets.iter().copied());
                node.drains.extend(buckets.iter().copied());
                if !node.holds_drains {
                    let input = Input::Drained { buckets };
                    self.push(ms(1), Event::Data { to: from, input });
                }
            }
            Action::BackupLag { .. } => {}
            Action::MakeRoom { node: full, bytes } => node.debts.push((full, bytes)),
            Action::Yield { .. } => node.hands_over = true,
            Action::Bring { buckets } => node.brings = Some(buckets),
            Action::Answer { id, answer: Answer::Join(answer) } => self.on_join_answer(id, answer),
            Action::Answer { id, answer } => {
                self.answers.insert(id, answer);
            }
            Action::Skew(skew) => self.skews.push((self.now, id, skew)),
            Action::Gone(gone) => self.on_gone(id, &gone),
        }
    }

    fn finish_fill(&mut self, source: NodeId, move_id: balance::MoveId, buckets: &[Hashmask]) {
        let node = &self.nodes[&source];
        let known = |bucket| node.map.as_ref().and_then(|map| map.bucket(bucket));
        let known = buckets.iter().filter_map(|bucket| known(*bucket));
        let filled: Vec<_> = known.map(|bucket| (bucket.hashmask, bucket.epoch)).collect();
        let input = if filled.is_empty() {
            Input::FillFailed { move_id }
        } else {
            Input::FillDone { move_id, filled }
        };
        let to = node.me;
        self.push(ms(1), Event::Data { to, input });
    }

    fn on_join_answer(&mut self, id: u64, answer: JoinAnswer) {
        match answer {
            JoinAnswer::Welcome(welcome) => {
                let Some(request) = self.joining.remove(&id) else { return };
                assert_eq!(welcome.cluster, CLUSTER);
                let rate = self.rates.get(&request.member.id).copied().unwrap_or(1000);
                self.start(request.member, Begin::Join, Some(welcome), rate);
            }
            JoinAnswer::Wait(_) => {}
            JoinAnswer::Refused(reason) => {
                if let Some(request) = self.joining.remove(&id) {
                    self.refused.insert(request.member.id, reason);
                }
            }
        }
    }

    fn on_gone(&mut self, id: NodeId, gone: &Gone) {
        self.gone.insert(id, gone.clone());
        let Some(Node { control, rate, .. }) = self.nodes.remove(&id) else { return };
        self.hang_up(id);
        if self.given_up_return && *gone == Gone::Removed && control.map().is_some() {
            let disk = Box::new(control.to_saved());
            self.push(RETURN_AFTER, Event::Return { id: id.0, disk, rate: rate.0 });
        }
    }

    fn send(&mut self, from: Peer, to: NodeId, message: &Message) {
        let arrives = self.network.accepts(&mut self.rng, from.id, to);
        let Some(to) = self.nodes.get(&to).map(|node| node.me).filter(|_| arrives) else { return };
        for delay in self.network.delays(&mut self.rng, from.id, to.id) {
            let message = message.clone();
            self.push(delay, Event::Arrival { to, from, message });
        }
    }

    fn push(&mut self, after: Duration, event: Event) {
        self.events.push(self.now + after, event);
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.rng.draw()
    }

    // ---- The observer.

    /// Asserts that at most one node of a generation serves a slot at any moment of the true time, and
    /// that none serves a bucket that only an earlier process of it has held.
    fn look(&self, moved: NodeId) {
        let Some(node) = self.nodes.get(&moved) else { return };
        let sample = (0..Slot::COUNT).step_by(293).filter_map(Slot::new);
        for slot in sample.filter(|slot| node.serves(*slot, self.now)) {
            let member = node.map.as_ref().and_then(|map| map.member(moved));
            let boot = member.map(|member| member.boot);
            assert_eq!(boot, Some(node.me.boot), "{moved} serves what another process held");
            let mine = node.control.generation().expect("who serves has a map");
            let others = self.nodes.values().filter(|other| {
                let theirs = other.control.generation();
                other.me != node.me && theirs.is_some_and(|theirs| theirs.is_one_with(mine))
            });
            let other = others.map(|it| (it.me.id, it)).find(|(_, it)| it.serves(slot, self.now));
            let (me, other) = (node.me.id, other.map(|(id, _)| id));
            assert_eq!(other, None, "beside {me}, at slot {slot}\n{}", self.picture());
        }
    }
}
