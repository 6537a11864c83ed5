//! Decides whether a command may run now on this connection, and which slots it needs. The checks run in the same
//! order as in Redis, so that a request with several faults gets the same error.

use placement::Slot;
use resp::Reply;
use store::Key;

use crate::cluster::{NeededCopy, route};
use crate::error::repeated;
use crate::scripts::ExtraSlots;
use crate::session::Queued;
use crate::sort::{DerivedSlots, derived_slots};
use crate::spec::is_container;
use crate::transactions::{EFFECT_BYTES_MAX, multiplies};
use crate::{CommandEnv, Error, Flag, Flags, OwnedArgs, Request, Session, Spec};

/// The slots to lock before [`crate::run`].
pub use cluster::serving::LockSet;

fn locks_of(mut slots: Vec<Slot>) -> LockSet {
    slots.sort_unstable();
    slots.dedup();
    match slots.as_slice() {
        [] => LockSet::None,
        [slot] => LockSet::One(*slot),
        _ => LockSet::Several(slots),
    }
}

/// Returns the slots that are listed individually.
fn slots_in(locks: LockSet) -> Vec<Slot> {
    match locks {
        LockSet::None | LockSet::AsNeeded => Vec::new(),
        LockSet::One(slot) => vec![slot],
        LockSet::Several(slots) | LockSet::All { named: slots } => slots,
    }
}

pub(crate) enum Admission {
    Run(&'static Spec, LockSet),
    /// The command runs with EXEC; the reply is written.
    Queued,
    /// This error was replied.
    Refused(Error),
}

/// Decides on a request. Errors are written to `reply` and change nothing except the state of an open transaction.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn admit(
    request: &Request<'_>,
    session: &mut Session,
    env: &CommandEnv,
    reply: &mut Reply<'_>,
) -> Admission {
    match admit_at_once(request, session, env) {
        Some((spec, slot)) => Admission::Run(spec, LockSet::One(slot)),
        None => admit_by_all_checks(request, session, env, reply),
    }
}

/// Admits a command on one key of this node that passes every check, and returns its slot. `None` if the full checks
/// must decide. Nearly all commands take this path, which avoids moving an `Admission` around.
#[inline]
pub(crate) fn admit_at_once(
    request: &Request<'_>,
    session: &Session,
    env: &CommandEnv,
) -> Option<(&'static Spec, Slot)> {
    const OTHERWISE: Flags = Flags::of(&[Flag::WholeKeyspace, Flag::NotKeys]);
    if session.is_on_replica_port() || session.reads_backups {
        return None;
    }
    let spec = request.spec?;
    let slot = request.key.as_ref()?.slot();
    let is_sound = spec.accepts(request.args.len()) && request.args.extent() <= EFFECT_BYTES_MAX;
    let is_trusted = session.authenticated || !env.password_required;
    let runs_now = session.queue.is_none() && !session.hears_only() && !env.out_of_memory;
    let has_just_one_key = spec.has_one_key() && !spec.flags.intersects(OTHERWISE);
    let is_admitted = has_just_one_key && is_sound && is_trusted && runs_now;
    (is_admitted && env.cluster.is_mine(slot)).then_some((spec, slot))
}

/// Decides on any other request; see [`admit`].
pub(crate) fn admit_by_all_checks(
    request: &Request<'_>,
    session: &mut Session,
    env: &CommandEnv,
    reply: &mut Reply<'_>,
) -> Admission {
    let spec = match check(request, session, env) {
        Ok(spec) => spec,
        Err(error) if is_http(request) => {
            session.closing = true; // No reply: an HTTP client would not understand it.
            return Admission::Refused(error);
        }
        Err(error) => return refuse(request, session, describe(request, error), reply),
    };
    if spec.has(Flag::RunsScript) {
        session.script.identify(spec, request.args);
    }
    // A redirect comes first: an error here may not be one on the right node.
    let locks = match locks(spec, request, session, env) {
        Ok(locks) => locks,
        Err(error) => return refuse(request, session, error, reply),
    };
    if let Err(error) = check_state(spec, session, env) {
        return refuse(request, session, describe(request, error), reply);
    }
    if !would_queue(spec, session) {
        return Admission::Run(spec, locks);
    }
    match queue(spec, request, session) {
        Ok(()) => {
            reply.queued();
            Admission::Queued
        }
        Err(error) => {
            reply.error(error.text());
            Admission::Refused(error)
        }
    }
}

