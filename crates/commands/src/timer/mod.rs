//! TIMER.SET, TIMER.DEL, TIMER.GET, TIMER.LIST: the timers of the cluster, for clients that do not use HTTP.
//! `crates/timers` decides everything; docs/timers.md describes the guarantees.
//!
//! A timer's replicas are on other nodes, so an answer takes time: the command runs once to send the request and
//! once more when the answer has arrived (`Host::ask_timers`). It does not access the store.

mod wish; //  Parses arguments into requests.
mod shown; // Writes answers as replies.
#[cfg(test)]
mod tests;

use timers::{TimerAnswer, TimerQuery, TimerRefusal, TimerRequest};

use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};
use crate::{Asked, Error};

/// Flags of these commands. They wait for other nodes: not in a script, not between MULTI and EXEC.
const FLAGS: Flags = Flags::of(&[Flag::NoScript, Flag::NoMulti, Flag::Blocking]);

const TIMER: Spec = Spec { group: Group::Timers, since: "7.2.0", flags: FLAGS, ..BLANK };

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "timer.set",
        full_name: "timer.set",
        summary: "Creates or replaces a timer, and returns its id once every replica has it.",
        syntax: "id seconds [REPEAT seconds] [REPLICAS count] [RETRY attempts backoff] \
                 [TIMEOUT seconds] [TAG name count [TAG name count ...]] <HTTP uri [opaque] | \
                 PUBLISH channel message | COMMAND word [word ...]>",
        arity: -5,
        run: Some(set),
        ..TIMER
    },
    Spec {
        name: "timer.del",
        full_name: "timer.del",
        summary: "Deletes a timer; succeeds if there is none (idempotent).",
        syntax: "id",
        arity: 2,
        run: Some(del),
        ..TIMER
    },
    Spec {
        name: "timer.get",
        full_name: "timer.get",
        summary: "Returns a timer and its remaining time.",
        syntax: "id",
        arity: 2,
        run: Some(get),
        ..TIMER
    },
    Spec {
        name: "timer.list",
        full_name: "timer.list",
        summary: "Lists the ids of timers, a page at a time.",
        syntax: "[AFTER id] [LIMIT count]",
        complexity: "O(N) with N being the number of nodes times the limit",
        arity: -1,
        run: Some(list),
        ..TIMER
    },
];

fn set(context: &mut Context<'_>) -> Result<(), Error> {
    let wish = wish::to_set(context.args)?;
    let Some(answer) = asked(context, wish)? else { return Ok(()) };
    if let TimerAnswer::Done(id) = answer {
        context.reply.bulk(id.to_string().as_bytes());
        return Ok(());
    }
    otherwise(context, &answer)
}

fn del(context: &mut Context<'_>) -> Result<(), Error> {
    let wish = TimerRequest::Delete(wish::id(context.args.at(1))?);
    let Some(answer) = asked(context, wish)? else { return Ok(()) };
    if let TimerAnswer::Done(_) = answer {
        context.reply.ok();
        return Ok(());
    }
    otherwise(context, &answer)
}

fn get(context: &mut Context<'_>) -> Result<(), Error> {
    let wish = TimerRequest::See(TimerQuery::Timer(wish::id(context.args.at(1))?));
    let Some(answer) = asked(context, wish)? else { return Ok(()) };
    if let TimerAnswer::Timer(found) = answer {
        shown::timer(found.as_deref(), &mut context.reply);
        return Ok(());
    }
    otherwise(context, &answer)
}

fn list(context: &mut Context<'_>) -> Result<(), Error> {
    let (after, limit) = wish::page(context.args)?;
    let Some(answer) = asked(context, TimerRequest::See(TimerQuery::Page { after, limit }))? else {
        return Ok(());
    };
    if let TimerAnswer::Page(seen) = answer {
        shown::page(&seen.found, &mut context.reply);
        return Ok(());
    }
    otherwise(context, &answer)
}

/// Sends the request to the timers. `None`: the command runs again when the answer has arrived.
fn asked(context: &mut Context<'_>, wish: TimerRequest) -> Result<Option<TimerAnswer>, Error> {
    match context.host.ask_timers(wish) {
        Asked::Waiting => Ok(None),
        Asked::Answered(answer) => Ok(Some(answer)),
        Asked::Forbidden(why) => Err(Error::new(format!("ERR {why}"))),
    }
}

/// Handles a refusal: an error if nothing was changed. If the outcome is unknown, it closes the connection without
/// a reply.
fn otherwise(context: &mut Context<'_>, answer: &TimerAnswer) -> Result<(), Error> {
    match answer {
        TimerAnswer::Refused(TimerRefusal::Unknown) => {
            context.session.closing = true;
            Ok(())
        }
        TimerAnswer::Refused(
            refusal @ (TimerRefusal::NotReady | TimerRefusal::Busy | TimerRefusal::Unseen),
        ) => Err(Error::new(format!("TRYAGAIN {refusal}"))),
        TimerAnswer::Refused(refusal @ TimerRefusal::Full) => {
            Err(Error::new(format!("ERR {refusal}")))
        }
        TimerAnswer::Done(_)
        | TimerAnswer::Timer(_)
        | TimerAnswer::Page(_)
        | TimerAnswer::Stats(_)
        | TimerAnswer::Dead(_) => unreachable!("an answer is of the kind of its wish"),
    }
}
