//! Faults, and their times. No fault ends a process that has the last copy of a bucket, with one exception
//! (`overlaps.rs`): nothing is promised in that case.

mod aimed; // Faults at the most dangerous moments.
mod disks; // Slow disks, full disks, and processes that end within a step.
mod last; // The last fault of a history.
mod muster; // Preparations for a last fault: nodes, copies, and rest.
mod overlaps; // A pause and a death at about the same time; a pause of all holders of a bucket.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster::Moment;
use cluster::control::OperatorRequest;
use cluster::map::{LeaveWay, Map, NodeId, Setting};
use placement::{Hashmask, Mask};

use super::clock::Clock;
use super::node::Node;
use super::run::Sky;
use super::world::{EndedProcess, World, ms, tell};
use crate::Rng;

/// Time for which the consequences of a fault go on after it is repaired.
const AFTERMATH: Duration = Duration::from_secs(4);

/// One of this many histories has more kinds of faults; the others find bugs that need many faults of one
/// kind.
const RICH: u64 = 5;
/// Time for which the place of a node that leaves for a while is kept.
const AWAY_FOR: Duration = Duration::from_secs(20);

pub(super) struct Faults {
    pub rng: Rng,
    sky: Sky,
    /// True if this history has more kinds of faults than others.
    is_rich: bool,
    nodes_max: u64,
    last_id: u64,
    /// Nodes affected by a fault, each with the time until which it counts as affected.
    bad: BTreeMap<NodeId, Moment>,
    /// Processes that will start again, each with the time of its start.
    down: Vec<(Moment, EndedProcess)>,
    /// Processes that are stopped for a while, each with the end of its pause.
    asleep: Vec<(Moment, NodeId)>,
    pub joins: u64,
}

impl Faults {
    pub(super) fn new(seed: u64, sky: Sky, nodes_max: u64) -> Faults {
        let rng = Rng::new(seed ^ 0xFA07_5EED);
        let (bad, down, asleep) = (BTreeMap::new(), Vec::new(), Vec::new());
        let is_rich = sky == Sky::Stormy && seed % RICH == RICH - 1;
        Faults { rng, sky, is_rich, nodes_max, last_id: 1, bad, down, asleep, joins: 0 }
    }

    pub(super) fn clock(&mut self) -> Clock {
        let rate = 900 + self.rng.below(201);
        let wall_off = i64::try_from(self.rng.below(2000)).unwrap_or(0) - 1000;
        Clock { rate, wall_off }
    }

    pub(super) fn join(&mut self, world: &mut World) {
        if self.is_full(world) {
            return;
        }
        self.last_id += 1;
        self.joins += 1;
        let clock = self.clock();
        tell!(world, "-- {} joins", self.last_id);
        world.join(self.last_id, clock);
    }

    fn is_full(&self, world: &World) -> bool {
        world.nodes.len() + world.joining.len() + self.down.len() >= self.nodes_max as usize
    }

    /// Injects a fault. Returns the pause until the next one.
    pub(super) fn strike(&mut self, world: &mut World) -> Duration {
        self.collect_who_ended(world);
        self.restart_due(world);
        self.wake_due(world);
        let ids: Vec<NodeId> = world.nodes.keys().copied().collect();
        if let Some(some) = self.rng.choose(&ids).copied() {
            if self.is_rich {
                self.vary(world, some);
            }
            match self.sky {
                Sky::Calm => self.calm(world, some),
                Sky::Stormy if self.rng.below(3) == 0 => self.calm(world, some),
                Sky::Stormy => self.storm(world, some),
            }
        }
        ms(50 + self.rng.below(1200))
    }

    /// Injects a fault that only some histories have: full memory, processes that come back with the data
    /// they kept, a node that reaches only one other, disks that are slow or fail.
    fn vary(&mut self, world: &mut World, some: NodeId) {
        match self.rng.below(9) {
            0 => self.fill_memory(world, some),
            1 | 2 => self.start_who_ended(world),
            3 => self.cut_from_some(world, some),
            4 => self.stop_all_holders(world),
            5 => self.stop_and_crash(world),
            6 => self.slow_disk(world, some),
            7 => self.end_within_a_step(world, some),
            _ => self.hold_slots(world, some),
        }
        world.tell_vitals();
    }

