//! BITFIELD: several reads and writes of integers inside one string, in the order given.

use settings::NotifyClasses;
use store::{Effect, Key};

use super::int::{FieldPlace, Overflow};
use crate::context::Context;
use crate::keys::Keys;
use crate::strings::{string_of, with_bytes};
use crate::transactions::{EFFECT_BYTES_MAX, repeated_bytes};
use crate::{Args, Error};

/// One read or write.
struct FieldOperation {
    place: FieldPlace,
    action: FieldAction,
}

enum FieldAction {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

pub(super) fn bitfield(context: &mut Context<'_>) -> Result<(), Error> {
    let operations = parse(context)?;
    if operations.iter().all(FieldOperation::is_read) {
        read_all(context, &operations)?;
    } else if repeated_bytes(context.args.at(1), operations.len() + 1) > EFFECT_BYTES_MAX {
        return Err(Error::fixed(
            "ERR too many operations for a key of this length; split the command",
        ));
    } else {
        write_all(context, &operations)?;
    }
    Ok(())
}

pub(super) fn bitfield_ro(context: &mut Context<'_>) -> Result<(), Error> {
    let operations = parse(context)?;
    if !operations.iter().all(FieldOperation::is_read) {
        return Err(Error::fixed("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read_all(context, &operations)?;
    Ok(())
}

impl FieldOperation {
    fn is_read(&self) -> bool {
        match self.action {
            FieldAction::Get => true,
            FieldAction::Set(..) | FieldAction::Add(..) => false,
        }
    }

    /// Returns the number to write in place of `old`, if the operation writes and the number fits.
    fn new_number(&self, old: i64) -> Option<i64> {
        match self.action {
            FieldAction::Get => None,
            FieldAction::Set(number, overflow) => {
                self.place.fitted(self.place.widened(number), overflow)
            }
            FieldAction::Add(number, overflow) => {
                self.place.fitted(i128::from(old) + i128::from(number), overflow)
            }
        }
    }
}

/// Returns the length to which the writes among these arguments of BITFIELD may extend the string.
pub(crate) fn field_end(keys: &Keys<'_>, args: Args<'_>) -> usize {
    let writes =
        |word: &[u8]| word.eq_ignore_ascii_case(b"set") || word.eq_ignore_ascii_case(b"incrby");
    let places = (2..args.len().saturating_sub(2)).filter(|at| writes(args.at(*at)));
    let places =
        places.filter_map(|at| FieldPlace::parse(keys, args.at(at + 1), args.at(at + 2)).ok());
    places.map(|place| place.last_byte() + 1).max().unwrap_or(0)
}

fn parse(context: &Context<'_>) -> Result<Vec<FieldOperation>, Error> {
    let args = context.args;
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < args.len() {
        let (word, rest) = (args.at(at), args.len() - at - 1);
        let place = || FieldPlace::parse(&context.keys, args.at(at + 1), args.at(at + 2));
        if word.eq_ignore_ascii_case(b"overflow") && rest >= 1 {
            overflow = Overflow::parse(args.at(at + 1))?;
            at += 2;
        } else if word.eq_ignore_ascii_case(b"get") && rest >= 2 {
            operations.push(FieldOperation { place: place()?, action: FieldAction::Get });
            at += 3;
        } else if word.eq_ignore_ascii_case(b"set") && rest >= 3 {
            let (place, number) = (place()?, context.integer(at + 3)?);
            operations.push(FieldOperation { place, action: FieldAction::Set(number, overflow) });
            at += 4;
        } else if word.eq_ignore_ascii_case(b"incrby") && rest >= 3 {
            let (place, number) = (place()?, context.integer(at + 3)?);
            operations.push(FieldOperation { place, action: FieldAction::Add(number, overflow) });
            at += 4;
        } else {
            return Err(Error::SYNTAX);
        }
    }
    Ok(operations)
}

fn read_all(context: &mut Context<'_>, operations: &[FieldOperation]) -> Result<(), Error> {
    let key = context.key(1);
    let reply = &mut context.reply;
    let mut answer = |bytes: &[u8]| {
        reply.array(operations.len());
        for operation in operations {
            reply.integer(operation.place.get(&operation.place.window(bytes)));
        }
    };
    match context.keys.read(&key) {
        Some(found) => with_bytes(string_of(&found)?, answer),
        None => answer(b""),
    }
    Ok(())
}

fn write_all(context: &mut Context<'_>, operations: &[FieldOperation]) -> Result<(), Error> {
    let key = context.key(1);
    let grown = grow(&mut context.keys, &key, operations)?;
    let mut changed = false;
    context.reply.array(operations.len());
    for operation in operations {
        let place = operation.place;
        let mut window = match context.keys.peek(&key) {
            Some(found) => with_bytes(string_of(&found)?, |bytes| place.window(bytes)),
            None => place.window(b""),
        };
        let old = place.get(&window);
        let new = operation.new_number(old);
        match (&operation.action, new) {
            (FieldAction::Get, _) | (FieldAction::Set(..), Some(_)) => context.reply.integer(old),
            (FieldAction::Add(..), Some(new)) => context.reply.integer(new),
            (FieldAction::Set(..) | FieldAction::Add(..), None) => context.reply.null(),
        }
        let Some(new) = new else { continue };
        changed |= grown || new != old;
        if new != old {
            place.set(&mut window, new);
            let (offset, bytes) = (place.first_byte(), &window[..place.bytes()]);
            context.keys.apply(&Effect::Overwrite { key, offset, bytes });
        }
    }
    if changed {
        context.keys.notify(NotifyClasses::STRING, "setbit", key.bytes());
    }
    Ok(())
}

/// Extends the string for all writes; returns whether it was too short. It grows even if no number then fits its
/// place, as in Redis.
fn grow(keys: &mut Keys<'_>, key: &Key<'_>, operations: &[FieldOperation]) -> Result<bool, Error> {
    let writes = operations.iter().filter(|operation| !operation.is_read());
    let last = writes.map(|operation| operation.place.last_byte()).max();
    let last = last.expect("the caller has seen a write");
    if let Some(found) = keys.find(key)
        && string_of(&found)?.len() > last
    {
        return Ok(false);
    }
    keys.apply(&Effect::Overwrite { key: *key, offset: last, bytes: &[0] });
    Ok(true)
}
