//! Limits the amount of data a transaction may record for the backups, checked before its first command runs: a
//! transaction reaches every copy as one unit, so one that is too large must not start.
//!
//! Most commands record their arguments. Commands that record existing values, or their key repeatedly, are listed
//! in `Bound::add`; a new command of that kind must be added there, too.

use std::collections::{BTreeMap, BTreeSet};

use store::{Database, ScanPosition, StoredValue};

use crate::bits::field_end;
use crate::hyperloglog;
use crate::keys::Keys;
use crate::keyspace::walk::Walk;
use crate::session::{Queue, Queued};
use crate::sort::FETCHED_BYTES_MAX;
use crate::{Args, Spec};

/// Maximum number of bytes that one command or transaction may record. A backup buffers up to twice as much.
pub(crate) const EFFECT_BYTES_MAX: usize = 1 << 30;
/// Upper bound of an effect's bytes besides its key and its value.
const RECORD_BYTES: usize = 96;
/// Upper bound of the bytes that a number or a counter adds to a value besides the given bytes.
const NUMBER_BYTES: usize = 64;
/// Upper bound of a stream's record of one entry without its fields.
const STREAM_RECORD_BYTES: usize = 48;
/// Maximum expansion factor of a compressed payload.
const EXPANSION_MAX: usize = 100;
/// Transactions of fewer bytes are within the limit if no command [`multiplies`].
const SMALL_BYTES: usize = EFFECT_BYTES_MAX / 64;

/// Returns whether the command may record many times the bytes it was given.
pub(crate) fn multiplies(spec: &Spec) -> bool {
    matches!(
        spec.full_name,
        "copy"
            | "move"
            | "flushdb"
            | "rename"
            | "renamenx"
            | "bitop"
            | "restore"
            | "bitfield"
            | "pfadd"
            | "pfmerge"
            | "pfdebug"
            | "lrem"
            | "lmove"
            | "rpoplpush"
            | "blmove"
            | "brpoplpush"
            | "sinterstore"
            | "sunionstore"
            | "sdiffstore"
            | "spop"
            | "sort"
            | "xreadgroup"
            | "xautoclaim"
            | "xdelex"
            | "xackdel"
    ) || records_members(spec)
}

/// Returns whether the command may record members of sorted sets that it was not given.
fn records_members(spec: &Spec) -> bool {
    matches!(
        spec.full_name,
        "zunionstore"
            | "zinterstore"
            | "zdiffstore"
            | "zrangestore"
            | "zremrangebyrank"
            | "zremrangebyscore"
            | "zremrangebylex"
            | "zpopmin"
            | "zpopmax"
            | "zmpop"
            | "geosearchstore"
            | "georadius"
            | "georadiusbymember"
            | "bzpopmin"
            | "bzpopmax"
            | "bzmpop"
    )
}

/// Returns the bytes of `effects` effects on one key, without their values.
pub(crate) fn repeated_bytes(key: &[u8], effects: usize) -> usize {
    effects.saturating_mul(key.len() + RECORD_BYTES)
}

/// Returns whether the transaction may record too much. All its slots are locked.
pub(super) fn is_too_large(queue: &Queue, keys: &mut Keys<'_>) -> bool {
    let is_small = !queue.multiplies && queue.bytes <= SMALL_BYTES;
    !is_small && bound(queue, keys) > EFFECT_BYTES_MAX
}

/// Returns an upper bound of the bytes that the transaction records.
pub(crate) fn bound(queue: &Queue, keys: &mut Keys<'_>) -> usize {
    let lengths = BTreeMap::new();
    let mut bound = Bound {
        selected: keys.database,
        keys: keys.reborrow(),
        swaps: Vec::new(),
        lengths,
        listed: BTreeSet::new(),
        element: 0,
        bytes: 0,
    };
    for command in &queue.commands {
        bound.add(command);
        if bound.bytes > EFFECT_BYTES_MAX {
            break;
        }
    }
    bound.bytes
}