    /// Performs an action of an operator.
    fn calm(&mut self, world: &mut World, some: NodeId) {
        match self.rng.below(8) {
            0..=3 => self.join(world),
            4 if self.another_stays(world, some) && self.spares(world, &[some]) => {
                let is_back_soon = self.is_rich && self.rng.below(3) == 0;
                let way = if self.joins % 4 == 3 { LeaveWay::Quick } else { LeaveWay::Safe };
                let ask = if is_back_soon {
                    OperatorRequest::LeaveFor { absence: AWAY_FOR, way }
                } else {
                    OperatorRequest::Leave(way)
                };
                tell!(world, "-- {some} is asked to leave: {ask:?}");
                world.ask(some, ask);
            }
            5 => self.split(world, some),
            6 => {
                let lease = ms(400 + self.rng.below(1200));
                world.ask(some, OperatorRequest::Set(Setting::Lease(lease)));
            }
            _ => {
                let backups = [0, 1, 1, 1, 2, 2][self.rng.below(6) as usize];
                world.ask(some, OperatorRequest::Set(Setting::Backups(backups)));
            }
        }
    }

    /// Splits a bucket that is still large; thousands of buckets would only slow the run down.
    fn split(&mut self, world: &mut World, some: NodeId) {
        let Some(map) = world.map() else { return };
        let large = map.buckets().map(|bucket| bucket.hashmask);
        let large: Vec<Hashmask> = large.filter(|it| it.mask() == Mask::M000F).collect();
        if let Some(bucket) = self.rng.choose(&large).filter(|_| large.len() > 12) {
            tell!(world, "-- {bucket} is split");
            world.ask(some, OperatorRequest::Split(Some(*bucket)));
        }
    }

    fn storm(&mut self, world: &mut World, some: NodeId) {
        if !world.nodes.contains_key(&some) {
            return; // It ended while another fault was in progress.
        }
        match self.rng.below(15) {
            0 | 1 => self.crash(world, some),
            2 | 3 => self.crash_and_restart(world, some),
            4 | 5 | 12 => self.stop(world, some),
            6 => self.cut_off(world, some),
            7 | 8 => self.cut_pair(world, some),
            9 => self.slow_down(world, some),
            10 => self.heal(world),
            14 => self.mute_who_is_late(world),
            11 => {
                let node = world.nodes.get_mut(&some).expect("chosen from the nodes");
                node.clock.wall_off += i64::try_from(self.rng.below(60_000)).unwrap_or(0) - 30_000;
                world.clocks_set_at.push(world.now);
                tell!(world, "-- the wall clock of {some} is set");
            }
            _ => self.break_streams(world),
        }
    }

    fn crash(&mut self, world: &mut World, some: NodeId) {
        if self.spares(world, &[some]) && self.has_majority_without(world, some) {
            tell!(world, "-- {some} crashes");
            self.bad.insert(some, Moment::NEVER);
            world.kill(some);
        }
    }

    fn crash_and_restart(&mut self, world: &mut World, some: NodeId) {
        if !self.spares(world, &[some]) || world.nodes[&some].map().is_none() {
            return;
        }
        tell!(world, "-- {some} crashes and will be back");
        let back_at = world.now + ms(20 + self.rng.below(3000));
        self.bad.insert(some, back_at + AFTERMATH);
        if let Some(kept) = world.kill(some) {
            self.down.push((back_at, kept));
        }
    }

