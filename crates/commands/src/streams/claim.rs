//! XCLAIM, XAUTOCLAIM: a consumer takes over entries that were delivered to others and not acknowledged for a while.

use std::collections::BTreeMap;

use store::{Consumer, Group, Stream, StreamId, StreamRecord};

use super::ids::{parse_id, parse_start};
use super::{
    Changes, group_of, notify, now_in, reply_entry, reply_id, see_consumer, shown, stream_of,
    was_just_seen,
};
use crate::Error;
use crate::context::Context;

/// XAUTOCLAIM looks at this many entries for each one that it may return.
const ATTEMPTS: u64 = 10;
const COUNT_MAX: i64 = i64::MAX / 16;

/// The options of XCLAIM.
#[derive(Default)]
struct ClaimOptions {
    min_idle: i64,
    /// They stand from the argument 5 on.
    ids: Vec<StreamId>,
    delivered_at: Option<i64>,
    deliveries: Option<u64>,
    force: bool,
    just_id: bool,
    last_id: StreamId,
}

impl ClaimOptions {
    fn parse(context: &Context<'_>, now: i64) -> Result<ClaimOptions, Error> {
        let min_idle = number(context, 4, "Invalid min-idle-time argument for XCLAIM")?.max(0);
        let mut options = ClaimOptions { min_idle, ..ClaimOptions::default() };
        let args = context.args;
        options.ids = args.from(5).map_while(|text| parse_id(text, 0).ok()).collect();
        let mut index = 5 + options.ids.len();
        while let Some(word) = args.get(index) {
            let more = args.len() - index - 1;
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            index += 1;
            if is("force") {
                options.force = true;
                continue;
            }
            if is("justid") {
                options.just_id = true;
                continue;
            }
            if more == 0 {
                return Err(unrecognized(word));
            }
            if is("idle") {
                let idle = number(context, index, "Invalid IDLE option argument for XCLAIM")?;
                options.delivered_at = Some(now.wrapping_sub(idle));
            } else if is("time") {
                let time = number(context, index, "Invalid TIME option argument for XCLAIM")?;
                options.delivered_at = Some(time);
            } else if is("retrycount") {
                let error = "Invalid RETRYCOUNT option argument for XCLAIM";
                options.deliveries = u64::try_from(number(context, index, error)?).ok();
            } else if is("lastid") {
                options.last_id = parse_id(args.at(index), 0)?;
            } else {
                return Err(unrecognized(word));
            }
            index += 1;
        }
        // A time that makes no sense counts as now.
        let is_sensible = |at: &i64| (0..=now).contains(at);
        options.delivered_at = options.delivered_at.filter(is_sensible);
        Ok(options)
    }
}

fn unrecognized(word: &[u8]) -> Error {
    Error::new(format!("ERR Unrecognized XCLAIM option '{}'", shown(word)))
}

fn number(context: &Context<'_>, index: usize, error: &str) -> Result<i64, Error> {
    resp::parse_integer(context.args.at(index)).ok_or_else(|| Error::new(format!("ERR {error}")))
}

/// Claims in progress: what they change and what they reply.
struct Claims<'s> {
    stream: &'s Stream,
    changes: Changes,
    just_id: bool,
    /// The number of claimed entries in the reply.
    count: usize,
    /// The deliveries of what was claimed: an id may be given twice.
    claimed: BTreeMap<StreamId, (i64, u64)>,
    /// Pending entries that are no longer in the stream.
    deleted: Vec<StreamId>,
}

impl<'s> Claims<'s> {
    fn new(stream: &'s Stream, just_id: bool) -> Claims<'s> {
        let (changes, claimed) = (Changes::default(), BTreeMap::new());
        Claims { stream, changes, just_id, count: 0, claimed, deleted: Vec::new() }
    }

    /// Claims an entry of the stream, and writes it to the reply.
    fn claim(
        &mut self,
        reply: &mut resp::Reply<'_>,
        id: StreamId,
        (delivered_at, deliveries): (i64, u64),
    ) {
        let Some(entry) = self.stream.get(id) else { return };
        self.changes.add(StreamRecord::Pending { id, delivered_at, deliveries });
        if self.just_id {
            reply_id(reply, id);
        } else {
            reply_entry(reply, &entry);
        }
        self.claimed.insert(id, (delivered_at, deliveries));
        self.count += 1;
    }

    /// Removes a pending entry that is no longer in the stream.
    fn forget(&mut self, id: StreamId) {
        self.changes.add(StreamRecord::RemovePending { id });
        self.deleted.push(id);
    }

    /// Returns the changes, with the records of the group and of the consumer in front, and whether that is new.
    fn finish(
        self,
        group: StreamRecord<'_>,
        (consumer, name): (Option<&Consumer>, &[u8]),
        now: i64,
    ) -> (Changes, bool) {
        let mut changes = Changes::default();
        let is_only_seen =
            self.changes.0.is_empty() && matches!(group, StreamRecord::InGroup { .. });
        if is_only_seen && consumer.is_some_and(|it| was_just_seen(it, now)) {
            return (changes, false);
        }
        changes.add(group);
        let active_at = Some(now).filter(|_| self.count > 0);
        let is_new = see_consumer(&mut changes, consumer, name, (now, active_at));
        changes.0.extend_from_slice(&self.changes.0);
        (changes, is_new)
    }
}

pub(super) fn xclaim(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, name) = (context.key(1), context.args.at(3));
    let group_name = context.args.at(2);
    let now = now_in(context, &key);
    let stream = context.keys.read(&key).map(|found| stream_of(&found)).transpose()?;
    group_of(stream, &key, group_name, "")?;
    let options = ClaimOptions::parse(context, now)?;
    let stream = context.keys.peek(&key).map(|found| stream_of(&found)).transpose()?;
    let (stream, group) = group_of(stream, &key, group_name, "")?;
    let mark = context.reply.output().mark();
    let mut claims = Claims::new(stream, options.just_id);
    for id in &options.ids {
        claim_one(&mut claims, &mut context.reply, group, (*id, &options), now);
    }
    context.reply.array_since(mark, claims.count);
    let record = if options.last_id > group.last_id() {
        let (last_id, entries_read) = (options.last_id, group.entries_read());
        StreamRecord::Group { name: group_name, last_id, entries_read }
    } else {
        StreamRecord::InGroup { name: group_name }
    };
    let consumer = (group.consumer(name), name);
    let (changes, is_new) = claims.finish(record, consumer, now);
    changes.apply(&mut context.keys, key);
    if is_new {
        notify(context, "xgroup-createconsumer", &key);
    }
    Ok(())
}

