//! LCS: the longest common subsequence of two strings.
//!
//! The usual table is filled row by row, but only one row of lengths is kept, and a single bit for every other
//! cell: the direction of the way back. This takes a 32nd of Redis's memory and follows the same path, so of
//! several longest subsequences it finds the same one.

use std::sync::Arc;

use store::StringValue;

use crate::context::Context;
use crate::{Args, Error};

/// The form of the reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LcsReply {
    Text,
    Length,
    Matches { len_min: usize, lengths: Lengths },
}

/// Option to include the length of each match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lengths {
    Told,
    Untold,
}

pub(super) fn lcs(context: &mut Context<'_>) -> Result<(), Error> {
    // In this order, so that a miss is counted even if the options are wrong, as in Redis.
    let (a, b) = (string(context, 1), string(context, 2));
    let (a, b) = (a?, b?);
    let wanted = parse(context.args)?;
    check_size(context, &a, &b)?;
    let table = LcsTable::new(&a, &b);
    match wanted {
        LcsReply::Length => context.reply.integer(table.length.into()),
        LcsReply::Text => {
            let mut text: Vec<u8> = table.way_back().map(|(at, _)| a[at]).collect();
            text.reverse();
            context.reply.bulk(&text);
        }
        LcsReply::Matches { len_min, lengths } => {
            let mut matches = table.matches();
            matches.retain(|found| found.len >= len_min);
            reply_matches(context, &matches, lengths);
            context.reply.bulk(b"len");
            context.reply.integer(table.length.into());
        }
    }
    Ok(())
}

fn parse(args: Args<'_>) -> Result<LcsReply, Error> {
    let (mut length, mut matches) = (false, false);
    let (mut len_min, mut lengths) = (0, Lengths::Untold);
    let mut words = args.from(3);
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case(b"idx") {
            matches = true;
        } else if word.eq_ignore_ascii_case(b"len") {
            length = true;
        } else if word.eq_ignore_ascii_case(b"withmatchlen") {
            lengths = Lengths::Told;
        } else if word.eq_ignore_ascii_case(b"minmatchlen") {
            let number = words.next().ok_or(Error::SYNTAX)?;
            let number = resp::parse_integer(number).ok_or(Error::NOT_AN_INTEGER)?;
            len_min = usize::try_from(number).unwrap_or(0);
        } else {
            return Err(Error::SYNTAX);
        }
    }
    match (length, matches) {
        (true, true) => {
            Err(Error::fixed("ERR If you want both the length and indexes, please just use IDX."))
        }
        (true, false) => Ok(LcsReply::Length),
        (false, true) => Ok(LcsReply::Matches { len_min, lengths }),
        (false, false) => Ok(LcsReply::Text),
    }
}

/// Returns the string of the key at `index`, independent of its slot; a missing one is empty.
fn string(context: &mut Context<'_>, index: usize) -> Result<Arc<Vec<u8>>, Error> {
    let key = context.key(index);
    let Some(found) = context.keys.read(&key) else { return Ok(Arc::default()) };
    match found.string() {
        Some(StringValue::Shared(shared)) => Ok(shared.to_arc()),
        Some(value @ (StringValue::Bytes(_) | StringValue::Integer(_))) => {
            Ok(Arc::new(value.to_bytes().into()))
        }
        None => Err(Error::fixed("ERR The specified keys must contain string values")),
    }
}

/// Refuses the same sizes as Redis. This also limits the run time.
fn check_size(context: &Context<'_>, a: &[u8], b: &[u8]) -> Result<(), Error> {
    let cells = (a.len() + 1).checked_mul(b.len() + 1);
    let bytes = cells.and_then(|cells| cells.checked_mul(size_of::<u32>()));
    if bytes.is_none_or(|bytes| bytes > context.keys.env().string_bytes_max) {
        return Err(Error::fixed(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    Ok(())
}

/// A run of bytes that both strings contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Match {
    a: usize,
    b: usize,
    len: usize,
}

fn reply_matches(context: &mut Context<'_>, matches: &[Match], lengths: Lengths) {
    let reply = &mut context.reply;
    let place = |at: usize| at.cast_signed() as i64;
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(matches.len());
    for found in matches {
        reply.array(if lengths == Lengths::Told { 3 } else { 2 });
        for start in [found.a, found.b] {
            reply.array(2);
            reply.integer(place(start));
            reply.integer(place(start + found.len - 1));
        }
        if lengths == Lengths::Told {
            reply.integer(place(found.len));
        }
    }
}

struct LcsTable<'a> {
    a: &'a [u8],
    b: &'a [u8],
    /// Length of the longest common subsequence.
    length: u32,
    /// One bit per cell, row by row: set if the cell above is greater than the one to the left.
    ups: Vec<u64>,
}

impl<'a> LcsTable<'a> {
    fn new(a: &'a [u8], b: &'a [u8]) -> LcsTable<'a> {
        let mut ups = vec![0u64; (a.len() * b.len()).div_ceil(64)];
        // Lengths for the processed part of `a` and each prefix of `b`, the empty one first.
        let mut row = vec![0u32; b.len() + 1];
        let mut cell = 0;
        for byte in a {
            let (mut diagonal, mut left) = (0, 0);
            for (other, place) in b.iter().zip(&mut row[1..]) {
                let up = *place;
                ups[cell / 64] |= u64::from(up > left) << (cell % 64);
                left = if byte == other { diagonal + 1 } else { up.max(left) };
                (diagonal, *place) = (up, left);
                cell += 1;
            }
        }
        LcsTable { a, b, length: row[b.len()], ups }
    }

    /// Returns the positions of common bytes in both strings, the last first.
    fn way_back(&self) -> impl Iterator<Item = (usize, usize)> {
        let (mut rows, mut columns) = (self.a.len(), self.b.len());
        core::iter::from_fn(move || {
            while rows > 0 && columns > 0 {
                let (row, column) = (rows - 1, columns - 1);
                if self.a[row] == self.b[column] {
                    (rows, columns) = (row, column);
                    return Some((row, column));
                }
                if self.is_up(row, column) {
                    rows = row;
                } else {
                    columns = column;
                }
            }
            None
        })
    }

    fn is_up(&self, row: usize, column: usize) -> bool {
        let cell = row * self.b.len() + column;
        self.ups[cell / 64] >> (cell % 64) & 1 == 1
    }

    /// Returns the common bytes as runs, the last first.
    fn matches(&self) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        for (a, b) in self.way_back() {
            match matches.last_mut() {
                Some(last) if (last.a, last.b) == (a + 1, b + 1) => {
                    *last = Match { a, b, len: last.len + 1 };
                }
                Some(_) | None => matches.push(Match { a, b, len: 1 }),
            }
        }
        matches
    }
}
