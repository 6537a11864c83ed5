//! Executes one command: admits it, locks its slots, checks them with the gate, runs it, ships its effects, and
//! returns its tickets. The server's workers and the simulator's nodes both use this function.

use core::ops::{Deref, DerefMut};
use std::collections::BTreeSet;

use cluster::map::NodeId;
use cluster::replication::SlotReplica;
use cluster::serving::{
    Access, Denied, EffectLog, Finished, LockedSlots, Need, Obstacle, ServedSlot, ServedSlots,
    ServingPlane, WalkedCopies,
};
use placement::{Slot, SplitMix64};
use resp::{Output, Reply};

use crate::admit::{Admission, admit_at_once, admit_by_all_checks};
use crate::keyspace::wait::WAIT;
use crate::{
    Block, CommandEnv, Context, Ending, Error, Host, Keys, LockSet, Outcome, Request, Session,
    Slots, Spec, run,
};

/// The node-wide rules for running commands.
#[derive(Clone, Copy)]
pub struct ServingRules<'a> {
    pub has_lease: bool,
    /// Writes to a bucket with fewer copies wait.
    pub min_copies: usize,
    /// True if replies wait for backups (`ack = "backup"`).
    pub waits_for_backups: bool,
    /// Unreachable primaries: READONLY reads of this node's copies of their slots are refused.
    pub pending: &'a BTreeSet<NodeId>,
}

/// The resources of a command besides its slots.
pub struct CommandResources<'a> {
    pub env: &'a CommandEnv,
    pub rules: ServingRules<'a>,
    pub outcome: &'a mut Outcome,
    /// Empty before and after each command.
    pub effects: &'a mut EffectLog,
    pub rng: &'a mut SplitMix64,
}

/// The outcome of a request.
pub enum Executed {
    /// The command ran, and its reply is written; the reply may be sent when the tickets allow it.
    Ran { ending: Ending, finished: Finished, relies_on_lease: bool },
    /// The command ran on one slot and needs no acknowledgement: its reply depends only on the lease.
    RanWithoutTicket(Ending),
    /// The command runs with EXEC; the reply is written.
    Queued,
    /// This error was replied; nothing ran.
    Refused(Error),
    /// This node has no lease: nothing ran, nothing was replied.
    Fenced,
    /// Nothing ran, nothing was replied: retry when the obstacle is gone.
    Park(Slot, Obstacle),
    /// Nothing ran, nothing was replied: another node serves the slot.
    Redirect(Slot),
    /// A script needs other locks: nothing was written, nothing was replied, and it must run again at once.
    Again,
    /// A script that has run for too long holds a slot's lock: nothing ran, nothing was replied.
    Busy,
    /// A walk over many slots skipped this one, which is being handed over or lacks copies. Its reply is void, and
    /// the command must run again.
    LeftOut(Slot, Obstacle),
}

/// Takes the locks of a command's slots. `None` if a script holds one that has run for too long.
pub trait TakeLocks<'p, P: ServingPlane> {
    fn take_one(&mut self, slot: Slot) -> Option<P::Guard<'p>>;
    fn take(&mut self, locks: LockSet) -> Option<LockedSlots<'p, P>>;
}

/// A host created for one command.
pub struct OwnHost<T>(pub T);

impl<T> Deref for OwnHost<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for OwnHost<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// Executes a request. `locks` takes the locks it needs (first that of a foreign slot, while roles may be ahead of the map),
/// `host` provides the node's interface.
#[inline]
pub fn execute<'p, P: ServingPlane, H: DerefMut<Target: Host + Sized>>(
    request: &Request<'_>,
    session: &mut Session,
    output: &mut Output,
    plane: &'p P,
    resources: CommandResources<'_>,
    mut locks: impl TakeLocks<'p, P>,
    host: impl FnOnce(&'static Spec) -> H,
) -> Executed {
    let Some((spec, slot)) = admit_at_once(request, session, resources.env) else {
        return execute_with_all_checks(request, session, output, plane, resources, locks, host);
    };
    let access = access(spec, session, resources.rules);
    if !resources.rules.has_lease {
        return Executed::Fenced;
    }
    let CommandResources { env, outcome, effects, rng, .. } = resources;
    let reply = Reply::new(output, session.protocol);
    let command = Command { request, spec, env, outcome, rng, walks: access.walks };
    let run = |slots: &mut dyn Slots| command.run(slots, reply, session, host);
    let Some(state) = locks.take_one(slot) else { return Executed::Busy };
    execute_on_one(plane, slot, state, &access, effects, run)
}

