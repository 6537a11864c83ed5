//! Properties of Redis commands that matter to a fleet: where a command runs, whether it writes, and which of
//! its arguments are keys. The table is data (`command/table.rs`); `plan.rs` applies it to a map.

mod table;
#[cfg(test)]
mod tests;

use std::fmt;

/// A command as the fleet sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The command's name in lower case.
    pub name: &'static str,
    pub runs: Runs,
    pub access: Access,
    pub keys: Keys,
}

/// Place where a command runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// On the one server that holds all its keys.
    AtKeys,
    /// Like `AtKeys`, but it may block there and needs a connection of its own. (XREAD only with BLOCK.)
    AtKeysWaiting,
    /// In parts, on the servers of its keys; the answers are merged.
    Scattered(Merge),
    /// On every server that has a share of the keys; the answers are merged.
    Everywhere(Merge),
    /// On server after server, by a cursor that encodes the current server (`scan.rs`).
    Scan,
    /// On any one server: all give the same answer.
    Anywhere,
    /// On the server of its first channel, whose name is hashed like a key.
    Channel,
    /// MULTI, EXEC, DISCARD, WATCH, UNWATCH: the proxy tracks the connection's transaction.
    Transaction,
    /// In the proxy, which answers: it is about the connection itself.
    Local,
    /// Not possible in a fleet, for this reason.
    Refused(&'static str),
}

/// Rule for merging the answers of several servers into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// The sum of integers.
    Sum,
    /// One item per key, in the order of the keys in the command.
    ByKey,
    /// `OK` if all servers answer `OK`.
    AllOk,
    /// All items of all lists, without duplicates.
    Union,
    /// The first server's answer; all answers should be the same.
    First,
    /// The first answer that is not null (RANDOMKEY).
    AnyKey,
    /// Lists of 0 and 1: an item is 1 if it is 1 in all lists (SCRIPT EXISTS).
    AllHave,
    /// The sum of DBSIZE, without the fleet's own keys.
    Sizes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    /// May change a key's value, its existence or its expiry.
    Write,
}

/// Positions of a command's keys among its arguments; the name is argument 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    None,
    /// One key at each position from `first` to `last`, `step` apart; a negative `last` counts from the end.
    Range {
        first: usize,
        last: isize,
        step: usize,
    },
    /// As many keys as the number at `count` says, right after it.
    Counted {
        count: usize,
    },
    /// Like `Counted`, with a value after each key.
    CountedPairs {
        count: usize,
    },
    /// The destination at 1, then like `Counted { count: 2 }`.
    StoredCounted,
    /// The first half of the arguments after the word STREAMS.
    Streams,
    /// The first argument, and the argument after the last STORE or STOREDIST.
    Store,
}

impl Command {
    /// Finds a command by its name, ignoring case.
    pub fn find(name: &[u8]) -> Option<&'static Command> {
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let order = |command: &Command| command.name.as_bytes().cmp(lower);
        table::TABLE.binary_search_by(order).ok().map(|index| &table::TABLE[index])
    }

    /// Returns the positions of the keys. An error means that the server would refuse the command too.
    pub fn key_places<A: AsRef<[u8]>>(&self, args: &[A]) -> Result<Places, BadKeys> {
        match self.keys {
            Keys::None => Ok(Places::NONE),
            Keys::Range { first, last, step } => range(args.len(), first, last, step),
            Keys::Counted { count } => counted(args, count),
            Keys::CountedPairs { count } => counted_pairs(args, count),
            Keys::StoredCounted => {
                let places = counted(args, 2)?;
                Ok(Places { extra: Some(1), ..places })
            }
            Keys::Streams => streams(args),
            Keys::Store => stored(args),
        }
    }

    /// Returns how the answers of several servers are merged, `usual` being the rule of the command's table entry.
    pub(crate) fn merge<A: AsRef<[u8]>>(&self, usual: Merge, args: &[A]) -> Merge {
        let is_exists = |arg: &A| arg.as_ref().eq_ignore_ascii_case(b"exists");
        let asks_all = self.name == "script" && args.get(1).is_some_and(is_exists);
        if asks_all { Merge::AllHave } else { usual }
    }

    /// Returns whether the command with these arguments may block at its server.
    pub fn may_wait<A: AsRef<[u8]>>(&self, args: &[A]) -> bool {
        let is_block = |arg: &A| arg.as_ref().eq_ignore_ascii_case(b"block");
        match (self.runs, self.keys) {
            (Runs::AtKeysWaiting, Keys::Streams) => args.iter().any(is_block),
            (runs, _) => runs == Runs::AtKeysWaiting,
        }
    }
}

