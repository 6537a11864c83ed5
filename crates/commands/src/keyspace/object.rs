//! OBJECT: the encoding and the usage of a value. Inspecting a value does not count as a use.

use store::{AccessTracking, Encoding, Found, StoredValue, StringValue};

use crate::Error;
use crate::context::Context;
use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, KeySpec, Spec};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "object",
    full_name: "object",
    summary: "Shows the internal representation of values.",
    since: "2.2.3",
    complexity: "Depends on subcommand.",
    arity: -2,
    subcommands: SUBCOMMANDS,
    ..BLANK
}];

const QUESTION: Spec = Spec {
    since: "2.2.3",
    arity: 3,
    flags: Flags::of(&[Flag::ReadOnly]),
    keys: KeySpec::SECOND,
    ..BLANK
};

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "encoding",
        full_name: "object|encoding",
        summary: "Returns the internal encoding of a value.",
        syntax: "key",
        run: Some(encoding),
        ..QUESTION
    },
    Spec {
        name: "freq",
        full_name: "object|freq",
        summary: "Returns the access frequency of a key, on a logarithmic scale.",
        syntax: "key",
        since: "4.0.0",
        run: Some(freq),
        ..QUESTION
    },
    Spec {
        name: "help",
        full_name: "object|help",
        summary: "Lists the subcommands.",
        since: "6.2.0",
        arity: 2,
        flags: Flags::of(&[Flag::Loading, Flag::Stale]),
        run: Some(help),
        ..BLANK
    },
    Spec {
        name: "idletime",
        full_name: "object|idletime",
        summary: "Returns the seconds since the last access to a key.",
        syntax: "key",
        run: Some(idletime),
        ..QUESTION
    },
    Spec {
        name: "refcount",
        full_name: "object|refcount",
        summary: "Returns the reference count of a value, as Redis would.",
        syntax: "key",
        run: Some(refcount),
        ..QUESTION
    },
];

fn encoding(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(2);
    match context.keys.peek(&key) {
        // Valkey gives up the packed form of a hash when a field gets a deadline; clients need not see a difference.
        Some(found) if has_deadlines(&found) => {
            context.reply.bulk(Encoding::Hashtable.name().as_bytes());
        }
        Some(found) => context.reply.bulk(found.item.encoding().name().as_bytes()),
        None => context.reply.null(),
    }
    Ok(())
}

fn has_deadlines(found: &Found<'_>) -> bool {
    matches!(found.value(), StoredValue::Hash(hash) if hash.due_from().is_some())
}

fn refcount(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(2);
    match context.keys.peek(&key) {
        Some(found) => context.reply.integer(reference_count(&found)),
        None => context.reply.null(),
    }
    Ok(())
}

/// Returns the reference count that Redis reports. Redis shares small numbers among all keys, and reports the
/// largest possible count for them.
pub(super) fn reference_count(found: &Found<'_>) -> i64 {
    match found.string() {
        Some(StringValue::Integer(0..10_000)) => i64::from(i32::MAX),
        Some(_) | None => 1,
    }
}

fn idletime(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(2);
    let (now, access) = (context.keys.now(), context.keys.env().access);
    match (context.keys.peek(&key), access) {
        (None, _) => context.reply.null(),
        (Some(found), AccessTracking::Lru) => {
            context.reply.integer(found.item.mark().idle_seconds(now).into());
        }
        (Some(_), AccessTracking::Lfu(_)) => {
            return Err(Error::fixed(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that \
                 when switching between policies at runtime LRU and LFU data will take some time \
                 to adjust.",
            ));
        }
    }
    Ok(())
}

fn freq(context: &mut Context<'_>) -> Result<(), Error> {
    let key = context.key(2);
    let (now, access) = (context.keys.now(), context.keys.env().access);
    match (context.keys.peek(&key), access) {
        (None, _) => context.reply.null(),
        (Some(found), AccessTracking::Lfu(tuning)) => {
            context.reply.integer(found.item.mark().frequency(now, tuning).into());
        }
        (Some(_), AccessTracking::Lru) => {
            return Err(Error::fixed(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
                 Please note that when switching between policies at runtime LRU and LFU data \
                 will take some time to adjust.",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use store::{AccessTracking, LfuTuning};

    use crate::testing::{TestNode, check, check_on};

    #[test]
    fn a_value_tells_how_it_is_kept() {
        let long = "x".repeat(45);
        check(&format!(
            r#"
            > SET number 12
            OK
            > SET large 123456
            OK
            > SET text abc
            OK
            > SET long {long}
            OK
            > OBJECT ENCODING number
            "int"
            > OBJECT ENCODING text
            "embstr"
            > OBJECT ENCODING long
            "raw"
            > OBJECT ENCODING missing
            (nil)
            > OBJECT REFCOUNT number
            (integer) 2147483647
            > OBJECT REFCOUNT large
            (integer) 1
            > OBJECT REFCOUNT missing
            (nil)
            > OBJECT
            (error) ERR wrong number of arguments for 'object' command
            > OBJECT ENCODING
            (error) ERR wrong number of arguments for 'object|encoding' command
            > OBJECT WEIGHT text
            (error) ERR unknown subcommand 'WEIGHT'. Try OBJECT HELP.
            "#
        ));
    }

    #[test]
    fn idle_time_is_that_since_the_last_use() {
        check(
            r"
            > SET k v
            OK
            +30s
            > OBJECT IDLETIME k
            (integer) 30
            > EXISTS k
            (integer) 1
            > TYPE k
            string
            > OBJECT IDLETIME k
            (integer) 30
            > TOUCH k
            (integer) 1
            > OBJECT IDLETIME k
            (integer) 0
            > OBJECT FREQ missing
            (nil)
            > OBJECT FREQ k
            (error) ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
            ",
        );
    }

    #[test]
    fn frequency_is_told_where_it_is_counted() {
        let mut node = TestNode::default();
        node.env.access = AccessTracking::Lfu(LfuTuning { log_factor: 10, decay_minutes: 1 });
        check_on(
            &mut node,
            r"
            > SET k v
            OK
            > OBJECT FREQ k
            (integer) 5
            > OBJECT IDLETIME missing
            (nil)
            > OBJECT IDLETIME k
            (error) ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.
            ",
        );
    }
}
