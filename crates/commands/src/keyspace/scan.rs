//! Lists the names of all keys of a database: KEYS at once, SCAN in pages.
//!
//! A cursor is a position in the order of (slot, hash): `slot << 34 | position`, in decimal. It refers to no state
//! of the node, so it never becomes invalid, and a key that exists during a whole scan is returned by that scan,
//! however many other keys are added and removed meanwhile. That holds on one process: each process hashes with a
//! seed of its own, so after a failover the same cursor is another position, and keys may be repeated or skipped.

use placement::Slot;
use resp::Reply;
use store::{Found, ScanPosition, TablePosition};

use crate::Error;
use crate::context::Context;
use crate::glob::{checked_pattern, glob_matches};
use crate::keys::Keys;
use crate::keyspace::type_name;
use crate::keyspace::walk::Walk;
use crate::spec::{BLANK, Flag, Flags, Spec};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "keys",
        full_name: "keys",
        summary: "Lists all keys that match a pattern.",
        syntax: "pattern",
        complexity: "O(N) where N is the number of all keys.",
        arity: 2,
        flags: Flags::of(&[Flag::ReadOnly, Flag::WholeKeyspace, Flag::Dangerous]),
        run: Some(keys),
        ..BLANK
    },
    Spec {
        name: "scan",
        full_name: "scan",
        summary: "Iterates over all keys, some at a time.",
        syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
        since: "2.8.0",
        complexity: "O(COUNT) for every call, O(N) for a whole walk over N keys.",
        arity: -2,
        flags: Flags::of(&[Flag::ReadOnly, Flag::WholeKeyspace]),
        run: Some(scan),
        ..BLANK
    },
];

fn keys(context: &mut Context<'_>) -> Result<(), Error> {
    let pattern = Pattern::of(context.args.at(1))?;
    let mark = context.reply.output().mark();
    let mut listed = 0;
    let database = context.keys.database;
    let mut walk = Walk::new();
    while let Some(slot) = walk.next(&mut context.keys) {
        let clock = context.keys.now();
        let table = context.keys.table(slot);
        let now = table.time(clock);
        table.scan_database(database, ScanPosition::START, usize::MAX, |found| {
            let name = found.item.key();
            if !found.is_expired(now) && pattern.matches(name) {
                context.reply.bulk(name);
                listed += 1;
            }
        });
    }
    context.reply.array_since(mark, listed);
    Ok(())
}

/// The reply to SCAN on the replica port of a node that backs up only some slots of a primary. Clients that scan one
/// replica of each primary would miss the other slots' keys without noticing.
const PARTIAL: Error = Error::fixed(
    "ERR SCAN would miss keys here: this node backs up only some slots of its primaries; SCAN the primaries",
);

fn scan(context: &mut Context<'_>) -> Result<(), Error> {
    if context.session.is_on_replica_port() && !context.keys.env().cluster.has_whole_shards() {
        return Err(PARTIAL);
    }
    let cursor = Cursor::parse(context.args.at(1))?;
    let options = ScanOptions::parse(context)?;
    let mut page = ScanPage::default();
    let mut next = Some(cursor);
    while let Some(from) = next.filter(|_| page.seen < options.count) {
        next = page.fill(&mut context.keys, from, &options);
    }
    context.reply.array(2);
    context.reply.bulk(next.map_or(0, Cursor::number).to_string().as_bytes());
    context.reply.array(page.names.len());
    page.names.iter().for_each(|name| context.reply.bulk(name));
    Ok(())
}

/// A position in the scan; the start and the end are both number 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cursor {
    slot: Slot,
    position: ScanPosition,
}

impl Cursor {
    fn start_of(slot: Slot) -> Cursor {
        Cursor { slot, position: ScanPosition::START }
    }

    fn number(self) -> u64 {
        u64::from(self.slot.number()) << ScanPosition::BITS | self.position.number()
    }

    /// Returns the position for a number. Every number is valid: excess bits are ignored, as in Redis.
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below COUNT, a u16")]
    fn from_number(number: u64) -> Cursor {
        let slot = (number >> ScanPosition::BITS) % u64::from(Slot::COUNT);
        let position = number & ((1 << ScanPosition::BITS) - 1);
        Cursor {
            slot: Slot::new(slot as u16).expect("below COUNT"),
            position: ScanPosition::from_number(position).expect("masked to its bits"),
        }
    }

    fn parse(text: &[u8]) -> Result<Cursor, Error> {
        parse_cursor(text).map(Cursor::from_number)
    }
}

/// Parses a cursor as a number.
pub(crate) fn parse_cursor(text: &[u8]) -> Result<u64, Error> {
    parse_unsigned(text).ok_or(Error::fixed("ERR invalid cursor"))
}

/// Parses a number like C's `strtoul`, which Redis uses: an empty text is 0, and a minus sign counts down from
/// 2^64.
fn parse_unsigned(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match text {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative { number.wrapping_neg() } else { number })
}

/// The options of SCAN besides the cursor.
struct ScanOptions<'a> {
    count: usize,
    pattern: Pattern<'a>,
    type_name: Option<&'a [u8]>,
}

