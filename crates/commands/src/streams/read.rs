//! XREAD and XREADGROUP: entries of several streams behind an id each, for one reader or for the consumers of a group.

use core::ops::Range;
use core::time::Duration;

use cluster::serving::Wanted;
use store::{Group, Key, PendingEntry, Stream, StreamEntry, StreamId, StreamRecord};

use super::ids::parse_id;
use super::lag::read_after;
use super::{
    Changes, group_of, notify, now_in, reply_entries, reply_entry, reply_id, see_consumer,
    stream_of, was_just_seen,
};
use crate::blocking::wait;
use crate::context::Context;
use crate::{Block, Error};

const GROUP_ERROR: &str = " in XREADGROUP with GROUP option";

pub(super) fn xread(context: &mut Context<'_>) -> Result<(), Error> {
    let options = ReadOptions::parse(context, false)?;
    let from = options.starts_of(context)?;
    let mark = context.reply.output().mark();
    let mut served = 0;
    for (index, from) in from.iter().enumerate() {
        let key = context.key(options.first_key + index);
        let found = context.keys.read(&key);
        let Some(stream) = found.map(|found| stream_of(&found)).transpose()? else { continue };
        if stream.last().is_none_or(|last| last.id() <= *from) {
            continue;
        }
        let reply = &mut context.reply;
        begin_stream(reply, &key);
        let start = from.next().unwrap_or(StreamId::MAX);
        reply_entries(reply, stream.iter_from(start).take(options.count));
        served += 1;
    }
    let ended = end_streams(context, &options, (mark, served), Wanted::Stream);
    if let Some(wait) = &mut context.session.key_wait {
        wait.after = from;
    }
    ended
}

pub(super) fn xreadgroup(context: &mut Context<'_>) -> Result<(), Error> {
    let options = ReadOptions::parse(context, true)?;
    let group = options
        .group
        .as_ref()
        .ok_or(const { Error::fixed("ERR Missing GROUP option for XREADGROUP") })?;
    let mut from = Vec::with_capacity(options.streams);
    for index in 0..options.streams {
        from.push(options.start_in_group(context, index, group)?);
    }
    let mark = context.reply.output().mark();
    let mut served = 0;
    for (index, from) in from.into_iter().enumerate() {
        let key = context.key(options.first_key + index);
        let reading = GroupReading { options: &options, names: group, key };
        served += usize::from(reading.run(context, from)?);
    }
    let wanted = wanted_by(context, group);
    end_streams(context, &options, (mark, served), wanted)
}

/// Returns what a consumer waits for.
fn wanted_by(context: &Context<'_>, names: &GroupNames<'_>) -> Wanted {
    Wanted::StreamGroup(context.keys.env().seed.hash(names.group))
}

/// Writes what stands before the entries of a stream.
fn begin_stream(reply: &mut resp::Reply<'_>, key: &Key<'_>) {
    if reply.protocol == resp::Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key.bytes());
}

/// Completes the reply, of which some streams were written since a mark; if there are none, waits if that is asked for.
fn end_streams(
    context: &mut Context<'_>,
    options: &ReadOptions<'_>,
    (mark, served): (resp::Mark, usize),
    wanted: Wanted,
) -> Result<(), Error> {
    if served > 0 {
        context.reply.map_since(mark, served, served);
        return Ok(());
    }
    match options.block {
        Block::Not => {
            context.reply.null_array();
            Ok(())
        }
        block @ (Block::For(_) | Block::ForEver) => {
            let keys = options.first_key..options.first_key + options.streams;
            check_primary(context, keys.clone())?;
            wait(context, wanted, keys, block)
        }
    }
}

/// Redirects a client that would wait on a backup: only the primary wakes it.
fn check_primary(context: &Context<'_>, keys: Range<usize>) -> Result<(), Error> {
    let cluster = &context.keys.env().cluster;
    let mut slots = keys.map(|index| context.key(index).slot());
    match slots.find(|slot| !cluster.is_mine(*slot)) {
        Some(slot) => Err(cluster.moved(slot)),
        None => Ok(()),
    }
}

/// The entries to read of a stream for a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GroupStart {
    /// `>`: those that no consumer has got yet.
    New,
    /// Those that this consumer has got, from this id on, and not acknowledged.
    History(StreamId),
}

/// The names in the option GROUP.
struct GroupNames<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
}

struct ReadOptions<'a> {
    count: usize,
    block: Block,
    group: Option<GroupNames<'a>>,
    no_ack: bool,
    /// The index of the first key, and the number of keys.
    first_key: usize,
    streams: usize,
}

