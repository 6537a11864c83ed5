//! The descriptions of the commands on sorted sets.

use super::{add, combine, pop, random, range, read, remove, scan};
use crate::spec::{BLANK, Flag, Flags, Group, KeySpec, Spec};

const LOG: &str = "O(log(N)) where N is the number of members of the set";
const MANY: &str =
    "O(M*log(N)) where N is the number of members, and M that of the given or returned ones";

/// The common part of commands that read one member, or count, quickly.
const READ: Spec = Spec {
    group: Group::SortedSet,
    flags: Flags::of(&[Flag::ReadOnly, Flag::Fast]),
    keys: KeySpec::FIRST,
    ..BLANK
};

/// The common part of commands that read a range of members.
const RANGE: Spec = Spec {
    complexity: "O(log(N)+M) where N is the number of members of the set, and M that of the range",
    flags: Flags::of(&[Flag::ReadOnly]),
    ..READ
};

/// The common part of commands that write scores, and may need memory for them.
const WRITE: Spec = Spec { flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::Fast]), ..READ };

/// The common part of commands that remove a range of members.
const REMOVE: Spec = Spec { flags: Flags::of(&[Flag::Write]), ..RANGE };

/// The common part of commands that read several sorted sets.
const READ_SEVERAL: Spec = Spec {
    flags: Flags::of(&[Flag::ReadOnly, Flag::MovableKeys]),
    keys: KeySpec::NONE,
    key_count_at: 1,
    ..READ
};

/// The common part of commands that store a combination of several sorted sets.
const STORE_SEVERAL: Spec = Spec {
    flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::MovableKeys]),
    key_count_at: 2,
    ..READ
};

