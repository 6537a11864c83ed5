//! A command as data: its description for `COMMAND` and the help, its number of arguments, the positions of its
//! keys, and the function that runs it. [`Table`] finds one by its name.

use core::ops::{BitOr, Range};

use crate::Args;
use crate::context::Run;
use crate::short_names::{SHORT_BYTES_MAX, ShortNames};

/// A command, or a subcommand of one (`CLIENT LIST`).
pub struct Spec {
    /// In lower case, as Redis prints it; for a subcommand only its own part.
    pub name: &'static str,
    /// The name with the container in front: `client|list`.
    pub full_name: &'static str,
    pub summary: &'static str,
    /// The arguments as redis-cli shows them in hints: `key value [NX | XX] [EX seconds]`. `COMMAND DOCS` returns
    /// them parsed (by `command/syntax.rs`).
    pub syntax: &'static str,
    /// The version of Redis that introduced the command.
    pub since: &'static str,
    pub group: Group,
    pub complexity: &'static str,
    /// Exact number of arguments including the name, or the minimum as a negative number.
    pub arity: i32,
    pub flags: Flags,
    pub keys: KeySpec,
    /// The index of an argument that says how many keys follow it (`ZUNION 2 a b`); 0 if there is none. These keys come
    /// after those of `keys`. [`BEHIND_STREAMS`] for keys behind a word.
    pub key_count_at: usize,
    /// The distance between these keys: 2 if a value follows each.
    pub key_step: usize,
    /// The index from which an option `STORE` (or `STOREDIST`) may name one more key; 0 if there is none.
    pub stored_from: usize,
    /// A container's subcommands. If its `run` is `None`, the container needs one of them.
    pub subcommands: &'static [Spec],
    pub run: Option<Run>,
}

/// The value of [`Spec::key_count_at`] of commands whose keys stand behind the word STREAMS, followed by as many other
/// arguments (`XREAD STREAMS a b 0 0`).
pub(crate) const BEHIND_STREAMS: usize = usize::MAX;

/// The common defaults of commands; each entry of a table overrides what differs.
pub(crate) const BLANK: Spec = Spec {
    name: "",
    full_name: "",
    summary: "",
    syntax: "",
    since: "1.0.0",
    group: Group::Generic,
    complexity: "O(1)",
    arity: 1,
    flags: Flags::NONE,
    keys: KeySpec::NONE,
    key_count_at: 0,
    key_step: 1,
    stored_from: 0,
    subcommands: &[],
    run: None,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    Generic,
    String,
    Bitmap,
    HyperLogLog,
    Geo,
    Hash,
    List,
    SortedSet,
    Set,
    Stream,
    Connection,
    Server,
    Transactions,
    PubSub,
    Cluster,
    Timers,
    Scripting,
}

impl Group {
    /// Returns the name in `COMMAND DOCS`.
    pub fn name(self) -> &'static str {
        match self {
            Group::Generic => "generic",
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::HyperLogLog => "hyperloglog",
            Group::Geo => "geo",
            Group::Hash => "hash",
            Group::List => "list",
            Group::SortedSet => "sorted-set",
            Group::Set => "set",
            Group::Stream => "stream",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Transactions => "transactions",
            Group::PubSub => "pubsub",
            Group::Cluster => "cluster",
            Group::Timers => "timers",
            Group::Scripting => "scripting",
        }
    }
}

