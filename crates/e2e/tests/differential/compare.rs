//! Rules for answers that may differ: how far, and why. All other answers must be the same, byte
//! for byte; an error always must.
use e2e::Answer;
use resp::Value;

use crate::lockstep::Args;

/// Returns whether this is CONFIG SET. In a transaction, Redis applies a setting to the rest of it;
/// our node applies it after the transaction, because EXEC runs under one set of settings.
pub(crate) fn is_config_set(args: &Args) -> bool {
    let is = |index: usize, word: &[u8]| {
        args.get(index).is_some_and(|arg: &Vec<u8>| arg.eq_ignore_ascii_case(word))
    };
    is(0, b"CONFIG") && is(1, b"SET")
}

/// Returns whether our EXEC aborted and theirs ran. Ours may abort when a watched key was missing
/// (see `has_changed` in the commands): one abort too many is better than one too few.
pub(crate) fn stopped_once_too_often(theirs: &Answer, ours: &Answer) -> bool {
    matches!((&theirs.value, &ours.value), (Value::Array(_), Value::Null))
}

/// The degree to which two answers must agree.
enum Rule {
    /// Every byte is equal.
    Exact,
    /// Numbers may differ by this much, because time passes between the two servers.
    Near(i64),
    /// The order may differ between servers.
    AnyOrder,
    /// The order within the page of a scan may differ between servers.
    Page,
    /// A string that Redis keeps as `raw` may be kept in a smaller form: writing a bit that already
    /// has this value makes Redis copy the string, and leaves ours alone. A hash that Redis keeps as a
    /// `hashtable` although it has become small may be packed, and so may a sorted set that Redis keeps as a
    /// `skiplist`: ours decides again when it is renamed,
    /// copied, or gets a long value and a short one for the same field at once. A small set is packed, which
    /// Redis 7.0 does not do, and one of numbers may be an `intset` again after it was copied or computed.
    /// Redis 7.0 calls every list a `quicklist`, later versions a short one a `listpack`, as ours does.
    Compact,
    /// The content is specific to the server (ids, clocks, sizes, names): only its type must agree.
    Kind,
    /// A map whose values are specific to the server: only its keys must agree.
    Keys,
    /// Pending entries: the time since a delivery may differ by what passes between the servers.
    Deliveries,
    /// Maps, or arrays of maps, without the values under these names.
    Without(&'static [&'static str]),
    /// The answers of a transaction: each by its own rule.
    Transaction,
}

/// Returns whether two answers to `args` agree. `queued` are the commands that an EXEC has run.
pub(crate) fn same(args: &Args, queued: &[Args], theirs: &Answer, ours: &Answer) -> bool {
    theirs.raw == ours.raw || same_value(&rule(args), queued, &theirs.value, &ours.value)
}

pub(crate) fn same_burst(commands: &[Args], theirs: &[Answer], ours: &[Answer]) -> bool {
    if theirs.len() != ours.len() {
        return false;
    }
    let unsubscribes_all = commands
        .iter()
        .any(|args| args.len() == 1 && args[0].to_ascii_uppercase().ends_with(b"UNSUBSCRIBE"));
    if unsubscribes_all {
        // Each server leaves channels in its own order.
        return sorted_parts(theirs) == sorted_parts(ours);
    }
    let by_command = theirs.len() == commands.len();
    let mut pairs = theirs.iter().zip(ours).enumerate();
    pairs.all(|(index, (theirs, ours))| match commands.get(index) {
        Some(args) if by_command => same(args, &[], theirs, ours),
        Some(_) | None => theirs.raw == ours.raw,
    })
}

/// Returns whether two listeners received the same messages. If several of its patterns match, a
/// listener gets a message once for each, in an order that may differ between servers.
pub(crate) fn same_messages(theirs: &[Answer], ours: &[Answer]) -> bool {
    in_order(theirs) == in_order(ours)
}

fn in_order(messages: &[Answer]) -> Vec<&[u8]> {
    let about = |message: &Answer| {
        if let Value::Array(parts) | Value::Push(parts) = &message.value {
            let first = parts.len().saturating_sub(2);
            parts[first..].to_vec()
        } else {
            Vec::new()
        }
    };
    let mut raw = Vec::new();
    for same in messages.chunk_by(|a, b| about(a) == about(b)) {
        let mut copies: Vec<&[u8]> = same.iter().map(|message| message.raw.as_slice()).collect();
        copies.sort_unstable();
        raw.extend(copies);
    }
    raw
}