    fn restart_due(&mut self, world: &mut World) {
        let (due, later): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.down).into_iter().partition(|(at, _)| *at <= world.now);
        self.down = later;
        for (_, kept) in due {
            tell!(world, "-- {} starts again", kept.me.id);
            world.restart(kept);
        }
    }

    /// Restarts a process that was declared dead, or left for a while, with the data it has written down.
    fn start_who_ended(&mut self, world: &mut World) {
        if !self.is_full(world)
            && let Some(ended) = world.ended.pop()
            && !world.nodes.contains_key(&ended.me.id)
        {
            tell!(world, "-- {} starts again with what it has kept", ended.me.id);
            world.restart(ended);
        }
    }

    /// Fills the memory of a node. From then on it should serve as little as possible.
    fn fill_memory(&mut self, world: &mut World, some: NodeId) {
        tell!(world, "-- the memory of {some} is full");
        world.full.insert(some);
    }

    fn stop(&mut self, world: &mut World, some: NodeId) {
        if world.nodes[&some].is_stopped {
            return self.wake(world, some);
        }
        if self.spares(world, &[some]) {
            tell!(world, "-- {some} is stopped");
            self.bad.insert(some, Moment::NEVER);
            world.nodes.get_mut(&some).expect("chosen from the nodes").is_stopped = true;
            // Often for about as long as the others need to fail over, while clients still wait for this
            // node.
            let long = match self.rng.below(4) {
                0 => return,
                1 => 300 + self.rng.below(1_100),
                _ => 1_500 + self.rng.below(1_400),
            };
            self.asleep.push((world.now + ms(long), some));
        }
    }

    fn wake(&mut self, world: &mut World, some: NodeId) {
        tell!(world, "-- {some} goes on");
        self.bad.insert(some, world.now + AFTERMATH);
        world.go_on(some);
    }

    fn wake_due(&mut self, world: &mut World) {
        let now = world.now;
        let due: Vec<NodeId> =
            self.asleep.extract_if(.., |(at, _)| *at <= now).map(|(_, node)| node).collect();
        for node in due {
            if world.nodes.get(&node).is_some_and(|node| node.is_stopped) {
                self.wake(world, node);
            }
        }
    }

    fn others(&self, world: &World, node: NodeId) -> Vec<NodeId> {
        world.nodes.keys().copied().filter(|other| *other != node).collect()
    }

    fn cut_off(&mut self, world: &mut World, some: NodeId) {
        let others = self.others(world, some);
        if !self.spares(world, &[some]) {
            return;
        }
        tell!(world, "-- {some} is cut off");
        self.bad.insert(some, Moment::NEVER);
        let both = self.rng.below(3) > 0;
        let out = self.rng.below(2) == 0;
        for other in others {
            if both || out {
                world.network.cut.insert((some, other));
            }
            if both || !out {
                world.network.cut.insert((other, some));
            }
        }
    }

    /// Cuts the links between one node and all others but one; the rest reach each other. The fault is that
    /// one node's, so none of the others may be lost with it.
    fn cut_from_some(&mut self, world: &mut World, some: NodeId) {
        let leader = self.leader_of(world).map(|(leader, _)| leader);
        let some = leader.filter(|_| self.rng.below(2) == 0).unwrap_or(some);
        let others = self.others(world, some);
        if others.len() < 3 || !self.spares(world, &[some]) {
            return;
        }
        let reached = self.rng.below(others.len() as u64) as usize;
        tell!(world, "-- of all others {some} reaches only {}", others[reached]);
        self.bad.insert(some, Moment::NEVER);
        for other in others.iter().filter(|other| **other != others[reached]) {
            world.network.cut.extend([(some, *other), (*other, some)]);
        }
    }

    fn cut_pair(&mut self, world: &mut World, some: NodeId) {
        let ids: Vec<NodeId> = world.nodes.keys().copied().collect();
        let other = *self.rng.choose(&ids).expect("there is some");
        if other == some || !self.spares(world, &[some, other]) {
            return;
        }
        tell!(world, "-- from {some} nothing reaches {other}");
        self.bad.extend([(some, Moment::NEVER), (other, Moment::NEVER)]);
        world.network.cut.insert((some, other));
        if self.rng.below(2) == 0 {
            world.network.cut.insert((other, some));
        }
    }

    fn slow_down(&mut self, world: &mut World, some: NodeId) {
        if !self.spares(world, &[some]) {
            return;
        }
        tell!(world, "-- {some} is slow");
        self.bad.insert(some, Moment::NEVER);
        let extra = ms(20 + self.rng.below(800));
        let hears_late = self.rng.below(2) == 0;
        for other in self.others(world, some) {
            let way = if hears_late { (other, some) } else { (some, other) };
            world.network.slow.insert(way, extra);
        }
    }

    fn break_streams(&mut self, world: &mut World) {
        for stream in world.streams.which(|_| true) {
            if self.rng.below(3) == 0 {
                world.break_stream(stream);
            }
        }
    }

    pub(super) fn heal(&mut self, world: &mut World) {
        tell!(world, "-- all faults are repaired");
        world.network.mend(world.now);
        let stopped: Vec<NodeId> =
            world.nodes.values().filter(|node| node.is_stopped).map(|node| node.me.id).collect();
        stopped.into_iter().for_each(|node| world.go_on(node));
        world.full.clear();
        world.dies = None;
        world.nodes.values_mut().for_each(|node| node.disk_takes = Duration::ZERO);
        let until = world.now + AFTERMATH;
        let nodes = &world.nodes;
        for (node, bad_until) in &mut self.bad {
            if nodes.contains_key(node) {
                *bad_until = (*bad_until).min(until);
            }
        }
    }

    /// Repairs everything for good.
    pub(super) fn end(&mut self, world: &mut World) {
        self.heal(world);
        self.collect_who_ended(world);
        for (_, kept) in core::mem::take(&mut self.down) {
            world.restart(kept);
        }
    }

    /// Returns whether every bucket has a copy on an unaffected node if these nodes are affected as well.
    fn spares(&mut self, world: &World, more: &[NodeId]) -> bool {
        let Some(map) = world.map() else { return false };
        let now = world.now;
        self.bad.retain(|node, until| {
            map.member(*node).is_some() && (*until > now || !world.nodes.contains_key(node))
        });
        let bad: BTreeSet<NodeId> = self.bad.keys().chain(more).copied().collect();
        let is_well = |node: &NodeId| !bad.contains(node) && world.nodes.contains_key(node);
        map.buckets().all(|bucket| bucket.holders.iter().any(is_well))
    }

    /// Returns whether a member stays that nobody has asked to leave, besides this one. A cluster of which
    /// all nodes are asked to leave ends, with everything in it.
    fn another_stays(&self, world: &World, leaver: NodeId) -> bool {
        let Some(map) = world.map() else { return false };
        let others = world.nodes.iter().filter(|(id, node)| **id != leaver && stays(&map, node));
        world.nodes.len() > 2 && others.count() > 0
    }

    /// Returns whether a majority is unaffected without `missing`: of the voters, in the view of every node,
    /// and of all members, who may become voters soon.
    fn has_majority_without(&self, world: &World, missing: NodeId) -> bool {
        // A node that leaves, or is no longer a member, may have no vote when the missing one is noticed.
        let Some(map) = world.map() else { return false };
        let is_well = |node: &&NodeId| {
            **node != missing
                && world.nodes.get(node).is_some_and(|node| stays(&map, node))
                && !self.bad.contains_key(node)
        };
        let is_enough = |voters: &BTreeSet<NodeId>| {
            voters.is_empty() || 2 * voters.iter().filter(is_well).count() > voters.len()
        };
        let members: BTreeSet<NodeId> = map.members().iter().map(|member| member.id).collect();
        // On the way from one voter to three there are briefly two, and no change can commit without both.
        let is_seated = |voters: &BTreeSet<NodeId>| members.len() < 3 || voters.len() >= 3;
        is_enough(&members)
            && world.nodes.values().all(|node| {
                let configuration = node.control.configuration();
                is_seated(&configuration.voters)
                    && is_enough(&configuration.voters)
                    && is_enough(&configuration.voters_before)
            })
    }
}

/// Returns whether a node is a member that nobody has asked to leave.
fn stays(map: &Map, node: &Node) -> bool {
    map.member(node.me.id).is_some() && !node.control.is_leaving()
}
