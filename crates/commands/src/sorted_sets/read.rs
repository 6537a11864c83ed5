//! Reads scores, ranks and counts: ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT.

use resp::Reply;
use store::{Element, Score, ScoredMember, SortedSetValue};

use super::bounds::{MemberRange, RangeKind};
use super::sorted_of;
use crate::Error;
use crate::context::Context;

pub(super) fn zcard(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    context.reply.integer(set.map_or(0, SortedSetValue::len).cast_signed() as i64);
    Ok(())
}

pub(super) fn zscore(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    let score = set.and_then(|set| set.score(context.args.at(2), seed));
    score_or_null(&mut context.reply, score);
    Ok(())
}

pub(super) fn zmscore(context: &mut Context<'_>) -> Result<(), Error> {
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    context.reply.array(context.args.len() - 2);
    for member in context.args.from(2) {
        score_or_null(&mut context.reply, set.and_then(|set| set.score(member, seed)));
    }
    Ok(())
}

fn score_or_null(reply: &mut Reply<'_>, score: Option<Score>) {
    match score {
        Some(score) => reply.double(score.get()),
        None => reply.null(),
    }
}

pub(super) fn zrank(context: &mut Context<'_>) -> Result<(), Error> {
    rank(context, |rank, _| rank)
}

pub(super) fn zrevrank(context: &mut Context<'_>) -> Result<(), Error> {
    rank(context, |rank, len| len - 1 - rank)
}

/// Replies with a member's rank; `count` counts it from one end of a set of this length.
fn rank(context: &mut Context<'_>, count: impl Fn(usize, usize) -> usize) -> Result<(), Error> {
    let args = context.args;
    let with_score = match args.get(3) {
        None => false,
        Some(_) if args.len() > 4 => return Err(Error::wrong_arity(context.spec.full_name)),
        Some(word) if word.eq_ignore_ascii_case(b"withscore") => true,
        Some(_) => return Err(Error::SYNTAX),
    };
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    let found = set.and_then(|set| {
        let score = set.score(args.at(2), seed)?;
        let place = ScoredMember { score, member: Element::of(args.at(2)) };
        Some((count(set.partition_point(|it| it < place), set.len()), score))
    });
    match (found, with_score) {
        (None, false) => context.reply.null(),
        (None, true) => context.reply.null_array(),
        (Some((rank, _)), false) => context.reply.integer(rank.cast_signed() as i64),
        (Some((rank, score)), true) => {
            context.reply.array(2);
            context.reply.integer(rank.cast_signed() as i64);
            context.reply.double(score.get());
        }
    }
    Ok(())
}

pub(super) fn zcount(context: &mut Context<'_>) -> Result<(), Error> {
    count(context, RangeKind::Scores)
}

pub(super) fn zlexcount(context: &mut Context<'_>) -> Result<(), Error> {
    count(context, RangeKind::Texts)
}

fn count(context: &mut Context<'_>, kind: RangeKind) -> Result<(), Error> {
    let range = MemberRange::parse(context, kind, (2, 3))?;
    let key = context.key(1);
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    let count = set.map_or(0, |set| range.ranks(set, false).len());
    context.reply.integer(count.cast_signed() as i64);
    Ok(())
}
