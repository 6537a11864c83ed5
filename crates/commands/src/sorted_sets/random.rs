//! ZRANDMEMBER: random members, with or without repetition.

use std::collections::BTreeSet;

use placement::SplitMix64;
use store::{ScoredMember, SortedSetValue};

use super::{reply_element, reply_members, sorted_of};
use crate::Error;
use crate::context::Context;

/// Maximum number of members that one call may repeat: they are not limited by the size of the set.
const REPEATED_MAX: i64 = 1 << 24;

/// The options of ZRANDMEMBER with a count.
struct Sample {
    /// Negative: members may be repeated.
    count: i64,
    with_scores: bool,
}

pub(super) fn zrandmember(context: &mut Context<'_>) -> Result<(), Error> {
    let sample = Sample::parse(context)?;
    let key = context.key(1);
    let mut rng = SplitMix64::new(context.keys.roll());
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    match (sample, set) {
        (None, None) => context.reply.null(),
        (Some(_), None) => context.reply.array(0),
        (None, Some(set)) => match draw(set, set.len(), &mut rng) {
            Some(it) => reply_element(&mut context.reply, it.member),
            None => context.reply.null(),
        },
        (Some(sample), Some(set)) => {
            let members = sample.draw(set, &mut rng);
            let count = members.len();
            reply_members(&mut context.reply, members.into_iter(), count, sample.with_scores);
        }
    }
    Ok(())
}

impl Sample {
    fn parse(context: &Context<'_>) -> Result<Option<Sample>, Error> {
        let args = context.args;
        if args.len() < 3 {
            return Ok(None);
        }
        let count = context.integer(2)?;
        if count == i64::MIN {
            return Err(Error::fixed(
                "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807",
            ));
        }
        let with_scores = match args.get(3) {
            None => false,
            Some(word) if args.len() == 4 && word.eq_ignore_ascii_case(b"withscores") => true,
            Some(_) => return Err(Error::SYNTAX),
        };
        let is_too_many = with_scores && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2;
        if is_too_many || count < -REPEATED_MAX {
            return Err(Error::OUT_OF_RANGE);
        }
        Ok(Some(Sample { count, with_scores }))
    }

    fn draw<'a>(&self, set: SortedSetValue<'a>, rng: &mut SplitMix64) -> Vec<ScoredMember<'a>> {
        let len = set.len();
        let Ok(count) = usize::try_from(self.count) else {
            let draws = 0..self.count.unsigned_abs();
            return draws.filter_map(|_| draw(set, len, rng)).collect();
        };
        match set {
            _ if count >= len => set.iter_from(0).collect(),
            SortedSetValue::Large(_) if count < len / 3 => draw_different(set, count, rng),
            SortedSetValue::Large(_) | SortedSetValue::Packed(_) => select(set, count, rng),
        }
    }
}

/// Returns a random member of a set with `len` members.
fn draw<'a>(set: SortedSetValue<'a>, len: usize, rng: &mut SplitMix64) -> Option<ScoredMember<'a>> {
    let rank = rng.draw().checked_rem(len as u64)?;
    set.iter_from(usize::try_from(rank).ok()?).next()
}

/// Draws ranks until there are `count` different ones, which are few among many.
fn draw_different<'a>(
    set: SortedSetValue<'a>,
    count: usize,
    rng: &mut SplitMix64,
) -> Vec<ScoredMember<'a>> {
    let (len, mut ranks) = (set.len(), BTreeSet::new());
    while ranks.len() < count {
        ranks.insert((rng.draw() % len as u64) as usize);
    }
    ranks.into_iter().filter_map(|rank| set.iter_from(rank).next()).collect()
}

/// Walks over all members, and selects each with the probability that makes all selections equally likely.
fn select<'a>(
    set: SortedSetValue<'a>,
    count: usize,
    rng: &mut SplitMix64,
) -> Vec<ScoredMember<'a>> {
    let (len, mut selected) = (set.len(), Vec::with_capacity(count));
    for (rank, member) in set.iter_from(0).enumerate() {
        let (wanted, left) = (count - selected.len(), len - rank);
        if rng.draw() % (left as u64) < wanted as u64 {
            selected.push(member);
        }
    }
    selected
}
