//! Pauses that overlap with deaths in every order, and pauses of all holders of a bucket. A process that is
//! only paused comes back with all its data, with or without a data directory.

use std::collections::BTreeSet;

use cluster::Moment;
use cluster::map::{Map, NodeId};
use placement::Slot;

use super::Faults;
use crate::store::clients::KEYS;
use crate::store::world::{World, ms, tell};

impl Faults {
    /// Stops all holders of some key's bucket, often for longer than it takes to be declared dead.
    pub(super) fn stop_all_holders(&mut self, world: &mut World) {
        let Some(map) = world.map() else { return };
        let key = KEYS[self.rng.below(KEYS.len() as u64) as usize];
        let holders = map.bucket_of(Slot::of(key.as_bytes())).holders.clone();
        let runs = |node: &NodeId| world.nodes.get(node).is_some_and(|node| !node.is_stopped);
        if holders.is_empty() || !holders.iter().all(runs) {
            return;
        }
        tell!(world, "-- all who hold {key} are stopped: {holders:?}");
        for node in holders {
            self.stop_for(world, node, 500, 5_000);
            world.run_until(world.now + ms(self.rng.below(2) * self.rng.below(400)));
        }
    }

    /// Stops one node and crashes another at about the same time, in either order.
    pub(super) fn stop_and_crash(&mut self, world: &mut World) {
        let mut running = self.running(world);
        self.rng.shuffle(&mut running);
        let [stopped, crashes, ..] = running[..] else { return };
        // In half of the cases, buckets that only both hold may be lost: then the only promise is that all go
        // on.
        let spares = self.spares(world, &[stopped, crashes]) || self.rng.below(2) == 0;
        if !spares || !self.can_decide_without(world, crashes) {
            return;
        }
        let apart = ms(self.rng.below(2_500));
        if self.rng.below(2) == 0 {
            self.stop_for(world, stopped, 1_000, 4_000);
            world.run_until(world.now + apart);
            self.crash_if_others_can_decide(world, crashes);
        } else {
            self.crash_if_others_can_decide(world, crashes);
            world.run_until(world.now + apart / 2);
            if world.nodes.contains_key(&stopped) {
                self.stop_for(world, stopped, 1_000, 4_000);
            }
        }
    }

    fn running(&self, world: &World) -> Vec<NodeId> {
        let running = world.nodes.values().filter(|node| !node.is_stopped);
        running.map(|node| node.me.id).filter(|node| !self.bad.contains_key(node)).collect()
    }

    fn stop_for(&mut self, world: &mut World, node: NodeId, least: u64, most: u64) {
        let Some(found) = world.nodes.get_mut(&node) else { return };
        found.is_stopped = true;
        let until = world.now + ms(least + self.rng.below(most - least));
        tell!(world, "-- {node} is stopped until {:.3}", until.clock_reading().as_secs_f64());
        self.bad.insert(node, Moment::NEVER);
        self.asleep.push((until, node));
    }

    fn crash_if_others_can_decide(&mut self, world: &mut World, node: NodeId) {
        if world.nodes.contains_key(&node) && self.can_decide_without(world, node) {
            tell!(world, "-- {node} crashes");
            self.bad.insert(node, Moment::NEVER);
            world.kill(node);
        }
    }

    /// Returns whether a majority of processes runs or will go on without `missing`: of the voters, in the
    /// view of every node, and of all members, who may become voters soon.
    fn can_decide_without(&self, world: &World, missing: NodeId) -> bool {
        let is_there = |node: &&NodeId| {
            **node != missing
                && (world.nodes.contains_key(node) || world.returning.contains_key(node))
        };
        let is_enough = |voters: &BTreeSet<NodeId>| {
            voters.is_empty() || 2 * voters.iter().filter(is_there).count() > voters.len()
        };
        let members = |map: &Map| map.members().iter().map(|member| member.id).collect();
        let leaves = world.nodes.values().any(|node| node.control.is_leaving());
        !leaves
            && world.map().is_some_and(|map| is_enough(&members(&map)))
            && world.nodes.values().all(|node| {
                let configuration = node.control.configuration();
                is_enough(&configuration.voters) && is_enough(&configuration.voters_before)
            })
    }
}