/// Returns all parts of all messages, sorted.
fn sorted_parts(answers: &[Answer]) -> Vec<String> {
    let parts = |answer: &Answer| {
        if let Value::Array(parts) | Value::Push(parts) = &answer.value {
            parts.clone()
        } else {
            vec![answer.value.clone()]
        }
    };
    let mut sorted: Vec<String> =
        answers.iter().flat_map(parts).map(|part| part.to_string()).collect();
    sorted.sort();
    sorted
}

fn same_value(rule: &Rule, queued: &[Args], theirs: &Value, ours: &Value) -> bool {
    match (rule, theirs, ours) {
        (_, Value::Error(_), _) | (_, _, Value::Error(_)) => theirs == ours,
        (Rule::Exact, ..) => false,
        (Rule::Near(distance), Value::Integer(theirs), Value::Integer(ours)) => {
            theirs == ours || (*theirs > 0 && *ours > 0 && (theirs - ours).abs() <= *distance)
        }
        (Rule::AnyOrder, Value::Array(theirs), Value::Array(ours)) => {
            sorted(theirs) == sorted(ours)
        }
        (Rule::AnyOrder, Value::Map(theirs), Value::Map(ours)) => {
            sorted_pairs(theirs) == sorted_pairs(ours)
        }
        (Rule::AnyOrder, Value::Set(theirs), Value::Set(ours)) => sorted(theirs) == sorted(ours),
        (Rule::Page, Value::Array(theirs), Value::Array(ours)) => match (&theirs[..], &ours[..]) {
            ([cursor, Value::Array(theirs)], [same, Value::Array(ours)]) => {
                cursor == same && sorted(theirs) == sorted(ours)
            }
            _ => false,
        },
        (Rule::Keys, Value::Map(theirs), Value::Map(ours)) => {
            theirs.iter().map(|(key, _)| key).eq(ours.iter().map(|(key, _)| key))
        }
        (Rule::Keys, Value::Array(theirs), Value::Array(ours)) => {
            theirs.iter().step_by(2).eq(ours.iter().step_by(2))
        }
        (Rule::Transaction, Value::Array(theirs), Value::Array(ours)) => {
            let same_part = |((args, theirs), ours): ((&Args, &Value), &Value)| {
                theirs == ours || same_value(&self::rule(args), &[], theirs, ours)
            };
            theirs.len() == ours.len()
                && queued.len() == theirs.len()
                && queued.iter().zip(theirs).zip(ours).all(same_part)
        }
        (Rule::Compact, ..) => match theirs.text() {
            Some(b"raw") => ours.text().is_some(),
            Some(b"hashtable") => matches!(ours.text(), Some(b"listpack" | b"intset")),
            Some(b"quicklist" | b"skiplist") => ours.text() == Some(b"listpack"),
            _ => false,
        },
        (Rule::Deliveries, Value::Array(theirs), Value::Array(ours)) => {
            theirs.len() == ours.len()
                && theirs.iter().zip(ours).all(|(it, ours)| same_delivery(it, ours))
        }
        (Rule::Without(names), ..) => without(names, theirs) == without(names, ours),
        (Rule::Kind, ..) => std::mem::discriminant(theirs) == std::mem::discriminant(ours),
        (
            Rule::Near(_)
            | Rule::AnyOrder
            | Rule::Page
            | Rule::Keys
            | Rule::Transaction
            | Rule::Deliveries,
            ..,
        ) => theirs == ours,
    }
}

/// Returns whether two pending entries are the same: an id, a consumer, a time, a count.
fn same_delivery(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Array(one), Value::Array(other)) if one.len() == 4 && other.len() == 4 => {
            let same_time = match (&one[2], &other[2]) {
                (Value::Integer(one), Value::Integer(other)) => (one - other).abs() <= 3_000,
                _ => false,
            };
            same_time && one[..2] == other[..2] && one[3] == other[3]
        }
        _ => theirs == ours,
    }
}

/// Returns the pairs of a map, or of each map in an array, without those under some names.
fn without(names: &[&str], value: &Value) -> Vec<String> {
    let is_left_out =
        |key: &Value| names.iter().any(|name| key.text().is_some_and(|key| key == name.as_bytes()));
    let is_pair = |value: &Value| value.text().is_some();
    if let Value::Map(pairs) = value {
        let kept = pairs.iter().filter(|(key, _)| !is_left_out(key));
        return kept.map(|(key, value)| format!("{key} {value}")).collect();
    }
    let Value::Array(parts) = value else { return vec![value.to_string()] };
    if parts.first().is_some_and(is_pair) {
        let kept = parts.chunks(2).filter(|pair| !is_left_out(&pair[0]));
        return kept.map(|pair| pair.iter().map(Value::to_string).collect::<String>()).collect();
    }
    parts.iter().flat_map(|part| without(names, part)).collect()
}

