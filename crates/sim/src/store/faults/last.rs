//! The last fault of a history, after everything is repaired: each is aimed at one rule, with a client whose
//! requests show whether the rule is missing.

use cluster::Moment;
use cluster::map::{Bucket, NodeId};
use placement::Slot;

use super::aimed::wait;
use super::{AFTERMATH, Faults};
use crate::store::clients::{COUNTER, KEYS, Work};
use crate::store::linear::Op;
use crate::store::run::Sky;
use crate::store::world::{World, ms, tell};

/// Clients of these faults.
const WRITER: usize = 0;
const READER: usize = 1;

/// A key and the holders of its bucket, the primary first.
struct Target {
    key: &'static str,
    slot: Slot,
    holders: Vec<NodeId>,
}

impl Target {
    fn primary(&self) -> NodeId {
        self.holders[0]
    }
}

impl Faults {
    /// Repairs everything, and then injects the last fault.
    pub(in crate::store) fn strike_last(&mut self, world: &mut World) {
        let blow = self.rng.below(9);
        if self.sky == Sky::Calm || (blow == 0 && self.rng.below(2) == 0) {
            return;
        }
        self.heal(world);
        world.network.quality.lost = 0;
        world.run_until(world.now + AFTERMATH);
        match blow {
            1 | 2 | 7 => self.muster(world, 2),
            0 | 6 | 8 => self.muster(world, 1),
            _ => {}
        }
        match blow {
            0 => self.ask_who_is_granted_late(world),
            1 | 2 => self.kill_who_has_told_one(world),
            3 => self.close_the_lid(world),
            4 | 5 => self.hear_the_condemned(world),
            6 => self.ask_who_was_replaced(world),
            7 => self.deliver_after_the_reign(world),
            _ => self.ask_who_hands_over(world),
        }
    }