/// Returns whether the command may need memory, for itself or for being queued. A caller that can free memory does
/// so before [`admit`].
#[inline]
pub fn needs_memory(spec: &Spec, session: &Session) -> bool {
    const MAY_GROW: Flags = Flags::of(&[Flag::DenyOom, Flag::ScriptWrites]);
    let Some(queue) = &session.queue else { return spec.flags.intersects(MAY_GROW) };
    let writes = |queued: &Queued| queued.spec.flags.intersects(MAY_GROW);
    would_queue(spec, session) || is_exec(spec) && queue.commands.iter().any(writes)
}

/// Returns whether the command is refused when memory is short. A script is not: its commands are.
fn is_refused_without_memory(spec: &Spec, session: &Session) -> bool {
    let Some(queue) = &session.queue else { return spec.has(Flag::DenyOom) };
    let writes = |queued: &Queued| queued.spec.has(Flag::DenyOom);
    would_queue(spec, session) || is_exec(spec) && queue.commands.iter().any(writes)
}

#[inline]
fn would_queue(spec: &Spec, session: &Session) -> bool {
    session.queue.is_some() && !spec.has(Flag::NotQueued)
}

fn is_exec(spec: &Spec) -> bool {
    spec.full_name == "exec"
}

/// Adjusts the error for EXEC, which also reports that the transaction is discarded.
fn describe(request: &Request<'_>, error: Error) -> Error {
    if !request.spec.is_some_and(is_exec) {
        return error;
    }
    let reason = error.text().trim_start_matches("ERR ");
    Error::new(format!("EXECABORT Transaction discarded because of: {reason}"))
}

#[cold]
fn refuse(
    request: &Request<'_>,
    session: &mut Session,
    error: Error,
    reply: &mut Reply<'_>,
) -> Admission {
    reply.error(error.text());
    give_up(request, session);
    Admission::Refused(error)
}

/// Applies a refusal to the open transaction: EXEC ends it, any other command marks it as broken.
fn give_up(request: &Request<'_>, session: &mut Session) {
    if request.spec.is_some_and(is_exec) {
        session.discard();
    } else {
        session.refused();
    }
}

#[inline]
fn check(
    request: &Request<'_>,
    session: &Session,
    env: &CommandEnv,
) -> Result<&'static Spec, Error> {
    let Some(spec) = request.spec else { return Err(unknown(request)) };
    if !spec.accepts(request.args.len()) {
        return Err(Error::wrong_arity(spec.full_name));
    }
    if request.args.extent() > EFFECT_BYTES_MAX && spec.has(Flag::Write) {
        return Err(Error::fixed("ERR request too large, write at most 1 GiB at once"));
    }
    if env.password_required && !session.authenticated && !spec.has(Flag::NoAuth) {
        return Err(Error::NO_AUTH);
    }
    Ok(spec)
}

/// Checks whether the state of the node and of the connection allows the command.
#[inline]
fn check_state(spec: &Spec, session: &Session, env: &CommandEnv) -> Result<(), Error> {
    if env.out_of_memory && is_refused_without_memory(spec, session) {
        return Err(Error::OUT_OF_MEMORY);
    }
    if session.hears_only() && !spec.has(Flag::InSubscribed) {
        return Err(only_subscribed_commands(spec));
    }
    Ok(())
}

/// Maximum number of commands and of bytes of one transaction: a client cannot queue without limit.
const QUEUED_MAX: usize = 1_000_000;
const QUEUED_BYTES_MAX: usize = 1 << 30;

