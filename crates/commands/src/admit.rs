//! May this command run now, on this connection? And which slots does it need? The checks come in the
//! order in which Redis makes them, so that of several faults the same one is told.

use placement::Slot;
use resp::Reply;
use store::Key;

use crate::cluster::{Need, route};
use crate::error::repeated;
use crate::session::Queued;
use crate::spec::is_container;
use crate::transactions::{EFFECT_BYTES_MAX, multiplies};
use crate::{Error, Flag, Flags, OwnedArgs, Request, Session, Spec, Surroundings};

/// The slots to lock before [`crate::run`].
pub use cluster::serving::LockSet as Locks;

fn locks_of(mut slots: Vec<Slot>) -> Locks {
    slots.sort_unstable();
    slots.dedup();
    match slots.as_slice() {
        [] => Locks::None,
        [slot] => Locks::One(*slot),
        _ => Locks::Several(slots),
    }
}

/// The slots that are named one by one.
fn slots_in(locks: Locks) -> Vec<Slot> {
    match locks {
        Locks::None | Locks::AsNeeded => Vec::new(),
        Locks::One(slot) => vec![slot],
        Locks::Several(slots) | Locks::All { named: slots } => slots,
    }
}

pub enum Verdict {
    Run(&'static Spec, Locks),
    /// It runs with EXEC; the reply is written.
    Queued,
    /// This was replied.
    Refused(Error),
}

/// Decides on a request. Errors are written to `reply` and change nothing but the fate of a
/// transaction under way.
#[inline]
pub fn admit(
    request: &Request<'_>,
    session: &mut Session,
    around: &Surroundings,
    reply: &mut Reply<'_>,
) -> Verdict {
    match admit_at_once(request, session, around) {
        Some((spec, slot)) => Verdict::Run(spec, Locks::One(slot)),
        None => admit_by_all_checks(request, session, around, reply),
    }
}

/// Admits a command on one key that no check can stop. `None` if the checks must tell. Nearly all commands pass here,
/// without a verdict that would have to be moved about.
#[inline]
fn admit_at_once(
    request: &Request<'_>,
    session: &Session,
    around: &Surroundings,
) -> Option<(&'static Spec, Slot)> {
    const OTHERWISE: Flags = Flags::of(&[Flag::WholeKeyspace, Flag::NotKeys]);
    let spec = request.spec?;
    let slot = request.key.as_ref()?.slot();
    let is_sound = spec.accepts(request.args.len()) && request.args.extent() <= EFFECT_BYTES_MAX;
    let is_trusted = session.authenticated || !around.password_required;
    let runs_now = session.queue.is_none() && !session.hears_only() && !around.out_of_memory;
    let is_plain = spec.keys.is_one() && !spec.flags.intersects(OTHERWISE);
    let is_admitted = is_plain && is_sound && is_trusted && runs_now;
    (is_admitted && around.cluster.is_mine(slot)).then_some((spec, slot))
}

fn admit_by_all_checks(
    request: &Request<'_>,
    session: &mut Session,
    around: &Surroundings,
    reply: &mut Reply<'_>,
) -> Verdict {
    let spec = match check(request, session, around) {
        Ok(spec) => spec,
        Err(error) if is_http(request) => {
            session.closing = true; // Nothing is replied: whoever sent it would not understand.
            return Verdict::Refused(error);
        }
        Err(error) => return refuse(request, session, told(request, error), reply),
    };
    // Whoever has to go elsewhere is told that first: what is wrong here may be right there.
    let locks = match locks(spec, request, session, around) {
        Ok(locks) => locks,
        Err(error) => return refuse(request, session, error, reply),
    };
    if let Err(error) = check_state(spec, session, around) {
        return refuse(request, session, told(request, error), reply);
    }
    if !would_queue(spec, session) {
        return Verdict::Run(spec, locks);
    }
    match queue(spec, request, session) {
        Ok(()) => {
            reply.queued();
            Verdict::Queued
        }
        Err(error) => {
            reply.error(error.text());
            Verdict::Refused(error)
        }
    }
}

/// Whether the command may need memory that is not there, itself or by being queued. Whoever can make
/// room does so before [`admit`].
#[inline]
pub fn needs_memory(spec: &Spec, session: &Session) -> bool {
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

/// The error in the words in which it is told: EXEC adds what becomes of the transaction.
fn told(request: &Request<'_>, error: Error) -> Error {
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
) -> Verdict {
    reply.error(error.text());
    give_up(request, session);
    Verdict::Refused(error)
}

/// What a refused command does to the transaction under way: EXEC ends it, any other breaks it.
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
    around: &Surroundings,
) -> Result<&'static Spec, Error> {
    let Some(spec) = request.spec else { return Err(unknown(request)) };
    if !spec.accepts(request.args.len()) {
        return Err(Error::wrong_arity(spec.full_name));
    }
    if request.args.extent() > EFFECT_BYTES_MAX && spec.has(Flag::Write) {
        return Err(Error::fixed("ERR request too large, write at most 1 GiB at once"));
    }
    if around.password_required && !session.authenticated && !spec.has(Flag::NoAuth) {
        return Err(Error::NO_AUTH);
    }
    Ok(spec)
}

