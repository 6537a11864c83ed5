//! XINFO: describes streams, groups and consumers.

use resp::Reply;
use store::{Consumer, Group, Stream, StreamId};

use super::lag::lag;
use super::{no_such_group, now_in, reply_count, reply_entries, reply_entry, reply_id, stream_of};
use crate::Error;
use crate::context::Context;

/// The number of entries and of pending entries that XINFO STREAM FULL shows.
const FULL_COUNT: usize = 10;

pub(super) fn stream(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(2);
    let found = context.keys.read(&key).ok_or(Error::NO_SUCH_KEY)?;
    let stream = stream_of(&found)?;
    let args = context.args;
    let is = |index: usize, word: &str| {
        args.get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    let syntax = || Error::wrong_subcommand_arity("XINFO", args.at(1));
    let count = match args.len() {
        3 => None,
        4 if is(3, "full") => Some(FULL_COUNT),
        6 if is(3, "full") && is(4, "count") => {
            let count = resp::parse_integer(args.at(5)).ok_or(Error::NOT_AN_INTEGER)?;
            Some(usize::try_from(count).unwrap_or(FULL_COUNT))
        }
        _ => return Err(syntax()),
    };
    let reply = &mut context.reply;
    reply.map(if count.is_some() { 9 } else { 10 });
    reply_head(reply, stream);
    match count {
        // Zero means all.
        Some(0) => reply_full(reply, stream, usize::MAX),
        Some(count) => reply_full(reply, stream, count),
        None => reply_edges(reply, stream),
    }
    Ok(())
}

fn reply_head(reply: &mut Reply<'_>, stream: &Stream) {
    reply.bulk(b"length");
    reply_count(reply, stream.len());
    // There is no radix tree: its keys are our blocks, and a tree over them has about one node more.
    reply.bulk(b"radix-tree-keys");
    reply_count(reply, stream.block_count());
    reply.bulk(b"radix-tree-nodes");
    reply_count(reply, stream.block_count() + 1);
    reply.bulk(b"last-generated-id");
    reply_id(reply, stream.last_id());
    reply.bulk(b"max-deleted-entry-id");
    reply_id(reply, stream.max_deleted());
    reply.bulk(b"entries-added");
    reply.integer(stream.entries_added().cast_signed());
    reply.bulk(b"recorded-first-entry-id");
    reply_id(reply, stream.first().map_or(StreamId::MIN, |entry| entry.id()));
}

fn reply_edges(reply: &mut Reply<'_>, stream: &Stream) {
    reply.bulk(b"groups");
    reply_count(reply, stream.groups().len());
    for (name, entry) in [(&b"first-entry"[..], stream.first()), (b"last-entry", stream.last())] {
        reply.bulk(name);
        match entry {
            Some(entry) => reply_entry(reply, &entry),
            None => reply.null(),
        }
    }
}

fn reply_full(reply: &mut Reply<'_>, stream: &Stream, count: usize) {
    reply.bulk(b"entries");
    reply_entries(reply, stream.iter_from(StreamId::MIN).take(count));
    reply.bulk(b"groups");
    reply.array(stream.groups().len());
    for group in stream.groups() {
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(group.name());
        reply_progress(reply, stream, group);
        reply.bulk(b"pel-count");
        reply_count(reply, group.pending_len());
        reply.bulk(b"pending");
        reply.array(group.pending_len().min(count));
        for it in group.pending_from(StreamId::MIN).take(count) {
            reply.array(4);
            reply_id(reply, it.id);
            reply.bulk(it.consumer);
            reply.integer(it.delivered_at);
            reply.integer(it.deliveries.cast_signed());
        }
        reply.bulk(b"consumers");
        reply.array(group.consumer_count());
        group.consumers().for_each(|consumer| reply_consumer(reply, group, consumer, count));
    }
}

/// Writes how far a group has read its stream.
fn reply_progress(reply: &mut Reply<'_>, stream: &Stream, group: &Group) {
    reply.bulk(b"last-delivered-id");
    reply_id(reply, group.last_id());
    reply.bulk(b"entries-read");
    match group.entries_read() {
        Some(read) => reply.integer(read.cast_signed()),
        None => reply.null(),
    }
    reply.bulk(b"lag");
    match lag(stream, group) {
        Some(lag) => reply.integer(lag),
        None => reply.null(),
    }
}

fn reply_consumer(reply: &mut Reply<'_>, group: &Group, consumer: &Consumer, count: usize) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(consumer.name());
    reply.bulk(b"seen-time");
    reply.integer(consumer.seen_at());
    reply.bulk(b"active-time");
    reply.integer(consumer.active_at());
    reply.bulk(b"pel-count");
    reply_count(reply, consumer.pending_len());
    reply.bulk(b"pending");
    reply.array(consumer.pending_len().min(count));
    for it in group.pending_of(consumer, StreamId::MIN).take(count) {
        reply.array(3);
        reply_id(reply, it.id);
        reply.integer(it.delivered_at);
        reply.integer(it.deliveries.cast_signed());
    }
}

pub(super) fn groups(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(2);
    let found = context.keys.read(&key).ok_or(Error::NO_SUCH_KEY)?;
    let stream = stream_of(&found)?;
    let reply = &mut context.reply;
    reply.array(stream.groups().len());
    for group in stream.groups() {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(group.name());
        reply.bulk(b"consumers");
        reply_count(reply, group.consumer_count());
        reply.bulk(b"pending");
        reply_count(reply, group.pending_len());
        reply_progress(reply, stream, group);
    }
    Ok(())
}

pub(super) fn consumers(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, name) = (context.key(2), context.args.at(3));
    let now = now_in(context, &key);
    let found = context.keys.read(&key).ok_or(Error::NO_SUCH_KEY)?;
    let group = stream_of(&found)?.group(name);
    let group = group.ok_or_else(|| no_such_group(key.bytes(), name))?;
    let reply = &mut context.reply;
    reply.array(group.consumer_count());
    for consumer in group.consumers() {
        let since = |at: i64| now.saturating_sub(at).max(0);
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        reply.bulk(b"pending");
        reply_count(reply, consumer.pending_len());
        reply.bulk(b"idle");
        reply.integer(since(consumer.seen_at()));
        reply.bulk(b"inactive");
        reply.integer(match consumer.active_at() {
            -1 => -1,
            at => since(at),
        });
    }
    Ok(())
}