/// Buffer size for a command's name; longer than any of them.
const NAME_BYTES_MAX: usize = 24;

/// Positions of arguments: a regular range, and possibly one more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    first: usize,
    /// One past the last position; equal to `first` if the range is empty.
    end: usize,
    step: usize,
    extra: Option<usize>,
}

impl Places {
    const NONE: Places = Places { first: 0, end: 0, step: 1, extra: None };

    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.extra.into_iter().chain((self.first..self.end).step_by(self.step))
    }

    pub fn is_empty(self) -> bool {
        self.first == self.end && self.extra.is_none()
    }

    /// Returns the position if there is exactly one.
    pub fn only(self) -> Option<usize> {
        let mut places = self.iter();
        places.next().filter(|_| places.next().is_none())
    }

    /// Returns the number of arguments per key: 2 for MSET's key and value.
    pub fn step(self) -> usize {
        self.step
    }
}

/// Reason why a command's keys cannot be determined from its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadKeys {
    TooFewArguments,
    /// The number of keys is not a number, or exceeds the number of arguments.
    Count,
    /// STREAMS is missing, or not every stream has an ID.
    Streams,
}

impl fmt::Display for BadKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadKeys::TooFewArguments => "wrong number of arguments",
            BadKeys::Count => "Number of keys can't be greater than number of args",
            BadKeys::Streams => "syntax error",
        })
    }
}

fn range(args: usize, first: usize, last: isize, step: usize) -> Result<Places, BadKeys> {
    let end = match usize::try_from(last) {
        Ok(last) => last + 1,
        Err(_) => (args + 1).saturating_sub(last.unsigned_abs()),
    };
    // Refuse a value without its key, or a key without its value, as the server would. Never send the halves
    // to two servers.
    let whole = (end > first) && (args - first).is_multiple_of(step) | (last > 0);
    if args < end || !whole {
        return Err(BadKeys::TooFewArguments);
    }
    Ok(Places { first, end, step, extra: None })
}

fn counted<A: AsRef<[u8]>>(args: &[A], count: usize) -> Result<Places, BadKeys> {
    let text = args.get(count).ok_or(BadKeys::TooFewArguments)?.as_ref();
    let number = resp::parse_integer(text).and_then(|number| usize::try_from(number).ok());
    let first = count + 1;
    let fits = number.filter(|number| *number <= args.len() - first);
    let end = first + fits.ok_or(BadKeys::Count)?;
    Ok(Places { first, end, step: 1, extra: None })
}

fn counted_pairs<A: AsRef<[u8]>>(args: &[A], count: usize) -> Result<Places, BadKeys> {
    let Places { first, end, .. } = counted(args, count)?;
    let end = first + (end - first) * 2;
    let places = Places { first, end, step: 2, extra: None };
    if end <= args.len() { Ok(places) } else { Err(BadKeys::Count) }
}

fn streams<A: AsRef<[u8]>>(args: &[A]) -> Result<Places, BadKeys> {
    let is_word = |arg: &A| arg.as_ref().eq_ignore_ascii_case(b"streams");
    let word = args.iter().skip(1).position(is_word).ok_or(BadKeys::Streams)? + 1;
    let first = word + 1;
    let behind = args.len() - first;
    if behind == 0 || !behind.is_multiple_of(2) {
        return Err(BadKeys::Streams);
    }
    Ok(Places { first, end: first + behind / 2, step: 1, extra: None })
}

fn stored<A: AsRef<[u8]>>(args: &[A]) -> Result<Places, BadKeys> {
    if args.len() < 2 {
        return Err(BadKeys::TooFewArguments);
    }
    let is_store = |arg: &A| {
        let arg = arg.as_ref();
        arg.eq_ignore_ascii_case(b"store") || arg.eq_ignore_ascii_case(b"storedist")
    };
    let word = args.iter().skip(2).rposition(is_store).map(|place| place + 2);
    let extra = word.map(|word| word + 1).filter(|place| *place < args.len());
    Ok(Places { first: 1, end: 2, step: 1, extra })
}
