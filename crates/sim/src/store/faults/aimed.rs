//! Faults aimed at the moments in which a single rule prevents an accident.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::Moment;
use cluster::control::Control;
use cluster::map::NodeId;

use super::Faults;
use crate::store::run::Sky;
use crate::store::world::{World, ms, tell};

/// Maximum time to wait for something that should happen.
const SOON: Duration = Duration::from_secs(3);

impl Faults {
    /// Sometimes strikes a node that has just begun to hand over a bucket: it then receives all messages of
    /// the others late.
    pub(in crate::store) fn strike_at_handover(&mut self, world: &mut World, node: NodeId) {
        let strikes = self.sky == Sky::Stormy && self.rng.below(4) == 0;
        if strikes && self.spares(world, &[node]) {
            tell!(world, "-- {node} hears everything late");
            self.bad.insert(node, Moment::NEVER);
            let extra = ms(20 + self.rng.below(500));
            self.others(world, node).into_iter().for_each(|other| {
                world.network.slow.insert((other, node), extra);
            });
        }
    }

    /// Cuts off all messages from a node that receives everything late: it may rely on old answers.
    pub(super) fn mute_who_is_late(&mut self, world: &mut World) {
        let late: BTreeSet<NodeId> = world.network.slow.keys().map(|(_, to)| *to).collect();
        let late: Vec<NodeId> =
            late.into_iter().filter(|node| self.bad.contains_key(node)).collect();
        let Some(node) = self.rng.choose(&late).copied() else { return };
        tell!(world, "-- nobody hears {node}, which hears everything late");
        self.bad.insert(node, Moment::NEVER);
        for other in self.others(world, node) {
            world.network.cut.insert((node, other));
        }
    }

    /// Reconnects a voter that is proposed as dead before that is committed, so that its own vote commits it;
    /// then cuts it off again.
    pub(super) fn hear_the_condemned(&mut self, world: &mut World) {
        let Some((leader, voters)) = self.leader_of(world) else { return };
        let followers: Vec<NodeId> = voters.iter().copied().filter(|it| *it != leader).collect();
        let Some(victim) = self.rng.choose(&followers).copied() else { return };
        if voters.len() < 3 || !self.spares(world, &[victim]) {
            return;
        }
        tell!(world, "-- {victim} is cut off, and heard again when {leader} has given it up");
        self.bad.insert(victim, Moment::NEVER);
        let both = |one: NodeId, other: NodeId| [(one, other), (other, one)];
        let ways = self.others(world, victim).into_iter().flat_map(|other| both(victim, other));
        world.network.cut = ways.collect();
        wait(world, |world| leading(world, leader).is_none_or(|it| it.is_about_to_condemn(victim)));
        // The leader and the voters it reaches, without the victim, are one short of a majority.
        let unheard = followers.iter().filter(|it| **it != victim).skip(voters.len() / 2 - 1);
        let unheard: BTreeSet<_> = unheard.map(|other| (leader, *other)).collect();
        world.network.cut.extend(&unheard);
        wait(world, |world| leading(world, leader).is_none_or(|it| it.condemns(victim)));
        world.network.cut.remove(&(victim, leader));
        world.run_until(world.now + ms(100 + self.rng.below(200)));
        world.network.cut.remove(&(leader, victim));
        wait(world, |world| {
            let has_lease = world.nodes.get(&victim).is_none_or(|it| it.has_lease(world.now));
            has_lease || leading(world, leader).is_none_or(|it| !it.condemns(victim))
        });
        world.network.cut.insert((leader, victim));
        world.network.cut.retain(|way| !unheard.contains(way));
        world.run_until(world.now + ms(500));
    }

    /// Returns the leader, by its own account, and its voters, if all of them are unaffected.
    pub(super) fn leader_of(&self, world: &World) -> Option<(NodeId, BTreeSet<NodeId>)> {
        let leads = |id: &&NodeId| world.nodes[*id].control.leads();
        let leader = *world.nodes.keys().find(leads)?;
        let configuration = world.nodes[&leader].control.configuration();
        let is_here = |id: &NodeId| world.nodes.contains_key(id) && !self.bad.contains_key(id);
        let is_calm = configuration.voters_before.is_empty();
        let all_here = configuration.voters.iter().all(is_here);
        (is_calm && all_here).then(|| (leader, configuration.voters.clone()))
    }
}

/// Runs until the condition holds, but not forever.
pub(super) fn wait(world: &mut World, is_so: impl Fn(&World) -> bool) {
    let end = world.now + SOON;
    while world.now < end && world.broken.is_none() && !is_so(world) {
        world.run_until(world.now + Duration::from_micros(500));
    }
}

/// Returns the control plane of the node, if it leads.
fn leading(world: &World, leader: NodeId) -> Option<&Control> {
    let control = world.nodes.get(&leader).map(|node| &node.control);
    control.filter(|control| control.leads())
}
