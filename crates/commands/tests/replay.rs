//! Replaying a node's effects reproduces its content: for random runs over every command that writes, inside and
//! outside of transactions, while time passes and keys expire.

use commands::testing::TestNode;
use commands::{Flag, Table};
use proptest::prelude::*;

/// A key space so small that commands hit the same keys; one hash tag puts several keys into one slot.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..6u8).prop_map(|number| format!("k{number}")),
        (0..4u8).prop_map(|number| format!("{{tag}}{number}")),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,12}",
        4 => (-50i64..50).prop_map(|number| number.to_string()),
        2 => "[0-9]\\.[0-9]{1,3}",
        1 => (0..20_000usize).prop_map(|len| "x".repeat(len)),
    ]
}

fn small() -> impl Strategy<Value = i64> {
    -3i64..200
}

/// A line that a client might send. Not all lines are valid; errors must change nothing.
fn line() -> impl Strategy<Value = String> {
    let one = (key(), key(), word(), small(), small());
    (0..167usize, one).prop_map(|(kind, (key, other, word, number, second))| match kind {
        0..6 => format!("SET {key} {word}"),
        6 => format!("SET {key} {word} PX {number}"),
        7 => format!("SET {key} {word} EX {second} NX"),
        8 => format!("SET {key} {word} XX KEEPTTL GET"),
        9 => format!("SETNX {key} {word}"),
        10 => format!("SETEX {key} {number} {word}"),
        11 => format!("PSETEX {key} {number} {word}"),
        12 => format!("MSET {key} {word} {other} {number}"),
        13 => format!("MSETNX {key} {word} {other} {number}"),
        14 => format!("APPEND {key} {word}"),
        15 => format!("SETRANGE {key} {number} {word}"),
        16 => format!("INCR {key}"),
        17 => format!("DECRBY {key} {number}"),
        18 => format!("INCRBYFLOAT {key} {second}.5"),
        19 => format!("GETSET {key} {word}"),
        20 => format!("GETDEL {key}"),
        21 => format!("GETEX {key} PX {number}"),
        22 => format!("GETEX {key} PERSIST"),
        23 => format!("SETBIT {key} {number} {}", second & 1),
        24 => format!("BITOP XOR {key} {other} k0"),
        25 => format!("BITOP NOT {key} {other}"),
        26 => format!("BITFIELD {key} SET u8 {number} {second} INCRBY i5 #3 {number}"),
        27 => format!("BITFIELD {key} OVERFLOW FAIL INCRBY u2 0 {second}"),
        28 => format!("DEL {key} {other}"),
        29 => format!("UNLINK {key}"),
        30 => format!("RENAME {key} {other}"),
        31 => format!("RENAMENX {key} {other}"),
        32 => format!("COPY {key} {other} REPLACE"),
        33 => format!("COPY {key} {other}"),
        34 => format!("PEXPIRE {key} {number}"),
        35 => format!("EXPIRE {key} {second} GT"),
        36 => format!("PERSIST {key}"),
        37 if number < 20 => format!("EXPIREAT {key} {number}"),
        37 => format!("PEXPIREAT {key} {}", 1_700_000_000_000 + number * 10),
        38 => format!("GET {key}"),
        39 => format!("TOUCH {key} {other}"),
        40 => "MULTI".to_owned(),
        41..43 => "EXEC".to_owned(),
        43 => format!("WATCH {key}"),
        44 if number == 0 => "FLUSHALL".to_owned(),
        44 => "DISCARD".to_owned(),
        45..48 => format!("HSET {key} {word} {number}"),
        48 => format!("HSET {key} f{number} {word} f{second} {number} f1 {second}"),
        49 => format!("HMSET {key} f{} {word}", number % 5),
        50 => format!("HSETNX {key} f{} {word}", number % 5),
        51 => format!("HDEL {key} f{} f{} {word}", number % 5, second % 5),
        52 => format!("HINCRBY {key} f{} {second}", number % 5),
        53 => format!("HINCRBYFLOAT {key} f{} {second}.25", number % 5),
        54 => format!("HGETALL {key}"),
        55..73 => sorted_set_line(kind - 55, &key, &other, &word, (number, second)),
        73..86 => set_line(kind - 73, &key, &other, &word, (number, second)),
        86..100 => list_line(kind - 86, &key, &other, &word, (number, second)),
        103..118 => other_line(kind - 103, &key, &other, &word, (number, second)),
        118..126 => blocking_line(kind - 118, &key, &other, second),
        126..147 => stream_line(kind - 126, &key, &other, &word, (number, second)),
        147..153 => database_line(kind - 147, &key, &other, number),
        153..167 => field_line(kind - 153, &key, &other, &word, (number, second)),
        _ => format!("+{}", number.max(0)),
    })
}

