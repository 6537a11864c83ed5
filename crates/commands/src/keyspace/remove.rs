//! Existence and removal of keys: DEL, UNLINK, EXISTS, TOUCH, TYPE.

use settings::NotifyClasses;

use crate::Error;
use crate::context::Context;
use crate::keyspace::type_name;
use crate::spec::{BLANK, Flag, Flags, KeySpec, Spec};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "del",
        full_name: "del",
        summary: "Removes keys.",
        syntax: "key...",
        complexity: "O(N) where N is the number of keys; large values are freed in the background.",
        arity: -2,
        flags: Flags::of(&[Flag::Write]),
        keys: KeySpec::ALL,
        run: Some(del),
        ..BLANK
    },
    Spec {
        name: "unlink",
        full_name: "unlink",
        summary: "Removes keys; their memory is freed in the background.",
        syntax: "key...",
        since: "4.0.0",
        complexity: "O(N) where N is the number of keys; large values are freed in the background.",
        arity: -2,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        keys: KeySpec::ALL,
        run: Some(del),
        ..BLANK
    },
    Spec {
        name: "exists",
        full_name: "exists",
        summary: "Counts how many of the given keys exist.",
        syntax: "key...",
        complexity: "O(N) where N is the number of keys to check.",
        arity: -2,
        flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
        keys: KeySpec::ALL,
        run: Some(exists),
        ..BLANK
    },
    Spec {
        name: "touch",
        full_name: "touch",
        summary: "Updates the access time of keys, and counts those that exist.",
        syntax: "key...",
        since: "3.2.1",
        complexity: "O(N) where N is the number of keys that will be touched.",
        arity: -2,
        flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
        keys: KeySpec::ALL,
        run: Some(touch),
        ..BLANK
    },
    Spec {
        name: "type",
        full_name: "type",
        summary: "Returns the type of the value of a key.",
        syntax: "key",
        arity: 2,
        flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
        keys: KeySpec::FIRST,
        run: Some(type_of),
        ..BLANK
    },
];

fn del(context: &mut Context<'_>) -> Result<(), Error> {
    let mut removed = 0;
    for index in 1..context.args.len() {
        let key = context.key(index);
        if context.keys.remove(&key) {
            context.keys.notify(NotifyClasses::GENERIC, "del", key.bytes());
            removed += 1;
        }
    }
    context.reply.integer(removed);
    Ok(())
}

fn exists(context: &mut Context<'_>) -> Result<(), Error> {
    let mut there = 0;
    for index in 1..context.args.len() {
        let key = context.key(index);
        there += i64::from(context.keys.inspect(&key).is_some());
    }
    context.reply.integer(there);
    Ok(())
}

fn touch(context: &mut Context<'_>) -> Result<(), Error> {
    let mut there = 0;
    for index in 1..context.args.len() {
        let key = context.key(index);
        there += i64::from(context.keys.read(&key).is_some());
    }
    context.reply.integer(there);
    Ok(())
}

fn type_of(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(1);
    let name = context.keys.inspect(&key).map_or("none", |found| type_name(found.value()));
    context.reply.simple(name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn a_key_named_twice_counts_twice_where_it_is_and_goes_once() {
        check(
            r#"
            > SET a 1
            OK
            > SET b 2
            OK
            > EXISTS a a b c
            (integer) 3
            > TOUCH a a c
            (integer) 2
            > DEL a a c
            (integer) 1
            > UNLINK a b
            (integer) 1
            > EXISTS a b
            (integer) 0
            > DEL
            (error) ERR wrong number of arguments for 'del' command
            "#,
        );
    }

    #[test]
    fn the_type_of_what_is_not_there_is_none() {
        check(
            r"
            > SET text abc
            OK
            > SET number 17
            OK
            > TYPE text
            string
            > TYPE number
            string
            > TYPE missing
            none
            ",
        );
    }
}
