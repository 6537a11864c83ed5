//! Gives a value another name, or another database: RENAME, RENAMENX, COPY, MOVE.

use std::sync::Arc;

use placement::Slot;
use settings::NotifyClasses;
use store::{
    Database, Encoding, Found, Key, NewValue, Row, StoredValue, StringValue, UnixMillis,
    deadline_of, with_deadline,
};

use crate::Error;
use crate::connection::database_at;
use crate::context::Context;
use crate::spec::{BLANK, Flag, Flags, KeySpec, Spec};
use crate::transactions::EFFECT_BYTES_MAX;

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "rename",
        full_name: "rename",
        summary: "Renames a key, and replaces any key of the new name.",
        syntax: "key newkey",
        arity: 3,
        flags: Flags::of(&[Flag::Write]),
        keys: KeySpec::FIRST_TWO,
        run: Some(rename),
        ..BLANK
    },
    Spec {
        name: "renamenx",
        full_name: "renamenx",
        summary: "Renames a key, unless a key of the new name exists.",
        syntax: "key newkey",
        arity: 3,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        keys: KeySpec::FIRST_TWO,
        run: Some(renamenx),
        ..BLANK
    },
    Spec {
        name: "copy",
        full_name: "copy",
        summary: "Copies the value of a key to another key.",
        syntax: "source destination [DB destination-db] [REPLACE]",
        since: "6.2.0",
        complexity: "O(N) where N is the size of the value; large strings are shared instead.",
        arity: -3,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
        keys: KeySpec::FIRST_TWO,
        run: Some(copy),
        ..BLANK
    },
    Spec {
        name: "move",
        full_name: "move",
        summary: "Moves a key to another database, unless it exists there.",
        syntax: "key db",
        complexity: "O(N) where N is the size of the value; large strings are shared instead.",
        arity: 3,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        keys: KeySpec::FIRST,
        run: Some(move_key),
        ..BLANK
    },
];

/// A value on its way to another key, with its expiry.
struct Moving {
    value: OwnedValue,
    expires_at: Option<UnixMillis>,
}

enum OwnedValue {
    Plain(Vec<u8>),
    Raw(Vec<u8>),
    Integer(i64),
    Shared(Arc<Vec<u8>>),
    /// The fields and values of a hash, in a row, with their deadlines.
    Hash(Vec<u8>),
    /// The elements of a list, in a row.
    List(Vec<u8>),
    /// The scores and members of a sorted set, in a row.
    SortedSet(Vec<u8>),
    /// The members of a set, in a row.
    Set(Vec<u8>),
    /// A stream as records.
    Stream(Vec<u8>),
}

impl Moving {
    /// Copies a value. Fails if it is too large to reach every copy as one effect.
    fn of(found: &Found<'_>) -> Result<Moving, Error> {
        let is_raw = found.item.encoding() == Encoding::Raw;
        let value = match found.value() {
            StoredValue::String(StringValue::Integer(number)) => OwnedValue::Integer(number),
            StoredValue::String(StringValue::Shared(shared)) => OwnedValue::Shared(shared.to_arc()),
            StoredValue::String(StringValue::Bytes(bytes)) if is_raw => {
                OwnedValue::Raw(bytes.to_vec())
            }
            StoredValue::String(StringValue::Bytes(bytes)) => OwnedValue::Plain(bytes.to_vec()),
            StoredValue::Hash(hash) => {
                check_size(hash.row_len())?;
                OwnedValue::Hash(hash.to_row())
            }
            StoredValue::List(list) => {
                check_size(list.row_len())?;
                OwnedValue::List(list.to_row())
            }
            StoredValue::SortedSet(set) => {
                check_size(set.row_len())?;
                OwnedValue::SortedSet(set.to_row())
            }
            StoredValue::Set(set) => {
                check_size(set.row_len())?;
                OwnedValue::Set(set.to_row())
            }
            StoredValue::Stream(stream) => {
                check_size(stream.records_len())?;
                OwnedValue::Stream(stream.to_records())
            }
        };
        Ok(Moving { value, expires_at: found.expires_at })
    }

    fn new_value(&self) -> NewValue<'_> {
        match &self.value {
            OwnedValue::Plain(bytes) => NewValue::Plain(bytes),
            OwnedValue::Raw(bytes) => NewValue::Raw(bytes),
            OwnedValue::Integer(number) => NewValue::Integer(*number),
            OwnedValue::Shared(shared) => NewValue::Shared(Arc::clone(shared)),
            OwnedValue::Hash(row) => NewValue::Hash(row),
            OwnedValue::List(row) => NewValue::List(row),
            OwnedValue::SortedSet(row) => NewValue::SortedSet(row),
            OwnedValue::Set(row) => NewValue::Set(row),
            OwnedValue::Stream(records) => NewValue::Stream(records),
        }
    }
}

