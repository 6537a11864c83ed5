//! Lists: LPUSH, LPOP and the other list commands. This file has the table and the shared functions; each command is in
//! the file of its topic.
mod push; //     LPUSH, RPUSH, LPUSHX, RPUSHX.
mod pop; //      LPOP, RPOP, LMPOP.
mod read; //     LLEN, LINDEX, LRANGE.
mod position; // LPOS.
mod edit; //     LSET, LINSERT, LREM, LTRIM.
mod moves; //    LMOVE, RPOPLPUSH.
mod blocking; // BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP.

use core::ops::Range;

use resp::Reply;
use store::{Found, ListValue, StoredValue};

use crate::Error;
use crate::hashes::reply_element;
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

/// The common part of commands that read a list.
const READ: Spec =
    Spec { group: Group::List, flags: Flags::of(&[Flag::ReadOnly]), keys: KeySpec::FIRST, ..BLANK };

/// The common part of commands that may need memory.
const WRITE: Spec = Spec { flags: Flags::of(&[Flag::Write, Flag::DenyOom]), ..READ };

/// The common part of commands that push at an end.
const PUSH: Spec = Spec {
    syntax: "key element [element ...]",
    complexity: "O(N) where N is the number of elements to push",
    arity: -3,
    flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Fast]),
    ..READ
};

/// The common part of commands that pop at an end.
const POP: Spec = Spec {
    syntax: "key [count]",
    complexity: "O(N) where N is the number of returned elements",
    arity: -2,
    flags: Flags::of(&[Flag::Write, Flag::Fast]),
    ..READ
};

/// The common part of commands that remove elements.
const CUT: Spec = Spec {
    complexity: "O(N) where N is the number of elements",
    arity: 4,
    flags: Flags::of(&[Flag::Write]),
    ..READ
};

/// The common part of commands that wait for a list.
const BLOCKING: Spec = Spec {
    syntax: "key [key ...] timeout",
    since: "2.0.0",
    complexity: "O(N) where N is the number of keys",
    arity: -3,
    flags: Flags::of(&[Flag::Write, Flag::NoScript, Flag::Blocking]),
    keys: KeySpec { first: 1, last: -2, step: 1 },
    ..READ
};

