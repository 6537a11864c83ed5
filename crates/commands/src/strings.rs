//! Strings: SET, GET and their kin.

use resp::Reply;
use store::{Effect, NewValue, Value};

use crate::Error;
use crate::context::Context;
use crate::settings::NotifyClasses;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "get",
        full_name: "get",
        summary: "Returns the string value of a key.",
        group: Group::String,
        arity: 2,
        flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
        keys: KeySpec::FIRST,
        run: Some(get),
        ..BLANK
    },
    Spec {
        name: "set",
        full_name: "set",
        summary: "Sets the string value of a key, whatever it held before.",
        group: Group::String,
        arity: -3,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
        keys: KeySpec::FIRST,
        run: Some(set),
        ..BLANK
    },
];

fn get(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    match context.keys.read(&key) {
        Some(found) => reply_string(&mut context.reply, found.value()),
        None => context.reply.null(),
    }
    Ok(())
}

fn set(context: &mut Context<'_>) -> Result<(), Error> {
    if context.args.len() > 3 {
        return Err(Error::SYNTAX);
    }
    let key = context.key(1);
    let value = text_value(context.args.at(2));
    context.keys.apply(&Effect::Put { key, value, expires_at: None });
    context.keys.notify(NotifyClasses::STRING, "set", key.bytes());
    context.reply.ok();
    Ok(())
}

/// A string as a bulk reply; a large one is shared, not copied.
pub(crate) fn reply_string(reply: &mut Reply<'_>, value: Value<'_>) {
    match value {
        Value::Bytes(bytes) => reply.bulk(bytes),
        Value::Integer(number) => reply.bulk_integer(number),
        Value::Shared(shared) => reply.bulk_shared(&shared.to_arc()),
    }
}

/// A string as a client sent it: kept as a number if it is one in its shortest form.
#[inline]
pub(crate) fn text_value(bytes: &[u8]) -> NewValue<'_> {
    match resp::parse_integer(bytes) {
        Some(number) => NewValue::Integer(number),
        None => NewValue::Plain(bytes),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn what_was_set_is_got() {
        check(
            r#"
            > SET k v
            OK
            > GET k
            "v"
            > SET n 12
            OK
            > GET n
            "12"
            > GET missing
            (nil)
            > GET
            (error) ERR wrong number of arguments for 'get' command
            > NOSUCH a b
            (error) ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b'
            "#,
        );
    }
}
