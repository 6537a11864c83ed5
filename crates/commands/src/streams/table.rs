//! The descriptions of the stream commands.

use super::{add, claim, delete, edit, group, info, pending, range, read, trim};
use crate::help::help;
use crate::spec::{BEHIND_STREAMS, BLANK, Flag, Flags, Group, KeySpec, Spec};

/// The common part of commands that read a stream.
const READ: Spec = Spec {
    group: Group::Stream,
    since: "5.0.0",
    flags: Flags::of(&[Flag::ReadOnly]),
    keys: KeySpec::FIRST,
    ..BLANK
};

const READ_FAST: Spec = Spec { flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]), ..READ };

/// The common part of commands that change a stream without adding to it.
const WRITE: Spec = Spec { flags: Flags::of(&[Flag::Write]), ..READ };

const WRITE_FAST: Spec = Spec { flags: Flags::of(&[Flag::Write, Flag::Fast]), ..READ };

/// The common part of commands that may need memory.
const ADD: Spec = Spec { flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Fast]), ..READ };

/// The common part of commands that read several streams.
const SEVERAL: Spec = Spec { keys: KeySpec::NONE, key_count_at: BEHIND_STREAMS, ..READ };

/// The common part of the subcommands of XGROUP.
const OF_GROUP: Spec = Spec { flags: Flags::of(&[Flag::Write]), keys: KeySpec::SECOND, ..READ };

/// The common part of the subcommands of XINFO.
const INFO: Spec = Spec { keys: KeySpec::SECOND, ..READ };

const HELP: Spec = Spec {
    group: Group::Stream,
    name: "help",
    summary: "Lists the subcommands.",
    since: "5.0.0",
    arity: 2,
    flags: Flags::of(&[Flag::Loading, Flag::Stale]),
    run: Some(help),
    ..BLANK
};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "xack",
        full_name: "xack",
        syntax: "key group id [id ...]",
        summary: "Acknowledges entries of a consumer group; they are pending no more.",
        complexity: "O(log N) for each id, where N is the number of pending entries",
        arity: -4,
        run: Some(pending::xack),
        ..WRITE_FAST
    },
    Spec {
        name: "xackdel",
        full_name: "xackdel",
        syntax: "key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]",
        summary: "Acknowledges entries of a consumer group, and deletes them.",
        since: "8.2.0",
        complexity: "O(G) for each id, where G is the number of groups",
        arity: -6,
        run: Some(delete::xackdel),
        ..WRITE_FAST
    },
    Spec {
        name: "xadd",
        full_name: "xadd",
        syntax: "key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]",
        summary: "Adds an entry to a stream; a missing key becomes a new stream.",
        complexity: "O(1) to add an entry, and O(N) to trim, where N is the number of removed entries",
        arity: -5,
        run: Some(add::xadd),
        ..ADD
    },
    Spec {
        name: "xautoclaim",
        full_name: "xautoclaim",
        syntax: "key group consumer min-idle-time start [COUNT count] [JUSTID]",
        summary: "Takes over entries of a consumer group that were pending for a while.",
        since: "6.2.0",
        complexity: "O(1) if COUNT is small",
        arity: -6,
        run: Some(claim::xautoclaim),
        ..WRITE_FAST
    },
    Spec {
        name: "xclaim",
        full_name: "xclaim",
        syntax: "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
        summary: "Takes over entries of a consumer group by their ids.",
        complexity: "O(log N) for each id, where N is the number of pending entries",
        arity: -6,
        run: Some(claim::xclaim),
        ..WRITE_FAST
    },
    Spec {
        name: "xdel",
        full_name: "xdel",
        syntax: "key id [id ...]",
        summary: "Removes entries of a stream by their ids.",
        complexity: "O(log N) for each id, where N is the number of entries",
        arity: -3,
        run: Some(edit::xdel),
        ..WRITE_FAST
    },
    Spec {
        name: "xdelex",
        full_name: "xdelex",
        syntax: "key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]",
        summary: "Removes entries of a stream with regard to the groups that have not acknowledged them.",
        since: "8.2.0",
        complexity: "O(G) for each id, where G is the number of groups",
        arity: -5,
        run: Some(delete::xdelex),
        ..WRITE_FAST
    },
    Spec {
        name: "xgroup",
        full_name: "xgroup",
        summary: "Manages consumer groups.",
        since: "5.0.0",
        group: Group::Stream,
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: GROUP_SUBCOMMANDS,
        ..BLANK
    },
    Spec {
        name: "xinfo",
        full_name: "xinfo",
        summary: "Describes streams, groups and consumers.",
        since: "5.0.0",
        group: Group::Stream,
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: INFO_SUBCOMMANDS,
        ..BLANK
    },
    Spec {
        name: "xlen",
        full_name: "xlen",
        syntax: "key",
        summary: "Returns the number of entries of a stream.",
        arity: 2,
        run: Some(range::xlen),
        ..READ_FAST
    },
    Spec {
        name: "xpending",
        full_name: "xpending",
        syntax: "key group [[IDLE min-idle-time] start end count [consumer]]",
        summary: "Lists entries of a consumer group that were delivered and not acknowledged.",
        complexity: "O(log N + M) where N is the number of pending entries and M that of the returned ones",
        arity: -3,
        run: Some(pending::xpending),
        ..READ
    },
    Spec {
        name: "xrange",
        full_name: "xrange",
        syntax: "key start end [COUNT count]",
        summary: "Returns the entries of a range of ids.",
        complexity: "O(log N + M) where N is the number of entries and M that of the returned ones",
        arity: -4,
        run: Some(range::xrange),
        ..READ
    },
    Spec {
        name: "xread",
        full_name: "xread",
        syntax: "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
        summary: "Returns entries of several streams behind the given ids.",
        complexity: "O(log N + M) for each stream, where N is its number of entries and M that of the returned ones",
        arity: -4,
        flags: Flags::of(&[Flag::ReadOnly, Flag::Blocking, Flag::MovableKeys]),
        run: Some(read::xread),
        ..SEVERAL
    },
    Spec {
        name: "xreadgroup",
        full_name: "xreadgroup",
        syntax: "GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]",
        summary: "Returns entries of several streams that no other consumer of the group has got.",
        complexity: "O(log N + M) for each stream, where N is its number of entries and M that of the returned ones",
        arity: -7,
        flags: Flags::of(&[Flag::Write, Flag::Blocking, Flag::MovableKeys]),
        run: Some(read::xreadgroup),
        ..SEVERAL
    },
    Spec {
        name: "xrevrange",
        full_name: "xrevrange",
        syntax: "key end start [COUNT count]",
        summary: "Returns the entries of a range of ids, the last one first.",
        complexity: "O(log N + M) where N is the number of entries and M that of the returned ones",
        arity: -4,
        run: Some(range::xrevrange),
        ..READ
    },
    Spec {
        name: "xsetid",
        full_name: "xsetid",
        syntax: "key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
        summary: "Sets the last id of a stream, for replication.",
        arity: -3,
        run: Some(edit::xsetid),
        ..ADD
    },
    Spec {
        name: "xtrim",
        full_name: "xtrim",
        syntax: "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]",
        summary: "Removes the first entries of a stream.",
        complexity: "O(N) where N is the number of removed entries; whole blocks are removed at once",
        arity: -4,
        run: Some(trim::xtrim),
        ..WRITE
    },
];

