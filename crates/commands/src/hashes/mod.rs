//! Hashes: HSET, HGET and the other hash commands. This file has the table and the shared functions; each command is in
//! the file of its topic.
mod write; //  HSET, HSETNX, HMSET, HDEL, HINCRBY, HINCRBYFLOAT.
mod read; //   HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HSTRLEN, HEXISTS.
mod random; // HRANDFIELD.
mod scan; //   HSCAN.

pub(crate) use self::write::row_of;

use resp::Reply;
use store::{Element, Found, HashValue, StoredValue};

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
        name: "hvals",
        full_name: "hvals",
        syntax: "key",
        summary: "Returns all values of a hash.",
        run: Some(read::hvals),
        ..READ_ALL
    },
];

/// Returns the hash that a key holds; an error if it holds another type.
fn hash_of<'a>(found: &Found<'a>) -> Result<HashValue<'a>, Error> {
    match found.value() {
        StoredValue::Hash(hash) => Ok(hash),
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
