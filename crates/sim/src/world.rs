//! Nodes, messages in flight and time: everything around the code under test.
//!
//! The seed decides how long each event takes (`sim_engine`). Nodes are `cluster::balance::Balancer`s and nothing
//! else; the log commits their proposals.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use cluster::Moment;
use cluster::balance::{
    BalanceAction, BalanceInput, BalanceMessage, Balancer, Decision, MoveId, Timer,
};
use cluster::map::{Change, ChangeOutcome, Epoch, LeaveWay, Map, Member, NodeId};

use placement::Hashmask;
use sim_engine::{Links, Queue};

use crate::checkers::Checkers;
use crate::log::{Log, Version};
use crate::{Rng, Weather};

pub struct World {
    now: Moment,
    events: Queue<Event, Moment>,
    rng: Rng,
    weather: Weather,
    log: Log,
    nodes: BTreeMap<NodeId, Node>,
    links: Links<NodeId, Moment>,
    /// Fills under way, by move.
    fills: BTreeMap<MoveId, Fill>,
    proposals_in_flight: usize,
    checkers: Checkers,
    moved: Moved,
    /// Index into the plan: everything before it is done.
    plan_done: usize,
    actions: Vec<BalanceAction>,
}

struct Node {
    balancer: Balancer,
    /// Time at which its links to all others stand.
    linked_at: Moment,
    /// The newest map the node has seen.
    version: Rc<Version>,
}

/// The copying of the buckets of one move, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Fill {
    pub(crate) source: NodeId,
    pub(crate) taker: NodeId,
    pub(crate) giver: NodeId,
    pub(crate) buckets: Vec<Hashmask>,
}

/// Moves since the last call of `take_moved`.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    pub promotions: usize,
    pub copies: usize,
    /// Steps of the map: log entries with an effect.
    pub map_steps: usize,
    /// Those that gave buckets another primary: a client that looks at the map after each `MOVED` does so
    /// once for each of them.
    pub primary_steps: usize,
    pub messages: usize,
    /// Decisions, each with the time its move began.
    pub decisions: Vec<(Moment, Decision)>,
}

enum Event {
    Input { node: NodeId, input: BalanceInput },
    FillEnds { move_id: MoveId },
    Commit { planned_at: Option<Epoch>, changes: Vec<Change> },
    Map { node: NodeId, version: Rc<Version> },
    LinksUp { node: NodeId },
}

impl World {
    pub fn new(seed: u64, weather: Weather, map: Map) -> World {
        let mut world = World {
            now: Moment::START,
            events: Queue::default(),
            rng: Rng::new(seed),
            weather,
            checkers: Checkers::new(&map),
            log: Log::new(map),
            nodes: BTreeMap::new(),
            links: Links::default(),
            fills: BTreeMap::new(),
            proposals_in_flight: 0,
            moved: Moved::default(),
            plan_done: 0,
            actions: Vec::new(),
        };
        world.tell_all();
        world
    }

    pub fn now(&self) -> Moment {
        self.now
    }

    /// Returns the committed map.
    pub fn map(&self) -> &Map {
        &self.log.head().map
    }

    /// Returns the fewest copies still to be made, as the planner counts them.
    pub fn copies_planned(&self) -> usize {
        self.log.head().plan.copies_to_make()
    }

    pub fn take_moved(&mut self) -> Moved {
        std::mem::take(&mut self.moved)
    }

    /// Adds a node. The change is committed at once, whatever else is in progress.
    pub fn join(&mut self, member: Member) {
        self.commit(None, &[Change::Join(member)]);
    }

    /// Commits a change from outside at once: a death, a setting.
    pub fn change(&mut self, change: Change) {
        self.commit(None, &[change]);
    }

    /// Asks a node to leave. It begins to hand over its buckets.
    pub fn leave(&mut self, node: NodeId) {
        self.input(node, BalanceInput::Leave(LeaveWay::Safe));
    }

