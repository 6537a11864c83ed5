//! HRANDFIELD: random fields, with or without repetition.

use placement::SplitMix64;
use resp::{Protocol, Reply};
use store::{Element, HashValue};

use super::{hash_of, reply_element};
use crate::Error;
use crate::context::Context;
use crate::sample::{Selection, draw_different};

/// Maximum number of fields that one call may repeat: they are not limited by the size of the hash.
const REPEATED_MAX: i64 = 1 << 24;

type Pair<'a> = (Element<'a>, Element<'a>);

/// The options of HRANDFIELD with a count.
struct Sample {
    /// Negative: fields may be repeated.
    count: i64,
    with_values: bool,
}

pub(super) fn hrandfield(context: &mut Context<'_>) -> Result<(), Error> {
    let sample = Sample::parse(context)?;
    let key = context.key(1);
    let mut rng = SplitMix64::new(context.keys.roll());
    let found = context.keys.read(&key);
    let hash = found.map(|found| hash_of(&found)).transpose()?;
    match (sample, hash) {
        (None, None) => context.reply.null(),
        (Some(_), None) => context.reply.array(0),
        (None, Some(hash)) => match hash.random(|| rng.draw()) {
            Some((field, _)) => reply_element(&mut context.reply, field),
            None => context.reply.null(),
        },
        (Some(sample), Some(hash)) => {
            let pairs = sample.draw(hash, &mut rng);
            sample.reply(&mut context.reply, &pairs);
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
        let with_values = match args.get(3) {
            None => false,
            Some(word) if args.len() == 4 && word.eq_ignore_ascii_case(b"withvalues") => true,
            Some(_) => return Err(Error::SYNTAX),
        };
        let is_too_many = with_values && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2;
        if is_too_many || count < -REPEATED_MAX {
            return Err(Error::OUT_OF_RANGE);
        }
        Ok(Some(Sample { count, with_values }))
    }

    fn draw<'a>(&self, hash: HashValue<'a>, rng: &mut SplitMix64) -> Vec<Pair<'a>> {
        let Ok(count) = usize::try_from(self.count) else {
            let draws = 0..self.count.unsigned_abs();
            return draws.filter_map(|_| hash.random(|| rng.draw())).collect();
        };
        let len = hash.len();
        match hash {
            _ if count >= len => hash.pairs().collect(),
            HashValue::Table(_) if count < len / 3 => {
                draw_different(count, || hash.random(|| rng.draw())).into_iter().collect()
            }
            HashValue::Table(_) | HashValue::Packed(_) => {
                let mut selection = Selection { wanted: count, left: len, rng };
                hash.pairs().filter(|_| selection.takes_next()).collect()
            }
        }
    }

    fn reply(&self, reply: &mut Reply<'_>, pairs: &[Pair<'_>]) {
        let in_pairs = self.with_values && reply.protocol == Protocol::Resp3;
        let flat = if self.with_values { 2 } else { 1 };
        reply.array(if in_pairs { pairs.len() } else { pairs.len() * flat });
        for (field, value) in pairs {
            if in_pairs {
                reply.array(2);
            }
            reply_element(reply, *field);
            if self.with_values {
                reply_element(reply, *value);
            }
        }
    }
}
