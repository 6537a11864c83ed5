//! XGROUP: creates, moves and removes groups and consumers.

use store::{Group, Key, Stream, StreamId, StreamRecord};

use super::ids::{parse_edge, parse_id};
use super::{Changes, no_such_group, notify, now_in, reply_count, stream_of};
use crate::Error;
use crate::context::Context;

const NO_STREAM: Error = Error::fixed(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
);

/// The options of XGROUP CREATE and SETID.
#[derive(Default)]
struct GroupOptions {
    creates_stream: bool,
    entries_read: Option<u64>,
}

impl GroupOptions {
    fn parse(context: &Context<'_>, may_create: bool) -> Result<GroupOptions, Error> {
        let args = context.args;
        let mut options = GroupOptions::default();
        let mut index = 5;
        while let Some(word) = args.get(index) {
            if may_create && word.eq_ignore_ascii_case(b"mkstream") {
                options.creates_stream = true;
                index += 1;
            } else if word.eq_ignore_ascii_case(b"entriesread") && index + 1 < args.len() {
                options.entries_read = match context.integer(index + 1)? {
                    -1 => None,
                    number => Some(u64::try_from(number).map_err(|_| {
                        const { Error::fixed("ERR value for ENTRIESREAD must be positive or -1") }
                    })?),
                };
                index += 2;
            } else {
                return Err(wrong_arity(context));
            }
        }
        Ok(options)
    }
}

fn wrong_arity(context: &Context<'_>) -> Error {
    Error::wrong_subcommand_arity("XGROUP", context.args.at(1))
}

/// Returns the stream that a subcommand needs.
fn stream_at<'c>(context: &'c mut Context<'_>, key: &Key<'_>) -> Result<&'c Stream, Error> {
    let found = context.keys.find(key).ok_or(NO_STREAM)?;
    stream_of(&found)
}

/// Returns the group that a subcommand needs.
fn group_at<'c>(
    context: &'c mut Context<'_>,
    key: &Key<'_>,
) -> Result<(&'c Stream, &'c Group), Error> {
    let name = context.args.at(3);
    let stream = stream_at(context, key)?;
    let group = stream.group(name).ok_or_else(|| no_such_group(key.bytes(), name))?;
    Ok((stream, group))
}

pub(super) fn create(context: &mut Context<'_>) -> Result<(), Error> {
    let options = GroupOptions::parse(context, true)?;
    let (key, name, text) = (context.key(2), context.args.at(3), context.args.at(4));
    let stream = context.keys.find(&key).map(|found| stream_of(&found)).transpose()?;
    if stream.is_none() && !options.creates_stream {
        return Err(NO_STREAM);
    }
    if context.args.len() > 8 {
        return Err(wrong_arity(context));
    }
    let last_id = match text {
        b"$" => stream.map_or(StreamId::MIN, Stream::last_id),
        _ => parse_id(text, 0)?,
    };
    if stream.is_some_and(|stream| stream.group(name).is_some()) {
        return Err(Error::fixed("BUSYGROUP Consumer Group name already exists"));
    }
    let mut changes = Changes::default();
    changes.add(StreamRecord::Group { name, last_id, entries_read: options.entries_read });
    changes.apply(&mut context.keys, key);
    notify(context, "xgroup-create", &key);
    context.reply.ok();
    Ok(())
}

pub(super) fn set_id(context: &mut Context<'_>) -> Result<(), Error> {
    let options = GroupOptions::parse(context, false)?;
    let (key, name, text) = (context.key(2), context.args.at(3), context.args.at(4));
    if context.args.len() > 7 {
        // Options given twice.
        group_at(context, &key)?;
        return Err(wrong_arity(context));
    }
    let (stream, _) = group_at(context, &key)?;
    let last_id = if text == b"$" { stream.last_id() } else { parse_edge(text, 0)? };
    let mut changes = Changes::default();
    changes.add(StreamRecord::Group { name, last_id, entries_read: options.entries_read });
    changes.apply(&mut context.keys, key);
    notify(context, "xgroup-setid", &key);
    context.reply.ok();
    Ok(())
}

pub(super) fn destroy(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, name) = (context.key(2), context.args.at(3));
    let is_there = stream_at(context, &key)?.group(name).is_some();
    if is_there {
        let mut changes = Changes::default();
        changes.add(StreamRecord::InGroup { name });
        changes.add(StreamRecord::RemoveGroup);
        changes.apply(&mut context.keys, key);
        notify(context, "xgroup-destroy", &key);
    }
    context.reply.integer(is_there.into());
    Ok(())
}

pub(super) fn create_consumer(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, name) = (context.key(2), context.args.at(4));
    let seen_at = now_in(context, &key);
    let (_, group) = group_at(context, &key)?;
    let is_new = group.consumer(name).is_none();
    if is_new {
        let mut changes = Changes::default();
        changes.add(StreamRecord::InGroup { name: context.args.at(3) });
        changes.add(StreamRecord::Consumer { name, seen_at, active_at: -1 });
        changes.apply(&mut context.keys, key);
        notify(context, "xgroup-createconsumer", &key);
    }
    context.reply.integer(is_new.into());
    Ok(())
}

pub(super) fn delete_consumer(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, name) = (context.key(2), context.args.at(4));
    let (_, group) = group_at(context, &key)?;
    let pending = group.consumer(name).map(|consumer| consumer.pending_len());
    if pending.is_some() {
        let mut changes = Changes::default();
        changes.add(StreamRecord::InGroup { name: context.args.at(3) });
        changes.add(StreamRecord::OfConsumer { name });
        changes.add(StreamRecord::RemoveConsumer);
        changes.apply(&mut context.keys, key);
        notify(context, "xgroup-delconsumer", &key);
    }
    reply_count(&mut context.reply, pending.unwrap_or(0));
    Ok(())
}