/// One property of a command. The names are Redis's, as `COMMAND INFO` prints them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Flag {
    Write = 1 << 0,
    ReadOnly = 1 << 1,
    /// Refused when memory is short.
    DenyOom = 1 << 2,
    Admin = 1 << 3,
    PubSub = 1 << 4,
    NoScript = 1 << 5,
    Blocking = 1 << 6,
    Loading = 1 << 7,
    Stale = 1 << 8,
    SkipMonitor = 1 << 9,
    SkipSlowlog = 1 << 10,
    Fast = 1 << 11,
    /// Allowed before AUTH.
    NoAuth = 1 << 12,
    MayReplicate = 1 << 13,
    NoMulti = 1 << 14,
    MovableKeys = 1 << 15,
    /// Reads or writes slots that no argument names (KEYS, FLUSHALL). Not a flag of Redis.
    WholeKeyspace = 1 << 16,
    /// Dangerous in the sense of ACL categories.
    Dangerous = 1 << 17,
    /// Allowed in RESP2's subscribed mode. Not a flag of Redis.
    InSubscribed = 1 << 18,
    /// Runs at once inside MULTI instead of being queued (EXEC, DISCARD, ...). Not a flag of Redis.
    NotQueued = 1 << 19,
    AllowBusy = 1 << 20,
    /// Never takes long, although Redis does not call it fast (SET): timed together with its batch, like fast
    /// commands. Not a flag of Redis.
    Brief = 1 << 22,
    /// Derives names of further keys from elements that it reads (SORT). Not a flag of Redis.
    DerivesKeys = 1 << 26,
    /// Runs a script: EVAL and its like. In Redis all of these, and only these, need not have keys.
    RunsScript = 1 << 23,
    /// Runs a script that may write. Not a flag of Redis.
    ScriptWrites = 1 << 24,
    /// The arguments at the positions of keys are channels of that slot (`not_key` in `COMMAND INFO`).
    NotKeys = 1 << 21,
}

/// A set of flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flags(u32);

impl Flags {
    pub const NONE: Flags = Flags(0);

    pub const fn of(flags: &[Flag]) -> Flags {
        let mut bits = 0;
        let mut at = 0;
        while at < flags.len() {
            bits |= flags[at] as u32;
            at += 1;
        }
        Flags(bits)
    }

    /// Returns the union of both sets; `|` cannot be used in constants.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    #[inline(always)]
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    #[inline(always)]
    pub const fn has(self, flag: Flag) -> bool {
        self.0 & flag as u32 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The positions of a command's keys: from the argument `first` to `last` (negative: from the end), every
/// `step`-th. `first` 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeySpec {
    pub first: usize,
    pub last: i32,
    pub step: usize,
}

impl KeySpec {
    pub const NONE: KeySpec = KeySpec { first: 0, last: 0, step: 0 };
    /// The first argument.
    pub const FIRST: KeySpec = KeySpec { first: 1, last: 1, step: 1 };
    /// The second argument, after a subcommand's name.
    pub const SECOND: KeySpec = KeySpec { first: 2, last: 2, step: 1 };
    pub const FIRST_TWO: KeySpec = KeySpec { first: 1, last: 2, step: 1 };
    pub const ALL: KeySpec = KeySpec { first: 1, last: -1, step: 1 };

    pub const fn is_none(self) -> bool {
        self.first == 0
    }

    /// Returns whether there is exactly one key.
    #[inline]
    pub const fn is_one(self) -> bool {
        self.last > 0 && self.last as usize == self.first
    }

    /// Returns the indices of the keys among `count` arguments.
    pub fn indices(self, count: usize) -> impl Iterator<Item = usize> {
        let last = if self.last < 0 {
            count.saturating_sub(self.last.unsigned_abs() as usize)
        } else {
            (self.last as usize).min(count.saturating_sub(1))
        };
        let end = if self.is_none() { 0 } else { last + 1 };
        (self.first.min(end)..end).step_by(self.step.max(1))
    }
}

impl Spec {
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.has(flag)
    }

    /// Returns whether the command, or a script that it runs, may write.
    #[inline]
    pub fn may_write(&self) -> bool {
        const WRITES: Flags = Flags::of(&[Flag::Write, Flag::ScriptWrites]);
        self.flags.intersects(WRITES)
    }

    /// Returns whether a run may take long enough to be timed individually.
    #[inline]
    pub fn is_timed_alone(&self) -> bool {
        const QUICK: Flags = Flags::of(&[Flag::Fast, Flag::Brief]);
        !self.flags.intersects(QUICK)
    }

    /// Returns whether the command may have keys.
    #[inline]
    pub fn has_keys(&self) -> bool {
        !self.keys.is_none() || self.key_count_at > 0
    }

