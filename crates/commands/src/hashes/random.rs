//! HRANDFIELD: random fields, with or without repetition.

use placement::SplitMix64;
use resp::{Protocol, Reply};
use store::{Element, LiveHash};

use super::{hash_of, reply_element};
use crate::Error;
use crate::context::Context;
use crate::sample::{SampleOptions, Selection, draw_different};

type Pair<'a> = (Element<'a>, Element<'a>);

pub(super) fn hrandfield(context: &mut Context<'_>) -> Result<(), Error> {
    let options = SampleOptions::parse(context, b"withvalues")?;
    let key = context.key(1);
    let mut rng = SplitMix64::new(context.keys.roll());
    let now = context.keys.now_in(key.slot());
    let found = context.keys.read(&key);
    let hash = found.map(|found| hash_of(&found, now)).transpose()?;
    match (options, hash) {
        (None, None) => context.reply.null(),
        (Some(_), None) => context.reply.array(0),
        (None, Some(hash)) => match hash.random(|| rng.draw()) {
            Some((field, _)) => reply_element(&mut context.reply, field),
            None => context.reply.null(),
        },
        (Some(options), Some(hash)) => {
            let pairs = draw(&options, hash, &mut rng);
            reply_pairs(&options, &mut context.reply, &pairs);
        }
    }
    Ok(())
}

/// Draws fields with their values.
fn draw<'a>(options: &SampleOptions, hash: LiveHash<'a>, rng: &mut SplitMix64) -> Vec<Pair<'a>> {
    let Ok(count) = usize::try_from(options.count) else {
        let draws = 0..options.count.unsigned_abs();
        return draws.filter_map(|_| hash.random(|| rng.draw())).collect();
    };
    let len = hash.len();
    if count >= len {
        return hash.pairs().collect();
    }
    if hash.is_table() && count < len / 3 {
        return draw_different(count, || hash.random(|| rng.draw())).into_iter().collect();
    }
    let mut selection = Selection { wanted: count, left: len, rng };
    hash.pairs().filter(|_| selection.takes_next()).collect()
}

fn reply_pairs(options: &SampleOptions, reply: &mut Reply<'_>, pairs: &[Pair<'_>]) {
    let in_pairs = options.with_values && reply.protocol == Protocol::Resp3;
    let flat = if options.with_values { 2 } else { 1 };
    reply.array(if in_pairs { pairs.len() } else { pairs.len() * flat });
    for (field, value) in pairs {
        if in_pairs {
            reply.array(2);
        }
        reply_element(reply, *field);
        if options.with_values {
            reply_element(reply, *value);
        }
    }
}
