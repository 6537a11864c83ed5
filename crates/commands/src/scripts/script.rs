//! SCRIPT: loads scripts, forgets them, ends them.

use scripting::{Interpreter, KillError, SCRIPT_BYTES_MAX, ScriptId};

use super::eval::shebang_of;
use super::{DocumentsChange, documents};
use crate::context::Context;
use crate::{Block, Error};

/// Refuses: a debugger would hold the slot's lock while somebody thinks.
pub(super) fn debug(_: &mut Context<'_>) -> Result<(), Error> {
    Err(Error::fixed(
        "ERR SCRIPT DEBUG is not supported: debug the script on a redis-server of your own",
    ))
}

pub(super) fn exists(context: &mut Context<'_>) -> Result<(), Error> {
    let ids = context.args.from(2);
    context.reply.array(ids.len());
    for id in ids {
        let id = ScriptId::parse(id);
        let known = id.is_some_and(|id| documents::knows(context.keys.env(), &id));
        context.reply.integer(i64::from(known));
    }
    Ok(())
}

pub(super) fn show(context: &mut Context<'_>) -> Result<(), Error> {
    let id = ScriptId::parse(context.args.at(2));
    let text = id.and_then(|id| documents::find(context.keys.env(), &id));
    let Some(text) = text else {
        return Err(Error::fixed("NOSCRIPT No matching script."));
    };
    context.reply.bulk(&text);
    Ok(())
}

pub(super) fn load(context: &mut Context<'_>) -> Result<(), Error> {
    let text = context.args.at(2);
    check_length(text)?;
    let id = ScriptId::of(text);
    let shebang = shebang_of(text)?.map_or(0, |shebang| shebang.length);
    let interpreter =
        Interpreter::of_this_thread().map_err(|why| Error::new(format!("ERR {why}")))?;
    interpreter
        .compile(id, text, shebang)
        .map_err(|why| Error::new(format!("ERR Error compiling script (new function): {why}")))?;
    let env = context.keys.env();
    env.scripts.remember(id, text);
    let is_asked = core::mem::take(&mut context.session.awaits_documents);
    if is_asked || !documents::has(env, &id) {
        let block = if context.session.in_exec { Block::Not } else { Block::ForEver };
        let writes = documents::add(env, &id, text);
        match context.host.write_documents(writes, block) {
            DocumentsChange::Waiting => {
                context.session.awaits_documents = true;
                return Ok(());
            }
            // Without a majority it is loaded here alone: other nodes say NOSCRIPT, and clients send the text.
            DocumentsChange::Done | DocumentsChange::Failed(_) => {}
        }
    }
    context.reply.bulk(id.text().as_bytes());
    Ok(())
}

pub(super) fn check_length(text: &[u8]) -> Result<(), Error> {
    if text.len() <= SCRIPT_BYTES_MAX {
        return Ok(());
    }
    Err(Error::fixed("ERR script too large, a script has at most 512 KiB"))
}

pub(super) fn flush(context: &mut Context<'_>) -> Result<(), Error> {
    let is_word =
        |word: &[u8]| word.eq_ignore_ascii_case(b"async") || word.eq_ignore_ascii_case(b"sync");
    let has_valid_mode = match context.args.len() {
        2 => true,
        3 => is_word(context.args.at(2)),
        _ => false,
    };
    if !has_valid_mode {
        return Err(Error::fixed("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    let env = context.keys.env();
    env.scripts.forget_texts();
    let block = if context.session.in_exec { Block::Not } else { Block::ForEver };
    match context.host.write_documents(documents::flush(env), block) {
        DocumentsChange::Done => context.reply.ok(),
        DocumentsChange::Waiting => {}
        DocumentsChange::Failed(text) => {
            return Err(Error::new(format!("ERR SCRIPT FLUSH failed on the other nodes - {text}")));
        }
    }
    Ok(())
}

pub(super) fn kill(context: &mut Context<'_>) -> Result<(), Error> {
    match context.keys.env().scripts.kill() {
        Ok(()) => context.reply.ok(),
        Err(KillError::NothingRuns) => {
            return Err(Error::fixed("NOTBUSY No scripts in execution right now."));
        }
        Err(KillError::HasWritten) => {
            return Err(Error::fixed(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. You can \
                 either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE \
                 command.",
            ));
        }
    }
    Ok(())
}
