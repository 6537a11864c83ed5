//! Limits the amount of data a transaction may record for the backups, checked before its first command runs: a
//! transaction reaches every copy as one unit, so one that is too large must not start.
//!
//! Most commands record their arguments. Commands that record existing values, or their key repeatedly, are listed
//! in `Bound::add`; a new command of that kind must be added there, too.

use std::collections::{BTreeMap, BTreeSet};

use store::StoredValue;

use crate::bits::field_end;
use crate::hyperloglog;
use crate::keys::Keys;
use crate::session::{Queue, Queued};
use crate::sort::FETCHED_BYTES_MAX;
use crate::{Args, Spec};

/// Maximum number of bytes that one command or transaction may record. A backup buffers up to twice as much.
pub(crate) const EFFECT_BYTES_MAX: usize = 1 << 30;
/// Upper bound of an effect's bytes besides its key and its value.
const RECORD_BYTES: usize = 96;
/// Upper bound of the bytes that a number or a counter adds to a value besides the given bytes.
const NUMBER_BYTES: usize = 64;
/// Maximum expansion factor of a compressed payload.
const EXPANSION_MAX: usize = 100;
/// Transactions of fewer bytes are within the limit if no command [`multiplies`].
const SMALL_BYTES: usize = EFFECT_BYTES_MAX / 64;

/// Returns whether the command may record many times the bytes it was given.
pub(crate) fn multiplies(spec: &Spec) -> bool {
    matches!(
        spec.full_name,
        "copy"
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
            | "sinterstore"
            | "sunionstore"
            | "sdiffstore"
            | "spop"
            | "sort"
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
    let mut bound =
        Bound { keys: keys.reborrow(), lengths, listed: BTreeSet::new(), element: 0, bytes: 0 };
    for command in &queue.commands {
        bound.add(command);
        if bound.bytes > EFFECT_BYTES_MAX {
            break;
        }
    }
    bound.bytes
}

struct Bound<'q, 'k> {
    keys: Keys<'k>,
    /// Upper bounds of the present lengths of values.
    lengths: BTreeMap<&'q [u8], usize>,
    /// Keys whose present elements are counted in `element`.
    listed: BTreeSet<&'q [u8]>,
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
            "copy" | "rename" | "renamenx" => self.spread(args, 1..3),
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
            // Each element that is removed has its index recorded, in up to ten bytes.
            "lrem" => self.length(args.at(1)).saturating_mul(10),
            "lmove" | "rpoplpush" => {
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

    /// Counts the elements that a command brings, and those of the lists that it names.
    fn note_elements(&mut self, command: &'q Queued, given: usize) {
        let (spec, args) = (command.spec, command.args.args());
        let factor = if spec.full_name == "restore" { EXPANSION_MAX } else { 1 };
        self.element = self.element.max(given.saturating_mul(factor) + NUMBER_BYTES);
        for index in spec.key_indices(args) {
            if !self.listed.insert(args.at(index)) {
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
        *self.lengths.entry(key).or_insert_with(|| {
            let key = keys.key(key);
            keys.table(key.slot()).peek(&key).map_or(0, |found| match found.value() {
                StoredValue::String(string) => string.len(),
                // The elements in a row take less.
                StoredValue::Hash(_)
                | StoredValue::List(_)
                | StoredValue::SortedSet(_)
                | StoredValue::Set(_) => found.item.bytes(),
            })
        })
    }

    fn grow_to(&mut self, key: &'q [u8], length: usize) {
        let length = length.min(self.keys.env().string_bytes_max);
        self.set_length(key, length);
    }

    fn set_length(&mut self, key: &'q [u8], length: usize) {
        let length = length.max(self.length(key));
        self.lengths.insert(key, length);
    }
}

/// Parses an offset. An invalid one makes the command fail, so that it records nothing.
fn number(text: &[u8]) -> usize {
    resp::parse_integer(text).and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}
