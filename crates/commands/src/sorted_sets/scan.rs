//! ZSCAN: the members of a sorted set in pages. Cursors are those of HSCAN.

use store::TablePosition;

use super::{score_text, sorted_of};
use crate::Error;
use crate::context::Context;
use crate::keyspace::{PageOptions, parse_cursor};

pub(super) fn zscan(context: &mut Context<'_>) -> Result<(), Error> {
    let from = TablePosition(parse_cursor(context.args.at(2))?);
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let options = PageOptions::parse(context, 3);
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut next = None;
    // As in Redis, wrong options of a missing key are no error.
    if let Some(found) = context.keys.read(&key) {
        let (set, options) = (sorted_of(&found)?, options?);
        let mut seen = 0;
        next = set.scan(seed, from, |it| {
            seen += 1;
            if it.member.with_text(|text| options.pattern.matches(text)) {
                texts.push(it.member.to_text().into_owned());
                if !options.no_values {
                    texts.push(score_text(it.score));
                }
            }
            seen < options.count
        });
    }
    context.reply.array(2);
    context.reply.bulk(next.unwrap_or_default().0.to_string().as_bytes());
    context.reply.array(texts.len());
    texts.iter().for_each(|text| context.reply.bulk(text));
    Ok(())
}
