//! Sorted sets: ZADD, ZRANGE and the other commands. This file has the shared functions; each command is in the file of its
//! topic, and its description in `table.rs`.
mod table; //   The descriptions of all commands.
mod add; //     ZADD, ZINCRBY.
mod remove; //  ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX.
mod read; //    ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT.
mod range; //   ZRANGE, its older forms, ZRANGESTORE.
mod pop; //     ZPOPMIN, ZPOPMAX, ZMPOP.
mod combine; // ZUNION, ZINTER, ZDIFF, their storing forms, ZINTERCARD.
mod random; //  ZRANDMEMBER.
mod scan; //    ZSCAN.
mod bounds; //  Ranges by rank, by score, by text.
mod number; //  Floating-point numbers in arguments.

use resp::{Protocol, Reply};
use settings::NotifyClasses;
use store::{Effect, Found, Key, NewValue, Score, ScoredMember, SortedSetValue, StoredValue};

use crate::Error;
use crate::context::Context;
use crate::hashes::reply_element;
use crate::transactions::EFFECT_BYTES_MAX;

pub(crate) use add::{AddOptions, add_scores};
pub(crate) use number::{parse_float, parse_weight};
pub(crate) use table::SPECS;

/// Returns the sorted set that a key holds; an error if it holds another type.
pub(crate) fn sorted_of<'a>(found: &Found<'a>) -> Result<SortedSetValue<'a>, Error> {
    match found.value() {
        StoredValue::SortedSet(set) => Ok(set),
        StoredValue::String(_)
        | StoredValue::Hash(_)
        | StoredValue::List(_)
        | StoredValue::Set(_)
        | StoredValue::Stream(_) => Err(Error::WRONG_TYPE),
    }
}

/// Writes `count` members, with their scores or without.
fn reply_members<'a>(
    reply: &mut Reply<'_>,
    members: impl Iterator<Item = ScoredMember<'a>>,
    count: usize,
    with_scores: bool,
) {
    let in_pairs = with_scores && reply.protocol == Protocol::Resp3;
    let is_flat = with_scores && !in_pairs;
    reply.array(if is_flat { count * 2 } else { count });
    for it in members {
        if in_pairs {
            reply.array(2);
        }
        reply_element(reply, it.member);
        if with_scores {
            reply.double(it.score.get());
        }
    }
}

/// Returns a score as Redis prints it.
fn score_text(score: Score) -> Vec<u8> {
    let mut text = Vec::new();
    resp::write_double(&mut text, score.get());
    text
}

/// Sets a key to a sorted set, given as a sorted row, or removes the key if the row is empty.
pub(crate) fn store_row(context: &mut Context<'_>, key: Key<'_>, row: &[u8], event: &'static str) {
    if row.is_empty() {
        if context.keys.remove(&key) {
            context.keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
        }
        return;
    }
    let value = NewValue::SortedSet(row);
    context.keys.apply(&Effect::Put { key, value, expires_at: None });
    context.keys.notify(NotifyClasses::ZSET, event, key.bytes());
}

/// Refuses a row that is too large to reach every copy as one effect.
pub(crate) fn check_size(bytes: usize, done: &str) -> Result<(), Error> {
    if bytes > EFFECT_BYTES_MAX / 2 {
        return Err(Error::new(format!(
            "ERR the members have {bytes} bytes, too many to be {done} at once"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
