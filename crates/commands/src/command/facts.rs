//! Redis's facts about commands beyond arity and flags: names of flags, ACL categories, key access flags, hints for
//! clients that distribute commands over nodes.

use crate::Args;
use crate::spec::{Flag, Group, Spec};

/// Pairs of name and flag, in Redis's order.
const FLAG_NAMES: &[(&str, Flag)] = &[
    ("write", Flag::Write),
    ("readonly", Flag::ReadOnly),
    ("denyoom", Flag::DenyOom),
    ("admin", Flag::Admin),
    ("pubsub", Flag::PubSub),
    ("noscript", Flag::NoScript),
    ("blocking", Flag::Blocking),
    ("loading", Flag::Loading),
    ("stale", Flag::Stale),
    ("skip_monitor", Flag::SkipMonitor),
    ("skip_slowlog", Flag::SkipSlowlog),
    ("fast", Flag::Fast),
    ("no_auth", Flag::NoAuth),
    ("may_replicate", Flag::MayReplicate),
    ("no_multi", Flag::NoMulti),
    ("movablekeys", Flag::MovableKeys),
    ("no_mandatory_keys", Flag::RunsScript),
    ("allow_busy", Flag::AllowBusy),
];

pub(super) fn flag_names(spec: &Spec) -> Vec<&'static str> {
    FLAG_NAMES.iter().filter(|(_, flag)| spec.has(*flag)).map(|(name, _)| *name).collect()
}

/// Returns the ACL categories in Redis's order, without the `@`.
pub(super) fn categories(spec: &Spec) -> Vec<&'static str> {
    if spec.run.is_none() {
        return vec!["slow"]; // A container cannot run, only its subcommands can.
    }
    let root = spec.full_name.split('|').next().unwrap_or_default();
    let is_admin = spec.has(Flag::Admin) || root == "role";
    let fast = spec.has(Flag::Fast);
    let is_connection = spec.group == Group::Connection
        || matches!(root, "command" | "wait" | "asking" | "readonly" | "readwrite");
    let sorts = matches!(root, "sort" | "sort_ro");
    let is_about_keys = spec.group == Group::Generic && root != "wait" && !sorts
        || matches!(root, "dbsize" | "flushall" | "flushdb" | "swapdb");
    let all = [
        ("keyspace", is_about_keys),
        ("read", spec.has(Flag::ReadOnly) && spec.group != Group::Scripting),
        ("write", spec.has(Flag::Write)),
        ("string", spec.group == Group::String),
        ("bitmap", spec.group == Group::Bitmap),
        ("hyperloglog", spec.group == Group::HyperLogLog),
        ("geo", spec.group == Group::Geo),
        ("hash", spec.group == Group::Hash),
        ("list", spec.group == Group::List || sorts),
        ("sortedset", spec.group == Group::SortedSet || sorts),
        ("set", spec.group == Group::Set || sorts),
        ("stream", spec.group == Group::Stream && spec.name != "help"),
        ("pubsub", spec.group == Group::PubSub && spec.name != "help"),
        ("admin", is_admin),
        ("fast", fast),
        ("slow", !fast),
        ("blocking", spec.has(Flag::Blocking)),
        ("dangerous", is_admin || spec.has(Flag::Dangerous)),
        ("connection", is_connection),
        ("transaction", spec.group == Group::Transactions),
        ("scripting", spec.group == Group::Scripting),
    ];
    all.into_iter().filter(|(_, belongs)| *belongs).map(|(name, _)| name).collect()
}

type KeyFlags = &'static [&'static str];

const READS: KeyFlags = &["RO", "access"];
const LOOKS: KeyFlags = &["RO"];
const READS_AND_WRITES: KeyFlags = &["RW", "access", "update"];
const USES: KeyFlags = &["RW", "access"];
const USES_AND_EXTENDS: KeyFlags = &["RW", "access", "insert"];
const MODIFIES: KeyFlags = &["RW", "update"];
const EXTENDS: KeyFlags = &["RW", "insert"];
const OVERWRITES: KeyFlags = &["OW", "update"];
const CREATES: KeyFlags = &["OW", "insert"];
const REMOVES: KeyFlags = &["RM", "delete"];
const REMOVES_FROM: KeyFlags = &["RW", "delete"];
const TAKES: KeyFlags = &["RW", "access", "delete"];
const DEPENDS: KeyFlags = &["RW", "access", "update", "variable_flags"];
const NOT_A_KEY: KeyFlags = &["not_key"];

