//! Hashes: HSET, HGET and the other hash commands. This file has the table and the shared functions; each command is in
//! the file of its topic.
mod write; //  HSET, HSETNX, HMSET, HDEL, HINCRBY, HINCRBYFLOAT.
mod read; //   HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HSTRLEN, HEXISTS.
mod random; // HRANDFIELD.
mod scan; //   HSCAN.
mod fields; // The clause FIELDS, and changes of several fields.
mod expire; // HEXPIRE and its variants, HTTL and its variants, HPERSIST.
mod lifetime; // HGETEX, HSETEX, HGETDEL.

pub(crate) use self::write::row_of;

use resp::Reply;
use store::{Element, Found, LiveHash, StoredValue, UnixMillis};

use crate::Error;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

/// The common part of commands that read one field, quickly.
const READ: Spec = Spec {
    group: Group::Hash,
    since: "2.0.0",
    flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
    keys: KeySpec::FIRST,
    ..BLANK
};

/// The common part of commands that read a whole hash.
const READ_ALL: Spec = Spec {
    complexity: "O(N) where N is the number of fields",
    arity: 2,
    flags: Flags::of(&[Flag::ReadOnly]),
    ..READ
};

/// The common part of commands that write fields, and may need memory for them.
const WRITE: Spec = Spec { flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Fast]), ..READ };

/// The common part of commands that read the expiry of fields.
const READ_FIELDS: Spec = Spec { complexity: "O(N) where N is the number of fields", ..READ };

