//! XADD.

use store::{Element, Key, Stream, StreamId, StreamRecord};

use super::ids::NewId;
use super::trim::TrimOptions;
use super::{Changes, notify, reply_id, stream_of};
use crate::context::Context;
use crate::{Args, Error};

pub(super) fn xadd(context: &mut Context<'_>) -> Result<(), Error> {
    let options = TrimOptions::parse(context, true)?;
    let wrong_arity = || Error::wrong_arity(context.spec.full_name);
    let (id, at) = options.id.ok_or_else(wrong_arity)?;
    let fields = context.args.len() - at - 1;
    if fields < 2 || !fields.is_multiple_of(2) {
        return Err(wrong_arity());
    }
    if id == NewId::Given(StreamId::MIN) {
        return Err(Error::fixed("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let key = context.key(1);
    let now = context.keys.now_in(key.slot()).0;
    let stream = context.keys.find(&key).map(|found| stream_of(&found)).transpose()?;
    if stream.is_none() && !options.creates {
        context.reply.null();
        return Ok(());
    }
    let added = Added::of(stream, id, now)?;
    added.apply(context, key, at + 1);
    reply_id(&mut context.reply, added.id);
    notify(context, "xadd", &key);
    if let Some(trim) = options.trim {
        trim.apply(context, key)?;
    }
    Ok(())
}

/// An entry to be added, and the head of its stream afterwards.
struct Added {
    id: StreamId,
    entries_added: u64,
    max_deleted: StreamId,
}

impl Added {
    fn of(stream: Option<&Stream>, id: NewId, now: u64) -> Result<Added, Error> {
        let last = stream.map_or(StreamId::MIN, Stream::last_id);
        if last == StreamId::MAX {
            return Err(Error::fixed(
                "ERR The stream has exhausted the last possible ID, unable to add more items",
            ));
        }
        let id = id.resolve(last, now).ok_or(
            const {
                Error::fixed(
                    "ERR The ID specified in XADD is equal or smaller than the target stream top item",
                )
            },
        )?;
        let entries_added = stream.map_or(0, Stream::entries_added).wrapping_add(1);
        let max_deleted = stream.map_or(StreamId::MIN, Stream::max_deleted);
        Ok(Added { id, entries_added, max_deleted })
    }

    /// Records the entry with the fields from the argument `first` on.
    fn apply(&self, context: &mut Context<'_>, key: Key<'_>, first: usize) {
        let pairs = pairs_of(context.args, first);
        let mut changes = Changes(Vec::with_capacity(pairs.len() + 64));
        changes.add(StreamRecord::Entry { id: self.id, pairs: &pairs });
        changes.add(StreamRecord::Head {
            last_id: self.id,
            entries_added: self.entries_added,
            max_deleted: self.max_deleted,
        });
        changes.apply(&mut context.keys, key);
    }
}

fn pairs_of(args: Args<'_>, first: usize) -> Vec<u8> {
    let mut pairs = Vec::with_capacity(args.from(first).map(|text| text.len() + 5).sum());
    args.from(first).for_each(|text| Element::of(text).write(&mut pairs));
    pairs
}