/// Whether the node and the connection are in a state to run it.
#[inline]
fn check_state(spec: &Spec, session: &Session, around: &Surroundings) -> Result<(), Error> {
    if around.out_of_memory && needs_memory(spec, session) {
        return Err(Error::OUT_OF_MEMORY);
    }
    if session.hears_only() && !spec.has(Flag::InSubscribed) {
        return Err(only_subscribed_commands(spec));
    }
    Ok(())
}

/// Most commands of one transaction, and most bytes: a client cannot queue without end.
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

#[inline]
fn locks(
    spec: &'static Spec,
    request: &Request<'_>,
    session: &Session,
    around: &Surroundings,
) -> Result<Locks, Error> {
    if spec.has(Flag::WholeKeyspace) {
        return Ok(Locks::AsNeeded);
    }
    if let Some(key) = &request.key {
        let locks = key_locks(spec, request, key, around)?;
        route(&around.cluster, &locks, need(spec, session))?;
        // A channel belongs to a slot, and holds nothing that would have to be locked.
        return Ok(if spec.has(Flag::NotKeys) { Locks::None } else { locks });
    }
    if let Some(queue) = session.queue.as_ref().filter(|_| is_exec(spec)) {
        return queue_locks(&queue.commands, session, around);
    }
    Ok(Locks::None)
}

#[inline]
fn key_locks(
    spec: &Spec,
    request: &Request<'_>,
    first: &Key<'_>,
    around: &Surroundings,
) -> Result<Locks, Error> {
    if spec.keys.is_one() {
        return Ok(Locks::One(first.slot()));
    }
    let slots = slots_of(spec, request);
    several(slots.collect(), around)
}

/// What EXEC locks: the slots of the queued commands, which must be served here, and of what is
/// watched. A watched slot that has changed hands is left out: EXEC will not run for that alone.
fn queue_locks(
    queued: &[Queued],
    session: &Session,
    around: &Surroundings,
) -> Result<Locks, Error> {
    let mut slots: Vec<Slot> = Vec::new();
    for command in queued {
        let args = command.args.args();
        let keys = command.spec.keys.indices(args.len());
        slots.extend(keys.map(|index| Slot::of(args.at(index))));
    }
    let locks = several(slots, around)?;
    let writes = queued.iter().any(|command| need(command.spec, session) == Need::Primary);
    route(&around.cluster, &locks, if writes { Need::Primary } else { Need::Copy })?;
    if queued.iter().any(|command| command.spec.has(Flag::WholeKeyspace)) {
        return Ok(Locks::All { named: slots_in(locks) });
    }
    let kept = session.watched.iter().filter(|watched| watched.is_under_its_reign(around));
    let mut slots = slots_in(locks);
    slots.extend(kept.map(|watched| watched.slot));
    Ok(locks_of(slots))
}

/// What the command needs its slots for, on this connection.
#[inline]
fn need(spec: &Spec, session: &Session) -> Need {
    const HERE: Flags = Flags::of(&[Flag::Write, Flag::NotKeys]);
    if session.reads_backups && !spec.flags.intersects(HERE) { Need::Copy } else { Need::Primary }
}

fn slots_of(spec: &Spec, request: &Request<'_>) -> impl Iterator<Item = Slot> {
    let args = request.args;
    spec.keys.indices(args.len()).map(move |index| Slot::of(args.at(index)))
}

fn several(slots: Vec<Slot>, around: &Surroundings) -> Result<Locks, Error> {
    let locks = locks_of(slots);
    let crosses = around.one_slot_only && matches!(locks, Locks::Several(_));
    if crosses { Err(Error::CROSS_SLOT) } else { Ok(locks) }
}

/// Whether these are the first words of an HTTP request: a web page has made somebody's browser
/// talk to us, and what follows in its body must not be run. As Redis does, we say nothing.
fn is_http(request: &Request<'_>) -> bool {
    let is = |name: &[u8]| request.args.at(0).eq_ignore_ascii_case(name);
    request.spec.is_none() && (is(b"post") || is(b"host:"))
}

/// How many arguments, and how many bytes of them, an error reply repeats.
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