fn queue(spec: &'static Spec, request: &Request<'_>, session: &mut Session) -> Result<(), Error> {
    let queue = session.queue.as_mut().expect("the caller has looked");
    if spec.has(Flag::NoMulti) {
        queue.broken = true;
        return Err(Error::fixed("ERR Command not allowed inside a transaction"));
    }
    let args = OwnedArgs::new(request.args.iter());
    if queue.commands.len() >= QUEUED_MAX || queue.bytes + args.bytes() > QUEUED_BYTES_MAX {
        queue.broken = true;
        return Err(Error::fixed("ERR transaction too large, DISCARD it and send fewer commands"));
    }
    queue.bytes += args.bytes();
    queue.multiplies |= multiplies(spec);
    queue.commands.push(Queued { spec, args });
    Ok(())
}

const ALL_SLOTS: LockSet = LockSet::All { named: Vec::new() };

#[inline]
fn locks(
    spec: &'static Spec,
    request: &Request<'_>,
    session: &Session,
    env: &CommandEnv,
) -> Result<LockSet, Error> {
    if session.is_on_replica_port() && spec.may_write() {
        return Err(write_elsewhere(request, env));
    }
    if spec.has(Flag::WholeKeyspace) {
        let all_at_once = spec.full_name == "swapdb";
        return Ok(if all_at_once { ALL_SLOTS } else { LockSet::AsNeeded });
    }
    if spec.has(Flag::RunsScript) && session.queue.is_none() {
        return script_locks(spec, request, session, env);
    }
    if let Some(key) = &request.key {
        let locks = key_locks(spec, request, key, env)?;
        route(&env.cluster, &locks, need(spec, session))?;
        // A channel belongs to a slot, but the slot holds nothing for it that needs a lock.
        return Ok(if spec.has(Flag::NotKeys) { LockSet::None } else { locks });
    }
    if let Some(queue) = session.queue.as_ref().filter(|_| is_exec(spec)) {
        return queue_locks(&queue.commands, session, env);
    }
    Ok(LockSet::None)
}

/// Returns these locks and those of derived keys. The names of such keys are known only when the elements are read, so a pattern
/// without a slot takes all locks.
fn with_derived(locks: LockSet, derived: DerivedSlots) -> LockSet {
    let mut named = slots_in(locks);
    match derived {
        DerivedSlots::Any => LockSet::All { named },
        DerivedSlots::These(slots) => {
            named.extend(slots);
            locks_of(named)
        }
    }
}

/// Returns the slots of a script: in a cluster the one of its keys, or the one that it has turned out to need. A node
/// alone lets a script use any key: unless the script is known to declare its keys, it takes each lock when it needs it.
#[cold]
fn script_locks(
    spec: &Spec,
    request: &Request<'_>,
    session: &Session,
    env: &CommandEnv,
) -> Result<LockSet, Error> {
    let mut slots: Vec<Slot> = slots_of(spec, request).collect();
    match session.script.extra() {
        ExtraSlots::None => {}
        ExtraSlots::One(slot) => slots.push(slot),
        ExtraSlots::All => {
            let locks = several(slots, env)?;
            route(&env.cluster, &locks, need(spec, session))?;
            return Ok(LockSet::All { named: slots_in(locks) });
        }
    }
    if !env.one_slot_only && !session.script.declares_its_keys(env) {
        return Ok(LockSet::Several(Vec::new()));
    }
    let locks = several(slots, env)?;
    route(&env.cluster, &locks, need(spec, session))?;
    // On a node alone it may turn out to need more.
    Ok(if env.one_slot_only { locks } else { LockSet::Several(slots_in(locks)) })
}

/// Returns the reply to a write on the replica port: the primary's ordinary port, if the command names a key.
#[cold]
fn write_elsewhere(request: &Request<'_>, env: &CommandEnv) -> Error {
    request.key.as_ref().map_or(Error::READ_ONLY_PORT, |key| env.cluster.moved(key.slot()))
}

#[inline]
fn key_locks(
    spec: &Spec,
    request: &Request<'_>,
    first: &Key<'_>,
    env: &CommandEnv,
) -> Result<LockSet, Error> {
    if spec.has_one_key() {
        return Ok(LockSet::One(first.slot()));
    }
    let locks = several(slots_of(spec, request).collect(), env)?;
    if spec.has(Flag::DerivesKeys) && !env.one_slot_only {
        return Ok(with_derived(locks, derived_slots(request.args)));
    }
    Ok(locks)
}

