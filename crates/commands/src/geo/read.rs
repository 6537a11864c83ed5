//! Reads positions of members: GEODIST, GEOHASH, GEOPOS.

use store::Score;

use super::cell::{Cell, Position, STEP_MAX, WHOLE_EARTH};
use super::earth::distance;
use super::{parse_unit, reply_distance, reply_position};
use crate::Error;
use crate::context::Context;
use crate::sorted_sets::sorted_of;

const GEOHASH_LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Length of a geohash string. Its last letter is always `0`: a score has no bits for it.
const GEOHASH_BYTES: usize = 11;

pub(super) fn geodist(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, args) = (context.key(1), context.args);
    let unit = match args.len() {
        4 => 1.0,
        5 => parse_unit(args.at(4))?,
        _ => return Err(Error::SYNTAX),
    };
    let seed = &context.keys.env().seed;
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    let position = |index: usize| {
        let score = set.and_then(|set| set.score(args.at(index), seed));
        score.map(|score| Position::of_score(score.get()))
    };
    match (position(2), position(3)) {
        (Some(one), Some(other)) => {
            reply_distance(&mut context.reply, distance(one, other) / unit);
        }
        (None, _) | (_, None) => context.reply.null(),
    }
    Ok(())
}

pub(super) fn geohash(context: &mut Context<'_>) -> Result<(), Error> {
    each_member(context, |context, position| match position {
        Some(position) => context.reply.bulk(&geohash_text(position)),
        None => context.reply.null(),
    })
}

pub(super) fn geopos(context: &mut Context<'_>) -> Result<(), Error> {
    each_member(context, |context, position| match position {
        Some(position) => reply_position(&mut context.reply, position),
        None => context.reply.null_array(),
    })
}

/// Replies with an array, into which `answer` writes a reply for each given member.
fn each_member(
    context: &mut Context<'_>,
    answer: impl Fn(&mut Context<'_>, Option<Position>),
) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    let score = |member| set.and_then(|set| set.score(member, seed)).map(Score::get);
    let scores: Vec<Option<f64>> = context.args.from(2).map(score).collect();
    context.reply.array(scores.len());
    for score in scores {
        answer(context, score.map(Position::of_score));
    }
    Ok(())
}

fn geohash_text(position: Position) -> [u8; GEOHASH_BYTES] {
    let bits = Cell::at(position, STEP_MAX, WHOLE_EARTH).bits();
    let mut text = [b'0'; GEOHASH_BYTES];
    for (index, letter) in text.iter_mut().take(GEOHASH_BYTES - 1).enumerate() {
        *letter = GEOHASH_LETTERS[(bits >> (52 - 5 * (index + 1)) & 31) as usize];
    }
    text
}
