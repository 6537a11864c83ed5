//! XACK, XPENDING: entries that were delivered and not acknowledged.

use std::collections::BTreeSet;

use resp::Reply;
use store::{Group, PendingEntry, StreamId, StreamRecord};

use super::edit::parse_ids;
use super::ids::{parse_end, parse_start};
use super::{Changes, group_of, now_in, reply_count, reply_id, stream_of};
use crate::Error;
use crate::context::Context;

pub(super) fn xack(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, name) = (context.key(1), context.args.at(2));
    let stream = context.keys.read(&key).map(|found| stream_of(&found)).transpose()?;
    let Some(group) = stream.and_then(|stream| stream.group(name)) else {
        context.reply.integer(0);
        return Ok(());
    };
    let ids = parse_ids(context.args, 3)?;
    let is_pending = |id: &StreamId| group.pending(*id).is_some();
    let present: BTreeSet<StreamId> = ids.into_iter().filter(is_pending).collect();
    if !present.is_empty() {
        let mut changes = Changes::default();
        changes.add(StreamRecord::InGroup { name });
        present.iter().for_each(|id| changes.add(StreamRecord::RemovePending { id: *id }));
        changes.apply(&mut context.keys, key);
    }
    reply_count(&mut context.reply, present.len());
    Ok(())
}

/// The arguments of XPENDING with a range.
struct PendingRange<'a> {
    min_idle: i64,
    start: StreamId,
    end: StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> PendingRange<'a> {
    fn parse(context: &Context<'a>) -> Result<PendingRange<'a>, Error> {
        let args = context.args;
        if args.len() < 6 || args.len() > 9 {
            return Err(Error::SYNTAX);
        }
        let (mut first, mut min_idle) = (3, 0);
        if args.at(3).eq_ignore_ascii_case(b"idle") {
            min_idle = context.integer(4)?;
            if args.len() < 8 {
                return Err(Error::SYNTAX);
            }
            first = 5;
        }
        let count = usize::try_from(context.integer(first + 2)?).unwrap_or(0);
        let (start, end) = (parse_start(args.at(first))?, parse_end(args.at(first + 1))?);
        Ok(PendingRange { min_idle, start, end, count, consumer: args.get(first + 3) })
    }

    fn reply(&self, group: &Group, now: i64, reply: &mut Reply<'_>) {
        let consumer = match self.consumer {
            Some(name) => match group.consumer(name) {
                Some(consumer) => Some(consumer),
                None => return reply.array(0),
            },
            None => None,
        };
        let is_wanted = |it: &PendingEntry<'_>| {
            self.min_idle == 0 || now.saturating_sub(it.delivered_at) >= self.min_idle
        };
        let mark = reply.output().mark();
        let mut count = 0;
        let mut write = |it: PendingEntry<'_>| {
            count += 1;
            reply_pending(reply, it, now);
        };
        let is_in_range = |it: &PendingEntry<'_>| it.id <= self.end;
        match consumer {
            Some(consumer) => group
                .pending_of(consumer, self.start)
                .take_while(is_in_range)
                .filter(is_wanted)
                .take(self.count)
                .for_each(&mut write),
            None => group
                .pending_from(self.start)
                .take_while(is_in_range)
                .filter(is_wanted)
                .take(self.count)
                .for_each(&mut write),
        }
        reply.array_since(mark, count);
    }
}

fn reply_pending(reply: &mut Reply<'_>, it: PendingEntry<'_>, now: i64) {
    reply.array(4);
    reply_id(reply, it.id);
    reply.bulk(it.consumer);
    reply.integer(now.saturating_sub(it.delivered_at).max(0));
    reply.integer(it.deliveries.cast_signed());
}

pub(super) fn xpending(context: &mut Context<'_>) -> Result<(), Error> {
    let range = match context.args.len() {
        3 => None,
        _ => Some(PendingRange::parse(context)?),
    };
    let (key, name) = (context.key(1), context.args.at(2));
    let now = now_in(context, &key);
    let stream = context.keys.read(&key).map(|found| stream_of(&found)).transpose()?;
    let (_, group) = group_of(stream, &key, name, "")?;
    match range {
        Some(range) => range.reply(group, now, &mut context.reply),
        None => reply_summary(group, &mut context.reply),
    }
    Ok(())
}

/// Writes the number of pending entries, the first and the last one, and how many each consumer has.
fn reply_summary(group: &Group, reply: &mut Reply<'_>) {
    reply.array(4);
    reply_count(reply, group.pending_len());
    let first = group.pending_from(StreamId::MIN).next();
    let (Some(first), Some(last)) = (first, group.last_pending()) else {
        reply.null();
        reply.null();
        return reply.null_array();
    };
    reply_id(reply, first.id);
    reply_id(reply, last.id);
    let mark = reply.output().mark();
    let mut count = 0;
    for consumer in group.consumers().filter(|consumer| consumer.pending_len() > 0) {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_integer(consumer.pending_len().cast_signed() as i64);
        count += 1;
    }
    reply.array_since(mark, count);
}