/// A line about HyperLogLogs, positions, sorting, and comparisons.
fn other_line(
    kind: usize,
    key: &str,
    other: &str,
    word: &str,
    (number, second): (i64, i64),
) -> String {
    match kind {
        0 => format!("PFADD {key} {word} {number}"),
        1 => {
            let elements: Vec<String> = (0..number.max(1) * 20).map(|it| it.to_string()).collect();
            format!("PFADD {key} {second} {}", elements.join(" "))
        }
        2 => format!("PFMERGE {key} {other} k0"),
        3 => format!("PFDEBUG TODENSE {key}"),
        4 => format!("GEOADD {key} CH {}.5 {second}.25 m{} 1 2 m1", number % 180, number % 9),
        5 => format!("GEOSEARCHSTORE {key} {other} FROMLONLAT 1 2 BYRADIUS {number} km STOREDIST"),
        6 => format!("GEORADIUS {key} 1 2 {number} km STORE {other}"),
        11 => format!("SET {key} {word} IFEQ {number} KEEPTTL"),
        12 => format!("DELIFEQ {key} {number}"),
        13 => format!("MSETEX 2 {key} {word} {other} {number} XX PX {}", number.max(1)),
        8 => format!("SORT {key} ALPHA STORE {other}"),
        9 => format!("SORT {key} BY k* GET # GET k* DESC STORE {other}"),
        10 => format!("SORT {key} BY nosort LIMIT {} 2 STORE {key}", number % 3),
        7 => format!("GEORADIUSBYMEMBER {key} m1 {number} km COUNT 2 STOREDIST {other}"),
        _ => format!("PFCOUNT {key}"),
    }
}

/// A line about the expiry of fields.
fn field_line(
    kind: usize,
    key: &str,
    other: &str,
    word: &str,
    (number, second): (i64, i64),
) -> String {
    let (one, two) = (number % 5, second % 5);
    match kind {
        0..2 => format!("HSETEX {key} PX {number} FIELDS 2 f{one} {word} f{two} {second}"),
        2 => format!("HSETEX {key} KEEPTTL FIELDS 1 f{one} {word}"),
        3 => format!("HSETEX {key} FXX PXAT {number} FIELDS 1 f{one} {word}"),
        4 => format!("HPEXPIRE {key} {number} FIELDS 2 f{one} f{two}"),
        5 => format!("HPEXPIRE {key} {number} GT FIELDS 1 f{one}"),
        6 => format!("HEXPIRE {key} {} LT FIELDS 2 f{one} {word}", number % 3),
        7 => format!("HPERSIST {key} FIELDS 2 f{one} f{two}"),
        8 => format!("HGETEX {key} PX {number} FIELDS 2 f{one} f{two}"),
        9 => format!("HGETEX {key} PERSIST FIELDS 1 f{one}"),
        11 => format!("HEXPIREAT {key} {} FIELDS 1 f{one}", 1_700_000_000 + number),
        12 => format!("HPEXPIREAT {key} {} FIELDS 1 f{one}", 1_700_000_000_000 + number),
        10 => format!("HGETDEL {key} FIELDS 2 f{one} f{two}"),
        _ => format!("COPY {key} {other} REPLACE"),
    }
}