/// Claims one entry if it is there, pending or to be made so, and idle for long enough.
fn claim_one(
    claims: &mut Claims<'_>,
    reply: &mut resp::Reply<'_>,
    group: &Group,
    (id, options): (StreamId, &ClaimOptions),
    now: i64,
) {
    let pending = group.pending(id);
    if !claims.stream.contains(id) {
        if pending.is_some() {
            claims.forget(id);
        }
        return;
    }
    let pending = pending.map(|it| (it.delivered_at, it.deliveries));
    let before = match claims.claimed.get(&id).copied().or(pending) {
        Some((at, _)) if options.min_idle > 0 && now.saturating_sub(at) < options.min_idle => {
            return;
        }
        Some((_, deliveries)) => deliveries,
        // As a new entry of Redis: delivered once.
        None if options.force => 1,
        None => return,
    };
    let deliveries = match options.deliveries {
        Some(deliveries) => deliveries,
        None if options.just_id => before,
        None => before.wrapping_add(1),
    };
    claims.claim(reply, id, (options.delivered_at.unwrap_or(now), deliveries));
}

/// The arguments of XAUTOCLAIM.
struct AutoClaim {
    min_idle: i64,
    start: StreamId,
    count: u64,
    just_id: bool,
}

impl AutoClaim {
    fn parse(context: &Context<'_>) -> Result<AutoClaim, Error> {
        let args = context.args;
        let min_idle = number(context, 4, "Invalid min-idle-time argument for XAUTOCLAIM")?.max(0);
        let mut claim =
            AutoClaim { min_idle, start: parse_start(args.at(5))?, count: 100, just_id: false };
        let mut index = 6;
        while let Some(word) = args.get(index) {
            if word.eq_ignore_ascii_case(b"count") && index + 1 < args.len() {
                let count = resp::parse_integer(args.at(index + 1));
                claim.count = count
                    .filter(|count| (1..=COUNT_MAX).contains(count))
                    .and_then(|count| u64::try_from(count).ok())
                    .ok_or(const { Error::fixed("ERR COUNT must be > 0") })?;
                index += 2;
            } else if word.eq_ignore_ascii_case(b"justid") {
                claim.just_id = true;
                index += 1;
            } else {
                return Err(Error::SYNTAX);
            }
        }
        Ok(claim)
    }

    /// Claims entries, and returns the id to continue from; the lowest one if there is nothing left.
    fn run(
        &self,
        claims: &mut Claims<'_>,
        reply: &mut resp::Reply<'_>,
        group: &Group,
        now: i64,
    ) -> StreamId {
        let mut attempts = self.count.saturating_mul(ATTEMPTS);
        for it in group.pending_from(self.start) {
            let returned = (claims.count + claims.deleted.len()) as u64;
            if attempts == 0 || returned == self.count {
                return it.id;
            }
            attempts -= 1;
            if !claims.stream.contains(it.id) {
                claims.forget(it.id);
            } else if self.min_idle == 0 || now.saturating_sub(it.delivered_at) >= self.min_idle {
                let deliveries = it.deliveries.wrapping_add(u64::from(!self.just_id));
                claims.claim(reply, it.id, (now, deliveries));
            }
        }
        StreamId::MIN
    }
}

pub(super) fn xautoclaim(context: &mut Context<'_>) -> Result<(), Error> {
    let claim = AutoClaim::parse(context)?;
    let (key, group_name, name) = (context.key(1), context.args.at(2), context.args.at(3));
    let now = now_in(context, &key);
    let stream = context.keys.read(&key).map(|found| stream_of(&found)).transpose()?;
    let (stream, group) = group_of(stream, &key, group_name, "")?;
    let reply = &mut context.reply;
    let begin = reply.output().mark();
    let mut claims = Claims::new(stream, claim.just_id);
    let next = claim.run(&mut claims, reply, group, now);
    reply.array_since(begin, claims.count);
    // The id to continue from stands before the entries.
    let mut head = Vec::new();
    let text = next.to_string();
    head.extend_from_slice(format!("*3\r\n${}\r\n{text}\r\n", text.len()).as_bytes());
    reply.output().insert(begin, &head);
    reply.array(claims.deleted.len());
    claims.deleted.iter().for_each(|id| reply_id(reply, *id));
    let record = StreamRecord::InGroup { name: group_name };
    let (changes, is_new) = claims.finish(record, (group.consumer(name), name), now);
    changes.apply(&mut context.keys, key);
    if is_new {
        notify(context, "xgroup-createconsumer", &key);
    }
    Ok(())
}
