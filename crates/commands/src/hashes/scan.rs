//! HSCAN: the fields of a hash in pages. A cursor is a position in the order of hashes (`containers::TablePosition`), so it
//! never becomes invalid, and a field that exists during a whole scan is returned by that scan. As with SCAN, that
//! holds on one process.

use store::TablePosition;

use super::hash_of;
use crate::Error;
use crate::context::Context;
use crate::keyspace::{PageOptions, parse_cursor, reply_page};

pub(super) fn hscan(context: &mut Context<'_>) -> Result<(), Error> {
    let from = TablePosition(parse_cursor(context.args.at(2))?);
    let (key, seed) = (context.key(1), &context.keys.env().seed);
    let now = context.keys.now_in(key.slot());
    let options = PageOptions::parse(context, 3);
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut next = None;
    // As in Redis, wrong options of a missing key are no error.
    if let Some(found) = context.keys.read(&key) {
        let (hash, options) = (hash_of(&found, now)?, options?);
        let mut seen = 0;
        next = hash.scan(seed, from, |field, value| {
            seen += 1;
            if field.with_text(|text| options.pattern.matches(text)) {
                texts.push(field.to_text().into_owned());
                if !options.no_values {
                    texts.push(value.to_text().into_owned());
                }
            }
            seen < options.count
        });
    }
    reply_page(&mut context.reply, next, &texts);
    Ok(())
}
