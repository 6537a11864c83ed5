//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP: they wait until one of their keys has a list, and then do what the command
//! without B does.

use cluster::serving::Wanted;

use super::moves::move_element;
use super::pop::{PopFromFirst, Taken};
use super::{End, list_of};
use crate::blocking::{first_ready, timeout, wait};
use crate::context::Context;
use crate::{Block, Error};

pub(super) fn blpop(context: &mut Context<'_>) -> Result<(), Error> {
    pop_or_wait(context, End::Left)
}

pub(super) fn brpop(context: &mut Context<'_>) -> Result<(), Error> {
    pop_or_wait(context, End::Right)
}

fn pop_or_wait(context: &mut Context<'_>, end: End) -> Result<(), Error> {
    let last = context.args.len() - 1;
    let block = timeout(context.args.at(last))?;
    let Some(index) = first_ready(context, Wanted::List, 1..last)? else {
        return wait(context, Wanted::List, 1..last, block);
    };
    let key = context.key(index);
    let found = context.keys.find(&key).ok_or(Error::NO_SUCH_KEY)?;
    let list = list_of(&found)?;
    let taken = Taken::of(list, end, 1);
    context.reply.array(2);
    context.reply.bulk(key.bytes());
    taken.reply(list, &mut context.reply);
    taken.remove(&mut context.keys, key);
    Ok(())
}

pub(super) fn blmpop(context: &mut Context<'_>) -> Result<(), Error> {
    let mut request = PopFromFirst::parse(context.args, 2)?;
    let block = timeout(context.args.at(1))?;
    match first_ready(context, Wanted::List, request.keys.clone())? {
        Some(index) => {
            request.keys = index..index + 1;
            request.run(context).map(|_| ())
        }
        None => wait(context, Wanted::List, request.keys, block),
    }
}

pub(super) fn blmove(context: &mut Context<'_>) -> Result<(), Error> {
    let ends = (End::parse(context.args.at(3))?, End::parse(context.args.at(4))?);
    let block = timeout(context.args.at(5))?;
    move_or_wait(context, ends, block)
}

pub(super) fn brpoplpush(context: &mut Context<'_>) -> Result<(), Error> {
    let block = timeout(context.args.at(3))?;
    move_or_wait(context, (End::Right, End::Left), block)
}

fn move_or_wait(context: &mut Context<'_>, ends: (End, End), block: Block) -> Result<(), Error> {
    if first_ready(context, Wanted::List, 1..2)?.is_some() {
        return move_element(context, ends).map(|_| ());
    }
    if context.session.in_exec {
        context.reply.null();
        return Ok(());
    }
    wait(context, Wanted::List, 1..2, block)
}
