//! Commands on keys: type, expiry, renaming; DUMP and RESTORE.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(43) {
        0..2 => cmd("DEL").args(g.some_keys(3)).done(),
        2 => cmd("UNLINK").args(g.some_keys(3)).done(),
        3 => cmd("EXISTS").args(g.some_keys(4)).done(),
        4 => cmd("TOUCH").args(g.some_keys(3)).done(),
        5 => cmd("TYPE").arg(g.key()).done(),
        6..8 => cmd("RENAME").arg(g.key()).arg(g.key()).done(),
        8 => cmd("RENAMENX").arg(g.key()).arg(g.key()).done(),
        9..11 => copy(g),
        11..19 => expire(g),
        19..27 => time_left(g),
        27 => cmd("PERSIST").arg(g.key()).done(),
        28..30 => cmd("KEYS").arg(pattern(g)).done(),
        30 => cmd("RANDOMKEY").done(),
        31 => cmd("DBSIZE").done(),
        32 => flush(g),
        33..36 => object(g),
        36 => cmd("DUMP").arg(g.key()).done(),
        40..42 => cmd("MOVE").arg(g.key()).arg(database(g)).done(),
        42 => cmd("SWAPDB").arg(database(g)).arg(database(g)).done(),
        37 => {
            cmd("SCAN").words(g.pick(&["0", "0 COUNT 5", "abc", "0 COUNT 0", "0 LIMIT 1"])).done()
        }
        _ => restore(g),
    }
}

pub(super) fn scan_options(g: &mut Gen) -> Args {
    let mut options = Args::new();
    if g.one_in(2) {
        options.extend([g.cased("MATCH").into_bytes(), pattern(g)]);
    }
    if g.one_in(2) {
        options.extend([g.cased("COUNT").into_bytes(), (1 + g.below(30)).to_string().into_bytes()]);
    }
    if g.one_in(3) {
        let kind = g.pick(&["string", "STRING", "list", "hash", "zset", "stream", "nonsense"]);
        options.extend([g.cased("TYPE").into_bytes(), kind.into()]);
    }
    options
}

fn pattern(g: &mut Gen) -> Vec<u8> {
    let patterns = [
        "*", "?", "key*", "*1", "[a-c]", "[^a]", "{t}*", "\\*", "[b-a]", "k?y:*", "", "[", "a\\",
        "*[",
    ];
    g.pick(&patterns).as_bytes().to_vec()
}

fn copy(g: &mut Gen) -> Args {
    let command = cmd("COPY").arg(g.key()).arg(g.key());
    let options = match g.below(6) {
        0 => "DB 0",
        1 => "DB 0 REPLACE",
        2 => g.pick(&["DB 1", "DB 2 REPLACE", "DB 16"]),
        3 => "DB abc",
        4 => "",
        _ => "REPLACE",
    };
    command.words(options).done()
}

fn database(g: &mut Gen) -> &'static str {
    g.pick(&["0", "1", "2", "2", "9", "16", "-1", "abc", "99999999999"])
}

fn expire(g: &mut Gen) -> Args {
    let (name, time) = match g.below(6) {
        0 | 1 => ("EXPIRE", g.seconds()),
        2 => ("PEXPIRE", g.millis()),
        3 => ("EXPIREAT", g.unix_seconds()),
        4 => ("PEXPIREAT", g.unix_millis()),
        _ => ("EXPIREAT", "1".into()),
    };
    let name = g.cased(name);
    cmd(&name).arg(g.key()).arg(time).args(g.options(&["NX", "XX", "GT", "LT"])).done()
}

fn time_left(g: &mut Gen) -> Args {
    let name = g.pick(&["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]);
    cmd(name).arg(g.key()).done()
}

fn flush(g: &mut Gen) -> Args {
    let name = g.pick(&["FLUSHALL", "FLUSHDB"]);
    let how = g.pick(&["", "ASYNC", "SYNC", "async", "NOW", "SYNC ASYNC"]);
    cmd(name).words(how).done()
}

fn object(g: &mut Gen) -> Args {
    let sub = g.pick(&["ENCODING", "ENCODING", "REFCOUNT", "IDLETIME", "FREQ", "HELP", "NOSUCH"]);
    let command = cmd("OBJECT").arg(g.cased(sub));
    if sub == "HELP" { command.done() } else { command.arg(g.key()).done() }
}

/// Payloads of Redis 7 for an integer, a string and a compressed string; then a wrong checksum, an
/// unknown version, and bytes that are no payload.
const PAYLOADS: [&[u8]; 7] = [
    b"\x00\xc0\x0a\x0a\x00\x6e\x9f\x57\x45\x0e\xae\x63\xbb",
    b"\x00\x03abc\x0a\x00\xd9\xac\x30\x3d\x41\x72\xa2\xe2",
    b"\x00\xc3\x09\x40\x64\x01aa\xe0\x57\x00\x01aa\x0a\x00\xe8\xa3\xb5\x07\xb0\x6d\xf2\x71",
    b"\x00\x03abd\x0a\x00\xd9\xac\x30\x3d\x41\x72\xa2\xe2",
    b"\x00\x03abc\xff\xff\xd9\xac\x30\x3d\x41\x72\xa2\xe2",
    b"\x00\x03abc",
    b"",
];

fn restore(g: &mut Gen) -> Args {
    let ttl = if g.one_in(2) { "0".into() } else { g.millis() };
    let payload = g.pick(&PAYLOADS);
    let command = cmd("RESTORE").arg(g.key()).arg(ttl).arg(payload);
    let options = match g.below(8) {
        0 => "REPLACE ABSTTL",
        1 => "ABSTTL",
        2 => "IDLETIME 100 REPLACE",
        3 => "FREQ 10 REPLACE",
        4 => "FREQ 256",
        5 => "NOSUCH",
        _ => "REPLACE",
    };
    command.words(options).done()
}