    /// Returns whether the command always has exactly one key.
    #[inline]
    pub fn has_one_key(&self) -> bool {
        self.keys.is_one() && !self.has(Flag::MovableKeys)
    }

    /// Returns the index of the first key, if the command has one with these arguments.
    #[inline]
    pub fn first_key_index(&self, args: Args<'_>) -> Option<usize> {
        if self.keys.is_none() { self.counted_keys(args).next() } else { Some(self.keys.first) }
    }

    /// Returns the indices of the keys among the arguments.
    pub fn key_indices(&self, args: Args<'_>) -> impl Iterator<Item = usize> {
        let keys = self.keys.indices(args.len());
        keys.chain(self.counted_keys(args).step_by(self.key_step)).chain(self.stored_key(args))
    }

    /// Returns the index of the key that the last option `STORE` or `STOREDIST` names.
    pub fn stored_key(&self, args: Args<'_>) -> Option<usize> {
        let mut stored = None;
        let mut index = self.stored_from;
        while index > 0 && index < args.len() {
            index += match args.at(index).to_ascii_lowercase().as_slice() {
                b"store" | b"storedist" if index + 1 < args.len() => {
                    stored = Some(index + 1);
                    2
                }
                // Options of SORT, whose values are no options.
                b"by" | b"get" => 2,
                b"limit" => 3,
                _ => 1,
            };
        }
        stored
    }

    /// Returns the range of arguments that the count at `key_count_at` covers: keys, and values between them. Empty if
    /// the count is no number, or more than the arguments that follow.
    pub fn counted_keys(&self, args: Args<'_>) -> Range<usize> {
        if self.key_count_at == BEHIND_STREAMS {
            return keys_behind_streams(args);
        }
        let first = self.key_count_at + 1;
        let count = args.get(self.key_count_at).filter(|_| self.key_count_at > 0);
        let count =
            count.and_then(resp::parse_integer).and_then(|count| usize::try_from(count).ok());
        match count {
            Some(count) if count <= args.len().saturating_sub(first) / self.key_step => {
                first..first + count * self.key_step
            }
            Some(_) | None => 0..0,
        }
    }

    /// Returns whether `count` arguments, including the name, are a valid number.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { count >= wanted } else { count == wanted }
    }
}

/// Returns the indices of the keys of XREAD and XREADGROUP. Only options with their values may stand before the word: a
/// group may have the name STREAMS.
fn keys_behind_streams(args: Args<'_>) -> Range<usize> {
    let mut index = 1;
    while let Some(word) = args.get(index) {
        index += match word.to_ascii_lowercase().as_slice() {
            b"block" | b"count" => 2,
            b"group" => 3,
            b"noack" => 1,
            b"streams" => {
                let first = index + 1;
                let rest = args.len() - first;
                return if rest.is_multiple_of(2) { first..first + rest / 2 } else { 0..0 };
            }
            _ => return 0..0,
        };
    }
    0..0
}

/// All commands, found by name. Created once at start.
pub struct Table {
    short: ShortNames,
    /// Commands with longer names.
    long: Vec<(&'static Spec, CommandId)>,
    /// Every command, each container followed by its subcommands.
    specs: Vec<&'static Spec>,
    count: usize,
}

/// The position of a command or subcommand in the table, for per-command counters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CommandId(u16);

impl CommandId {
    /// Returns the id of the subcommand at `position` of this container.
    pub(crate) fn subcommand(self, position: usize) -> CommandId {
        CommandId(self.0 + 1 + u16::try_from(position).expect("a few dozen subcommands"))
    }

    /// The id of a request with an unknown command.
    pub const NONE: CommandId = CommandId(u16::MAX);

    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    pub fn number(self) -> u16 {
        self.0
    }

