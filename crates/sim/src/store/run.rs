//! One history from a seed: a cluster that grows, clients, faults; then all faults are repaired, everything
//! comes to rest, and the history is judged.

use core::fmt;
use std::time::Duration;

use cluster::map::{Ack, ClusterSettings, NodeId};
use placement::Mask;
use sim_engine::Quality;

use super::Sabotage;
use super::clients::{BRIEF, KEYS, LOCK, LOCK_MILLIS, Work};
use super::faults::Faults;
use super::linear::{self, Admission};
use super::node::Node;
use super::world::{World, ms};
use crate::Rng;

/// Maximum difference between the wall clocks of two nodes.
const SKEW_MAX: Duration = Duration::from_secs(4);

/// The conditions of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sky {
    /// Nodes come and go, buckets split, settings change.
    Calm,
    /// In addition, machines and networks fail.
    Stormy,
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub seed: u64,
    pub sky: Sky,
    pub sabotage: Option<Sabotage>,
    /// True if the run prints its events to the standard output.
    pub tells: bool,
}

/// Result of a run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Report {
    pub answered: u64,
    pub acknowledged: u64,
    pub members: usize,
    /// True if a bucket was recreated without all its data, so that nothing was promised for it.
    pub lost: bool,
    /// Number of keys whose history was too tangled to judge.
    pub unknown: usize,
}

/// A broken invariant. Its text says how to reproduce it.
#[derive(Clone, Debug)]
pub struct Failure {
    pub run: Run,
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}\nreproduce with: {}", self.run.seed, self.what, self.run)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sky = match self.sky {
            Sky::Calm => " --calm",
            Sky::Stormy => "",
        };
        write!(f, "cargo run -- sim faults --seeds {}{sky}", self.seed)?;
        if let Some(sabotage) = self.sabotage {
            write!(f, " --without {sabotage}")?;
        }
        write!(f, " --trace")
    }
}

const BUSY: Duration = Duration::from_secs(14);
/// Maximum time until everything is at rest after the last fault.
const REST_WITHIN: Duration = Duration::from_secs(120);

/// Prints how to reproduce a run if the code under test panics.
struct OnPanic(Run);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("panicked; reproduce with: {}", self.0);
        }
    }
}

pub fn run(run: Run) -> Result<Report, Failure> {
    let _on_panic = OnPanic(run);
    let failure = |what: String| Failure { run, what };
    let _broken = Sabotage::begin(run.sabotage);
    let mut rng = Rng::new(run.seed);
    let quality = Quality {
        delay_us: (100, 500 + rng.below(8_000)),
        lost: if run.sky == Sky::Calm { 0 } else { rng.below(40) },
        doubled: rng.below(30),
        broken: if run.sky == Sky::Calm { 0 } else { rng.below(4) },
    };
    let mut world = World::new(run.seed, quality, 3 + rng.below(3) as usize);
    world.sabotage = run.sabotage;
    world.tells = run.tells;
    world.network.queues = run.seed % 2 == 1;
    let nodes_max = 1 + rng.below(9);
    let mut faults = Faults::new(run.seed, run.sky, nodes_max);
    let fill_rate = [None, Some(128 << 10), Some(1 << 20)][rng.below(3) as usize];
    // With hundreds of buckets a history takes long; operators still split single ones. Some histories begin with
    // 256: those move together.
    let min_buckets = 1;
    world.mask = if run.seed % 5 == 4 { Mask::M00FF } else { Mask::M000F };
    let backups = 1 + rng.below(2) as u8;
    // Some clusters promise less, some more.
    let ack = if run.seed % 16 == 5 { Ack::Primary } else { Ack::Backup };
    let min_copies = if run.seed % 8 == 3 { 2 } else { 1 };
    let leave_timeout = ms(if run.seed % 4 == 1 { 2_000 } else { 30_000 });
    world.is_linear = ack == Ack::Backup;
    world.evicts = run.seed % 10 == 7;
    let settings = ClusterSettings {
        two_node_takeover: false,
        fill_rate,
        min_buckets,
        backups,
        ack,
        min_copies,
        leave_timeout,
        ..ClusterSettings::default()
    };
    let clock = faults.clock();
    world.found(settings, clock);
    for _ in 0..rng.below(nodes_max.min(5)) {
        faults.join(&mut world);
    }
    let busy_until = world.now + BUSY;
    while world.now < busy_until && world.broken.is_none() && !world.nodes.is_empty() {
        let pause = faults.strike(&mut world);
        let until = world.now + pause;
        while let Some(node) = world.run_to_handover(until) {
            faults.strike_at_handover(&mut world, node);
        }
    }
    faults.strike_last(&mut world);
    faults.end(&mut world);
    come_to_rest(&mut world).map_err(failure)?;
    judge(&world).map_err(failure)
}

pub(super) fn come_to_rest(world: &mut World) -> Result<(), String> {
    let end = world.now + REST_WITHIN;
    while world.broken.is_none() && !is_at_rest(world) {
        if world.now >= end {
            return Err(format!("not at rest after {REST_WITHIN:?}\n{}", picture(world)));
        }
        world.end_castaways();
        if world.has_vitals {
            world.tell_vitals();
        }
        world.run_until(world.now + ms(250));
    }
    if let Some(broken) = &world.broken {
        return Err(broken.clone());
    }
    // Clients finish their requests, and read every key once more.
    world.is_busy = false;
    world.run_until(world.now + ms(4_000));
    for (client, key) in (0..world.clients.all.len()).cycle().zip(KEYS) {
        world.read(client, key);
        if !is_answered(world, client, ms(500)) {
            return Err(format!("nobody answers for {key} at rest\n{}", picture(world)));
        }
    }
    walks_end(world)?;
    nothing_is_left(world)?;
    world.checkers.compare_copies(&world.nodes)
}

