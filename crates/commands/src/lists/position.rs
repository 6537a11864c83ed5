//! LPOS: the indices of equal elements.

use store::{Element, ListValue};

use super::{integer_above_min, list_of, reply_count};
use crate::context::Context;
use crate::{Args, Error};

pub(super) fn lpos(context: &mut Context<'_>) -> Result<(), Error> {
    let options = PositionOptions::parse(context.args)?;
    let key = context.key(1);
    let list = context.keys.read(&key).map(|found| list_of(&found)).transpose()?;
    let wanted = Element::of(context.args.at(2));
    let positions = list.map_or_else(Vec::new, |list| options.positions(list, wanted));
    match (options.count, positions.first()) {
        (Some(_), _) => {
            context.reply.array(positions.len());
            positions.iter().for_each(|index| reply_count(&mut context.reply, *index));
        }
        (None, Some(index)) => reply_count(&mut context.reply, *index),
        (None, None) => context.reply.null(),
    }
    Ok(())
}

struct PositionOptions {
    /// The first match to report; negative: counted from the end of the list.
    rank: i64,
    /// The number of matches to report; 0: all.
    count: Option<usize>,
    /// The number of elements to compare; 0: all.
    compared: usize,
}

impl PositionOptions {
    fn parse(args: Args<'_>) -> Result<PositionOptions, Error> {
        const ZERO_RANK: Error = Error::fixed(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or \
             use negative to start from the end of the list",
        );
        let mut options = PositionOptions { rank: 1, count: None, compared: 0 };
        let mut index = 3;
        while let Some(word) = args.get(index) {
            let value = args.get(index + 1).ok_or(Error::SYNTAX)?;
            if word.eq_ignore_ascii_case(b"rank") {
                options.rank = integer_above_min(value)?;
                if options.rank == 0 {
                    return Err(ZERO_RANK);
                }
            } else if word.eq_ignore_ascii_case(b"count") {
                options.count = Some(not_negative(value, "ERR COUNT can't be negative")?);
            } else if word.eq_ignore_ascii_case(b"maxlen") {
                options.compared = not_negative(value, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(Error::SYNTAX);
            }
            index += 2;
        }
        Ok(options)
    }

    fn positions(&self, list: ListValue<'_>, wanted: Element<'_>) -> Vec<usize> {
        let compared = if self.compared == 0 { usize::MAX } else { self.compared };
        if self.rank > 0 {
            let all = (0..).zip(list.iter_from(0)).take(compared);
            self.choose(all, wanted)
        } else {
            let len = list.len();
            let all = (0..len).rev().zip(list.iter_back_from(len)).take(compared);
            self.choose(all, wanted)
        }
    }

    fn choose<'e>(
        &self,
        all: impl Iterator<Item = (usize, Element<'e>)>,
        wanted: Element<'_>,
    ) -> Vec<usize> {
        let count = match self.count {
            None => 1,
            Some(0) => usize::MAX,
            Some(count) => count,
        };
        let skipped = usize::try_from(self.rank.unsigned_abs()).unwrap_or(usize::MAX) - 1;
        let equal = all.filter(|(_, element)| *element == wanted);
        equal.map(|(index, _)| index).skip(skipped).take(count).collect()
    }
}

fn not_negative(text: &[u8], error: &'static str) -> Result<usize, Error> {
    let number = resp::parse_integer(text).and_then(|number| usize::try_from(number).ok());
    number.ok_or(Error::fixed(error))
}