/// Refuses a container that is too large to reach every copy as one effect.
fn check_size(bytes: usize) -> Result<(), Error> {
    if bytes > EFFECT_BYTES_MAX / 2 {
        return Err(Error::new(format!(
            "ERR the value has {bytes} bytes, too many to be renamed or copied at once"
        )));
    }
    Ok(())
}

fn rename(context: &mut Context<'_>) -> Result<(), Error> {
    let (from, to) = (context.key(1), context.key(2));
    let moving = source(context, &from)?;
    if from.bytes() != to.bytes() {
        move_to(context, &from, to, moving);
    }
    context.reply.ok();
    Ok(())
}

fn renamenx(context: &mut Context<'_>) -> Result<(), Error> {
    let (from, to) = (context.key(1), context.key(2));
    let moving = source(context, &from)?;
    let free = from.bytes() != to.bytes() && context.keys.find(&to).is_none();
    if free {
        move_to(context, &from, to, moving);
    }
    context.reply.integer(i64::from(free));
    Ok(())
}

fn source(context: &mut Context<'_>, from: &Key<'_>) -> Result<Moving, Error> {
    let found = context.keys.find(from).ok_or(Error::NO_SUCH_KEY)?;
    Moving::of(&found)
}

fn move_to(context: &mut Context<'_>, from: &Key<'_>, to: Key<'_>, moving: Moving) {
    // If the target key is due, it is removed first, with an "expired" event instead of being overwritten.
    context.keys.exists(&to);
    let moving = carry_deadlines(context, moving, from.slot(), to.slot());
    context.keys.replace_key(to, moving.new_value(), moving.expires_at);
    context.keys.remove(from);
    context.keys.notify(NotifyClasses::GENERIC, "rename_from", from.bytes());
    context.keys.notify(NotifyClasses::GENERIC, "rename_to", to.bytes());
}

/// Returns the value with the deadlines of the key and of its fields in the new slot: the remaining times stay.
fn carry_deadlines(context: &mut Context<'_>, moving: Moving, from: Slot, to: Slot) -> Moving {
    let expires_at = moving.expires_at.map(|at| context.keys.carry_deadline(at, from, to));
    let mut moving = Moving { expires_at, ..moving };
    if from != to
        && let OwnedValue::Hash(row) = &mut moving.value
    {
        let mut carried = Vec::with_capacity(row.len());
        for entry in Row::new(row, 2).entries() {
            match deadline_of(entry).map(UnixMillis) {
                Some(at) => {
                    let at = context.keys.carry_deadline(at, from, to);
                    carried.extend_from_slice(&with_deadline(entry, Some(at.0)));
                }
                None => carried.extend_from_slice(entry),
            }
        }
        *row = carried;
    }
    moving
}

fn copy(context: &mut Context<'_>) -> Result<(), Error> {
    let CopyOptions { replace, database } = CopyOptions::parse(context)?;
    let (from, to) = (context.key(1), context.key(2).in_database(database));
    if from.bytes() == to.bytes() && from.database() == database {
        return Err(SAME_KEY);
    }
    let moving = context.keys.read(&from).map(|found| Moving::of(&found)).transpose()?;
    let copied = match moving {
        Some(moving) if context.keys.find(&to).is_none() || replace => {
            let moving = carry_deadlines(context, moving, from.slot(), to.slot());
            context.keys.replace_key(to, moving.new_value(), moving.expires_at);
            context.keys.notify_key(NotifyClasses::GENERIC, "copy_to", &to);
            1
        }
        Some(_) | None => 0,
    };
    context.reply.integer(copied);
    Ok(())
}

const SAME_KEY: Error = Error::fixed("ERR source and destination objects are the same");

struct CopyOptions {
    replace: bool,
    /// The database of the new key.
    database: Database,
}

impl CopyOptions {
    fn parse(context: &Context<'_>) -> Result<CopyOptions, Error> {
        let args = context.args;
        let mut options = CopyOptions { replace: false, database: context.session.database };
        let mut index = 3;
        while index < args.len() {
            let option = args.at(index);
            if option.eq_ignore_ascii_case(b"replace") {
                options.replace = true;
            } else if option.eq_ignore_ascii_case(b"db") && index + 1 < args.len() {
                index += 1;
                options.database = database_at(context, index)?;
            } else {
                return Err(Error::SYNTAX);
            }
            index += 1;
        }
        Ok(options)
    }
}

