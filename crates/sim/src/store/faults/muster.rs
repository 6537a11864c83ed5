//! Preparations for a last fault: enough nodes, enough copies, and a cluster at rest.

use std::time::Duration;

use cluster::control::OperatorRequest;
use cluster::map::{NodeId, Setting};

use super::Faults;
use crate::store::run::is_at_rest;
use crate::store::world::{World, ms, tell};

/// Number of members with which one may fail, and buckets can move.
const MEMBERS: usize = 4;
/// Maximum time to come to rest; after it the fault strikes anyway.
const READY_WITHIN: Duration = Duration::from_secs(12);

impl Faults {
    /// Starts all processes that are down, lets nodes join until there are enough, sets the number of backups and
    /// waits until nothing is left to move.
    pub(super) fn muster(&mut self, world: &mut World, backups: u8) {
        tell!(world, "-- all processes are started, with {backups} backups");
        self.end(world);
        self.nodes_max = self.nodes_max.max(MEMBERS as u64);
        for _ in world.nodes.len() + world.joining.len()..MEMBERS {
            self.join(world);
        }
        let ids: Vec<NodeId> = world.nodes.keys().copied().collect();
        if let Some(some) = self.rng.choose(&ids).copied() {
            world.ask(some, OperatorRequest::Set(Setting::Backups(backups)));
        }
        let until = world.now + READY_WITHIN;
        world.run_until(world.now + ms(500));
        while world.now < until && world.broken.is_none() && !is_at_rest(world) {
            world.end_castaways();
            if world.has_vitals {
                world.tell_vitals();
            }
            world.run_until(world.now + ms(250));
        }
    }
}