/// The common part of commands that wait for a sorted set.
const BLOCKING: Spec = Spec {
    syntax: "key [key ...] timeout",
    since: "5.0.0",
    complexity: "O(log(N)) where N is the number of members of the set",
    arity: -3,
    flags: Flags::of(&[Flag::Write, Flag::NoScript, Flag::Fast, Flag::Blocking]),
    keys: KeySpec { first: 1, last: -2, step: 1 },
    ..READ
};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "bzmpop",
        full_name: "bzmpop",
        syntax: "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
        summary: "Takes members out of the first sorted set that is not empty; waits until there is one.",
        since: "7.0.0",
        complexity: "O(K) + O(M*log(N)) where K is the number of keys, M that of members taken, N that of the set",
        arity: -5,
        flags: Flags::of(&[Flag::Write, Flag::Blocking, Flag::MovableKeys]),
        keys: KeySpec::NONE,
        key_count_at: 2,
        run: Some(pop::bzmpop),
        ..BLOCKING
    },
    Spec {
        name: "bzpopmax",
        full_name: "bzpopmax",
        summary: "Takes the member with the highest score out of the first sorted set that is not empty; waits until there is one.",
        run: Some(pop::bzpopmax),
        ..BLOCKING
    },
    Spec {
        name: "bzpopmin",
        full_name: "bzpopmin",
        summary: "Takes the member with the lowest score out of the first sorted set that is not empty; waits until there is one.",
        run: Some(pop::bzpopmin),
        ..BLOCKING
    },
    Spec {
        name: "zadd",
        full_name: "zadd",
        syntax: "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
        summary: "Sets the scores of members of a sorted set; a missing key becomes a new one.",
        since: "1.2.0",
        complexity: "O(log(N)) for each member, where N is the number of members of the set",
        arity: -4,
        run: Some(add::zadd),
        ..WRITE
    },
    Spec {
        name: "zcard",
        full_name: "zcard",
        syntax: "key",
        summary: "Returns the number of members of a sorted set.",
        since: "1.2.0",
        arity: 2,
        run: Some(read::zcard),
        ..READ
    },
    Spec {
        name: "zcount",
        full_name: "zcount",
        syntax: "key min max",
        summary: "Counts the members with scores in a range.",
        since: "2.0.0",
        complexity: LOG,
        arity: 4,
        run: Some(read::zcount),
        ..READ
    },
    Spec {
        name: "zdiff",
        full_name: "zdiff",
        syntax: "numkeys key [key ...] [WITHSCORES]",
        summary: "Returns the members of the first sorted set that are in none of the others.",
        since: "6.2.0",
        complexity: "O(N*K*log(M)) where N is the size of the first set, K the number of sets, M their size",
        arity: -3,
        run: Some(combine::zdiff),
        ..READ_SEVERAL
    },
    Spec {
        name: "zdiffstore",
        full_name: "zdiffstore",
        syntax: "destination numkeys key [key ...]",
        summary: "Stores the members of the first sorted set that are in none of the others.",
        since: "6.2.0",
        complexity: "O(N*K*log(M)) where N is the size of the first set, K the number of sets, M their size",
        arity: -4,
        run: Some(combine::zdiffstore),
        ..STORE_SEVERAL
    },
    Spec {
        name: "zincrby",
        full_name: "zincrby",
        syntax: "key increment member",
        summary: "Adds a number to the score of a member; a missing one counts as 0.",
        since: "1.2.0",
        complexity: LOG,
        arity: 4,
        run: Some(add::zincrby),
        ..WRITE
    },
    Spec {
        name: "zinter",
        full_name: "zinter",
        syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
        summary: "Returns the members that are in all of the sorted sets.",
        since: "6.2.0",
        complexity: "O(N*K*log(M)) where N is the size of the smallest set, K the number of sets, M their size",
        arity: -3,
        run: Some(combine::zinter),
        ..READ_SEVERAL
    },
    Spec {
        name: "zintercard",
        full_name: "zintercard",
        syntax: "numkeys key [key ...] [LIMIT limit]",
        summary: "Counts the members that are in all of the sorted sets.",
        since: "7.0.0",
        complexity: "O(N*K*log(M)) where N is the size of the smallest set, K the number of sets, M their size",
        arity: -3,
        run: Some(combine::zintercard),
        ..READ_SEVERAL
    },
    Spec {
        name: "zinterstore",
        full_name: "zinterstore",
        syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
        summary: "Stores the members that are in all of the sorted sets.",
        since: "2.0.0",
        complexity: "O(N*K*log(M)) where N is the size of the smallest set, K the number of sets, M their size",
        arity: -4,
        run: Some(combine::zinterstore),
        ..STORE_SEVERAL
    },
    Spec {
        name: "zlexcount",
        full_name: "zlexcount",
        syntax: "key min max",
        summary: "Counts the members in a range of texts, if all have the same score.",
        since: "2.8.9",
        complexity: LOG,
        arity: 4,
        run: Some(read::zlexcount),
        ..READ
    },
    Spec {
        name: "zmpop",
        full_name: "zmpop",
        syntax: "numkeys key [key ...] <MIN | MAX> [COUNT count]",
        summary: "Takes members out of the first sorted set that is not empty.",
        since: "7.0.0",
        complexity: "O(K) + O(M*log(N)) where K is the number of keys, M that of members taken, N that of the set",
        arity: -4,
        flags: Flags::of(&[Flag::Write, Flag::MovableKeys]),
        run: Some(pop::zmpop),
        ..READ_SEVERAL
    },
    Spec {
        name: "zmscore",
        full_name: "zmscore",
        syntax: "key member [member ...]",
        summary: "Returns the scores of several members.",
        since: "6.2.0",
        complexity: "O(N) where N is the number of members",
        arity: -3,
        run: Some(read::zmscore),
        ..READ
    },
    Spec {
        name: "zpopmax",
        full_name: "zpopmax",
        syntax: "key [count]",
        summary: "Takes the members with the highest scores out.",
        since: "5.0.0",
        complexity: MANY,
        arity: -2,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(pop::zpopmax),
        ..WRITE
    },
    Spec {
        name: "zpopmin",
        full_name: "zpopmin",
        syntax: "key [count]",
        summary: "Takes the members with the lowest scores out.",
        since: "5.0.0",
        complexity: MANY,
        arity: -2,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(pop::zpopmin),
        ..WRITE
    },
    Spec {
        name: "zrandmember",
        full_name: "zrandmember",
        syntax: "key [count [WITHSCORES]]",
        summary: "Returns random members of a sorted set.",
        since: "6.2.0",
        complexity: "O(N) where N is the number of returned members",
        arity: -2,
        run: Some(random::zrandmember),
        ..RANGE
    },
    Spec {
        name: "zrange",
        full_name: "zrange",
        syntax: "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
        summary: "Returns the members in a range of ranks, scores or texts.",
        since: "1.2.0",
        arity: -4,
        run: Some(range::zrange),
        ..RANGE
    },
    Spec {
        name: "zrangebylex",
        full_name: "zrangebylex",
        syntax: "key min max [LIMIT offset count]",
        summary: "Returns the members in a range of texts, if all have the same score.",
        since: "2.8.9",
        arity: -4,
        run: Some(range::zrangebylex),
        ..RANGE
    },
    Spec {
        name: "zrangebyscore",
        full_name: "zrangebyscore",
        syntax: "key min max [WITHSCORES] [LIMIT offset count]",
        summary: "Returns the members with scores in a range.",
        since: "1.0.5",
        arity: -4,
        run: Some(range::zrangebyscore),
        ..RANGE
    },
    Spec {
        name: "zrangestore",
        full_name: "zrangestore",
        syntax: "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
        summary: "Stores the members in a range of ranks, scores or texts.",
        since: "6.2.0",
        arity: -5,
        flags: Flags::of(&[Flag::Write, Flag::DenyOom]),
        keys: KeySpec::FIRST_TWO,
        run: Some(range::zrangestore),
        ..RANGE
    },
    Spec {
        name: "zrank",
        full_name: "zrank",
        syntax: "key member [WITHSCORE]",
        summary: "Returns the rank of a member, from the lowest score on.",
        since: "2.0.0",
        complexity: LOG,
        arity: -3,
        run: Some(read::zrank),
        ..READ
    },
    Spec {
        name: "zrem",
        full_name: "zrem",
        syntax: "key member [member ...]",
        summary: "Removes members from a sorted set; the key goes with its last member.",
        since: "1.2.0",
        complexity: MANY,
        arity: -3,
        flags: Flags::of(&[Flag::Write, Flag::Fast]),
        run: Some(remove::zrem),
        ..WRITE
    },
    Spec {
        name: "zremrangebylex",
        full_name: "zremrangebylex",
        syntax: "key min max",
        summary: "Removes the members in a range of texts, if all have the same score.",
        since: "2.8.9",
        arity: 4,
        run: Some(remove::zremrangebylex),
        ..REMOVE
    },
    Spec {
        name: "zremrangebyrank",
        full_name: "zremrangebyrank",
        syntax: "key start stop",
        summary: "Removes the members in a range of ranks.",
        since: "2.0.0",
        arity: 4,
        run: Some(remove::zremrangebyrank),
        ..REMOVE
    },
    Spec {
        name: "zremrangebyscore",
        full_name: "zremrangebyscore",
        syntax: "key min max",
        summary: "Removes the members with scores in a range.",
        since: "1.2.0",
        arity: 4,
        run: Some(remove::zremrangebyscore),
        ..REMOVE
    },
    Spec {
        name: "zrevrange",
        full_name: "zrevrange",
        syntax: "key start stop [WITHSCORES]",
        summary: "Returns the members in a range of ranks, from the highest score on.",
        since: "1.2.0",
        arity: -4,
        run: Some(range::zrevrange),
        ..RANGE
    },
    Spec {
        name: "zrevrangebylex",
        full_name: "zrevrangebylex",
        syntax: "key max min [LIMIT offset count]",
        summary: "Returns the members in a range of texts, backwards.",
        since: "2.8.9",
        arity: -4,
        run: Some(range::zrevrangebylex),
        ..RANGE
    },
    Spec {
        name: "zrevrangebyscore",
        full_name: "zrevrangebyscore",
        syntax: "key max min [WITHSCORES] [LIMIT offset count]",
        summary: "Returns the members with scores in a range, backwards.",
        since: "2.2.0",
        arity: -4,
        run: Some(range::zrevrangebyscore),
        ..RANGE
    },
    Spec {
        name: "zrevrank",
        full_name: "zrevrank",
        syntax: "key member [WITHSCORE]",
        summary: "Returns the rank of a member, from the highest score on.",
        since: "2.0.0",
        complexity: LOG,
        arity: -3,
        run: Some(read::zrevrank),
        ..READ
    },
    Spec {
        name: "zscan",
        full_name: "zscan",
        syntax: "key cursor [MATCH pattern] [COUNT count] [NOSCORES]",
        summary: "Iterates over the members of a sorted set, some at a time.",
        since: "2.8.0",
        complexity: "O(COUNT) for every call, O(N) for a whole walk over N members.",
        arity: -3,
        run: Some(scan::zscan),
        ..RANGE
    },
    Spec {
        name: "zscore",
        full_name: "zscore",
        syntax: "key member",
        summary: "Returns the score of a member.",
        since: "1.2.0",
        arity: 3,
        run: Some(read::zscore),
        ..READ
    },
    Spec {
        name: "zunion",
        full_name: "zunion",
        syntax: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
        summary: "Returns the members of all of the sorted sets.",
        since: "6.2.0",
        complexity: "O(N*log(N)) where N is the number of all members",
        arity: -3,
        run: Some(combine::zunion),
        ..READ_SEVERAL
    },
    Spec {
        name: "zunionstore",
        full_name: "zunionstore",
        syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
        summary: "Stores the members of all of the sorted sets.",
        since: "2.0.0",
        complexity: "O(N*log(N)) where N is the number of all members",
        arity: -4,
        run: Some(combine::zunionstore),
        ..STORE_SEVERAL
    },
];