fn sorted(values: &[Value]) -> Vec<String> {
    let mut sorted: Vec<String> = values.iter().map(Value::to_string).collect();
    sorted.sort();
    sorted
}

fn sorted_pairs(pairs: &[(Value, Value)]) -> Vec<String> {
    let mut sorted: Vec<String> =
        pairs.iter().map(|(key, value)| format!("{key} {value}")).collect();
    sorted.sort();
    sorted
}

fn rule(args: &Args) -> Rule {
    let upper = |index: usize| {
        let word = args.get(index).map(Vec::as_slice).unwrap_or_default();
        String::from_utf8_lossy(word).to_uppercase()
    };
    let (name, sub) = (upper(0), upper(1));
    match (name.as_str(), sub.as_str()) {
        ("EXEC", _) => Rule::Transaction,
        ("TTL" | "EXPIRETIME", _) => Rule::Near(3),
        ("PTTL" | "PEXPIRETIME", _) => Rule::Near(3000),
        ("KEYS", _) | ("PUBSUB", "CHANNELS" | "SHARDCHANNELS") => Rule::AnyOrder,
        ("CONFIG", "GET") => Rule::AnyOrder,
        // The key is random.
        ("RANDOMKEY", _) => Rule::Kind,
        // A large hash has an order of its own on each server.
        ("HGETALL" | "HKEYS" | "HVALS", _) => Rule::AnyOrder,
        ("HRANDFIELD" | "ZRANDMEMBER", _) => Rule::Kind,
        ("HSCAN" | "ZSCAN" | "SSCAN", _) if args.get(2).is_some_and(|cursor| cursor == b"0") => {
            Rule::Page
        }
        ("HSCAN" | "ZSCAN" | "SSCAN", _) => Rule::Kind,
        // A set has an order of its own on each server.
        ("SMEMBERS" | "SINTER" | "SUNION" | "SDIFF", _) => Rule::AnyOrder,
        // Elements of a set have no order of their own.
        ("SORT" | "SORT_RO", _) if is_unordered(args) => Rule::Kind,
        // The members are random; the generator pops all of them, or none.
        ("SPOP", _) => Rule::AnyOrder,
        ("SRANDMEMBER", _) => Rule::Kind,
        // Time passes between the servers.
        ("XPENDING", _) => Rule::Deliveries,
        // Redis 7.0 does not know when a consumer was active.
        ("XINFO", "CONSUMERS") => Rule::Without(&["idle", "inactive"]),
        // There is no radix tree.
        ("XINFO", "STREAM") => Rule::Without(&["radix-tree-keys", "radix-tree-nodes"]),
        // Later versions know more often how many entries a group has read.
        ("XINFO", "GROUPS") => Rule::Without(&["entries-read", "lag"]),
        // Cursors are specific to the server; `Step::ScanAll` compares the keys found.
        ("SCAN", _) => Rule::Kind,
        // Clocks, ids, sizes, and texts about the server itself.
        ("TIME" | "INFO" | "LOLWUT" | "DUMP" | "SLOWLOG" | "LATENCY" | "ROLE", _) => Rule::Kind,
        ("CLIENT", "ID" | "INFO" | "LIST" | "HELP") => Rule::Kind,
        ("OBJECT", "ENCODING") => Rule::Compact,
        ("OBJECT", "IDLETIME" | "FREQ" | "REFCOUNT") => Rule::Kind,
        ("MEMORY", _) => Rule::Kind,
        ("DEBUG", "OBJECT" | "HELP") => Rule::Kind,
        // Our table has additional commands and lacks some of theirs; see `command_table.rs`.
        ("COMMAND", "COUNT" | "LIST" | "DOCS" | "INFO" | "HELP" | "") => Rule::Kind,
        ("CONFIG" | "OBJECT" | "PUBSUB" | "CLUSTER", "HELP") => Rule::Kind,
        ("HELLO", _) => Rule::Keys,
        _ => Rule::Exact,
    }
}

/// Returns whether the elements are not sorted, or by texts that may be equal: BY without a star, or with ALPHA.
fn is_unordered(args: &Args) -> bool {
    let mut pairs = args.windows(2);
    let by = pairs.find(|pair| pair[0].eq_ignore_ascii_case(b"BY"));
    let is_alphabetical = args.iter().any(|arg| arg.eq_ignore_ascii_case(b"ALPHA"));
    by.is_some_and(|pair| is_alphabetical || !pair[1].contains(&b'*'))
}
