//! BITCOUNT, BITPOS: count and find bits, in a string or in a part of it.

use core::ops::Range;

use crate::context::Context;
use crate::strings::{Bounds, clamp, string_of, with_bytes};
use crate::{Args, Error};

/// The unit in which the bounds of a range are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    fn parse(word: Option<&[u8]>) -> Result<Unit, Error> {
        match word {
            None => Ok(Unit::Byte),
            Some(word) if word.eq_ignore_ascii_case(b"byte") => Ok(Unit::Byte),
            Some(word) if word.eq_ignore_ascii_case(b"bit") => Ok(Unit::Bit),
            Some(_) => Err(Error::SYNTAX),
        }
    }

    /// Returns the bits that `bounds` select in a string of `len` bytes.
    fn bits(self, bounds: Bounds, len: usize) -> Option<Range<usize>> {
        match self {
            Unit::Byte => clamp(bounds, len).map(|bytes| bytes.start * 8..bytes.end * 8),
            Unit::Bit => clamp(bounds, len * 8),
        }
    }
}

pub(super) fn bitcount(context: &mut Context<'_>) -> Result<(), Error> {
    let (args, key) = (context.args, context.key(1));
    let Some(found) = context.keys.read(&key) else {
        // Checked before the range: for a missing key Redis does not report errors in the range.
        context.reply.integer(0);
        return Ok(());
    };
    let count = with_bytes(string_of(&found)?, |bytes| {
        let range = count_range(args, bytes.len())?;
        Ok(range.map_or(0, |range| count_bits(bytes, range)))
    })?;
    context.reply.integer(count.cast_signed());
    Ok(())
}

/// Returns the bits that BITCOUNT counts in a string of `len` bytes.
fn count_range(args: Args<'_>, len: usize) -> Result<Option<Range<usize>>, Error> {
    match args.len() {
        2 => Ok(Some(0..len * 8)),
        4 | 5 => {
            let bounds = Bounds { start: integer(args, 2)?, end: integer(args, 3)? };
            if bounds.are_crossed_from_end() {
                return Ok(None);
            }
            Ok(Unit::parse(args.get(4))?.bits(bounds, len))
        }
        _ => Err(Error::SYNTAX),
    }
}

pub(super) fn bitpos(context: &mut Context<'_>) -> Result<(), Error> {
    let sought = match context.integer(2)? {
        0 => Sought::Clear,
        1 => Sought::Set,
        _ => return Err(Error::fixed("ERR The bit argument must be 1 or 0.")),
    };
    let (args, key) = (context.args, context.key(1));
    let place = match context.keys.read(&key) {
        Some(found) => with_bytes(string_of(&found)?, |bytes| find_place(args, bytes, sought))?,
        // A missing key counts as an endless string of zeros.
        None => (sought == Sought::Clear).then_some(0),
    };
    context.reply.integer(place.map_or(-1, |place| place.cast_signed() as i64));
    Ok(())
}

/// Returns the position that BITPOS looks for in an existing string.
fn find_place(args: Args<'_>, bytes: &[u8], sought: Sought) -> Result<Option<usize>, Error> {
    if args.len() > 6 {
        return Err(Error::SYNTAX);
    }
    let start = if args.len() > 3 { integer(args, 3)? } else { 0 };
    let unit = Unit::parse(args.get(5))?;
    let end = if args.len() > 4 { Some(integer(args, 4)?) } else { None };
    let bounds = Bounds { start, end: end.unwrap_or(-1) };
    let Some(range) = unit.bits(bounds, bytes.len()) else { return Ok(None) };
    let behind = range.end;
    let found = find_bit(bytes, range, sought);
    // A string is followed by zeros, unless the client gave an end.
    let endless = end.is_none() && sought == Sought::Clear;
    Ok(found.or(endless.then_some(behind)))
}

fn integer(args: Args<'_>, index: usize) -> Result<i64, Error> {
    resp::parse_integer(args.at(index)).ok_or(Error::NOT_AN_INTEGER)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sought {
    Clear,
    Set,
}

/// A range of bits as whole bytes, with masks for the first and the last of them.
struct BitSpan {
    first: usize,
    last: usize,
    first_mask: u8,
    last_mask: u8,
}

impl BitSpan {
    /// Creates the span of a range that must not be empty.
    fn of(bits: &Range<usize>) -> BitSpan {
        let last_bit = bits.end - 1;
        BitSpan {
            first: bits.start / 8,
            last: last_bit / 8,
            first_mask: 0xFF >> (bits.start % 8),
            last_mask: 0xFF << (7 - last_bit % 8),
        }
    }

    /// Returns the mask of the bits of the byte at `place` that are inside.
    fn mask(&self, place: usize) -> u8 {
        let first = if place == self.first { self.first_mask } else { 0xFF };
        let last = if place == self.last { self.last_mask } else { 0xFF };
        first & last
    }
}

fn count_bits(bytes: &[u8], bits: Range<usize>) -> u64 {
    if bits.is_empty() {
        return 0;
    }
    let span = BitSpan::of(&bits);
    let whole = &bytes[span.first..=span.last];
    // All bits of all bytes, minus those of the first and the last byte that are outside.
    let outside = |place: usize| u64::from((bytes[place] & !span.mask(place)).count_ones());
    let edges = if span.first == span.last {
        outside(span.first)
    } else {
        outside(span.first) + outside(span.last)
    };
    count_all(whole) - edges
}

fn count_all(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones());
    in_words.chain(rest.iter().map(|byte| byte.count_ones())).map(u64::from).sum()
}

fn find_bit(bytes: &[u8], bits: Range<usize>, sought: Sought) -> Option<usize> {
    let span = BitSpan::of(&bits);
    // The value of a byte that cannot contain a match.
    let dull: u8 = match sought {
        Sought::Clear => 0xFF,
        Sought::Set => 0,
    };
    let mut place = span.first;
    while place <= span.last {
        let hits = (bytes[place] ^ dull) & span.mask(place);
        if hits != 0 {
            return Some(place * 8 + hits.leading_zeros() as usize);
        }
        place += 1 + dull_bytes(&bytes[place + 1..=span.last], dull);
    }
    None
}

/// Returns the number of leading bytes, in whole words, that equal `dull`.
fn dull_bytes(bytes: &[u8], dull: u8) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    8 * words.iter().take_while(|word| **word == [dull; 8]).count()
}
