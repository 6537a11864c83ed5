//! Sets: SADD, SMEMBERS and the other set commands. This file has the table and the shared functions; each command is in
//! the file of its topic.
mod write; //   SADD, SREM, SMOVE.
mod read; //    SCARD, SISMEMBER, SMISMEMBER, SMEMBERS.
mod random; //  SPOP, SRANDMEMBER.
mod combine; // SINTER, SUNION, SDIFF, their STORE forms, SINTERCARD.
mod scan; //    SSCAN.

use resp::Reply;
use store::{Found, Row, SetValue, StoredValue};

use crate::Error;
use crate::hashes::reply_element;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

/// The common part of commands that read, quickly.
const READ: Spec = Spec {
    group: Group::Set,
    flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
    keys: KeySpec::FIRST,
    ..BLANK
};

/// The common part of commands that combine sets.
const COMBINE: Spec = Spec {
    complexity: "O(N) where N is the number of members of all sets",
    arity: -2,
    flags: Flags::of(&[Flag::ReadOnly]),
    keys: KeySpec::ALL,
    ..READ
};

/// The common part of commands that store a combination of sets.
const STORE: Spec = Spec { arity: -3, flags: Flags::of(&[Flag::Write, Flag::DenyOom]), ..COMBINE };

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "sadd",
        full_name: "sadd",
        syntax: "key member [member ...]",
        summary: "Adds members to a set; a missing key becomes a new set.",
        complexity: "O(N) where N is the number of members to add",
        arity: -3,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Fast]),
        run: Some(write::sadd),
        ..READ
    },
    Spec {
        name: "scard",
        full_name: "scard",
        syntax: "key",
        summary: "Returns the number of members of a set.",
        arity: 2,
        run: Some(read::scard),
        ..READ
    },
    Spec {
        name: "sdiff",
        full_name: "sdiff",
        syntax: "key [key ...]",
        summary: "Returns the members of the first set that are in none of the others.",
        run: Some(combine::sdiff),
        ..COMBINE
    },
    Spec {
        name: "sdiffstore",
        full_name: "sdiffstore",
        syntax: "destination key [key ...]",
        summary: "Stores the members of the first set that are in none of the others.",
        run: Some(combine::sdiffstore),
        ..STORE
    },
    Spec {
        name: "sinter",
        full_name: "sinter",
        syntax: "key [key ...]",
        summary: "Returns the members that are in all of the sets.",
        complexity: "O(N*M) where N is the size of the smallest set and M is the number of sets",
        run: Some(combine::sinter),
        ..COMBINE
    },
    Spec {
        name: "sintercard",
        full_name: "sintercard",
        syntax: "numkeys key [key ...] [LIMIT limit]",
        summary: "Returns the number of members that are in all of the sets.",
        since: "7.0.0",
        complexity: "O(N*M) where N is the size of the smallest set and M is the number of sets",
        arity: -3,
        flags: Flags::of(&[Flag::ReadOnly, Flag::MovableKeys]),
        keys: KeySpec::NONE,
        key_count_at: 1,
        run: Some(combine::sintercard),
        ..COMBINE
    },
    Spec {
        name: "sinterstore",
        full_name: "sinterstore",
        syntax: "destination key [key ...]",
        summary: "Stores the members that are in all of the sets.",
        complexity: "O(N*M) where N is the size of the smallest set and M is the number of sets",
        run: Some(combine::sinterstore),
        ..STORE
    },
    Spec {
        name: "sismember",
        full_name: "sismember",
        syntax: "key member",
        summary: "Tells whether a set has a member.",
        arity: 3,
        run: Some(read::sismember),
        ..READ
    },
    Spec {
        name: "smembers",
        full_name: "smembers",
        syntax: "key",
        summary: "Returns all members of a set.",
        complexity: "O(N) where N is the number of members",
        arity: 2,
        flags: Flags::of(&[Flag::ReadOnly]),
        run: Some(read::smembers),
        ..READ
    },
    Spec {
        name: "smismember",
        full_name: "smismember",
        syntax: "key member [member ...]",
        summary: "Tells for several members whether a set has them.",
        since: "6.2.0",
        complexity: "O(N) where N is the number of members to look up",
        arity: -3,
        run: Some(read::smismember),
        ..READ
    },
    Spec {
        name: "smove",
        full_name: "smove",
        syntax: "source destination member",
        summary: "Moves a member from one set to another.",
        arity: 4,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        keys: KeySpec::FIRST_TWO,
        run: Some(write::smove),
        ..READ
    },
    Spec {
        name: "spop",
        full_name: "spop",
        syntax: "key [count]",
        summary: "Removes random members from a set and returns them; the key goes with its last member.",
        complexity: "O(N) where N is the number of returned members",
        arity: -2,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(random::spop),
        ..READ
    },
    Spec {
        name: "srandmember",
        full_name: "srandmember",
        syntax: "key [count]",
        summary: "Returns random members of a set.",
        complexity: "O(N) where N is the number of returned members",
        arity: -2,
        flags: Flags::of(&[Flag::ReadOnly]),
        run: Some(random::srandmember),
        ..READ
    },
    Spec {
        name: "srem",
        full_name: "srem",
        syntax: "key member [member ...]",
        summary: "Removes members from a set; the key goes with its last member.",
        complexity: "O(N) where N is the number of members to remove",
        arity: -3,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(write::srem),
        ..READ
    },
    Spec {
        name: "sscan",
        full_name: "sscan",
        syntax: "key cursor [MATCH pattern] [COUNT count]",
        summary: "Iterates over the members of a set, some at a time.",
        since: "2.8.0",
        complexity: "O(COUNT) for every call, O(N) for a whole walk over N members.",
        arity: -3,
        flags: Flags::of(&[Flag::ReadOnly]),
        run: Some(scan::sscan),
        ..READ
    },
    Spec {
        name: "sunion",
        full_name: "sunion",
        syntax: "key [key ...]",
        summary: "Returns the members that are in any of the sets.",
        run: Some(combine::sunion),
        ..COMBINE
    },
    Spec {
        name: "sunionstore",
        full_name: "sunionstore",
        syntax: "destination key [key ...]",
        summary: "Stores the members that are in any of the sets.",
        run: Some(combine::sunionstore),
        ..STORE
    },
];

/// Number of elements of an entry.
const MEMBER: usize = 1;

/// Returns the set that a key holds; an error if it holds another type.
fn set_of<'a>(found: &Found<'a>) -> Result<SetValue<'a>, Error> {
    match found.value() {
        StoredValue::Set(set) => Ok(set),
        StoredValue::String(_)
        | StoredValue::Hash(_)
        | StoredValue::List(_)
        | StoredValue::SortedSet(_)
        | StoredValue::Stream(_) => Err(Error::WRONG_TYPE),
    }
}

/// Replies with the `len` members of a row: a set, or an array in RESP2.
fn reply_set(reply: &mut Reply<'_>, row: &[u8], len: usize) {
    reply.set(len);
    Row::new(row, MEMBER).elements().for_each(|member| reply_element(reply, member));
}

#[cfg(test)]
mod tests;
