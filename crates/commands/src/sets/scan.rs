//! SSCAN: the members of a set in pages. Cursors are those of HSCAN (`hashes/scan.rs`).

use store::TablePosition;

use super::set_of;
use crate::Error;
use crate::context::Context;
use crate::keyspace::{PageOptions, parse_cursor};

pub(super) fn sscan(context: &mut Context<'_>) -> Result<(), Error> {
    let from = TablePosition(parse_cursor(context.args.at(2))?);
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let options = PageOptions::parse(context, 3);
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut next = None;
    // As in Redis, wrong options of a missing key are no error.
    if let Some(found) = context.keys.read(&key) {
        let (set, options) = (set_of(&found)?, options?);
        if options.no_values {
            return Err(Error::fixed("ERR NOVALUES option can only be used in HSCAN"));
        }
        let mut seen = 0;
        next = set.scan(seed, from, |member| {
            seen += 1;
            if member.with_text(|text| options.pattern.matches(text)) {
                texts.push(member.to_text().into_owned());
            }
            seen < options.count
        });
    }
    context.reply.array(2);
    context.reply.bulk(next.map_or(0, |position| position.0).to_string().as_bytes());
    context.reply.array(texts.len());
    texts.iter().for_each(|text| context.reply.bulk(text));
    Ok(())
}