    pub fn from_number(number: u16) -> CommandId {
        CommandId(number)
    }
}

/// The families of commands, in the order in which `COMMAND` lists them.
const FAMILIES: &[&[Spec]] = &[
    crate::strings::SPECS,
    crate::bits::SPECS,
    crate::hyperloglog::SPECS,
    crate::hashes::SPECS,
    crate::lists::SPECS,
    crate::sorted_sets::SPECS,
    crate::geo::SPECS,
    crate::sets::SPECS,
    crate::streams::SPECS,
    crate::keyspace::remove::SPECS,
    crate::keyspace::rename::SPECS,
    crate::sort::SPECS,
    crate::keyspace::expire::SPECS,
    crate::keyspace::scan::SPECS,
    crate::keyspace::swap::SPECS,
    crate::keyspace::dump::SPECS,
    crate::keyspace::object::SPECS,
    crate::keyspace::whole::SPECS,
    crate::keyspace::memory::SPECS,
    crate::keyspace::debug::SPECS,
    crate::keyspace::wait::SPECS,
    crate::transactions::SPECS,
    crate::connection::SPECS,
    crate::client::SPECS,
    crate::pubsub::SPECS,
    crate::command::SPECS,
    crate::config::SPECS,
    crate::info::SPECS,
    crate::server::SPECS,
    crate::cluster::SPECS,
    crate::timer::SPECS,
    crate::scripts::SPECS,
];

impl Default for Table {
    fn default() -> Table {
        let count = FAMILIES.iter().map(|family| family.len()).sum::<usize>();
        let short = ShortNames::with_room_for(count);
        let mut table = Table { short, long: Vec::new(), specs: Vec::new(), count };
        for spec in FAMILIES.iter().flat_map(|family| family.iter()) {
            assert!(
                table.find(spec.name.as_bytes()).is_none(),
                "{} stands in the table twice",
                spec.name
            );
            let number = u16::try_from(table.specs.len()).expect("some hundreds of commands");
            if spec.name.len() <= SHORT_BYTES_MAX {
                table.short.insert(spec, CommandId(number));
            } else {
                table.long.push((spec, CommandId(number)));
            }
            table.specs.push(spec);
            table.specs.extend(spec.subcommands);
        }
        table
    }
}

impl Table {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = &'static Spec> {
        FAMILIES.iter().flat_map(|family| family.iter())
    }

    /// Returns every command and subcommand, each at the index of its [`CommandId`].
    pub fn specs(&self) -> &[&'static Spec] {
        &self.specs
    }

    pub fn spec(&self, id: CommandId) -> Option<&'static Spec> {
        self.specs.get(id.index()).copied()
    }

    /// Returns the command with this name, case-insensitively.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&'static Spec> {
        self.find_with_id(name, name).map(|(spec, _)| spec)
    }

    /// Returns the position of a command in the table.
    pub fn id_of(&self, spec: &Spec) -> CommandId {
        let (root, sub) = match spec.full_name.split_once('|') {
            Some((root, sub)) => (root, Some(sub)),
            None => (spec.full_name, None),
        };
        let Some((root, id)) = self.find_with_id(root.as_bytes(), root.as_bytes()) else {
            return CommandId::NONE;
        };
        let Some(sub) = sub else { return id };
        root.subcommand_position(sub.as_bytes())
            .map_or(CommandId::NONE, |position| id.subcommand(position))
    }

    #[cfg(test)]
    pub(crate) fn short_names(&self) -> &ShortNames {
        &self.short
    }

    /// Finds the command with this name. `followed` are the name and any bytes after it: some make it faster.
    #[inline]
    pub(crate) fn find_with_id(
        &self,
        name: &[u8],
        followed: &[u8],
    ) -> Option<(&'static Spec, CommandId)> {
        if name.len() > SHORT_BYTES_MAX {
            return self.find_long(name);
        }
        self.short.find(name, followed)
    }

    /// Finds a command with a long name: there are few, and they are seldom used.
    fn find_long(&self, name: &[u8]) -> Option<(&'static Spec, CommandId)> {
        let is_wanted = |spec: &Spec| spec.name.as_bytes().eq_ignore_ascii_case(name);
        self.long.iter().copied().find(|(spec, _)| is_wanted(spec))
    }
}

