//! Strings: SET, GET and the other string commands. Bit commands are in `bits/`.
//!
//! This file has the table and the shared functions for storing, reading and returning strings. Each command is in
//! the file of its topic.
mod set; //      SET, SETNX, SETEX, PSETEX, GETSET.
mod get; //      GET, GETDEL, GETEX, DELIFEQ, STRLEN.
mod options; //  The options of SET and GETEX: conditions and lifetimes.
mod many; //     MGET, MSET, MSETNX, MSETEX.
mod counters; // INCR and its variants, INCRBYFLOAT.
mod extended; // The floating-point numbers of INCRBYFLOAT.
mod ranges; //   APPEND, GETRANGE, SETRANGE; clamping of ranges.
mod lcs; //      LCS.

use resp::Reply;
use settings::NotifyClasses;
use store::{Effect, Found, Key, NewValue, StringValue, UnixMillis};

use crate::Error;
use crate::keys::Keys;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

pub(crate) use extended::Extended;
pub(crate) use options::{DeadlineUnit, Lifetime, deadline};
pub(crate) use ranges::{Bounds, clamp};

/// The common part of commands that read one string, quickly.
const READ: Spec = Spec {
    group: Group::String,
    flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
    keys: KeySpec::FIRST,
    ..BLANK
};

/// The common part of commands that write one string, and may need memory for it.
const WRITE: Spec = Spec {
    group: Group::String,
    flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
    keys: KeySpec::FIRST,
    ..BLANK
};

const BRIEF_WRITE: Spec =
    Spec { flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Brief]), ..WRITE };

const FAST_WRITE: Spec =
    Spec { flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Fast]), ..WRITE };

/// Alternating keys and values.
const PAIRS: KeySpec = KeySpec { first: 1, last: -1, step: 2 };

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "append",
        full_name: "append",
        syntax: "key value",
        summary: "Adds bytes at the end of a string; a missing key becomes a new string.",
        since: "2.0.0",
        complexity: "O(1) on average, if what is added is small",
        arity: 3,
        run: Some(ranges::append),
        ..FAST_WRITE
    },
    Spec {
        name: "decr",
        full_name: "decr",
        syntax: "key",
        summary: "Subtracts one from the integer that a key holds; a missing key counts as 0.",
        arity: 2,
        run: Some(counters::decr),
        ..FAST_WRITE
    },
    Spec {
        name: "decrby",
        full_name: "decrby",
        syntax: "key decrement",
        summary: "Subtracts a number from the integer that a key holds; a missing key counts as 0.",
        arity: 3,
        run: Some(counters::decrby),
        ..FAST_WRITE
    },
    Spec {
        name: "delifeq",
        full_name: "delifeq",
        syntax: "key value",
        summary: "Deletes a key, but only if it holds this string.",
        since: "9.0.0",
        arity: 3,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(get::delifeq),
        ..FAST_WRITE
    },
    Spec {
        name: "get",
        full_name: "get",
        syntax: "key",
        summary: "Returns the string that a key holds.",
        arity: 2,
        run: Some(get::get),
        ..READ
    },
    Spec {
        name: "getdel",
        full_name: "getdel",
        syntax: "key",
        summary: "Returns the string that a key holds, and deletes the key.",
        since: "6.2.0",
        arity: 2,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(get::getdel),
        ..READ
    },
    Spec {
        name: "getex",
        full_name: "getex",
        syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
                 PXAT unix-time-milliseconds | PERSIST]",
        summary: "Returns the string that a key holds, and sets or removes its expiry.",
        since: "6.2.0",
        arity: -2,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(get::getex),
        ..READ
    },
    Spec {
        name: "getrange",
        full_name: "getrange",
        syntax: "key start end",
        summary: "Returns a part of the string that a key holds.",
        since: "2.4.0",
        complexity: "O(N) where N is the length of the part",
        arity: 4,
        flags: Flags::of(&[Flag::ReadOnly]),
        run: Some(ranges::getrange),
        ..READ
    },
    Spec {
        name: "getset",
        full_name: "getset",
        syntax: "key value",
        summary: "Sets a key to a string and returns the one it held before.",
        arity: 3,
        run: Some(set::getset),
        ..FAST_WRITE
    },
    Spec {
        name: "incr",
        full_name: "incr",
        syntax: "key",
        summary: "Adds one to the integer that a key holds; a missing key counts as 0.",
        arity: 2,
        run: Some(counters::incr),
        ..FAST_WRITE
    },
    Spec {
        name: "incrby",
        full_name: "incrby",
        syntax: "key increment",
        summary: "Adds a number to the integer that a key holds; a missing key counts as 0.",
        arity: 3,
        run: Some(counters::incrby),
        ..FAST_WRITE
    },
    Spec {
        name: "incrbyfloat",
        full_name: "incrbyfloat",
        syntax: "key increment",
        summary: "Adds a floating-point number to the one a key holds; a missing key counts as 0.",
        since: "2.6.0",
        arity: 3,
        run: Some(counters::incrbyfloat),
        ..FAST_WRITE
    },
    Spec {
        name: "lcs",
        full_name: "lcs",
        syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
        summary: "Finds the longest subsequence of bytes that two strings have in common.",
        since: "7.0.0",
        complexity: "O(N*M) where N and M are the lengths of the strings",
        arity: -3,
        flags: Flags::of(&[Flag::ReadOnly]),
        keys: KeySpec::FIRST_TWO,
        run: Some(lcs::lcs),
        ..READ
    },
    Spec {
        name: "mget",
        full_name: "mget",
        syntax: "key [key ...]",
        summary: "Returns the strings that several keys hold, in the order of the keys.",
        complexity: "O(N) where N is the number of keys",
        arity: -2,
        keys: KeySpec::ALL,
        run: Some(many::mget),
        ..READ
    },
    Spec {
        name: "mset",
        full_name: "mset",
        syntax: "key value [key value ...]",
        summary: "Sets several keys to a string each, all at once.",
        since: "1.0.1",
        complexity: "O(N) where N is the number of keys",
        arity: -3,
        keys: PAIRS,
        run: Some(many::mset),
        ..WRITE
    },
    Spec {
        name: "msetex",
        full_name: "msetex",
        syntax: "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | \
                 EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        summary: "Sets several keys to a string each, all at once, with a condition and an expiry.",
        since: "9.1.0",
        complexity: "O(N) where N is the number of keys",
        arity: -4,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::MovableKeys]),
        keys: KeySpec::NONE,
        key_count_at: 1,
        key_step: 2,
        run: Some(many::msetex),
        ..WRITE
    },
    Spec {
        name: "msetnx",
        full_name: "msetnx",
        syntax: "key value [key value ...]",
        summary: "Sets several keys to a string each, but only if none of them exists.",
        since: "1.0.1",
        complexity: "O(N) where N is the number of keys",
        arity: -3,
        keys: PAIRS,
        run: Some(many::msetnx),
        ..WRITE
    },
    Spec {
        name: "psetex",
        full_name: "psetex",
        syntax: "key milliseconds value",
        summary: "Sets a key to a string with an expiry in milliseconds.",
        since: "2.6.0",
        arity: 4,
        run: Some(set::psetex),
        ..BRIEF_WRITE
    },
    Spec {
        name: "set",
        full_name: "set",
        syntax: "key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds | \
                 EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        summary: "Sets a key to a string, whatever it held before.",
        arity: -3,
        run: Some(set::set),
        ..BRIEF_WRITE
    },
    Spec {
        name: "setex",
        full_name: "setex",
        syntax: "key seconds value",
        summary: "Sets a key to a string with an expiry in seconds.",
        since: "2.0.0",
        arity: 4,
        run: Some(set::setex),
        ..BRIEF_WRITE
    },
    Spec {
        name: "setnx",
        full_name: "setnx",
        syntax: "key value",
        summary: "Sets a key to a string, but only if the key does not exist.",
        arity: 3,
        run: Some(set::setnx),
        ..FAST_WRITE
    },
    Spec {
        name: "setrange",
        full_name: "setrange",
        syntax: "key offset value",
        summary: "Overwrites a part of a string; a gap behind its end is filled with zeros.",
        since: "2.2.0",
        complexity: "O(M) where M is the length of the part",
        arity: 4,
        run: Some(ranges::setrange),
        ..WRITE
    },
    Spec {
        name: "strlen",
        full_name: "strlen",
        syntax: "key",
        summary: "Returns the length of the string that a key holds.",
        since: "2.2.0",
        arity: 2,
        run: Some(get::strlen),
        ..READ
    },
    Spec {
        name: "substr",
        full_name: "substr",
        syntax: "key start end",
        summary: "Returns a part of the string that a key holds; the old name of GETRANGE.",
        complexity: "O(N) where N is the length of the part",
        arity: 4,
        flags: Flags::of(&[Flag::ReadOnly]),
        run: Some(ranges::getrange),
        ..READ
    },
];

