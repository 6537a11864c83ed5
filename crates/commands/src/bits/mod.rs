//! Strings as arrays of bits. The first bit is the highest of the first byte, as in Redis.
//!
//! This file has the table and the parsing of bit offsets; each command is in the file of its topic.
mod one; //   SETBIT, GETBIT.
mod range; // BITCOUNT, BITPOS.
mod op; //    BITOP.
mod field; // BITFIELD, BITFIELD_RO: parsing and replies.
mod int; //   Integers of any width at any bit.

pub(crate) use field::field_end;

use crate::Error;
use crate::keys::Keys;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

const READ: Spec = Spec {
    group: Group::Bitmap,
    flags: Flags::of(&[Flag::ReadOnly]),
    keys: KeySpec::FIRST,
    ..BLANK
};

const FAST_READ: Spec = Spec { flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]), ..READ };

const WRITE: Spec = Spec { flags: Flags::of(&[Flag::Write, Flag::DenyOom]), ..READ };

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "bitcount",
        full_name: "bitcount",
        syntax: "key [start end [BYTE | BIT]]",
        summary: "Counts the bits that are set in a string or in a part of it.",
        since: "2.6.0",
        complexity: "O(N)",
        arity: -2,
        run: Some(range::bitcount),
        ..READ
    },
    Spec {
        name: "bitfield",
        full_name: "bitfield",
        syntax: "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] \
                 <SET encoding offset value | INCRBY encoding offset increment>]",
        summary: "Reads and changes integers of any width at any bit of a string.",
        since: "3.2.0",
        complexity: "O(1) for each operation",
        arity: -2,
        run: Some(field::bitfield),
        ..WRITE
    },
    Spec {
        name: "bitfield_ro",
        full_name: "bitfield_ro",
        syntax: "key [GET encoding offset [GET encoding offset ...]]",
        summary: "Reads integers of any width at any bit of a string.",
        since: "6.0.0",
        complexity: "O(1) for each operation",
        arity: -2,
        run: Some(field::bitfield_ro),
        ..FAST_READ
    },
    Spec {
        name: "bitop",
        full_name: "bitop",
        syntax: "operation destkey key [key ...]",
        summary: "Combines strings bit by bit, and stores the result.",
        since: "2.6.0",
        complexity: "O(N)",
        arity: -4,
        keys: KeySpec { first: 2, last: -1, step: 1 },
        run: Some(op::bitop),
        ..WRITE
    },
    Spec {
        name: "bitpos",
        full_name: "bitpos",
        syntax: "key bit [start [end [BYTE | BIT]]]",
        summary: "Finds the first bit that is set, or clear, in a string or in a part of it.",
        since: "2.8.7",
        complexity: "O(N)",
        arity: -3,
        run: Some(range::bitpos),
        ..READ
    },
    Spec {
        name: "getbit",
        full_name: "getbit",
        syntax: "key offset",
        summary: "Returns one bit of a string.",
        since: "2.2.0",
        arity: 3,
        run: Some(one::getbit),
        ..FAST_READ
    },
    Spec {
        name: "setbit",
        full_name: "setbit",
        syntax: "key offset value",
        summary: "Sets or clears one bit of a string, and returns its old value.",
        since: "2.2.0",
        arity: 4,
        run: Some(one::setbit),
        ..WRITE
    },
];

/// Parses a bit offset; it must lie within the maximum string length. With `width` given, `#2` means: after two
/// integers of that width.
fn parse_bit(keys: &Keys<'_>, text: &[u8], width: Option<u32>) -> Result<usize, Error> {
    const BAD: Error = Error::fixed("ERR bit offset is not an integer or out of range");
    let (number, factor) = match (text, width) {
        ([b'#', number @ ..], Some(width)) => (number, i64::from(width)),
        (number, _) => (number, 1),
    };
    // A product beyond 64 bits wraps around as in Redis; it is usually out of range then.
    let bit = resp::parse_integer(number).map(|number| number.wrapping_mul(factor));
    bit.and_then(|bit| usize::try_from(bit).ok())
        .filter(|bit| bit / 8 < keys.env().string_bytes_max)
        .ok_or(BAD)
}

#[cfg(test)]
mod tests;
