//! Transactions: MULTI, EXEC, DISCARD, and WATCH, UNWATCH for optimistic locking.
//!
//! Between MULTI and EXEC, `admit.rs` puts commands into the session's queue. While EXEC runs, the locks of all
//! their slots and of all watched keys are held, so no client sees a partial result; and all its effects are one
//! unit, so no backup holds a part of them either.

mod size; // Limits the amount of data a transaction may record.

use resp::Reply;

pub(crate) use size::{EFFECT_BYTES_MAX, bound, multiplies, repeated_bytes};

use crate::Error;
use crate::context::{Context, run};
use crate::keys::Keys;
use crate::session::{Queue, Queued, Watched};
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

/// The common part of all these commands except EXEC.
const USUAL: Spec = Spec {
    group: Group::Transactions,
    arity: 1,
    flags: Flags::of(&[
        Flag::NoScript,
        Flag::Loading,
        Flag::Stale,
        Flag::Fast,
        Flag::AllowBusy,
        Flag::NotQueued,
    ]),
    ..BLANK
};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "multi",
        full_name: "multi",
        summary: "Begins a transaction: the commands that follow are queued.",
        since: "1.2.0",
        run: Some(multi),
        ..USUAL
    },
    Spec {
        name: "exec",
        full_name: "exec",
        summary: "Runs all queued commands atomically, unless a watched key has changed.",
        since: "1.2.0",
        complexity: "Depends on the commands in the transaction.",
        flags: Flags::of(&[
            Flag::NoScript,
            Flag::Loading,
            Flag::Stale,
            Flag::SkipSlowlog,
            Flag::NotQueued,
        ]),
        run: Some(exec),
        ..USUAL
    },
    Spec {
        name: "discard",
        full_name: "discard",
        summary: "Forgets all queued commands and watched keys.",
        since: "2.0.0",
        complexity: "O(N) where N is the number of queued commands.",
        run: Some(discard),
        ..USUAL
    },
    Spec {
        name: "watch",
        full_name: "watch",
        summary: "Makes the next EXEC run only if these keys have not changed by then.",
        syntax: "key...",
        since: "2.2.0",
        complexity: "O(1) for every key.",
        arity: -2,
        keys: KeySpec::ALL,
        run: Some(watch),
        ..USUAL
    },
    Spec {
        name: "unwatch",
        full_name: "unwatch",
        summary: "Forgets all watched keys.",
        since: "2.2.0",
        flags: Flags::of(&[
            Flag::NoScript,
            Flag::Loading,
            Flag::Stale,
            Flag::Fast,
            Flag::AllowBusy,
        ]),
        run: Some(unwatch),
        ..USUAL
    },
];

fn multi(context: &mut Context<'_>) -> Result<(), Error> {
    if context.session.queue.is_some() {
        return Err(Error::fixed("ERR MULTI calls can not be nested"));
    }
    context.session.queue = Some(Queue::default());
    context.reply.ok();
    Ok(())
}

fn discard(context: &mut Context<'_>) -> Result<(), Error> {
    if context.session.queue.is_none() {
        return Err(Error::fixed("ERR DISCARD without MULTI"));
    }
    context.session.discard();
    context.reply.ok();
    Ok(())
}

fn watch(context: &mut Context<'_>) -> Result<(), Error> {
    if context.session.queue.is_some() {
        return Err(Error::fixed("ERR WATCH inside MULTI is not allowed"));
    }
    for index in 1..context.args.len() {
        let key = context.key(index);
        // If a key is watched twice, its first state counts.
        if context.session.watched.iter().any(|watched| *watched.key == *key.name()) {
            continue;
        }
        let version = context.keys.peek(&key).map(|found| found.item.version());
        let last_removal = context.keys.table(key.slot()).last_removal();
        let (slot, key) = (key.slot(), key.name().into_owned());
        let reign = context.keys.env().cluster.reign(slot);
        context.session.watched.push(Watched { key, slot, version, last_removal, reign });
    }
    context.reply.ok();
    Ok(())
}

fn unwatch(context: &mut Context<'_>) -> Result<(), Error> {
    context.session.watched.clear();
    context.reply.ok();
    Ok(())
}

fn exec(context: &mut Context<'_>) -> Result<(), Error> {
    let watched = core::mem::take(&mut context.session.watched);
    let Some(queue) = context.session.queue.take() else {
        context.session.watched = watched;
        return Err(Error::fixed("ERR EXEC without MULTI"));
    };
    if queue.broken {
        return Err(Error::fixed("EXECABORT Transaction discarded because of previous errors."));
    }
    if watched.iter().any(|watched| has_changed(&mut context.keys, watched)) {
        context.reply.null_array();
        return Ok(());
    }
    if size::is_too_large(&queue, &mut context.keys) {
        return Err(TOO_LARGE);
    }
    context.reply.array(queue.commands.len());
    context.session.in_exec = true;
    queue.commands.iter().for_each(|command| run_queued(context, command));
    context.session.in_exec = false;
    Ok(())
}

const TOO_LARGE: Error = Error::fixed(
    "EXECABORT Transaction discarded because it may write more than 1 GiB at once, split it",
);

/// Returns whether the key has changed since WATCH saw it. A key that was missing and still is also counts as
/// changed if any key of its slot was removed meanwhile: it may have been created and removed, and one abort too
/// many is better than one too few.
///
/// A slot whose primary has changed since counts as changed without a check (and is not locked).
fn has_changed(keys: &mut Keys<'_>, watched: &Watched) -> bool {
    if !watched.is_under_its_reign(keys.env()) {
        return true;
    }
    let key = keys.env().seed.named(&watched.key);
    let version = keys.peek(&key).map(|found| found.item.version());
    if version != watched.version {
        return true;
    }
    version.is_none() && keys.table(watched.slot).last_removal() != watched.last_removal
}

/// Runs one command inside EXEC. An error is that command's reply, and does not stop the others.
fn run_queued(context: &mut Context<'_>, command: &Queued) {
    let args = command.args.args();
    let keys = context.keys.reborrow();
    let first_index = command.spec.key_indices(args).next();
    let first_key = first_index.map(|index| keys.key(args.at(index)));
    let ending = run(&mut Context {
        args,
        keys,
        // An earlier HELLO may have changed the protocol.
        reply: Reply::new(context.reply.output(), context.session.protocol),
        session: &mut *context.session,
        host: &mut *context.host,
        spec: command.spec,
        first_key: first_key.as_ref(),
    });
    context.keys.outcome.ran_in_exec.push((command.spec, ending));
}

#[cfg(test)]
mod tests;