/// Executes a request that needs more checks or other slots than the one of its key.
#[inline(never)]
fn execute_with_all_checks<'p, P: ServingPlane, H: DerefMut<Target: Host + Sized>>(
    request: &Request<'_>,
    session: &mut Session,
    output: &mut Output,
    plane: &'p P,
    resources: CommandResources<'_>,
    mut locks: impl TakeLocks<'p, P>,
    host: impl FnOnce(&'static Spec) -> H,
) -> Executed {
    let CommandResources { env, rules, outcome, effects, rng } = resources;
    if let Some(slot) = foreign_slot(request, env)
        && plane.roles_may_be_ahead()
        && locks.take(LockSet::One(slot)).is_some_and(|locked| is_ahead(&locked))
    {
        return Executed::Park(slot, Obstacle::Handover);
    }
    let mut reply = Reply::new(output, session.protocol);
    let (spec, needed) = match admit_by_all_checks(request, session, env, &mut reply) {
        Admission::Run(spec, needed) => (spec, needed),
        Admission::Queued => return Executed::Queued,
        Admission::Refused(error) => return Executed::Refused(error),
    };
    if !rules.has_lease && needed != LockSet::None {
        return Executed::Fenced;
    }
    let access = access(spec, session, rules);
    let mut host = host(spec);
    if runs_wait(session) {
        drop(locks.take(LockSet::None)); // WAIT looks at slots of its own choice: this thread holds none.
        session.acknowledged = Some(host.count_acknowledged(0, Block::Not));
    }
    let Some(locked) = locks.take(needed) else { return Executed::Busy };
    if access.need.reads_copy
        && let Some(slot) = pending_slot(&locked, env, rules.pending)
    {
        return Executed::Redirect(slot);
    }
    let command = Command { request, spec, env, outcome, rng, walks: access.walks };
    let run = |slots: &mut dyn Slots| command.run(slots, reply, session, |_| host);
    if access.need.reads_copy {
        let executed = execute_on_several(plane, locked, access, effects, run);
        return if session.script.take_restart() { Executed::Again } else { executed };
    }
    let executed = match locked.into_one() {
        Ok((slot, state)) => execute_on_one(plane, slot, state, &access, effects, run),
        Err(locked) => execute_on_several(plane, locked, access, effects, run),
    };
    if session.script.take_restart() { Executed::Again } else { executed }
}

#[inline]
fn execute_on_one<'p, P: ServingPlane>(
    plane: &'p P,
    slot: Slot,
    state: P::Guard<'p>,
    access: &Access,
    effects: &mut EffectLog,
    run: impl FnOnce(&mut dyn Slots) -> Ending,
) -> Executed {
    let mut slot = match ServedSlot::open(plane, slot, state, access, effects) {
        Ok(slot) => slot,
        Err(denied) => return denied.into(),
    };
    let ending = run(&mut slot);
    match slot.finish(access.waits_for_backups) {
        None => Executed::RanWithoutTicket(ending),
        Some(finished) => Executed::Ran { ending, finished, relies_on_lease: true },
    }
}

fn execute_on_several<'p, P: ServingPlane>(
    plane: &'p P,
    locked: LockedSlots<'p, P>,
    access: Access,
    effects: &mut EffectLog,
    run: impl FnOnce(&mut dyn Slots) -> Ending,
) -> Executed {
    let mut slots = match ServedSlots::open(plane, locked, access, effects) {
        Ok(slots) => slots,
        Err(denied) => return denied.into(),
    };
    let ending = run(&mut slots);
    if let Some((slot, obstacle)) = slots.left_out() {
        return Executed::LeftOut(slot, obstacle);
    }
    let relies_on_lease = !slots.is_empty();
    Executed::Ran { ending, finished: slots.finish(), relies_on_lease }
}

