//! GEOADD: sets positions. A position is a score, so this is ZADD with other arguments.

use store::Score;

use super::parse_position;
use crate::Error;
use crate::context::Context;
use crate::sorted_sets::{AddOptions, add_scores};

pub(super) fn geoadd(context: &mut Context<'_>) -> Result<(), Error> {
    let args = context.args;
    let mut options = AddOptions::default();
    let mut first = 2;
    while let Some(word) = args.get(first) {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => options.only_new = true,
            b"xx" => options.only_present = true,
            b"ch" => options.counts_changed = true,
            _ => break,
        }
        first += 1;
    }
    let count = args.len() - first;
    if count == 0 || !count.is_multiple_of(3) || options.only_new && options.only_present {
        return Err(Error::SYNTAX);
    }
    let mut scores = Vec::with_capacity(count / 3);
    for index in (first..args.len()).step_by(3) {
        let position = parse_position(args, index)?;
        let score = Score::new(position.score() as f64).ok_or(Error::NOT_A_FLOAT)?;
        scores.push((args.at(index + 2), score));
    }
    add_scores(context, &options, &scores)
}