/// The common part of commands that wait for a list, and move an element of it.
const BLOCKING_MOVE: Spec = Spec {
    complexity: "O(1)",
    flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::NoScript, Flag::Blocking]),
    keys: KeySpec::FIRST_TWO,
    ..BLOCKING
};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "blmove",
        full_name: "blmove",
        syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
        summary: "Moves an element from one list to another, and returns it; waits until there is one.",
        since: "6.2.0",
        arity: 6,
        run: Some(blocking::blmove),
        ..BLOCKING_MOVE
    },
    Spec {
        name: "blmpop",
        full_name: "blmpop",
        syntax: "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        summary: "Removes and returns elements of the first list that exists; waits until there is one.",
        since: "7.0.0",
        complexity: "O(N+M) where N is the number of keys and M is the number of returned elements",
        arity: -5,
        flags: Flags::of(&[Flag::Write, Flag::Blocking, Flag::MovableKeys]),
        keys: KeySpec::NONE,
        key_count_at: 2,
        run: Some(blocking::blmpop),
        ..BLOCKING
    },
    Spec {
        name: "blpop",
        full_name: "blpop",
        summary: "Removes and returns the first element of the first list that exists; waits until there is one.",
        run: Some(blocking::blpop),
        ..BLOCKING
    },
    Spec {
        name: "brpop",
        full_name: "brpop",
        summary: "Removes and returns the last element of the first list that exists; waits until there is one.",
        run: Some(blocking::brpop),
        ..BLOCKING
    },
    Spec {
        name: "brpoplpush",
        full_name: "brpoplpush",
        syntax: "source destination timeout",
        summary: "Moves the last element of a list to the start of another one; waits until there is one.",
        since: "2.2.0",
        arity: 4,
        run: Some(blocking::brpoplpush),
        ..BLOCKING_MOVE
    },
    Spec {
        name: "lindex",
        full_name: "lindex",
        syntax: "key index",
        summary: "Returns an element by its index.",
        complexity: "O(N) where N is the number of elements to skip; O(log N) in a large list",
        arity: 3,
        run: Some(read::lindex),
        ..READ
    },
    Spec {
        name: "linsert",
        full_name: "linsert",
        syntax: "key <BEFORE | AFTER> pivot element",
        summary: "Inserts an element before or after another one.",
        since: "2.2.0",
        complexity: "O(N) where N is the number of elements before the pivot",
        arity: 5,
        run: Some(edit::linsert),
        ..WRITE
    },
    Spec {
        name: "llen",
        full_name: "llen",
        syntax: "key",
        summary: "Returns the length of a list.",
        arity: 2,
        flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
        run: Some(read::llen),
        ..READ
    },
    Spec {
        name: "lmove",
        full_name: "lmove",
        syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT>",
        summary: "Moves an element from an end of a list to an end of another one, and returns it.",
        since: "6.2.0",
        arity: 5,
        keys: KeySpec::FIRST_TWO,
        run: Some(moves::lmove),
        ..WRITE
    },
    Spec {
        name: "lmpop",
        full_name: "lmpop",
        syntax: "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        summary: "Removes and returns elements from an end of the first list that exists.",
        since: "7.0.0",
        complexity: "O(N+M) where N is the number of keys and M is the number of returned elements",
        arity: -4,
        flags: Flags::of(&[Flag::Write, Flag::MovableKeys]),
        keys: KeySpec::NONE,
        key_count_at: 1,
        run: Some(pop::lmpop),
        ..READ
    },
    Spec {
        name: "lpop",
        full_name: "lpop",
        summary: "Removes and returns the first elements of a list; the key goes with its last element.",
        run: Some(pop::lpop),
        ..POP
    },
    Spec {
        name: "lpos",
        full_name: "lpos",
        syntax: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
        summary: "Returns the indices of equal elements of a list.",
        since: "6.0.6",
        complexity: "O(N) where N is the number of compared elements",
        arity: -3,
        run: Some(position::lpos),
        ..READ
    },
    Spec {
        name: "lpush",
        full_name: "lpush",
        summary: "Inserts elements at the start of a list; a missing key becomes a new list.",
        run: Some(push::lpush),
        ..PUSH
    },
    Spec {
        name: "lpushx",
        full_name: "lpushx",
        summary: "Inserts elements at the start of a list, but only if the list exists.",
        since: "2.2.0",
        run: Some(push::lpushx),
        ..PUSH
    },
    Spec {
        name: "lrange",
        full_name: "lrange",
        syntax: "key start stop",
        summary: "Returns the elements of a range of indices.",
        complexity: "O(S+N) where S is the distance of the start, and N is the number of returned elements",
        arity: 4,
        run: Some(read::lrange),
        ..READ
    },
    Spec {
        name: "lrem",
        full_name: "lrem",
        syntax: "key count element",
        summary: "Removes equal elements; the key goes with its last element.",
        run: Some(edit::lrem),
        ..CUT
    },
    Spec {
        name: "lset",
        full_name: "lset",
        syntax: "key index element",
        summary: "Replaces an element by its index.",
        complexity: "O(N) where N is the number of elements to skip; O(log N) in a large list",
        arity: 4,
        run: Some(edit::lset),
        ..WRITE
    },
    Spec {
        name: "ltrim",
        full_name: "ltrim",
        syntax: "key start stop",
        summary: "Removes the elements outside of a range of indices; the key goes with its last element.",
        run: Some(edit::ltrim),
        ..CUT
    },
    Spec {
        name: "rpop",
        full_name: "rpop",
        summary: "Removes and returns the last elements of a list; the key goes with its last element.",
        run: Some(pop::rpop),
        ..POP
    },
    Spec {
        name: "rpoplpush",
        full_name: "rpoplpush",
        syntax: "source destination",
        summary: "Moves the last element of a list to the start of another one, and returns it.",
        since: "1.2.0",
        arity: 3,
        keys: KeySpec::FIRST_TWO,
        run: Some(moves::rpoplpush),
        ..WRITE
    },
    Spec {
        name: "rpush",
        full_name: "rpush",
        summary: "Inserts elements at the end of a list; a missing key becomes a new list.",
        run: Some(push::rpush),
        ..PUSH
    },
    Spec {
        name: "rpushx",
        full_name: "rpushx",
        summary: "Inserts elements at the end of a list, but only if the list exists.",
        since: "2.2.0",
        run: Some(push::rpushx),
        ..PUSH
    },
];

/// One of the two ends of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Left,
    Right,
}

impl End {
    fn parse(word: &[u8]) -> Result<End, Error> {
        if word.eq_ignore_ascii_case(b"left") {
            Ok(End::Left)
        } else if word.eq_ignore_ascii_case(b"right") {
            Ok(End::Right)
        } else {
            Err(Error::SYNTAX)
        }
    }
}

/// Returns the list that a key holds; an error if it holds another type.
fn list_of<'a>(found: &Found<'a>) -> Result<ListValue<'a>, Error> {
    match found.value() {
        StoredValue::List(list) => Ok(list),
        StoredValue::String(_)
        | StoredValue::Hash(_)
        | StoredValue::SortedSet(_)
        | StoredValue::Set(_)
        | StoredValue::Stream(_) => Err(Error::WRONG_TYPE),
    }
}

fn reply_count(reply: &mut Reply<'_>, count: usize) {
    reply.integer(count.cast_signed() as i64);
}

/// Parses an integer whose negation is one as well.
fn integer_above_min(text: &[u8]) -> Result<i64, Error> {
    const OUT_OF_RANGE: Error = Error::fixed(
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
    );
    match resp::parse_integer(text) {
        Some(i64::MIN) => Err(OUT_OF_RANGE),
        Some(number) => Ok(number),
        None => Err(Error::NOT_AN_INTEGER),
    }
}

/// Returns the index that an argument means in a list of `len` elements; a negative one counts from the end.
fn index_in(index: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).ok()?;
    let index = if index < 0 { index.checked_add(len)? } else { index };
    if index < len { usize::try_from(index).ok() } else { None }
}

/// Returns the range that two arguments mean in a list of `len` elements: from the first to the second, inclusive.
fn range_in(start: i64, end: i64, len: usize) -> Range<usize> {
    let count = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |index: i64| if index < 0 { index.saturating_add(count) } else { index };
    let (start, end) = (from_end(start).max(0), from_end(end).min(count - 1));
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end => start..end + 1,
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests;