/// An admitted command.
struct Command<'a> {
    request: &'a Request<'a>,
    spec: &'static Spec,
    env: &'a CommandEnv,
    outcome: &'a mut Outcome,
    rng: &'a mut SplitMix64,
    walks: WalkedCopies,
}

impl Command<'_> {
    /// Runs it on its open slots.
    #[inline]
    fn run<H: DerefMut<Target: Host + Sized>>(
        self,
        slots: &mut dyn Slots,
        reply: Reply<'_>,
        session: &mut Session,
        host: impl FnOnce(&'static Spec) -> H,
    ) -> Ending {
        let Command { request, spec, env, outcome, rng, walks } = self;
        let mut host = host(spec);
        let keys = Keys::new(slots, env, outcome, rng).walking(walks);
        let (args, first_key) = (request.args, request.key.as_ref());
        run(&mut Context { args, keys, reply, session, host: &mut *host, spec, first_key })
    }
}

impl From<Denied> for Executed {
    #[cold]
    fn from(denied: Denied) -> Executed {
        match denied {
            Denied::Park(slot, obstacle) => Executed::Park(slot, obstacle),
            Denied::Redirect(slot) => Executed::Redirect(slot),
        }
    }
}

/// Returns the command's slot if it belongs to another node by the map.
#[inline]
fn foreign_slot(request: &Request<'_>, env: &CommandEnv) -> Option<Slot> {
    let slot = request.key.as_ref()?.slot();
    (!env.cluster.is_mine(slot)).then_some(slot)
}

/// Returns whether this node is or soon will be the primary of the locked slot, although the map that the command is
/// judged by says otherwise: the primary of that map would redirect the client back.
#[cold]
fn is_ahead<P: ServingPlane>(locked: &LockedSlots<'_, P>) -> bool {
    let is_ahead = |replica: &SlotReplica| replica.awaits_promotion() || replica.is_primary();
    locked.find_named(|_, state| is_ahead(state.replica())).is_some()
}

/// Returns the access of a command to its slots on this connection.
#[inline]
fn access(spec: &Spec, session: &Session, rules: ServingRules<'_>) -> Access {
    let writes = spec.may_write() || session.queue.as_ref().is_some_and(|_| runs_writes(session));
    let need = Need {
        reads_copy: session.reads_backups && !writes,
        copies: if writes { rules.min_copies } else { 1 },
    };
    let waits_for_backups = rules.waits_for_backups;
    let walks = session.walked_copies();
    Access { need, only_reads: !writes, waits_for_backups, heeds_backlog: writes, walks }
}

/// Returns whether EXEC would run a command that writes.
fn runs_writes(session: &Session) -> bool {
    let queue = session.queue.iter().flat_map(|queue| &queue.commands);
    queue.into_iter().any(|queued| queued.spec.may_write())
}

/// Returns whether EXEC would run WAIT.
fn runs_wait(session: &Session) -> bool {
    let queue = session.queue.iter().flat_map(|queue| &queue.commands);
    queue.into_iter().any(|queued| queued.spec.name == WAIT)
}

/// Returns a slot whose copy here may be behind, because its primary is pending.
fn pending_slot<P: ServingPlane>(
    locked: &LockedSlots<'_, P>,
    env: &CommandEnv,
    pending: &BTreeSet<NodeId>,
) -> Option<Slot> {
    if pending.is_empty() {
        return None;
    }
    let primary = |slot| env.cluster.map().bucket_of(slot).primary();
    let is_pending = |slot| primary(slot).is_some_and(|primary| pending.contains(&primary));
    locked.find_named(|slot, state| state.replica().is_backup() && is_pending(slot))
}