/// Returns the slots that EXEC locks: those of the queued commands, which must be served here, and those of watched
/// keys. A watched slot whose primary has changed is left out: EXEC aborts for that reason alone.
fn queue_locks(queued: &[Queued], session: &Session, env: &CommandEnv) -> Result<LockSet, Error> {
    let mut slots: Vec<Slot> = Vec::new();
    let runs_script = queued.iter().any(|command| command.spec.has(Flag::RunsScript));
    // On a node alone a script may use any key.
    let mut takes_all = runs_script && !env.one_slot_only
        || queued.iter().any(|command| command.spec.has(Flag::WholeKeyspace));
    for command in queued {
        let args = command.args.args();
        if command.spec.has(Flag::DerivesKeys) && !env.one_slot_only {
            match derived_slots(args) {
                DerivedSlots::Any => takes_all = true,
                DerivedSlots::These(derived) => slots.extend(derived),
            }
        }
        let keys = command.spec.key_indices(args);
        slots.extend(keys.map(|index| Slot::of(args.at(index))));
    }
    let locks = several(slots, env)?;
    let writes = queued.iter().any(|command| need(command.spec, session) == NeededCopy::Primary);
    route(&env.cluster, &locks, if writes { NeededCopy::Primary } else { NeededCopy::Copy })?;
    if takes_all {
        return Ok(LockSet::All { named: slots_in(locks) });
    }
    let kept = session.watched.iter().filter(|watched| watched.is_under_its_reign(env));
    let mut slots = slots_in(locks);
    slots.extend(kept.map(|watched| watched.slot));
    Ok(locks_of(slots))
}

/// Returns the kind of access the command needs to its slots on this connection.
#[inline]
fn need(spec: &Spec, session: &Session) -> NeededCopy {
    const HERE: Flags = Flags::of(&[Flag::Write, Flag::ScriptWrites, Flag::NotKeys]);
    if session.reads_backups && !spec.flags.intersects(HERE) {
        NeededCopy::Copy
    } else {
        NeededCopy::Primary
    }
}

fn slots_of(spec: &Spec, request: &Request<'_>) -> impl Iterator<Item = Slot> {
    let args = request.args;
    spec.key_indices(args).map(move |index| Slot::of(args.at(index)))
}

fn several(slots: Vec<Slot>, env: &CommandEnv) -> Result<LockSet, Error> {
    let locks = locks_of(slots);
    let crosses = env.one_slot_only && matches!(locks, LockSet::Several(_));
    if crosses { Err(Error::CROSS_SLOT) } else { Ok(locks) }
}

/// Returns whether a request comes from a web page. Like Redis, we send no reply.
fn is_http(request: &Request<'_>) -> bool {
    request.spec.is_none() && resp::is_http(request.args.at(0))
}

/// Maximum number of bytes of the arguments that an error reply repeats.
const UNKNOWN_BYTES_MAX: usize = 128;

fn unknown(request: &Request<'_>) -> Error {
    let args = request.args;
    let name = repeated(args.at(0), UNKNOWN_BYTES_MAX);
    if let (Some(sub), true) = (args.get(1), is_container(args.at(0))) {
        let sub = repeated(sub, UNKNOWN_BYTES_MAX);
        let upper = name.to_uppercase();
        return Error::new(format!("ERR unknown subcommand '{sub}'. Try {upper} HELP."));
    }
    let mut listed = String::new();
    for arg in args.from(1) {
        if listed.len() >= UNKNOWN_BYTES_MAX {
            break;
        }
        let room = UNKNOWN_BYTES_MAX - listed.len();
        listed.push_str(&format!("'{}' ", repeated(arg, room)));
    }
    Error::new(format!("ERR unknown command '{name}', with args beginning with: {listed}"))
}

fn only_subscribed_commands(spec: &Spec) -> Error {
    let name = spec.full_name;
    Error::new(format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context"
    ))
}
