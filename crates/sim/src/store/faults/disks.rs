//! Disks that are slow, full or fail to sync, commands that hold slots for long, and processes that end between two
//! effects of one step.

use cluster::Moment;
use cluster::map::NodeId;

use super::{AFTERMATH, Faults};
use crate::store::steps::Death;
use crate::store::world::{World, ms, tell};

impl Faults {
    /// Makes a disk slow: the control thread waits for each promise it persists, sometimes for longer than a
    /// lease.
    pub(super) fn slow_disk(&mut self, world: &mut World, some: NodeId) {
        if !self.spares(world, &[some]) {
            return;
        }
        let takes = ms([5, 40, 300, 1_200][self.rng.below(4) as usize]);
        if let Some(node) = world.nodes.get_mut(&some) {
            node.disk_takes = takes;
            self.bad.insert(some, Moment::NEVER);
            tell!(world, "-- the disk of {some} takes {takes:?}");
        }
    }

    /// Makes a long command hold the locks that the node's next map needs, sometimes for longer than a lease.
    pub(super) fn hold_slots(&mut self, world: &mut World, some: NodeId) {
        let lasts = ms(50 + self.rng.below(3_000));
        if self.spares(world, &[some]) {
            self.bad.insert(some, world.now + lasts + AFTERMATH);
            world.block_applier(some, lasts);
        }
    }

    /// Makes a process end in the middle of something; another one starts in its place.
    pub(super) fn end_within_a_step(&mut self, world: &mut World, some: NodeId) {
        let has_a_map = world.nodes.get(&some).is_some_and(|node| node.map().is_some());
        if world.dies.is_some() || !has_a_map || !self.spares(world, &[some]) {
            return;
        }
        let death = match self.rng.below(4) {
            0 => Death::BeforeWriting,
            1 => Death::AfterWriting,
            _ => Death::After(self.rng.below(12)),
        };
        tell!(world, "-- {some} is to end within a step: {death:?}");
        self.bad.insert(some, Moment::NEVER);
        world.dies = Some((some, death));
    }

    /// Schedules the restart of processes that ended within a step.
    pub(super) fn collect_who_ended(&mut self, world: &mut World) {
        for kept in core::mem::take(&mut world.died) {
            let back_at = world.now + ms(20 + self.rng.below(3_000));
            self.bad.insert(kept.me.id, back_at + AFTERMATH);
            self.down.push((back_at, kept));
        }
    }
}