/// Moves a key to another database. Both are in the same slot, so other clients see it in one of them at any time.
fn move_key(context: &mut Context<'_>) -> Result<(), Error> {
    let database = database_at(context, 2)?;
    let from = context.key(1);
    if from.database() == database {
        return Err(SAME_KEY);
    }
    let to = from.in_database(database);
    let moving = context.keys.find(&from).map(|found| Moving::of(&found)).transpose()?;
    let moved = match moving {
        Some(moving) if !context.keys.exists(&to) => {
            context.keys.replace_key(to, moving.new_value(), moving.expires_at);
            context.keys.remove(&from);
            context.keys.notify_key(NotifyClasses::GENERIC, "move_from", &from);
            context.keys.notify_key(NotifyClasses::GENERIC, "move_to", &to);
            1
        }
        Some(_) | None => 0,
    };
    context.reply.integer(moved);
    Ok(())
}

#[cfg(test)]
mod tests {
    use settings::NotifyClasses;

    use crate::testing::{TestNode, check, check_on};

    #[test]
    fn a_renamed_key_keeps_value_and_expiry() {
        check(
            r#"
            > SET a text
            OK
            > EXPIRE a 100
            (integer) 1
            > SET b 5
            OK
            > RENAME a b
            OK
            > EXISTS a
            (integer) 0
            > GET b
            "text"
            > TTL b
            (integer) 100
            > RENAME b b
            OK
            > RENAME a b
            (error) ERR no such key
            > RENAME a a
            (error) ERR no such key
            "#,
        );
    }

    #[test]
    fn renamenx_leaves_a_taken_name_alone() {
        check(
            r#"
            > SET a 1
            OK
            > SET b 2
            OK
            > RENAMENX a b
            (integer) 0
            > RENAMENX a a
            (integer) 0
            > GET b
            "2"
            > PEXPIRE b 10
            (integer) 1
            +10ms
            > RENAMENX a b
            (integer) 1
            > GET b
            "1"
            > TTL b
            (integer) -1
            > RENAMENX a b
            (error) ERR no such key
            "#,
        );
    }

    #[test]
    fn a_copy_is_another_key_with_the_same_value_and_expiry() {
        check(
            r#"
            > SET a text
            OK
            > EXPIRE a 100
            (integer) 1
            > COPY a b
            (integer) 1
            > TTL b
            (integer) 100
            > SET a other
            OK
            > COPY a b
            (integer) 0
            > GET b
            "text"
            > COPY a b DB 0 REPLACE
            (integer) 1
            > GET b
            "other"
            > COPY missing c
            (integer) 0
            > COPY a a
            (error) ERR source and destination objects are the same
            > COPY a b DB 16
            (error) ERR DB index is out of range
            > COPY a a DB 1
            (integer) 1
            > COPY a b DB 1 REPLACE
            (integer) 1
            > COPY a b DB 99999999999
            (error) ERR value is out of range, value must between -2147483648 and 2147483647
            > COPY a b DB x
            (error) ERR value is not an integer or out of range
            > COPY a b DB
            (error) ERR syntax error
            > COPY a b REPLACED
            (error) ERR syntax error
            "#,
        );
    }

    #[test]
    fn a_large_value_is_shared_by_both_names_until_one_changes() {
        let mut node = TestNode::default();
        let large = "x".repeat(100_000);
        node.args(1, &[b"SET", b"a", large.as_bytes()]);
        check_on(&mut node, "> COPY a b\n(integer) 1\n> SET a small\nOK");
        assert_eq!(node.run("GET b"), format!("\"{large}\""));
        assert_eq!(node.slots.digest(), node.replayed().digest());
    }

    #[test]
    fn events_name_both_keys() {
        let mut node = TestNode::default();
        let all = NotifyClasses::ALL.union(NotifyClasses::NEW);
        node.env.notify = all.union(NotifyClasses::KEYEVENT);
        check_on(
            &mut node,
            "> SET a 1\nOK\n> SET b 1\nOK\n> RENAME a b\nOK\n> COPY b c\n(integer) 1",
        );
        let events = node.events();
        let told: Vec<String> = events
            .iter()
            .map(|event| format!("{} {}", event.name, String::from_utf8_lossy(&event.key)))
            .collect();
        let expected = [
            "new a",
            "set a",
            "new b",
            "set b",
            "new b",
            "rename_from a",
            "rename_to b",
            "new c",
            "copy_to c",
        ];
        assert_eq!(told, expected);
    }
}