/// A line about databases.
fn database_line(kind: usize, key: &str, other: &str, number: i64) -> String {
    let database = number.rem_euclid(4);
    match kind {
        0 => format!("SELECT {database}"),
        1 => format!("MOVE {key} {database}"),
        2 => format!("COPY {key} {other} DB {database} REPLACE"),
        3 => format!("SWAPDB {database} {}", number.rem_euclid(3)),
        4 if database == 0 => "FLUSHDB".to_owned(),
        _ => "SELECT 0".to_owned(),
    }
}

/// A line about sorted sets.
fn sorted_set_line(
    kind: usize,
    key: &str,
    other: &str,
    word: &str,
    (number, second): (i64, i64),
) -> String {
    match kind {
        0..3 => format!("ZADD {key} {number} {word}"),
        3 => format!("ZADD {key} {number} m{number} {second}.5 m{second} 1 m1"),
        4 => format!("ZADD {key} GT CH {number} m{} -1 m2", second % 5),
        5 => format!("ZINCRBY {key} {second}.25 m{}", number % 5),
        6 => format!("ZREM {key} m{} m{} {word}", number % 5, second % 5),
        7 => format!("ZREMRANGEBYRANK {key} {} {second}", number % 4),
        8 => format!("ZREMRANGEBYSCORE {key} {second} {number}"),
        9 => format!("ZREMRANGEBYLEX {key} [m1 [m{number}"),
        10 => format!("ZPOPMIN {key} {}", number % 3),
        11 => format!("ZPOPMAX {key}"),
        12 => format!("ZMPOP 2 {key} {other} MAX COUNT 2"),
        13 => format!("ZRANGESTORE {key} {other} {} {second}", number % 3),
        14 => format!("ZUNIONSTORE {key} 2 {key} {other} WEIGHTS 1 {second}"),
        15 => format!("ZINTERSTORE {key} 2 {key} {other} AGGREGATE MIN"),
        16 => format!("ZDIFFSTORE {key} 2 {key} {other}"),
        _ => format!("ZRANGE {key} 0 -1"),
    }
}

/// A line about sets.
fn set_line(
    kind: usize,
    key: &str,
    other: &str,
    word: &str,
    (number, second): (i64, i64),
) -> String {
    match kind {
        0..3 => format!("SADD {key} {word} {number}"),
        3 => format!("SADD {key} {number} {second} m{number} m{second} m1"),
        4 => format!("SREM {key} {number} {word} m{}", second % 5),
        5 => format!("SMOVE {key} {other} {}", number % 20),
        6 => format!("SPOP {key}"),
        7 => format!("SPOP {key} {}", second % 12),
        8 => format!("SINTERSTORE {key} {other} k0"),
        9 => format!("SUNIONSTORE {key} {other} k1 {key}"),
        10 => format!("SDIFFSTORE {key} {other} k2"),
        11 => {
            let members: Vec<String> = (0..number.max(1) * 3).map(|it| it.to_string()).collect();
            format!("SADD {key} {}", members.join(" "))
        }
        _ => format!("SPOP {key} {}", number.max(0) * 3),
    }
}

/// A line about lists.
fn list_line(
    kind: usize,
    key: &str,
    other: &str,
    word: &str,
    (number, second): (i64, i64),
) -> String {
    match kind {
        0 => format!("LPUSH {key} {word} {number}"),
        1 => format!("RPUSH {key} {number} {second} {word}"),
        2 => format!("LPUSHX {key} {word}"),
        3 => format!("RPUSHX {key} {word}"),
        4 => format!("LPOP {key} {}", number % 5),
        5 => format!("RPOP {key}"),
        6 => format!("LSET {key} {} {word}", number % 5),
        7 => format!("LINSERT {key} BEFORE {number} {word}"),
        8 => format!("LREM {key} {} {second}", number % 4),
        9 => format!("LTRIM {key} {} {second}", number % 4),
        10 => format!("LMOVE {key} {other} LEFT RIGHT"),
        11 => format!("LMOVE {key} {key} RIGHT LEFT"),
        12 => format!("RPOPLPUSH {key} {other}"),
        _ => format!("LMPOP 2 {key} {other} LEFT COUNT {second}"),
    }
}

