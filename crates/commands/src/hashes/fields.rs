//! The clause `FIELDS number field ...` of the commands on the expiry of fields, and the changes that they share.

use std::collections::BTreeSet;

use settings::NotifyClasses;
use store::{Cause, Effect, Element, UnixMillis};

use super::write::row_of;
use crate::Error;
use crate::context::Context;
use crate::strings::DeadlineUnit;

const WRONG_COUNT: Error =
    Error::fixed("ERR numfields should be greater than 0 and match the provided number of fields");

/// The clause, which ends the command.
#[derive(Clone, Copy)]
pub(super) struct FieldsClause {
    /// Index of the word FIELDS.
    pub(super) at: usize,
    /// Index of the first field.
    pub(super) first: usize,
}

impl FieldsClause {
    /// Looks for the word FIELDS behind optional words, which begin at the argument `from`.
    pub(super) fn find(context: &Context<'_>, from: usize) -> Result<FieldsClause, Error> {
        let args = context.args;
        let mut places = from..args.len() - 1;
        let is_word = |at: &usize| args.at(*at).eq_ignore_ascii_case(b"fields");
        let at = places.find(is_word).ok_or(WRONG_COUNT)?;
        Ok(FieldsClause { at, first: at + 2 })
    }

    /// Expects the word FIELDS behind the key.
    pub(super) fn behind_key(context: &Context<'_>) -> Result<FieldsClause, Error> {
        if !context.args.at(2).eq_ignore_ascii_case(b"fields") {
            return Err(Error::fixed(
                "ERR Mandatory argument FIELDS is missing or not at the right position",
            ));
        }
        Ok(FieldsClause { at: 2, first: 4 })
    }

    /// Checks the number of fields, each of which takes `width` arguments.
    pub(super) fn check(self, context: &Context<'_>, width: usize) -> Result<(), Error> {
        self.check_or(context, width, WRONG_COUNT)
    }

    pub(super) fn check_or(
        self,
        context: &Context<'_>,
        width: usize,
        error: Error,
    ) -> Result<(), Error> {
        let count = usize::try_from(context.integer(self.at + 1)?).unwrap_or(0);
        let given = context.args.len() - self.first;
        let is_right = count > 0 && count.checked_mul(width) == Some(given);
        if is_right { Ok(()) } else { Err(error) }
    }
}

/// Returns the time in an argument. Other than that of a key, the deadline of a field may be now.
pub(super) fn parse_deadline(
    number: &[u8],
    unit: DeadlineUnit,
    now: UnixMillis,
    full_name: &str,
) -> Result<UnixMillis, Error> {
    let number = resp::parse_integer(number).ok_or(Error::NOT_AN_INTEGER)?;
    let at = Some(number).filter(|number| *number >= 0).and_then(|number| unit.time(number, now));
    // An element is a signed number.
    let at = at.filter(|at| i64::try_from(at.0).is_ok());
    at.ok_or_else(|| Error::invalid_expire(full_name))
}

/// Removes fields of a hash with `len` fields, and publishes the event; the key goes with its last field.
pub(super) fn remove_fields(
    context: &mut Context<'_>,
    fields: &BTreeSet<&[u8]>,
    len: usize,
    event: &'static str,
) {
    if fields.is_empty() {
        return;
    }
    let key = context.key(1);
    let is_emptied = fields.len() == len;
    if is_emptied {
        context.keys.apply(&Effect::Remove { key, cause: Cause::Deleted });
    } else {
        let fields = row_of(fields.iter().copied());
        context.keys.apply(&Effect::RemoveFields { key, fields: &fields });
    }
    context.keys.notify(NotifyClasses::HASH, event, key.bytes());
    if is_emptied {
        context.keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
    }
}

/// Sets the deadline of fields that exist, or removes it, and publishes the event.
pub(super) fn expire_fields(
    context: &mut Context<'_>,
    fields: &BTreeSet<&[u8]>,
    deadline: Option<UnixMillis>,
) {
    if fields.is_empty() {
        return;
    }
    let key = context.key(1);
    // 0 removes the deadline.
    let time = deadline.map_or(0, |at| at.0.cast_signed());
    let mut deadlines = Vec::new();
    for field in fields {
        Element::of(field).write(&mut deadlines);
        Element::Integer(time).write(&mut deadlines);
    }
    context.keys.apply(&Effect::ExpireFields { key, deadlines: &deadlines });
    let event = if deadline.is_some() { "hexpire" } else { "hpersist" };
    context.keys.notify(NotifyClasses::HASH, event, key.bytes());
}

/// Returns a count as a number for a reply.
pub(super) fn number(count: usize) -> i64 {
    count.cast_signed() as i64
}