const GROUP_SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "create",
        full_name: "xgroup|create",
        syntax: "key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]",
        summary: "Creates a group that reads from an id on.",
        arity: -5,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
        run: Some(group::create),
        ..OF_GROUP
    },
    Spec {
        name: "createconsumer",
        full_name: "xgroup|createconsumer",
        syntax: "key group consumer",
        summary: "Creates a consumer of a group.",
        since: "6.2.0",
        arity: 5,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
        run: Some(group::create_consumer),
        ..OF_GROUP
    },
    Spec {
        name: "delconsumer",
        full_name: "xgroup|delconsumer",
        syntax: "key group consumer",
        summary: "Removes a consumer and its pending entries.",
        complexity: "O(N) where N is the number of its pending entries",
        arity: 5,
        run: Some(group::delete_consumer),
        ..OF_GROUP
    },
    Spec {
        name: "destroy",
        full_name: "xgroup|destroy",
        syntax: "key group",
        summary: "Removes a group.",
        complexity: "O(N) where N is the number of its pending entries, which are freed in the background",
        arity: 4,
        run: Some(group::destroy),
        ..OF_GROUP
    },
    Spec { full_name: "xgroup|help", ..HELP },
    Spec {
        name: "setid",
        full_name: "xgroup|setid",
        syntax: "key group <id | $> [ENTRIESREAD entries-read]",
        summary: "Sets the id from which on a group reads.",
        arity: -5,
        run: Some(group::set_id),
        ..OF_GROUP
    },
];

const INFO_SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "consumers",
        full_name: "xinfo|consumers",
        syntax: "key group",
        summary: "Lists the consumers of a group.",
        arity: 4,
        run: Some(info::consumers),
        ..INFO
    },
    Spec {
        name: "groups",
        full_name: "xinfo|groups",
        syntax: "key",
        summary: "Lists the groups of a stream.",
        arity: 3,
        run: Some(info::groups),
        ..INFO
    },
    Spec { full_name: "xinfo|help", ..HELP },
    Spec {
        name: "stream",
        full_name: "xinfo|stream",
        syntax: "key [FULL [COUNT count]]",
        summary: "Describes a stream.",
        arity: -3,
        run: Some(info::stream),
        ..INFO
    },
];
