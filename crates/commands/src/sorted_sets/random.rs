//! ZRANDMEMBER: random members, with or without repetition.

use placement::SplitMix64;
use store::{ScoredMember, SortedSetValue};

use super::{reply_element, reply_members, sorted_of};
use crate::Error;
use crate::context::Context;
use crate::sample::{SampleOptions, Selection, draw_different};

pub(super) fn zrandmember(context: &mut Context<'_>) -> Result<(), Error> {
    let options = SampleOptions::parse(context, b"withscores")?;
    let key = context.key(1);
    let mut rng = SplitMix64::new(context.keys.roll());
    let set = context.keys.read(&key).map(|found| sorted_of(&found)).transpose()?;
    match (options, set) {
        (None, None) => context.reply.null(),
        (Some(_), None) => context.reply.array(0),
        (None, Some(set)) => match draw(set, set.len(), &mut rng) {
            Some(it) => reply_element(&mut context.reply, it.member),
            None => context.reply.null(),
        },
        (Some(options), Some(set)) => {
            let members = sample(&options, set, &mut rng);
            let count = members.len();
            reply_members(&mut context.reply, members.into_iter(), count, options.with_values);
        }
    }
    Ok(())
}

/// Draws members with their scores.
fn sample<'a>(
    options: &SampleOptions,
    set: SortedSetValue<'a>,
    rng: &mut SplitMix64,
) -> Vec<ScoredMember<'a>> {
    let len = set.len();
    let Ok(count) = usize::try_from(options.count) else {
        let draws = 0..options.count.unsigned_abs();
        return draws.filter_map(|_| draw(set, len, rng)).collect();
    };
    match set {
        _ if count >= len => set.iter_from(0).collect(),
        SortedSetValue::Large(_) if count < len / 3 => {
            let ranks = draw_different(count, || Some((rng.draw() % len as u64) as usize));
            ranks.into_iter().filter_map(|rank| set.iter_from(rank).next()).collect()
        }
        SortedSetValue::Large(_) | SortedSetValue::Packed(_) => {
            let mut selection = Selection { wanted: count, left: len, rng };
            set.iter_from(0).filter(|_| selection.takes_next()).collect()
        }
    }
}

/// Returns a random member of a set with `len` members.
fn draw<'a>(set: SortedSetValue<'a>, len: usize, rng: &mut SplitMix64) -> Option<ScoredMember<'a>> {
    let rank = rng.draw().checked_rem(len as u64)?;
    set.iter_from(usize::try_from(rank).ok()?).next()
}
