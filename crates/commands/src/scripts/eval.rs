//! EVAL, EVALSHA, EVAL_RO, EVALSHA_RO: run a script.

use std::sync::Arc;

use placement::Slot;
use scripting::{Failure, Held, Interpreter, Job, ScriptFlags, ScriptId, Shebang};

use super::call::{Called, Reach, Rules};
use super::script::check_length;
use super::{ExtraSlots, documents, id_of};
use crate::context::Context;
use crate::{Error, Flag};

const NO_SCRIPT: Error = Error::fixed("NOSCRIPT No matching script. Please use EVAL.");

pub(super) fn eval(context: &mut Context<'_>) -> Result<(), Error> {
    let keys = key_count(context)?;
    let text = context.args.at(1);
    check_length(text)?;
    // EXEC runs scripts that were identified when they were queued.
    let known = context.session.script.id.filter(|_| !context.session.in_exec);
    let id = known.or_else(|| id_of(context.spec, context.args)).ok_or(NO_SCRIPT)?;
    run(context, id, text, keys)
}

pub(super) fn evalsha(context: &mut Context<'_>) -> Result<(), Error> {
    let id = ScriptId::parse(context.args.at(1)).ok_or(NO_SCRIPT)?;
    let text: Arc<[u8]> = documents::find(context.keys.env(), &id).ok_or(NO_SCRIPT)?;
    let keys = key_count(context)?;
    run(context, id, &text, keys)
}

fn key_count(context: &Context<'_>) -> Result<usize, Error> {
    let count = context.integer(2)?;
    let Ok(count) = usize::try_from(count) else {
        return Err(Error::fixed("ERR Number of keys can't be negative"));
    };
    if count > context.args.len() - 3 {
        return Err(Error::fixed("ERR Number of keys can't be greater than number of args"));
    }
    Ok(count)
}

/// Reads the shebang of a script.
pub(super) fn shebang_of(text: &[u8]) -> Result<Option<Shebang>, Error> {
    Shebang::read(text).map_err(|why| Error::new(format!("ERR {why}")))
}

/// Checks whether the flags of a script allow it to run now; returns whether it may only read.
fn check_flags(context: &Context<'_>, shebang: Option<&Shebang>) -> Result<bool, Error> {
    let only_reads = context.spec.has(Flag::ReadOnly);
    let Some(Shebang { flags, .. }) = shebang else { return Ok(only_reads) };
    let env = context.keys.env();
    if flags.no_cluster && env.one_slot_only {
        return Err(Error::fixed("ERR Can not run script on cluster, 'no-cluster' flag is set."));
    }
    if only_reads && !flags.no_writes {
        return Err(Error::fixed(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    if env.out_of_memory && !flags.allow_oom && !flags.no_writes {
        return Err(Error::fixed(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
        ));
    }
    Ok(flags.no_writes)
}

/// Returns the slots that the script may use, by the locks that its command has taken (`admit.rs`).
fn reach(context: &Context<'_>, slots: Vec<Slot>) -> Reach {
    let (session, env) = (&*context.session, context.keys.env());
    if session.in_exec {
        return if env.one_slot_only { Reach::These(slots) } else { Reach::All };
    }
    match session.script.extra() {
        ExtraSlots::All => Reach::All,
        ExtraSlots::One(slot) => Reach::These([slots, vec![slot]].concat()),
        ExtraSlots::None if env.one_slot_only || session.script.declares_its_keys(env) => {
            Reach::These(slots)
        }
        ExtraSlots::None => Reach::Growing { declared: slots, has_left: false },
    }
}

fn run(context: &mut Context<'_>, id: ScriptId, text: &[u8], keys: usize) -> Result<(), Error> {
    let shebang = shebang_of(text)?;
    let only_reads = check_flags(context, shebang.as_ref())?;
    let interpreter =
        Interpreter::of_this_thread().map_err(|why| Error::new(format!("ERR {why}")))?;
    let env = context.keys.env();
    env.scripts.remember(id, text);
    let (args, first_arg) = (context.args, 3 + keys);
    let slots: Vec<Slot> = args.from(3).take(keys).map(Slot::of).collect();
    let reach = reach(context, slots);
    let turn = match &reach {
        Reach::Growing { .. } => Some(env.scripts.take_turn().ok_or(super::BUSY)?),
        Reach::These(_) | Reach::All => None,
    };
    let flags = shebang.as_ref().map_or(ScriptFlags::default(), |shebang| shebang.flags);
    let rules = Rules { only_reads, allow_oom: flags.allow_oom };
    let Context { keys: own_keys, reply, session, host, .. } = &mut *context;
    let mark = reply.output().mark();
    let mut called = Called::new(own_keys.reborrow(), session, &mut **host, id, rules, reach, turn);
    called.take_declared();
    let job = Job {
        id,
        text,
        shebang: shebang.as_ref().map_or(0, |shebang| shebang.length),
        keys: args.from(3).take(keys).collect(),
        argv: args.from(first_arg).collect(),
        held: called.held(),
        threshold: env.slow_script,
    };
    let result = interpreter.run(&job, &env.scripts, &mut called, reply);
    let (restart, reach) = called.finish();
    match (result, restart) {
        (Ok(()), _) => {}
        (Err(Failure::Ended), Some(extra)) => {
            context.reply.output().truncate(mark);
            if !env.one_slot_only {
                env.scripts.note_keys(&id, false);
            }
            context.session.script.restart_with(extra);
            return Ok(());
        }
        (Err(failure), _) => {
            context.reply.output().truncate(mark);
            let text = match &failure {
                Failure::Error(error) => String::from_utf8_lossy(error).into_owned(),
                Failure::Ended => "ERR the script was ended".to_owned(),
            };
            return Err(Error::new(text));
        }
    }
    if let Reach::Growing { has_left, .. } = reach {
        env.scripts.note_keys(&id, !has_left);
    }
    Ok(())
}

impl Called<'_> {
    /// Returns the slots that are held, as other threads are told.
    fn held(&self) -> Held {
        match &self.reach {
            Reach::These(slots) => Held::These(slots.iter().map(|slot| slot.number()).collect()),
            Reach::Growing { .. } | Reach::All => Held::All,
        }
    }
}