impl Spec {
    /// Returns the subcommand with this name.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Spec> {
        self.subcommand_position(name).map(|position| &self.subcommands[position])
    }

    pub(crate) fn subcommand_position(&self, name: &[u8]) -> Option<usize> {
        self.subcommands.iter().position(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// Returns whether a command of this name has subcommands. Used for error replies, where no table is available: it
/// searches all commands, and allocates nothing.
pub(crate) fn is_container(name: &[u8]) -> bool {
    let mut specs = FAMILIES.iter().flat_map(|family| family.iter());
    specs
        .any(|spec| !spec.subcommands.is_empty() && spec.name.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_in_any_case() {
        let table = Table::default();
        assert_eq!(table.find(b"GeT").map(|spec| spec.name), Some("get"));
        for wrong in [&b"gett"[..], b"ge", b"get\0", b"\0", b"", b"g\x05t", b"gEtraNgf"] {
            assert!(table.find(wrong).is_none(), "{wrong:?}");
        }
        assert_eq!(table.find(b"PexpireAT").map(|spec| spec.name), Some("pexpireat"));
        assert!(table.find(&[b'x'; 100]).is_none());
        assert!(table.iter().all(|spec| table.find(spec.name.as_bytes()).is_some()));
    }

    #[test]
    fn every_command_knows_its_place_in_the_table() {
        let table = Table::default();
        for (index, spec) in table.specs().iter().enumerate() {
            assert_eq!(table.id_of(spec).index(), index, "{}", spec.full_name);
        }
    }

    #[test]
    fn key_positions_are_counted_as_redis_counts_them() {
        let indices = |spec: KeySpec, count| spec.indices(count).collect::<Vec<_>>();
        assert_eq!(indices(KeySpec::FIRST, 3), [1]);
        assert_eq!(indices(KeySpec::ALL, 4), [1, 2, 3]);
        assert_eq!(indices(KeySpec { first: 1, last: -1, step: 2 }, 5), [1, 3]);
        assert_eq!(indices(KeySpec { first: 2, last: -1, step: 1 }, 4), [2, 3]);
        assert_eq!(indices(KeySpec::NONE, 4), [0usize; 0]);
        assert_eq!(indices(KeySpec::SECOND, 2), [0usize; 0]);
    }

    #[test]
    fn keys_at_changing_positions_are_flagged() {
        for spec in Table::default().iter() {
            let moves = spec.key_count_at > 0 || spec.stored_from > 0;
            assert!(!moves || spec.has(Flag::MovableKeys), "{} needs the flag", spec.name);
        }
    }

    #[test]
    fn the_key_of_the_last_store_option_counts() {
        let table = Table::default();
        let keys = |line: &str| {
            let args = crate::OwnedArgs::new(line.split(' ').map(str::as_bytes));
            let spec = table.find(args.args().at(0)).expect("a command");
            spec.key_indices(args.args()).collect::<Vec<_>>()
        };
        assert_eq!(keys("GEORADIUS k 1 2 3 km STORE a STOREDIST b"), [1, 9]);
        assert_eq!(keys("GEORADIUS k 1 2 3 km COUNT 1 store store"), [1, 9]);
        assert_eq!(keys("GEORADIUS k 1 2 3 km STORE"), [1]);
        assert_eq!(keys("GEORADIUSBYMEMBER store store 3 km"), [1]);
        assert_eq!(keys("SORT k BY store GET store STORE a STORE b LIMIT store 1"), [1, 9]);
        assert_eq!(keys("SORT_RO k STORE a"), [1]);
        assert_eq!(keys("GEORADIUS_RO k 1 2 3 km STORE a"), [1]);
    }

    #[test]
    fn every_entry_is_complete() {
        fn check(spec: &Spec, prefix: &str) {
            let full = if prefix.is_empty() {
                spec.name.into()
            } else {
                format!("{prefix}|{}", spec.name)
            };
            assert_eq!(spec.full_name, full);
            assert!(!spec.summary.is_empty(), "{full} has no summary");
            assert!(spec.run.is_some() || !spec.subcommands.is_empty(), "{full} does nothing");
            assert!(spec.subcommands.iter().all(|sub| sub.subcommands.is_empty()));
            spec.subcommands.iter().for_each(|sub| check(sub, spec.name));
        }
        Table::default().iter().for_each(|spec| check(spec, ""));
    }
}