/// The options of HSCAN and ZSCAN besides the cursor.
pub(crate) struct PageOptions<'a> {
    pub(crate) count: usize,
    pub(crate) pattern: Pattern<'a>,
    pub(crate) no_values: bool,
}

/// Replies with a page of a container's elements, and the position to continue from.
pub(crate) fn reply_page(reply: &mut Reply<'_>, next: Option<TablePosition>, texts: &[Vec<u8>]) {
    reply.array(2);
    reply.bulk(next.unwrap_or_default().0.to_string().as_bytes());
    reply.array(texts.len());
    texts.iter().for_each(|text| reply.bulk(text));
}

impl<'a> PageOptions<'a> {
    /// Parses the arguments from `index` on.
    pub(crate) fn parse(context: &Context<'a>, index: usize) -> Result<PageOptions<'a>, Error> {
        let args = context.args;
        let mut options =
            PageOptions { count: COUNT_UNLESS_TOLD, pattern: Pattern::Any, no_values: false };
        let mut index = index;
        while index < args.len() {
            let value = args.get(index + 1);
            match (args.at(index).to_ascii_lowercase().as_slice(), value) {
                (b"count", Some(_)) => options.count = count(context.integer(index + 1)?)?,
                (b"match", Some(pattern)) => options.pattern = Pattern::of(pattern)?,
                (b"novalues", _) if context.spec.name == "zscan" => {
                    return Err(Error::fixed("ERR NOVALUES option can only be used in HSCAN"));
                }
                (b"noscores", _) if context.spec.name != "zscan" => {
                    return Err(Error::fixed("ERR NOSCORES option can only be used in ZSCAN"));
                }
                (b"novalues" | b"noscores", _) => {
                    options.no_values = true;
                    index += 1;
                    continue;
                }
                _ => return Err(Error::SYNTAX),
            }
            index += 2;
        }
        Ok(options)
    }
}

const COUNT_UNLESS_TOLD: usize = 10;

impl<'a> ScanOptions<'a> {
    fn parse(context: &Context<'a>) -> Result<ScanOptions<'a>, Error> {
        let args = context.args;
        let mut options =
            ScanOptions { count: COUNT_UNLESS_TOLD, pattern: Pattern::Any, type_name: None };
        for index in (2..args.len()).step_by(2) {
            let value = args.get(index + 1).ok_or(Error::SYNTAX)?;
            match args.at(index).to_ascii_lowercase().as_slice() {
                b"count" => options.count = count(context.integer(index + 1)?)?,
                b"match" => options.pattern = Pattern::of(value)?,
                b"type" => options.type_name = Some(value),
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(options)
    }

    fn wants(&self, found: &Found<'_>) -> bool {
        let right_type = self
            .type_name
            .is_none_or(|name| name.eq_ignore_ascii_case(type_name(found.value()).as_bytes()));
        right_type && self.pattern.matches(found.item.key())
    }
}

fn count(number: i64) -> Result<usize, Error> {
    usize::try_from(number).ok().filter(|count| *count > 0).ok_or(Error::SYNTAX)
}

/// A pattern of names; a lone star is recognised in advance, and also matches the empty name.
pub(crate) enum Pattern<'a> {
    Any,
    Glob(&'a [u8]),
}

impl<'a> Pattern<'a> {
    fn of(pattern: &'a [u8]) -> Result<Pattern<'a>, Error> {
        Ok(if pattern == b"*" { Pattern::Any } else { Pattern::Glob(checked_pattern(pattern)?) })
    }

    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Glob(pattern) => glob_matches(pattern, name),
        }
    }
}

/// The results of one call of SCAN so far.
#[derive(Default)]
struct ScanPage {
    names: Vec<Vec<u8>>,
    /// Number of keys examined, whether they match or not.
    seen: usize,
}

impl ScanPage {
    /// Examines keys of the first occupied slot from `from` on, until the page is full or the slot has no more.
    /// Returns the position to continue from; `None` after the last slot. Expired keys are removed.
    fn fill(
        &mut self,
        keys: &mut Keys<'_>,
        from: Cursor,
        options: &ScanOptions<'_>,
    ) -> Option<Cursor> {
        let slot = keys.occupied(from.slot)?;
        let start = if slot == from.slot { from.position } else { ScanPosition::START };
        let left = options.count - self.seen;
        let (clock, database) = (keys.now(), keys.database);
        let mut expired = Vec::new();
        let table = keys.table(slot);
        let now = table.time(clock);
        let position = table.scan_database(database, start, left, |found| {
            self.seen += 1;
            if options.wants(&found) {
                let names = if found.is_expired(now) { &mut expired } else { &mut self.names };
                names.push(found.item.key().to_vec());
            }
        });
        for name in &expired {
            let key = keys.key(name);
            keys.expire(&key);
        }
        match position {
            Some(position) => Some(Cursor { slot, position }),
            None => Slot::new(slot.number() + 1).map(Cursor::start_of),
        }
    }
}

#[cfg(test)]
mod tests;