struct Bound<'q, 'k> {
    /// Its database is the one in which the keys of the next command are now, before anything has run.
    keys: Keys<'k>,
    /// The database that is selected when the next command runs.
    selected: Database,
    /// The databases that are exchanged until then.
    swaps: Vec<(Database, Database)>,
    /// Upper bounds of the lengths of values, by the present databases of their keys.
    lengths: BTreeMap<(Database, &'q [u8]), usize>,
    /// Keys whose present elements are counted in `element`.
    listed: BTreeSet<(Database, &'q [u8])>,
    /// Upper bound of the length of any element of a list so far.
    element: usize,
    bytes: usize,
}

impl<'q> Bound<'q, '_> {
    fn add(&mut self, command: &'q Queued) {
        let (spec, args) = (command.spec, command.args.args());
        let given: usize = args.iter().map(<[u8]>::len).sum();
        let named = spec.key_indices(args);
        // A key that is due is removed first, by an effect of its own.
        let named: usize = named.map(|index| args.at(index).len() + RECORD_BYTES).sum();
        self.note_elements(command, given);
        let recorded = match spec.full_name {
            "select" | "swapdb" => self.change_databases(spec, args),
            "move" => self.spread_to(self.database_at(args, 2), args, 1..2),
            "copy" => {
                let at = (3..args.len()).find(|at| args.at(*at).eq_ignore_ascii_case(b"db"));
                let database = at.map_or(self.selected, |at| self.database_at(args, at + 1));
                self.spread(args, 1..3).max(self.spread_to(database, args, 1..3))
            }
            "flushdb" => self.flushed(),
            "rename" | "renamenx" => self.spread(args, 1..3),
            "bitop" => self.spread(args, 2..args.len()),
            "restore" => {
                let length = args.at(3).len().saturating_mul(EXPANSION_MAX);
                self.grow_to(args.at(1), length.saturating_add(NUMBER_BYTES));
                self.length(args.at(1)) + repeated_bytes(args.at(1), 2)
            }
            "bitfield" => {
                let end = field_end(&self.keys, args);
                self.grow_to(args.at(1), end);
                repeated_bytes(args.at(1), args.len() / 3 + 1)
            }
            "pfadd" | "pfmerge" | "pfdebug" => {
                let key = args.at(if spec.name == "pfdebug" { 2 } else { 1 });
                self.grow_to(key, hyperloglog::RECORDED_BYTES_MAX);
                hyperloglog::RECORDED_BYTES_MAX + repeated_bytes(key, 1)
            }
            "setrange" => {
                let length = number(args.at(2)).saturating_add(args.at(3).len());
                self.grow_to(args.at(1), length);
                0
            }
            "setbit" => {
                self.grow_to(args.at(1), number(args.at(2)) / 8 + 1);
                0
            }
            _ => self.recorded_elements(spec, args, given).unwrap_or_else(|| {
                for index in spec.key_indices(args) {
                    let length = self.length(args.at(index)).saturating_add(given + NUMBER_BYTES);
                    self.grow_to(args.at(index), length);
                }
                0
            }),
        };
        let all = given.saturating_add(named).saturating_add(recorded).saturating_add(RECORD_BYTES);
        self.bytes = self.bytes.saturating_add(all);
    }

    /// Returns what a command on containers records besides its arguments; `None` for other commands.
    fn recorded_elements(&mut self, spec: &Spec, args: Args<'q>, given: usize) -> Option<usize> {
        Some(match spec.full_name {
            // Besides their text, elements take up to five bytes.
            "hset" | "hmset" | "hdel" | "sadd" | "srem" | "lpush" | "lpushx" | "rpush"
            | "rpushx" | "linsert" | "lset" => {
                let length = self.length(args.at(1)).saturating_add(given + args.len() * 5);
                self.set_length(args.at(1), length);
                args.len() * 5
            }
            // A deadline takes nine bytes beside each field.
            "hsetex" | "hexpire" | "hexpireat" | "hpexpire" | "hpexpireat" | "hpersist"
            | "hgetex" | "hgetdel" | "hincrby" | "hincrbyfloat" => {
                let more = args.len() * 15;
                let length = self.length(args.at(1)).saturating_add(given + more + NUMBER_BYTES);
                self.set_length(args.at(1), length);
                more
            }
            // Each element that is removed has its index recorded, in up to ten bytes.
            "lrem" => self.length(args.at(1)).saturating_mul(10),
            "lmove" | "rpoplpush" | "blmove" | "brpoplpush" => {
                let length = self.length(args.at(2)).saturating_add(self.element);
                self.set_length(args.at(2), length);
                self.element + repeated_bytes(args.at(1), 1)
            }
            // A score takes up to nine bytes, whatever its text is.
            "zadd" | "zincrby" | "geoadd" => {
                let length = self.length(args.at(1)).saturating_add(given + args.len() * 10);
                self.set_length(args.at(1), length);
                args.len() * 10
            }
            _ if records_members(spec) => self.sum_of_members(spec, args),
            "sinterstore" | "sdiffstore" => self.spread(args, 1..args.len()),
            "sort" => self.sorted(spec, args),
            "sunionstore" => {
                let lengths = (2..args.len()).map(|index| self.length(args.at(index)));
                let sum = lengths.fold(0, usize::saturating_add);
                self.set_length(args.at(1), sum);
                sum
            }
            // Besides its text, a field has its name recorded, and the stream gets a head.
            "xadd" => {
                let length = self.length(args.at(1)).saturating_add(given + args.len() * 5);
                self.set_length(args.at(1), length);
                args.len() * 5 + RECORD_BYTES
            }
            // Each id has a record of a few numbers.
            "xdel" | "xack" | "xclaim" => args.len() * STREAM_RECORD_BYTES,
            "xdelex" | "xackdel" => self.references(args),
            // Each entry that is delivered or claimed has such a record; in the stream it takes more than a quarter.
            "xreadgroup" | "xautoclaim" => self.delivered(spec, args),
            // The members that it removes, or those that it leaves.
            "spop" => self.length(args.at(1)),
            "smove" => {
                let length = self.length(args.at(2)).saturating_add(args.at(3).len() + 5);
                self.set_length(args.at(2), length);
                given + 2 * (RECORD_BYTES + 5)
            }
            _ => return None,
        })
    }

    /// Handles SORT, which may store elements of its key, or values of any keys.
    fn sorted(&mut self, spec: &Spec, args: Args<'q>) -> usize {
        let Some(index) = spec.stored_key(args) else { return 0 };
        let fetches = args.from(2).any(|word| word.eq_ignore_ascii_case(b"get"));
        let fetched = if fetches { FETCHED_BYTES_MAX } else { 0 };
        let length = self.length(args.at(1)).max(fetched);
        self.set_length(args.at(index), length);
        length
    }

    /// Returns what the records of entries take that are removed from every group, which each of them names.
    fn references(&mut self, args: Args<'q>) -> usize {
        let key = self.keys.key(args.at(1));
        let found = self.keys.table(key.slot()).peek(&key);
        let names = match found.map(|found| found.value()) {
            Some(StoredValue::Stream(stream)) => {
                stream.groups().map(|group| group.name().len() + STREAM_RECORD_BYTES).sum()
            }
            Some(_) | None => STREAM_RECORD_BYTES,
        };
        args.len().saturating_mul(names).saturating_add(args.len() * STREAM_RECORD_BYTES)
    }

    /// Returns what the records of the entries take that a command delivers or claims: one for each, and for a claim one
    /// for each that it finds deleted, of up to ten times as many.
    fn delivered(&mut self, spec: &Spec, args: Args<'q>) -> usize {
        let (options, usual) = if spec.name == "xautoclaim" { (6, 100) } else { (4, usize::MAX) };
        let most = count_option(args, options).unwrap_or(usual).saturating_mul(10);
        spec.key_indices(args).fold(0, |sum: usize, index| {
            let key = args.at(index);
            // An earlier command may have put a longer stream there. An entry takes more than a quarter of its record.
            let bytes = match self.lengths.get(&(self.keys.database, key)) {
                Some(length) => length.saturating_mul(4),
                None => self.entries(key).saturating_mul(STREAM_RECORD_BYTES),
            };
            let bytes = bytes.min(most.saturating_mul(STREAM_RECORD_BYTES));
            sum.saturating_add(bytes).saturating_add(RECORD_BYTES)
        })
    }

    /// Returns the number of entries of a stream, those included that are only pending in its groups.
    fn entries(&mut self, key: &[u8]) -> usize {
        let key = self.keys.key(key);
        match self.keys.table(key.slot()).peek(&key).map(|found| found.value()) {
            Some(StoredValue::Stream(stream)) => {
                stream.groups().fold(stream.len(), |sum, group| sum + group.pending_len())
            }
            Some(_) | None => 0,
        }
    }

    /// Counts the elements that a command brings, and those of the lists that it names.
    fn note_elements(&mut self, command: &'q Queued, given: usize) {
        let (spec, args) = (command.spec, command.args.args());
        let factor = if spec.full_name == "restore" { EXPANSION_MAX } else { 1 };
        self.element = self.element.max(given.saturating_mul(factor) + NUMBER_BYTES);
        for index in spec.key_indices(args) {
            if !self.listed.insert((self.keys.database, args.at(index))) {
                continue;
            }
            let key = self.keys.key(args.at(index));
            let found = self.keys.table(key.slot()).peek(&key);
            if let Some(StoredValue::List(list)) = found.map(|found| found.value()) {
                self.element = self.element.max(list.longest_bound());
            }
        }
    }

    /// Handles a command that sets one of these keys to the value of another, or to a combination: afterwards any
    /// of them may be as long as the longest, which is the length recorded.
    fn spread(&mut self, args: Args<'q>, keys: core::ops::Range<usize>) -> usize {
        let longest = keys.clone().map(|index| self.length(args.at(index))).max().unwrap_or(0);
        for index in keys {
            self.set_length(args.at(index), longest);
        }
        longest
    }

    /// Same as `spread`, where the values may go to the keys of these names in another database.
    fn spread_to(
        &mut self,
        database: Database,
        args: Args<'q>,
        keys: core::ops::Range<usize>,
    ) -> usize {
        let longest = keys.clone().map(|index| self.length(args.at(index))).max().unwrap_or(0);
        let there = self.present(database);
        let here = core::mem::replace(&mut self.keys.database, there);
        for index in keys {
            self.set_length(args.at(index), longest);
        }
        self.keys.database = here;
        longest
    }

    /// Follows SELECT and SWAPDB. They record nothing of their own.
    fn change_databases(&mut self, spec: &Spec, args: Args<'q>) -> usize {
        if spec.full_name == "select" {
            self.selected = self.database_at(args, 1);
        } else {
            self.swaps.push((self.database_at(args, 1), self.database_at(args, 2)));
        }
        self.keys.database = self.present(self.selected);
        0
    }

    /// Returns the database that an argument names. An invalid one makes the command fail, so that it changes nothing.
    fn database_at(&self, args: Args<'q>, index: usize) -> Database {
        let number = args.get(index).map_or(0, number);
        u16::try_from(number).ok().and_then(Database::new).unwrap_or(self.selected)
    }

    /// Returns the database in which the keys of this one are now, before the exchanges.
    fn present(&self, database: Database) -> Database {
        self.swaps.iter().rev().fold(database, |it, (one, other)| match it {
            it if it == *one => *other,
            it if it == *other => *one,
            it => it,
        })
    }

    /// Returns what FLUSHDB records: the names of keys in slots that have keys of other databases as well.
    fn flushed(&mut self) -> usize {
        let database = self.keys.database;
        let mut bytes = 0;
        let mut walk = Walk::new();
        while let Some(slot) = walk.next(&mut self.keys) {
            let table = self.keys.table(slot);
            if table.has_other_databases() {
                table.scan_database(database, ScanPosition::START, usize::MAX, |found| {
                    bytes += found.item.key().len() + RECORD_BYTES;
                });
            }
        }
        bytes
    }

    /// Handles a command that records members of its keys, or sets its first key to a combination of the others.
    fn sum_of_members(&mut self, spec: &Spec, args: Args<'q>) -> usize {
        let keys = spec.key_indices(args);
        let sum = keys.fold(0, |sum: usize, index| sum.saturating_add(self.length(args.at(index))));
        let stored = spec.stored_key(args).or(spec.name.ends_with("store").then_some(1));
        if let Some(index) = stored {
            self.set_length(args.at(index), sum);
        }
        sum
    }

    fn length(&mut self, key: &'q [u8]) -> usize {
        let keys = &mut self.keys;
        *self.lengths.entry((keys.database, key)).or_insert_with(|| {
            let key = keys.key(key);
            keys.table(key.slot()).peek(&key).map_or(0, |found| match found.value() {
                StoredValue::String(string) => string.len(),
                // The elements in a row take less.
                StoredValue::Hash(_)
                | StoredValue::List(_)
                | StoredValue::SortedSet(_)
                | StoredValue::Set(_) => found.item.bytes(),
                // Its records repeat the names of fields, which are in each block once.
                StoredValue::Stream(stream) => stream.records_len(),
            })
        })
    }

    fn grow_to(&mut self, key: &'q [u8], length: usize) {
        let length = length.min(self.keys.env().string_bytes_max);
        self.set_length(key, length);
    }

    fn set_length(&mut self, key: &'q [u8], length: usize) {
        let length = length.max(self.length(key));
        self.lengths.insert((self.keys.database, key), length);
    }
}

/// Parses an offset. An invalid one makes the command fail, so that it records nothing.
fn number(text: &[u8]) -> usize {
    resp::parse_integer(text).and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// Returns the last COUNT among the options of a command, which begin at index `from`, unless it limits nothing.
fn count_option(args: Args<'_>, from: usize) -> Option<usize> {
    let options = (from..args.len().saturating_sub(1))
        .take_while(|index| !args.at(*index).eq_ignore_ascii_case(b"streams"));
    let index = options.filter(|index| args.at(*index).eq_ignore_ascii_case(b"count")).last()?;
    let count = resp::parse_integer(args.at(index + 1))?;
    usize::try_from(count).ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OwnedArgs;

    #[test]
    fn a_count_is_an_option_and_no_name() {
        let count = |line: &str, from| {
            let args = OwnedArgs::new(line.split(' ').map(str::as_bytes));
            count_option(args.args(), from)
        };
        assert_eq!(count("XREADGROUP GROUP g c COUNT 7 STREAMS s >", 4), Some(7));
        assert_eq!(count("XREADGROUP GROUP g c COUNT 7 NOACK count 9 STREAMS s >", 4), Some(9));
        assert_eq!(count("XREADGROUP GROUP g c COUNT 0 STREAMS s >", 4), None);
        assert_eq!(count("XREADGROUP GROUP count 5 STREAMS s >", 4), None);
        assert_eq!(count("XREADGROUP GROUP g c STREAMS count 5", 4), None);
        assert_eq!(count("XAUTOCLAIM s g c 0 0-0 COUNT 3", 6), Some(3));
        assert_eq!(count("XAUTOCLAIM s g c 0 0-0", 6), None);
    }
}
