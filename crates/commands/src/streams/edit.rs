//! XDEL, XSETID.

use std::collections::BTreeSet;

use store::{Stream, StreamId, StreamRecord};

use super::ids::parse_id;
use super::{Changes, notify, reply_count, stream_of};
use crate::context::Context;
use crate::{Args, Error};

/// Parses the ids from the argument `first` on.
pub(super) fn parse_ids(args: Args<'_>, first: usize) -> Result<Vec<StreamId>, Error> {
    args.from(first).map(|text| parse_id(text, 0)).collect()
}

pub(super) fn xdel(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let stream = context.keys.find(&key).map(|found| stream_of(&found)).transpose()?;
    let Some(stream) = stream else {
        context.reply.integer(0);
        return Ok(());
    };
    let ids = parse_ids(context.args, 2)?;
    let present: BTreeSet<StreamId> = ids.into_iter().filter(|id| stream.contains(*id)).collect();
    if let Some(last) = present.last() {
        let mut changes = Changes::default();
        present.iter().for_each(|id| changes.add(StreamRecord::RemoveEntry { id: *id }));
        changes.add(head_with(stream, stream.max_deleted().max(*last)));
        changes.apply(&mut context.keys, key);
        notify(context, "xdel", &key);
    }
    reply_count(&mut context.reply, present.len());
    Ok(())
}

/// Returns the head of a stream with another highest deleted id.
pub(super) fn head_with(stream: &Stream, max_deleted: StreamId) -> StreamRecord<'static> {
    let (last_id, entries_added) = (stream.last_id(), stream.entries_added());
    StreamRecord::Head { last_id, entries_added, max_deleted }
}

/// The arguments of XSETID.
struct NewHead {
    last_id: StreamId,
    entries_added: Option<u64>,
    max_deleted: Option<StreamId>,
}

impl NewHead {
    fn parse(context: &Context<'_>) -> Result<NewHead, Error> {
        let args = context.args;
        let last_id = parse_id(args.at(2), 0)?;
        let mut head = NewHead { last_id, entries_added: None, max_deleted: None };
        let mut index = 3;
        while let Some(word) = args.get(index) {
            let value = args.get(index + 1).ok_or(Error::SYNTAX)?;
            if word.eq_ignore_ascii_case(b"entriesadded") {
                let number = u64::try_from(context.integer(index + 1)?);
                let number = number
                    .map_err(|_| const { Error::fixed("ERR entries_added must be positive") })?;
                head.entries_added = Some(number);
            } else if word.eq_ignore_ascii_case(b"maxdeletedid") {
                let id = parse_id(value, 0)?;
                if last_id < id {
                    return Err(Error::fixed(
                        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                    ));
                }
                head.max_deleted = Some(id).filter(|id| *id != StreamId::MIN);
            } else {
                return Err(Error::SYNTAX);
            }
            index += 2;
        }
        Ok(head)
    }

    fn check(&self, stream: &Stream) -> Result<(), Error> {
        if self.last_id < stream.max_deleted() {
            return Err(Error::fixed(
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
            ));
        }
        if stream.last().is_some_and(|last| self.last_id < last.id()) {
            return Err(Error::fixed(
                "ERR The ID specified in XSETID is smaller than the target stream top item",
            ));
        }
        if !stream.is_empty() && self.entries_added.is_some_and(|it| it < stream.len() as u64) {
            return Err(Error::fixed(
                "ERR The entries_added specified in XSETID is smaller than the target stream length",
            ));
        }
        Ok(())
    }
}

pub(super) fn xsetid(context: &mut Context<'_>) -> Result<(), Error> {
    let head = NewHead::parse(context)?;
    let key = context.key(1);
    let found = context.keys.find(&key).ok_or(Error::NO_SUCH_KEY)?;
    let stream = stream_of(&found)?;
    head.check(stream)?;
    let mut changes = Changes::default();
    changes.add(StreamRecord::Head {
        last_id: head.last_id,
        entries_added: head.entries_added.unwrap_or(stream.entries_added()),
        max_deleted: head.max_deleted.unwrap_or(stream.max_deleted()),
    });
    changes.apply(&mut context.keys, key);
    notify(context, "xsetid", &key);
    context.reply.ok();
    Ok(())
}