/// Returns the access of a command to the key at `number` among its keys. Mostly derived from the flags.
pub(super) fn key_access(spec: &Spec, number: usize) -> KeyFlags {
    match (spec.full_name, number) {
        ("geosearchstore", 0) | ("georadius" | "georadiusbymember" | "sort", 1) => OVERWRITES,
        ("geosearchstore" | "georadius" | "georadiusbymember" | "sort", _) => READS,
        ("geoadd", _) => MODIFIES,
        ("pfmerge", 0) => USES_AND_EXTENDS,
        ("pfmerge", _) => READS,
        ("pfcount" | "pfdebug" | "hgetex", _) => USES,
        ("append" | "hsetnx" | "hsetex" | "sadd" | "pfadd", _)
        | ("lpush" | "lpushx" | "rpush" | "rpushx" | "linsert", _)
        | ("lmove" | "rpoplpush" | "blmove" | "brpoplpush", 1) => EXTENDS,
        ("hdel" | "srem" | "lrem" | "ltrim", _) => REMOVES_FROM,
        ("zrem" | "zremrangebyrank" | "zremrangebyscore" | "zremrangebylex", _) => REMOVES_FROM,
        ("zpopmin" | "zpopmax" | "zmpop" | "bzpopmin" | "bzpopmax" | "bzmpop", _) => TAKES,
        ("zunionstore" | "zinterstore" | "zdiffstore" | "zrangestore", 0) => OVERWRITES,
        ("zunionstore" | "zinterstore" | "zdiffstore" | "zrangestore", _) => READS,
        ("zadd", _) => MODIFIES,
        ("zcard", _) => LOOKS,
        ("eval" | "evalsha", _) => READS_AND_WRITES,
        ("sinterstore" | "sunionstore" | "sdiffstore", 0) => OVERWRITES,
        ("sinterstore" | "sunionstore" | "sdiffstore", _) => READS,
        ("spop", _) | ("smove", 0) => TAKES,
        ("smove", 1) => EXTENDS,
        ("xadd" | "xack" | "xclaim" | "xsetid" | "xgroup|setid", _) => MODIFIES,
        ("xgroup|create" | "xgroup|createconsumer", _) => EXTENDS,
        ("xdel" | "xdelex" | "xackdel" | "xtrim" | "xgroup|delconsumer" | "xgroup|destroy", _) => {
            REMOVES_FROM
        }
        ("xautoclaim", _) => TAKES,
        ("xreadgroup", _) => READS,
        ("xlen", _) => LOOKS,
        ("set" | "bitfield", _) => DEPENDS,
        ("mset" | "msetex" | "psetex" | "setex" | "restore", _)
        | ("bitop", 0)
        | ("copy" | "rename", 1) => OVERWRITES,
        ("msetnx" | "setnx", _) | ("renamenx", 1) => CREATES,
        ("del" | "unlink" | "delifeq", _) => REMOVES,
        ("getdel" | "hgetdel" | "lpop" | "rpop" | "lmpop" | "blpop" | "brpop" | "blmpop", _)
        | ("rename" | "renamenx" | "lmove" | "rpoplpush" | "blmove" | "brpoplpush", 0) => TAKES,
        ("bitop", _) | ("copy", 0) => READS,
        ("expire" | "expireat" | "pexpire" | "pexpireat" | "persist" | "setrange", _)
        | ("hexpire" | "hexpireat" | "hpexpire" | "hpexpireat" | "hpersist", _)
        | ("hset" | "hmset" | "lset", _) => MODIFIES,
        ("exists" | "strlen" | "touch" | "type" | "watch" | "memory|usage", _)
        | ("hexists" | "hlen" | "hstrlen" | "llen" | "scard" | "sismember" | "smismember", _) => {
            LOOKS
        }
        (name, _) if name.starts_with("object|") => LOOKS,
        _ if spec.has(Flag::NotKeys) => NOT_A_KEY,
        _ if spec.has(Flag::Write) => READS_AND_WRITES,
        _ => READS,
    }
}