/// Runs until a client is answered; returns false if it is not answered in time.
fn is_answered(world: &mut World, client: usize, within: Duration) -> bool {
    let until = world.now + within;
    while world.now < until && world.clients.is_waiting(client) && world.broken.is_none() {
        world.run_until(world.now + ms(5));
    }
    !world.clients.is_waiting(client)
}

/// Checks that at rest every node answers a walk over its keys, and WAIT.
fn walks_end(world: &mut World) -> Result<(), String> {
    for node in world.nodes.keys().copied().collect::<Vec<_>>() {
        for work in [Work::Keys, Work::Scan, Work::CountKeys, Work::Wait] {
            world.clients.all[0].asks = Some(node);
            world.work(0, BRIEF, work.clone());
            if !is_answered(world, 0, ms(2_000)) {
                return Err(format!("{work:?} hangs on {node} at rest\n{}", picture(world)));
            }
        }
    }
    Ok(())
}

/// Checks that at rest nothing waits: no request, no reply, no unacknowledged or unread frame, no refusal.
fn nothing_is_left(world: &World) -> Result<(), String> {
    for node in world.nodes.values() {
        let left = if !node.counter.is_idle() {
            "a request or a reply waits"
        } else if node.plane.has_unacknowledged() {
            "a frame is not acknowledged"
        } else if !node.waiting_streams().is_empty() {
            "a frame is not read"
        } else if node.plane.has_refusals() {
            "a refusal is remembered"
        } else {
            continue;
        };
        return Err(format!("{left} on {} at rest\n{}", node.me.id, picture(world)));
    }
    Ok(())
}

/// Returns whether all nodes have the same map and a lease, and nothing is left to move.
pub(super) fn is_at_rest(world: &World) -> bool {
    let Some(map) = world.map() else { return true };
    let is_settled = |node: &Node| {
        node.map().is_some_and(|known| known == map)
            && node.has_lease(world.now)
            && node.control.engagement().is_none()
            && !node.mover.is_busy()
            && node.control.plan().is_none_or(|plan| plan.is_done(&map))
    };
    let members: Vec<NodeId> = map.members().iter().map(|member| member.id).collect();
    let full = |it: &cluster::map::Bucket| it.holders.len() == map.copies_wanted();
    world.joining.is_empty()
        && world.returning.is_empty()
        && world.nodes.keys().copied().eq(members)
        && world.nodes.values().all(is_settled)
        && map.buckets().all(full)
}

pub(super) fn judge(world: &World) -> Result<Report, String> {
    if let Some(broken) = &world.broken {
        return Err(broken.clone());
    }
    let mut report = Report {
        answered: world.clients.answered,
        acknowledged: world.checkers.checked,
        members: world.nodes.len(),
        lost: world.checkers.has_lost(),
        unknown: 0,
    };
    locks_have_one_holder(world)?;
    let is_promised = |key: &str| world.is_linear && !world.checkers.is_lost(key);
    let judged = world.clients.calls.iter().filter(|(key, _)| **key != BRIEF && is_promised(key));
    for (key, calls) in judged {
        match linear::judge(calls) {
            Admission::Linear => {}
            Admission::Unknown => report.unknown += 1,
            Admission::Not => {
                let lines = calls.iter().map(|call| format!("  {call:?}\n"));
                return Err(format!(
                    "the history of {key} is not linearizable:\n{}",
                    lines.collect::<String>()
                ));
            }
        }
    }
    Ok(report)
}

/// Checks that a lock is granted to nobody else during its time to live, by any clock that is not too fast.
/// If another node has taken over meanwhile, its clock may be ahead of the previous one.
fn locks_have_one_holder(world: &World) -> Result<(), String> {
    if !world.is_linear || world.checkers.is_lost(LOCK) || world.evicts {
        return Ok(());
    }
    let whole = ms(LOCK_MILLIS) * 9 / 10;
    for (place, first) in world.clients.grants.iter().enumerate() {
        for second in &world.clients.grants[place + 1..] {
            let (early, late) =
                if first.sent_at <= second.sent_at { (first, second) } else { (second, first) };
            let lasts =
                if early.reign == late.reign { whole } else { whole.saturating_sub(SKEW_MAX) };
            let between = early.sent_at..=late.heard_at;
            let excused = world.clients.was_flushed_between(early.sent_at, late.heard_at)
                || world.clocks_set_at.iter().any(|at| between.contains(at));
            if late.heard_at < early.sent_at + lasts && !excused {
                return Err(format!("a lock has two holders: {early:?} and {late:?}"));
            }
        }
    }
    Ok(())
}

pub(super) fn picture(world: &World) -> String {
    let line = |node: &Node| {
        format!(
            "{} leader {:?} applied {} lease {} member {} stopped {} voters {:?} members {:?} engaged {:?} busy {} parked {}\n{}",
            node.me.id,
            node.control.leader(),
            node.control.applied(),
            node.has_lease(world.now),
            node.control.is_member(),
            node.is_stopped,
            node.control.configuration().voters,
            node.map().map(|map| map
                .members()
                .iter()
                .map(|it| (it.id.0, it.weight))
                .collect::<Vec<_>>()),
            node.control.engagement(),
            node.mover.is_busy(),
            node.has_parked(),
            node.wires(),
        )
    };
    let degraded = world.map().map(|map| {
        let wanted = map.copies_wanted();
        let few = map.buckets().filter(|bucket| bucket.holders.len() != wanted);
        few.map(|bucket| format!("{} {:?} ", bucket.hashmask, bucket.holders)).collect::<String>()
    });
    let joining = format!("joining {:?}", world.joining.keys());
    world.nodes.values().map(line).chain([joining]).chain(degraded).collect()
}
