//! Streams: XADD, XREADGROUP and the other commands. This file has the shared functions; each command is in the file of
//! its topic, and its description in `table.rs`.
//!
//! A command decides on the stream as it is, and records what it changes as [`StreamRecord`]s, with the ids and times
//! that it has drawn from the slot's time.
mod table; //   The descriptions of all commands.
mod ids; //     Ids in arguments.
mod add; //     XADD.
mod trim; //    XTRIM, and the options of trimming.
mod edit; //    XDEL, XSETID.
mod delete; //  XDELEX, XACKDEL.
mod range; //   XRANGE, XREVRANGE, XLEN.
mod read; //    XREAD, XREADGROUP.
mod group; //   XGROUP.
mod pending; // XACK, XPENDING.
mod claim; //   XCLAIM, XAUTOCLAIM.
mod info; //    XINFO.
mod lag; //     The number of entries that a group has read, and that it has not.

use resp::Reply;
use settings::NotifyClasses;
use store::{
    Consumer, Effect, Found, Group, Key, StoredValue, Stream, StreamEntry, StreamId, StreamRecord,
};

use crate::Error;
use crate::context::Context;
use crate::error::repeated;
use crate::hashes::reply_element;
use crate::keys::Keys;

pub(crate) use lag::distance_from_first;
pub(crate) use table::SPECS;

/// The time for which a consumer counts as just seen.
const SEEN_EVERY_MILLIS: i64 = 1_000;

/// Returns the stream that a key holds; an error if it holds another type.
fn stream_of<'a>(found: &Found<'a>) -> Result<&'a Stream, Error> {
    match found.value() {
        StoredValue::Stream(stream) => Ok(stream),
        StoredValue::String(_)
        | StoredValue::Hash(_)
        | StoredValue::List(_)
        | StoredValue::SortedSet(_)
        | StoredValue::Set(_) => Err(Error::WRONG_TYPE),
    }
}

/// Changes of a stream that a command is about to make.
#[derive(Default)]
struct Changes(Vec<u8>);

impl Changes {
    fn add(&mut self, record: StreamRecord<'_>) {
        record.write(&mut self.0);
    }

    /// Applies the changes, if there are any.
    fn apply(&self, keys: &mut Keys<'_>, key: Key<'_>) {
        if !self.0.is_empty() {
            keys.apply(&Effect::ChangeStream { key, records: &self.0 });
        }
    }
}

/// Returns the slot's time as the time of a delivery.
fn now_in(context: &mut Context<'_>, key: &Key<'_>) -> i64 {
    context.keys.now_in(key.slot()).0.cast_signed()
}

fn reply_id(reply: &mut Reply<'_>, id: StreamId) {
    let mut text = itoa::Buffer::new();
    let mut bytes = Vec::with_capacity(24);
    bytes.extend_from_slice(text.format(id.ms).as_bytes());
    bytes.push(b'-');
    bytes.extend_from_slice(text.format(id.seq).as_bytes());
    reply.bulk(&bytes);
}

/// Writes an entry: its id, and its fields and values in an array.
fn reply_entry(reply: &mut Reply<'_>, entry: &StreamEntry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id());
    reply.array(entry.field_count() * 2);
    for (field, value) in entry.fields() {
        reply_element(reply, field);
        reply_element(reply, value);
    }
}

/// Writes entries as an array; returns their number.
fn reply_entries<'a>(
    reply: &mut Reply<'_>,
    entries: impl Iterator<Item = StreamEntry<'a>>,
) -> usize {
    let mark = reply.output().mark();
    let count = entries.inspect(|entry| reply_entry(reply, entry)).count();
    reply.array_since(mark, count);
    count
}

fn reply_count(reply: &mut Reply<'_>, count: usize) {
    reply.integer(count.cast_signed() as i64);
}

/// Returns the group of a stream that must exist; `what` describes the command in the error.
fn group_of<'a>(
    stream: Option<&'a Stream>,
    key: &Key<'_>,
    group: &[u8],
    what: &str,
) -> Result<(&'a Stream, &'a Group), Error> {
    stream.and_then(|stream| Some((stream, stream.group(group)?))).ok_or_else(|| {
        let (key, group) = (shown(key.bytes()), shown(group));
        Error::new(format!("NOGROUP No such key '{key}' or consumer group '{group}'{what}"))
    })
}

/// Returns the error of a command that names a group which a present stream does not have.
fn no_such_group(key: &[u8], group: &[u8]) -> Error {
    let (key, group) = (shown(key), shown(group));
    Error::new(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

fn shown(argument: &[u8]) -> String {
    repeated(argument, usize::MAX)
}

/// Adds the record of a consumer that was seen, behind that of its group. Returns whether the consumer is new.
fn see_consumer(
    changes: &mut Changes,
    consumer: Option<&Consumer>,
    name: &[u8],
    (seen_at, active_at): (i64, Option<i64>),
) -> bool {
    let before = consumer.map_or(-1, Consumer::active_at);
    let active_at = active_at.unwrap_or(before);
    changes.add(StreamRecord::Consumer { name, seen_at, active_at });
    consumer.is_none()
}

/// Returns whether a consumer was seen so recently that a command which changes nothing else need not record it:
/// otherwise each question of an idle consumer would be a write.
fn was_just_seen(consumer: &Consumer, now: i64) -> bool {
    now.saturating_sub(consumer.seen_at()) < SEEN_EVERY_MILLIS
}

fn notify(context: &mut Context<'_>, event: &'static str, key: &Key<'_>) {
    context.keys.notify(NotifyClasses::STREAM, event, key.bytes());
}

#[cfg(test)]
mod tests;