/// Same as `key_access`, for a command with known arguments, which may decide the access.
pub(super) fn key_access_of(spec: &Spec, number: usize, args: Args<'_>) -> KeyFlags {
    let has = |words: &[&[u8]]| {
        args.iter().any(|arg| words.iter().any(|word| arg.eq_ignore_ascii_case(word)))
    };
    match spec.full_name {
        "set" if has(&[b"get"]) => READS_AND_WRITES,
        "set" => OVERWRITES,
        "bitfield" if has(&[b"set", b"incrby"]) => READS_AND_WRITES,
        "bitfield" => READS,
        _ => key_access(spec, number),
    }
}

const ALL_SHARDS_SUCCEED: KeyFlags =
    &["request_policy:all_shards", "response_policy:all_succeeded"];
const ALL_NODES_SUCCEED: KeyFlags = &["request_policy:all_nodes", "response_policy:all_succeeded"];
const SHARDS_SPECIAL: KeyFlags =
    &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"];
const NODES_SPECIAL: KeyFlags =
    &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"];
const SHARDS_SUM: KeyFlags = &["request_policy:multi_shard", "response_policy:agg_sum"];
const VARIES: KeyFlags = &["nondeterministic_output"];
const ORDER_VARIES: KeyFlags = &["nondeterministic_output_order"];

/// Returns hints for clients and proxies that distribute commands over nodes.
pub(super) fn tips(spec: &Spec) -> KeyFlags {
    match spec.full_name {
        "ping" | "flushall" | "flushdb" | "memory|purge" | "script|flush" => ALL_SHARDS_SUCCEED,
        "config|set" | "latency|reset" | "slowlog|reset" => ALL_NODES_SUCCEED,
        "info" | "memory|doctor" | "memory|malloc-stats" | "memory|stats" => SHARDS_SPECIAL,
        "latency|latest" | "latency|history" | "latency|graph" | "latency|doctor"
        | "latency|histogram" => NODES_SPECIAL,
        "del" | "unlink" | "exists" | "touch" => SHARDS_SUM,
        "mset" | "msetex" => &["request_policy:multi_shard", "response_policy:all_succeeded"],
        "msetnx" => &["request_policy:multi_shard", "response_policy:agg_min"],
        "mget" => &["request_policy:multi_shard"],
        "dbsize" => &["request_policy:all_shards", "response_policy:agg_sum"],
        "keys" => &["request_policy:all_shards", "nondeterministic_output_order"],
        "randomkey" => &["request_policy:all_shards", "nondeterministic_output"],
        "scan" => &["nondeterministic_output", "request_policy:special"],
        "wait" => &["request_policy:all_shards", "response_policy:agg_min"],
        "slowlog|get" => &["request_policy:all_nodes", "nondeterministic_output"],
        "slowlog|len" => {
            &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]
        }
        "client|info"
        | "client|list"
        | "time"
        | "dump"
        | "zrandmember"
        | "zscan"
        | "ttl"
        | "pttl"
        | "cluster|info"
        | "cluster|nodes"
        | "cluster|slots"
        | "cluster|shards"
        | "cluster|getkeysinslot"
        | "object|encoding"
        | "object|freq"
        | "object|idletime"
        | "object|refcount" => VARIES,
        "spop" | "srandmember" | "sscan" => VARIES,
        "xadd" | "xtrim" | "xclaim" | "xautoclaim" | "xpending" | "xinfo|consumers" => VARIES,
        "smembers" | "sinter" | "sunion" | "sdiff" => ORDER_VARIES,
        "command" | "command|info" | "command|docs" | "command|list" => ORDER_VARIES,
        _ => &[],
    }
}