    /// Draws a key whose bucket has at least `backups` backups, and whose primary may fail.
    fn draw_target(&mut self, world: &World, backups: usize) -> Option<Target> {
        let map = world.map()?;
        let bucket = |key: &&'static str| map.bucket_of(Slot::of(key.as_bytes()));
        let is_fit = |key: &&'static str| {
            let bucket: &Bucket = bucket(key);
            *key != COUNTER && !bucket.holders.is_empty() && bucket.backups().len() >= backups
        };
        let fit: Vec<&'static str> = KEYS.iter().copied().filter(is_fit).collect();
        let key = self.rng.choose(&fit).copied()?;
        let target =
            Target { key, slot: Slot::of(key.as_bytes()), holders: bucket(&key).holders.to_vec() };
        let primary = target.primary();
        let can_be_missed =
            self.spares(world, &[primary]) && self.has_majority_without(world, primary);
        can_be_missed.then_some(target)
    }

    /// Kills a primary when one of its backups has received less than the other; nobody writes after that.
    fn kill_who_has_told_one(&mut self, world: &mut World) {
        let Some(target) = self.draw_target(world, 2) else { return };
        let primary = target.primary();
        let backup = *self.rng.choose(&target.holders[1..]).expect("there are two");
        tell!(world, "-- from {primary} nothing reaches {backup}, and then it dies");
        world.network.cut.insert((primary, backup));
        world.work_at(WRITER, primary, target.key, Work::One(Op::Append("half.".into())));
        world.run_until(world.now + ms(20 + self.rng.below(100)));
        self.crash(world, primary);
        world.is_busy = false;
    }

    /// Stops a primary until another node has taken over and a write there is acknowledged. A client that
    /// does not know of it reads from the old primary, whose workers are the first to wake.
    fn ask_who_was_replaced(&mut self, world: &mut World) {
        let Some(target) = self.draw_target(world, 1) else { return };
        let old = target.primary();
        tell!(world, "-- {old} is stopped, and asked for {} when it was replaced", target.key);
        self.put_to_sleep(world, old);
        let Some(new_primary) = wait_for_another(world, &target) else { return };
        world.work_at(WRITER, new_primary, target.key, Work::One(Op::Set("newer.".into())));
        wait(world, |world| !world.clients.is_waiting(WRITER));
        world.work_at(READER, old, target.key, Work::One(Op::Get));
        world.run_until(world.now + ms(5));
        self.bad.insert(old, world.now + AFTERMATH);
        world.go_on_by(old, true);
    }

    /// Delays the grants of leases to a primary, then cuts off its requests. It is replaced as soon as its lease has
    /// surely ended, counted from its last request; a client that does not know of it reads from it just then.
    fn ask_who_is_granted_late(&mut self, world: &mut World) {
        let Some(target) = self.draw_target(world, 1) else { return };
        let old = target.primary();
        if world.nodes.get(&old).is_none_or(|it| it.control.leads()) {
            return;
        }
        tell!(world, "-- {old} is granted leases late, replaced, and asked for {}", target.key);
        self.bad.insert(old, Moment::NEVER);
        // Longer than the leader's margin of a quarter, short enough not to lose the lease.
        let lease = world.map().map_or(ms(1_000), |map| map.settings().lease);
        for other in self.others(world, old) {
            world.network.slow.insert((other, old), lease * 3 / 5);
        }
        world.run_until(world.now + lease);
        for other in self.others(world, old) {
            world.network.cut.insert((old, other));
        }
        let Some(new_primary) = wait_for_another(world, &target) else { return };
        world.work_at(WRITER, new_primary, target.key, Work::One(Op::Set("newer.".into())));
        wait(world, |world| !world.clients.is_waiting(WRITER));
        world.work_at(READER, old, target.key, Work::One(Op::Get));
        world.run_until(world.now + ms(50));
        self.bad.insert(old, world.now + AFTERMATH);
    }

    /// Stops a primary while one of its writes is in flight to one of its backups. The write arrives in the
    /// next reign, and nobody writes after that.
    fn deliver_after_the_reign(&mut self, world: &mut World) {
        let Some(target) = self.draw_target(world, 2) else { return };
        let (old, late) = (target.primary(), *target.holders.last().expect("there are three"));
        tell!(world, "-- a write of {old} to {} comes to {late} in the next reign", target.key);
        world.is_busy = false;
        world.run_until(world.now + ms(500));
        let others = target.holders[1..].iter().filter(|it| **it != late);
        world.network.cut.extend(others.map(|other| (old, *other)));
        world.network.slow.insert((old, late), ms(6_000));
        world.work_at(WRITER, old, target.key, Work::One(Op::Append("late.".into())));
        world.run_until(world.now + ms(5 + self.rng.below(20)));
        self.put_to_sleep(world, old);
        world.run_until(world.now + ms(8_000));
    }

    /// Delays the messages to a primary that gives a bucket away to a new node: it learns late that the
    /// handover is done, and that it no longer holds the bucket. A write to the next primary is acknowledged;
    /// a client that does not know of it either reads from the old one.
    fn ask_who_hands_over(&mut self, world: &mut World) {
        // Many nodes join at once, so that many buckets move.
        let comers = 1 + world.nodes.len() / 2;
        self.nodes_max = self.nodes_max.max((world.nodes.len() + comers) as u64);
        (0..comers).for_each(|_| self.join(world));
        wait(world, |world| gift(world).is_some());
        let Some(target) = gift(world) else { return };
        let old = target.primary();
        tell!(world, "-- {old} hands over, hears everything late, and is asked for {}", target.key);
        self.bad.insert(old, world.now + AFTERMATH);
        // As late as possible without losing the lease, which runs from the time of the request.
        let late = world.map().map_or(ms(300), |map| map.settings().lease * 3 / 5);
        for other in self.others(world, old) {
            world.network.slow.insert((other, old), late);
        }
        let Some(new_primary) = wait_for_another(world, &target) else { return };
        // While the old primary is a backup of the new one, no write is acknowledged without it.
        let is_held = |world: &World| {
            world.map().is_some_and(|map| map.bucket_of(target.slot).is_held_by(old))
        };
        wait(world, |world| !is_held(world));
        world.work_at(WRITER, new_primary, target.key, Work::One(Op::Set("newer.".into())));
        wait(world, |world| !world.clients.is_waiting(WRITER));
        world.work_at(READER, old, target.key, Work::One(Op::Get));
        wait(world, |world| !world.clients.is_waiting(READER));
    }

    fn put_to_sleep(&mut self, world: &mut World, node: NodeId) {
        self.bad.insert(node, Moment::NEVER);
        if let Some(node) = world.nodes.get_mut(&node) {
            node.is_stopped = true;
        }
    }

    /// Suspends all nodes, as a closed laptop does, and wakes them one shortly after the other.
    fn close_the_lid(&mut self, world: &mut World) {
        world.run_until(world.now + AFTERMATH);
        tell!(world, "-- all nodes are suspended");
        world.lid_since = Some(world.now);
        let ids: Vec<NodeId> = world.nodes.keys().copied().collect();
        let since: Vec<_> = world.nodes.values().map(|node| (node.me, node.runs_since)).collect();
        world.nodes.values_mut().for_each(|node| node.is_stopped = true);
        world.run_until(world.now + ms(1_500 + self.rng.below(10_000)));
        let first = self.rng.below(ids.len().max(1) as u64) as usize;
        for id in ids.iter().cycle().skip(first).take(ids.len()) {
            tell!(world, "-- {id} is awake");
            world.go_on(*id);
            world.run_until(world.now + ms(self.rng.below(60)));
        }
        world.lid_since = None;
        for (process, since) in since {
            if let Some(node) = world.nodes.get_mut(&process.id).filter(|it| it.me == process) {
                node.runs_since = since;
            }
        }
    }
}

/// Returns a key whose bucket has one copy more than wanted and is being handed over: its first primary will
/// drop its copy. That primary must not lead: a leader would know of it before all others.
fn gift(world: &World) -> Option<Target> {
    let map = world.map()?;
    let target = |key: &'static str| {
        let slot = Slot::of(key.as_bytes());
        Target { key, slot, holders: map.bucket_of(slot).holders.to_vec() }
    };
    let is_gift = |target: &Target| {
        let first = target.holders.first().and_then(|node| world.nodes.get(node));
        target.holders.len() > map.copies_wanted()
            && first.is_some_and(|it| it.is_handing_over(target.slot) && !it.control.leads())
    };
    KEYS.into_iter().filter(|key| *key != COUNTER).map(target).find(is_gift)
}

/// Runs until a node other than its primary answers for the target.
fn wait_for_another(world: &mut World, target: &Target) -> Option<NodeId> {
    let new_primary = |world: &World| {
        let others = world.nodes.values().filter(|it| it.me.id != target.primary());
        let mut serving = others.filter(|it| !it.is_stopped && it.serves(target.slot, world.now));
        serving.next().map(|node| node.me.id)
    };
    wait(world, |world| new_primary(world).is_some());
    new_primary(world)
}