    /// Processes the next event. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let Some((at, event)) = self.events.pop() else { return false };
        self.now = at;
        match event {
            Event::Input { node, input } => self.input(node, input),
            Event::FillEnds { move_id } => self.end_fill(move_id),
            Event::Commit { planned_at, changes } => {
                self.proposals_in_flight -= 1;
                self.commit(planned_at, &changes);
            }
            Event::Map { node, version } => self.show_map(node, version),
            Event::LinksUp { node } => self.link_up(node),
        }
        true
    }

    /// Runs until everything planned is done and nothing is under way.
    pub fn run_to_rest(&mut self) {
        let limit = 2_000 * (100 + self.map().bucket_count()) * self.map().members().len().max(8);
        for _ in 0..limit {
            if self.is_at_rest() {
                return self.checkers.at_rest(&self.log.head().map);
            }
            assert!(
                self.step(),
                "no event is scheduled, but balancing is not done:\n{}",
                self.story()
            );
        }
        panic!("balancing does not end:\n{}", self.story());
    }

    /// Describes the remaining work and the state of each node, for a failure message.
    fn story(&self) -> String {
        let head = self.log.head();
        let mut story = format!("{:?}: fills {:?}\n", self.now, self.fills.keys());
        for (id, node) in &self.nodes {
            let load = head.map.load(*id);
            let engagement = node.balancer.engagement();
            story +=
                &format!("{id}: {load:?}, epoch {}, {engagement:?}\n", node.version.map.epoch());
        }
        for plan in head.plan.buckets() {
            if let Some(bucket) =
                head.map.bucket(plan.hashmask).filter(|state| !plan.is_done(state))
            {
                story += &format!("{plan:?} of {bucket:?}\n");
            }
        }
        story
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.events.next_at().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = end;
    }

    pub fn is_at_rest(&mut self) -> bool {
        if self.proposals_in_flight > 0 || !self.fills.is_empty() {
            return false;
        }
        let head = self.log.head();
        let open = &head.plan.buckets()[self.plan_done..];
        let is_done = |plan: &&cluster::balance::BucketPlan| {
            head.map.bucket(plan.hashmask).is_none_or(|bucket| plan.is_done(bucket))
        };
        self.plan_done += open.iter().take_while(is_done).count();
        self.plan_done == head.plan.buckets().len()
    }

    fn push(&mut self, after: Duration, event: Event) {
        self.events.push(self.now + after, event);
    }

    fn input(&mut self, id: NodeId, input: BalanceInput) {
        let mut actions = std::mem::take(&mut self.actions);
        if let Some(node) = self.nodes.get_mut(&id) {
            let version = node.version.clone();
            node.balancer.handle(self.now, version.view(), input, &mut actions);
            for action in actions.drain(..) {
                self.carry_out(id, &version, action);
            }
        }
        self.actions = actions;
    }

    fn carry_out(&mut self, node: NodeId, version: &Version, action: BalanceAction) {
        match action {
            BalanceAction::Send { to, message } => self.send(node, to, version, message),
            BalanceAction::SetTimer { timer, after } => self.set_timer(node, timer, after),
            BalanceAction::StartFill { move_id, buckets, taker } => {
                let fill = Fill { source: node, taker, giver: move_id.giver, buckets };
                self.start_fill(move_id, fill);
            }
            BalanceAction::NarrowFill { move_id, buckets } => {
                if let Some(fill) = self.fills.get_mut(&move_id).filter(|it| it.source == node) {
                    fill.buckets.retain(|bucket| buckets.contains(bucket));
                }
            }
            BalanceAction::CancelFill { move_id } => {
                self.fills.remove(&move_id);
            }
            BalanceAction::Propose { planned_at, changes } => {
                self.proposals_in_flight += 1;
                let after = self.rng.within(&self.weather.commit);
                self.push(after, Event::Commit { planned_at, changes });
            }
            BalanceAction::Decided(decision) => self.moved.decisions.push((self.now, decision)),
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, version: &Version, message: BalanceMessage) {
        self.moved.messages += 1;
        self.checkers.sends(from, version, &message);
        let linked_at = |node| self.nodes.get(&node).map_or(Moment::START, |it| it.linked_at);
        if self.now < linked_at(from).max(linked_at(to)) {
            return;
        }
        let alone = self.now + self.rng.within(&self.weather.delay);
        let arrival = self.links.arrival((from, to), alone);
        let input = BalanceInput::Message { from, message };
        self.events.push(arrival, Event::Input { node: to, input });
    }

    fn set_timer(&mut self, node: NodeId, timer: Timer, after: Duration) {
        self.push(after, Event::Input { node, input: BalanceInput::Timer(timer) });
    }

    fn start_fill(&mut self, move_id: MoveId, fill: Fill) {
        // Giver or taker may have forgotten the move before the source hears of it: then they discard what
        // the source sends.
        let expects = |node: NodeId| {
            let engagement = self.nodes.get(&node).and_then(|node| node.balancer.engagement());
            engagement.is_some_and(|engagement| engagement.move_id == move_id)
        };
        if expects(fill.taker) && expects(fill.giver) {
            self.checkers.fill_starts(&self.fills, &fill);
            let slots: usize = fill.buckets.iter().map(|bucket| bucket.slots().len()).sum();
            self.fills.insert(move_id, fill);
            let takes = self.weather.fill_of_a_slot * slots as u32;
            self.push(takes, Event::FillEnds { move_id });
        }
    }

    fn end_fill(&mut self, move_id: MoveId) {
        let Some(Fill { source, mut buckets, .. }) = self.fills.remove(&move_id) else { return };
        // A move that takes long ends before all its buckets are copied.
        if self.weather.cuts_moves_short && self.rng.chance(1, 4) {
            let copied = 1 + self.rng.below(buckets.len().max(1) as u64) as usize;
            buckets.truncate(copied);
        }
        self.input(source, BalanceInput::FillDone { move_id, buckets });
    }

    fn commit(&mut self, planned_at: Option<Epoch>, changes: &[Change]) {
        let before = self.log.head().clone();
        let outcomes = self.log.commit(planned_at, changes);
        let after = self.log.head().clone();
        if before.map.basis() != after.map.basis() {
            self.plan_done = 0;
        }
        self.checkers.committed(&before, &after, &outcomes);
        self.count(&outcomes);
        self.tell_all();
    }

    fn count(&mut self, outcomes: &[(Change, ChangeOutcome)]) {
        let applied = outcomes.iter().filter(|(_, outcome)| *outcome == ChangeOutcome::Applied);
        let applied: Vec<&Change> = applied.map(|(change, _)| change).collect();
        let promotes = |change: &&&Change| matches!(change, Change::Promote { .. });
        let copies = applied.iter().filter(|change| matches!(change, Change::AddBackup { .. }));
        self.moved.copies += copies.count();
        self.moved.map_steps += usize::from(!applied.is_empty());
        self.moved.primary_steps += usize::from(applied.iter().any(|change| promotes(&change)));
        // Giving a primary away promotes a node too, but that is part of the move.
        let alone = applied.iter().filter(promotes).filter(|it| is_alone(it, outcomes));
        self.moved.promotions += alone.count();
    }

    /// Sends the newest map to all members and former members.
    fn tell_all(&mut self) {
        let head = self.log.head().clone();
        for member in head.map.members() {
            let seed = self.rng.draw();
            if self.nodes.contains_key(&member.id) {
                continue;
            }
            let linked_at = self.now + self.weather.link;
            let (balancer, version) = (Balancer::new(member.id, seed), head.clone());
            self.nodes.insert(member.id, Node { balancer, linked_at, version });
            self.push(self.weather.link, Event::LinksUp { node: member.id });
        }
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in nodes {
            let after = self.rng.within(&self.weather.delay);
            self.push(after, Event::Map { node, version: head.clone() });
        }
    }

    /// Tells both ends of each link of a new node that it stands.
    fn link_up(&mut self, node: NodeId) {
        let (now, others) = (self.now, self.nodes.iter().filter(|(other, _)| **other != node));
        let linked = others.filter(|(_, other)| other.linked_at <= now);
        for other in linked.map(|(other, _)| *other).collect::<Vec<_>>() {
            self.input(other, BalanceInput::LinkUp { node });
            self.input(node, BalanceInput::LinkUp { node: other });
        }
    }

    fn show_map(&mut self, id: NodeId, version: Rc<Version>) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if version.map.epoch() < node.version.map.epoch() {
            return; // A newer map arrived first.
        }
        if version.map.member(id).is_none() {
            self.nodes.remove(&id);
            self.fills.retain(|_, fill| fill.source != id);
            return;
        }
        node.version = version;
        self.input(id, BalanceInput::MapChanged);
    }
}

/// Returns whether the entry changes nothing else of the bucket that this change is about.
pub(crate) fn is_alone(change: &Change, entry: &[(Change, ChangeOutcome)]) -> bool {
    entry.iter().filter(|(other, _)| other.bucket() == change.bucket()).count() == 1
}