/// A line that may wait; the time that passes ends the wait, if nothing else does.
fn blocking_line(kind: usize, key: &str, other: &str, second: i64) -> String {
    match kind {
        0 => format!("BLPOP {key} {other} 0.05"),
        1 => format!("BRPOP {key} 1"),
        2 => format!("BLMOVE {key} {other} LEFT RIGHT 0.1"),
        3 => format!("BRPOPLPUSH {key} {key} 0.1"),
        4 => format!("BLMPOP 0.1 2 {key} {other} RIGHT COUNT {second}"),
        5 => format!("BZPOPMIN {key} {other} 0.05"),
        6 => format!("BZPOPMAX {key} 1"),
        _ => format!("BZMPOP 0.1 2 {key} {other} MIN COUNT {second}"),
    }
}

fn stream_line(
    kind: usize,
    key: &str,
    other: &str,
    word: &str,
    (number, second): (i64, i64),
) -> String {
    let (number, second) = (number.max(0), second.max(0));
    let (group, consumer) = (if number % 2 == 0 { "g" } else { "h" }, format!("c{}", second % 3));
    match kind {
        0..3 => format!("XADD {key} * f {word} g {number}"),
        3 => format!("XADD {key} MAXLEN {number} * {word} {second}"),
        4 => format!("XADD {key} {number}-{second} f {word}"),
        5 => format!("XTRIM {key} MINID ~ {}", 1_700_000_000_000 + number * 10),
        6 => format!("XDEL {key} {number}-{second} 1700000000000-0 1700000000000-1"),
        7 => format!("XSETID {key} {}-{second}", 1_700_000_000_000 + number),
        8 | 9 => {
            format!("XGROUP CREATE {key} {group} {} MKSTREAM", if number < 90 { "0" } else { "$" })
        }
        10 => format!("XGROUP DESTROY {key} {group}"),
        11 => format!("XGROUP DELCONSUMER {key} {group} {consumer}"),
        12 | 13 => format!("XREADGROUP GROUP {group} {consumer} COUNT 2 STREAMS {key} >"),
        14 => format!("XREADGROUP GROUP {group} {consumer} BLOCK 50 STREAMS {key} {other} > >"),
        15 => format!("XACK {key} {group} 1700000000000-0 1700000000000-1 {number}-{second}"),
        16 => format!("XCLAIM {key} {group} {consumer} {number} 1700000000000-0 FORCE"),
        18 => format!("XDELEX {key} DELREF IDS 2 {number}-{second} 1700000000000-0"),
        19 => format!("XACKDEL {key} {group} ACKED IDS 2 1700000000000-0 1700000000000-1"),
        17 => format!("XAUTOCLAIM {key} {group} {consumer} {number} 0 COUNT 2"),
        _ => format!("XREAD BLOCK 50 STREAMS {key} {other} $ 0"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn effects_rebuild_what_random_commands_have_made(
        lines in proptest::collection::vec((1..3u64, line()), 1..120),
    ) {
        let mut node = TestNode::default();
        for (connection, line) in &lines {
            match line.strip_prefix('+') {
                Some(millis) => node.advance(millis.parse().expect("made above")),
                None if node.is_blocked(*connection) => {}
                None => drop(node.on(*connection, line)),
            }
        }
        prop_assert_eq!(node.slots.digest(), node.replayed().digest());
    }
}

/// Checks that the lines above cover every command that writes; a new one would be missed silently otherwise.
#[test]
fn every_command_that_writes_is_drawn() {
    let drawn = include_str!("replay.rs");
    let elsewhere = ["restore", "incrby", "decr"];
    for spec in Table::default().iter().filter(|spec| spec.has(Flag::Write)) {
        let name = spec.name.to_uppercase();
        let is_drawn =
            drawn.contains(&format!("\"{name} ")) || drawn.contains(&format!("\"{name}\""));
        assert!(is_drawn || elsewhere.contains(&spec.name), "{name} is not drawn");
    }
}