impl<'a> ReadOptions<'a> {
    fn parse(context: &Context<'a>, in_group: bool) -> Result<ReadOptions<'a>, Error> {
        let args = context.args;
        let mut options = ReadOptions {
            count: usize::MAX,
            block: Block::Not,
            group: None,
            no_ack: false,
            first_key: 0,
            streams: 0,
        };
        let mut index = 1;
        while let Some(word) = args.get(index) {
            let more = args.len() - index - 1;
            match word.to_ascii_lowercase().as_slice() {
                b"block" if more > 0 => {
                    options.block = parse_timeout(context, index + 1)?;
                    index += 2;
                }
                b"count" if more > 0 => {
                    let count = usize::try_from(context.integer(index + 1)?).unwrap_or(0);
                    options.count = if count == 0 { usize::MAX } else { count };
                    index += 2;
                }
                b"streams" if more > 0 => {
                    options.set_streams(context, index + 1)?;
                    return Ok(options);
                }
                b"group" if more > 1 => {
                    refuse_without_group(in_group, "GROUP")?;
                    let (group, consumer) = (args.at(index + 1), args.at(index + 2));
                    options.group = Some(GroupNames { group, consumer });
                    index += 3;
                }
                b"noack" => {
                    refuse_without_group(in_group, "NOACK")?;
                    options.no_ack = true;
                    index += 1;
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        Err(Error::SYNTAX)
    }

    fn set_streams(&mut self, context: &Context<'_>, first: usize) -> Result<(), Error> {
        let rest = context.args.len() - first;
        if !rest.is_multiple_of(2) {
            let name = context.spec.full_name;
            let symbol = if name == "xreadgroup" { '>' } else { '$' };
            return Err(Error::new(format!(
                "ERR Unbalanced '{name}' list of streams: for each stream key an ID or '{symbol}' must be specified."
            )));
        }
        (self.first_key, self.streams) = (first, rest / 2);
        Ok(())
    }

    /// Returns the ids behind which XREAD reads the streams: those from which it has waited, if it has.
    fn starts_of(&self, context: &mut Context<'_>) -> Result<Box<[StreamId]>, Error> {
        let starts = (0..self.streams).map(|index| self.start_of(context, index));
        let starts: Box<[StreamId]> = starts.collect::<Result<_, Error>>()?;
        Ok(context.session.key_wait.as_ref().map_or(starts, |wait| wait.after.clone()))
    }

    fn start_of(&self, context: &mut Context<'_>, index: usize) -> Result<StreamId, Error> {
        let key = context.key(self.first_key + index);
        let text = context.args.at(self.first_key + self.streams + index);
        let found = context.keys.read(&key);
        let stream = found.map(|found| stream_of(&found)).transpose()?;
        match text {
            b"$" => Ok(stream.map_or(StreamId::MIN, Stream::last_id)),
            // The last entry of the stream; if there is none, the next one.
            b"+" => {
                let last = stream.and_then(Stream::last).and_then(|last| last.id().previous());
                Ok(last.unwrap_or(stream.map_or(StreamId::MIN, Stream::last_id)))
            }
            b">" => Err(Error::fixed(
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
            )),
            _ => parse_id(text, 0),
        }
    }

    fn start_in_group(
        &self,
        context: &mut Context<'_>,
        index: usize,
        names: &GroupNames<'_>,
    ) -> Result<GroupStart, Error> {
        let key = context.key(self.first_key + index);
        let text = context.args.at(self.first_key + self.streams + index);
        let found = context.keys.read(&key);
        let stream = found.map(|found| stream_of(&found)).transpose()?;
        group_of(stream, &key, names.group, GROUP_ERROR)?;
        match text {
            b">" => Ok(GroupStart::New),
            b"$" => Err(Error::fixed(
                "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
            )),
            _ => match parse_id(text, 0)? {
                StreamId::MAX => Ok(GroupStart::New),
                id => Ok(GroupStart::History(id)),
            },
        }
    }
}

/// Refuses an option of XREADGROUP in XREAD.
fn refuse_without_group(in_group: bool, option: &str) -> Result<(), Error> {
    if in_group {
        return Ok(());
    }
    Err(Error::new(format!(
        "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
    )))
}

/// Parses the milliseconds of BLOCK.
fn parse_timeout(context: &Context<'_>, index: usize) -> Result<Block, Error> {
    let millis = resp::parse_integer(context.args.at(index))
        .ok_or(const { Error::fixed("ERR timeout is not an integer or out of range") })?;
    let millis =
        u64::try_from(millis).map_err(|_| const { Error::fixed("ERR timeout is negative") })?;
    if millis > i64::MAX.cast_unsigned() - context.keys.now().0 {
        return Err(Error::fixed("ERR timeout is out of range"));
    }
    Ok(if millis == 0 { Block::ForEver } else { Block::For(Duration::from_millis(millis)) })
}

/// One stream that XREADGROUP reads.
struct GroupReading<'r, 'a> {
    options: &'r ReadOptions<'a>,
    names: &'r GroupNames<'a>,
    key: Key<'a>,
}

/// Result of a reading.
struct Delivered {
    changes: Changes,
    is_new_consumer: bool,
    is_served: bool,
}

impl GroupReading<'_, '_> {
    /// Reads the stream; returns whether that was written to the reply.
    fn run(&self, context: &mut Context<'_>, from: GroupStart) -> Result<bool, Error> {
        let now = now_in(context, &self.key);
        let may_take = from != GroupStart::New || !self.is_behind(context);
        let found = context.keys.read(&self.key);
        let stream = found.map(|found| stream_of(&found)).transpose()?;
        // Nothing that this command does takes the group away.
        let (stream, group) = group_of(stream, &self.key, self.names.group, GROUP_ERROR)?;
        let delivered = match from {
            GroupStart::New => self.read_new(&mut context.reply, (stream, group), now, may_take),
            GroupStart::History(id) => {
                self.read_history(&mut context.reply, (stream, group), id, now)
            }
        };
        delivered.changes.apply(&mut context.keys, self.key);
        if delivered.is_new_consumer {
            notify(context, "xgroup-createconsumer", &self.key);
        }
        Ok(delivered.is_served)
    }

    /// Returns whether a consumer that is ready to wait has to let others of its group go first.
    fn is_behind(&self, context: &mut Context<'_>) -> bool {
        if self.options.block == Block::Not || context.session.in_exec {
            return false;
        }
        let wanted = wanted_by(context, self.names);
        let number = context.session.key_wait.as_ref().map(|wait| wait.number);
        context.keys.slots.is_behind(&self.key, wanted, number)
    }

    fn read_new(
        &self,
        reply: &mut resp::Reply<'_>,
        (stream, group): (&Stream, &Group),
        now: i64,
        may_take: bool,
    ) -> Delivered {
        let (mut last_id, mut entries_read) = (group.last_id(), group.entries_read());
        let is_served = may_take && stream.last().is_some_and(|last| last.id() > last_id);
        let mut pending = Changes::default();
        if is_served {
            begin_stream(reply, &self.key);
            let start = last_id.next().unwrap_or(StreamId::MAX);
            let entries = stream.iter_from(start).take(self.options.count).inspect(|entry| {
                entries_read = read_after(stream, last_id, entries_read, entry.id());
                last_id = entry.id();
                if !self.options.no_ack {
                    let id = last_id;
                    pending.add(StreamRecord::Pending { id, delivered_at: now, deliveries: 1 });
                }
            });
            reply_entries(reply, entries);
        }
        let consumer = group.consumer(self.names.consumer);
        let mut changes = Changes::default();
        if !is_served && consumer.is_some_and(|it| was_just_seen(it, now)) {
            return Delivered { changes, is_new_consumer: false, is_served };
        }
        let name = self.names.group;
        if is_served {
            changes.add(StreamRecord::Group { name, last_id, entries_read });
        } else {
            changes.add(StreamRecord::InGroup { name });
        }
        let active_at = Some(now).filter(|_| is_served && !self.options.no_ack);
        let times = (now, active_at);
        let is_new_consumer = see_consumer(&mut changes, consumer, self.names.consumer, times);
        changes.0.extend_from_slice(&pending.0);
        Delivered { changes, is_new_consumer, is_served }
    }

    fn read_history(
        &self,
        reply: &mut resp::Reply<'_>,
        (stream, group): (&Stream, &Group),
        from: StreamId,
        now: i64,
    ) -> Delivered {
        begin_stream(reply, &self.key);
        let consumer = group.consumer(self.names.consumer);
        let mut changes = Changes::default();
        changes.add(StreamRecord::InGroup { name: self.names.group });
        let times = (now, None);
        let is_new_consumer = see_consumer(&mut changes, consumer, self.names.consumer, times);
        let start = from.next().unwrap_or(StreamId::MAX);
        let pending = consumer.map(|consumer| group.pending_of(consumer, start));
        let mark = reply.output().mark();
        let mut count = 0;
        for it in pending.into_iter().flatten().take(self.options.count) {
            reply_history(reply, stream.get(it.id), it, now, &mut changes);
            count += 1;
        }
        reply.array_since(mark, count);
        if count == 0 && consumer.is_some_and(|it| was_just_seen(it, now)) {
            changes = Changes::default();
        }
        Delivered { changes, is_new_consumer, is_served: true }
    }
}

/// Writes an entry that is delivered again; of an entry that was deleted, only the id.
fn reply_history(
    reply: &mut resp::Reply<'_>,
    entry: Option<StreamEntry<'_>>,
    it: PendingEntry<'_>,
    now: i64,
    changes: &mut Changes,
) {
    let Some(entry) = entry else {
        reply.array(2);
        reply_id(reply, it.id);
        return reply.null_array();
    };
    reply_entry(reply, &entry);
    let deliveries = it.deliveries.wrapping_add(1);
    changes.add(StreamRecord::Pending { id: it.id, delivered_at: now, deliveries });
}