/// The common part of commands that change the expiry of fields, or remove fields.
const CHANGE_FIELDS: Spec = Spec { flags: Flags::of(&[Flag::Write, Flag::Fast]), ..READ_FIELDS };

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "hdel",
        full_name: "hdel",
        syntax: "key field [field ...]",
        summary: "Removes fields from a hash; the key goes with its last field.",
        complexity: "O(N) where N is the number of fields to remove",
        arity: -3,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(write::hdel),
        ..WRITE
    },
    Spec {
        name: "hexists",
        full_name: "hexists",
        syntax: "key field",
        summary: "Tells whether a hash has a field.",
        arity: 3,
        run: Some(read::hexists),
        ..READ
    },
    Spec {
        name: "hexpire",
        full_name: "hexpire",
        syntax: "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        summary: "Sets the expiry of fields in seconds.",
        since: "9.0.0",
        arity: -6,
        run: Some(expire::hexpire),
        ..CHANGE_FIELDS
    },
    Spec {
        name: "hexpireat",
        full_name: "hexpireat",
        syntax: "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        summary: "Sets the expiry of fields to a Unix time in seconds.",
        since: "9.0.0",
        arity: -6,
        run: Some(expire::hexpireat),
        ..CHANGE_FIELDS
    },
    Spec {
        name: "hexpiretime",
        full_name: "hexpiretime",
        syntax: "key FIELDS numfields field [field ...]",
        summary: "Returns the Unix times in seconds at which fields expire.",
        since: "9.0.0",
        arity: -5,
        run: Some(expire::hexpiretime),
        ..READ_FIELDS
    },
    Spec {
        name: "hget",
        full_name: "hget",
        syntax: "key field",
        summary: "Returns the value of a field.",
        arity: 3,
        run: Some(read::hget),
        ..READ
    },
    Spec {
        name: "hgetall",
        full_name: "hgetall",
        syntax: "key",
        summary: "Returns all fields of a hash with their values.",
        run: Some(read::hgetall),
        ..READ_ALL
    },
    Spec {
        name: "hgetdel",
        full_name: "hgetdel",
        syntax: "key FIELDS numfields field [field ...]",
        summary: "Returns the values of fields, and removes them.",
        since: "9.1.0",
        arity: -5,
        run: Some(lifetime::hgetdel),
        ..CHANGE_FIELDS
    },
    Spec {
        name: "hgetex",
        full_name: "hgetex",
        syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]",
        summary: "Returns the values of fields, and sets their expiry.",
        since: "9.0.0",
        arity: -5,
        run: Some(lifetime::hgetex),
        ..CHANGE_FIELDS
    },
    Spec {
        name: "hincrby",
        full_name: "hincrby",
        syntax: "key field increment",
        summary: "Adds a number to the integer in a field; a missing field counts as 0.",
        arity: 4,
        run: Some(write::hincrby),
        ..WRITE
    },
    Spec {
        name: "hincrbyfloat",
        full_name: "hincrbyfloat",
        syntax: "key field increment",
        summary: "Adds a floating-point number to the one in a field; a missing field counts as 0.",
        since: "2.6.0",
        arity: 4,
        run: Some(write::hincrbyfloat),
        ..WRITE
    },
    Spec {
        name: "hkeys",
        full_name: "hkeys",
        syntax: "key",
        summary: "Returns all fields of a hash.",
        run: Some(read::hkeys),
        ..READ_ALL
    },
    Spec {
        name: "hlen",
        full_name: "hlen",
        syntax: "key",
        summary: "Returns the number of fields of a hash.",
        arity: 2,
        run: Some(read::hlen),
        ..READ
    },
    Spec {
        name: "hmget",
        full_name: "hmget",
        syntax: "key field [field ...]",
        summary: "Returns the values of several fields.",
        complexity: "O(N) where N is the number of fields",
        arity: -3,
        run: Some(read::hmget),
        ..READ
    },
    Spec {
        name: "hmset",
        full_name: "hmset",
        syntax: "key field value [field value ...]",
        summary: "Sets several fields; the old name of HSET.",
        complexity: "O(N) where N is the number of fields",
        arity: -4,
        run: Some(write::hmset),
        ..WRITE
    },
    Spec {
        name: "hpersist",
        full_name: "hpersist",
        syntax: "key FIELDS numfields field [field ...]",
        summary: "Removes the expiry of fields.",
        since: "9.0.0",
        arity: -5,
        run: Some(expire::hpersist),
        ..CHANGE_FIELDS
    },
    Spec {
        name: "hpexpire",
        full_name: "hpexpire",
        syntax: "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        summary: "Sets the expiry of fields in milliseconds.",
        since: "9.0.0",
        arity: -6,
        run: Some(expire::hpexpire),
        ..CHANGE_FIELDS
    },
    Spec {
        name: "hpexpireat",
        full_name: "hpexpireat",
        syntax: "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        summary: "Sets the expiry of fields to a Unix time in milliseconds.",
        since: "9.0.0",
        arity: -6,
        run: Some(expire::hpexpireat),
        ..CHANGE_FIELDS
    },
    Spec {
        name: "hpexpiretime",
        full_name: "hpexpiretime",
        syntax: "key FIELDS numfields field [field ...]",
        summary: "Returns the Unix times in milliseconds at which fields expire.",
        since: "9.0.0",
        arity: -5,
        run: Some(expire::hpexpiretime),
        ..READ_FIELDS
    },
    Spec {
        name: "hpttl",
        full_name: "hpttl",
        syntax: "key FIELDS numfields field [field ...]",
        summary: "Returns the times to live of fields in milliseconds.",
        since: "9.0.0",
        arity: -5,
        run: Some(expire::hpttl),
        ..READ_FIELDS
    },
    Spec {
        name: "hrandfield",
        full_name: "hrandfield",
        syntax: "key [count [WITHVALUES]]",
        summary: "Returns random fields of a hash.",
        since: "6.2.0",
        complexity: "O(N) where N is the number of returned fields",
        arity: -2,
        flags: Flags::of(&[Flag::ReadOnly]),
        run: Some(random::hrandfield),
        ..READ
    },
    Spec {
        name: "hscan",
        full_name: "hscan",
        syntax: "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
        summary: "Iterates over the fields of a hash, some at a time.",
        since: "2.8.0",
        complexity: "O(COUNT) for every call, O(N) for a whole walk over N fields.",
        arity: -3,
        flags: Flags::of(&[Flag::ReadOnly]),
        run: Some(scan::hscan),
        ..READ
    },
    Spec {
        name: "hset",
        full_name: "hset",
        syntax: "key field value [field value ...]",
        summary: "Sets fields of a hash; a missing key becomes a new hash.",
        complexity: "O(N) where N is the number of fields",
        arity: -4,
        run: Some(write::hset),
        ..WRITE
    },
    Spec {
        name: "hsetex",
        full_name: "hsetex",
        syntax: "key [NX | XX] [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] \
                 FIELDS numfields field value [field value ...]",
        summary: "Sets fields of a hash and their expiry.",
        since: "9.0.0",
        complexity: "O(N) where N is the number of fields",
        arity: -6,
        run: Some(lifetime::hsetex),
        ..WRITE
    },
    Spec {
        name: "hsetnx",
        full_name: "hsetnx",
        syntax: "key field value",
        summary: "Sets a field of a hash, but only if the field does not exist.",
        arity: 4,
        run: Some(write::hsetnx),
        ..WRITE
    },
    Spec {
        name: "hstrlen",
        full_name: "hstrlen",
        syntax: "key field",
        summary: "Returns the length of the value of a field.",
        since: "3.2.0",
        arity: 3,
        run: Some(read::hstrlen),
        ..READ
    },
    Spec {
        name: "httl",
        full_name: "httl",
        syntax: "key FIELDS numfields field [field ...]",
        summary: "Returns the times to live of fields in seconds.",
        since: "9.0.0",
        arity: -5,
        run: Some(expire::httl),
        ..READ_FIELDS
    },
    Spec {
        name: "hvals",
        full_name: "hvals",
        syntax: "key",
        summary: "Returns all values of a hash.",
        run: Some(read::hvals),
        ..READ_ALL
    },
];

/// Returns the hash that a key holds, without the fields that are due at `now`; an error if it holds another type.
fn hash_of<'a>(found: &Found<'a>, now: UnixMillis) -> Result<LiveHash<'a>, Error> {
    match found.value() {
        StoredValue::Hash(hash) => Ok(hash.at(now)),
        StoredValue::String(_)
        | StoredValue::List(_)
        | StoredValue::SortedSet(_)
        | StoredValue::Set(_)
        | StoredValue::Stream(_) => Err(Error::WRONG_TYPE),
    }
}

/// Writes an element as a bulk reply.
pub(crate) fn reply_element(reply: &mut Reply<'_>, element: Element<'_>) {
    match element {
        Element::Integer(number) => reply.bulk_integer(number),
        Element::Bytes(bytes) => reply.bulk(bytes),
    }
}

#[cfg(test)]
mod tests;