/// Returns the string that a key holds; an error if it holds another type.
#[inline]
pub(crate) fn string_of<'a>(found: &Found<'a>) -> Result<StringValue<'a>, Error> {
    found.string().ok_or(Error::WRONG_TYPE)
}

/// Writes a string as a bulk reply; a large one is shared, not copied.
#[inline]
pub(crate) fn reply_string(reply: &mut Reply<'_>, value: StringValue<'_>) {
    match value {
        StringValue::Bytes(bytes) => reply.bulk(bytes),
        StringValue::Integer(number) => reply.bulk_integer(number),
        StringValue::Shared(shared) => reply.bulk_shared(&shared.to_arc()),
    }
}

/// Returns a string sent by a client as a value: stored as a number if it is the shortest form of one.
#[inline]
pub(crate) fn text_value(bytes: &[u8]) -> NewValue<'_> {
    match resp::parse_integer(bytes) {
        Some(number) => NewValue::Integer(number),
        None => NewValue::Plain(bytes),
    }
}

/// Passes the string's bytes to `read`; a number's digits are formatted on the stack.
pub(crate) fn with_bytes<R>(value: StringValue<'_>, read: impl FnOnce(&[u8]) -> R) -> R {
    match value {
        StringValue::Bytes(bytes) => read(bytes),
        StringValue::Integer(number) => read(itoa::Buffer::new().format(number).as_bytes()),
        StringValue::Shared(shared) => read(shared.bytes()),
    }
}

/// Sets the key to this value and this expiry, whatever it had before.
#[inline]
pub(crate) fn put(
    keys: &mut Keys<'_>,
    key: &Key<'_>,
    value: NewValue<'_>,
    expires_at: Option<UnixMillis>,
) {
    // Only notifications depend on whether the key was missing or had just expired; without them, skip the lookup.
    if keys.env().notify != NotifyClasses::NONE {
        keys.exists(key);
    }
    keys.apply(&Effect::Put { key: *key, value, expires_at });
}

#[cfg(test)]
mod tests;
