//! SET, GET and related commands.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(40) {
        0..10 => set(g),
        10..14 => cmd("GET").arg(g.key()).done(),
        14 => cmd("GETSET").arg(g.key()).arg(g.value()).done(),
        15 => cmd("GETDEL").arg(g.key()).done(),
        16..18 => getex(g),
        18 => cmd("SETNX").arg(g.key()).arg(g.value()).done(),
        19 => cmd("SETEX").arg(g.key()).arg(g.seconds()).arg(g.value()).done(),
        20 => cmd("PSETEX").arg(g.key()).arg(g.millis()).arg(g.value()).done(),
        21 => cmd("MGET").args(g.some_keys(4)).done(),
        22 => pairs(g, "MSET"),
        23 => pairs(g, "MSETNX"),
        24 => cmd("APPEND").arg(g.key()).arg(g.value()).done(),
        25 => cmd("STRLEN").arg(g.key()).done(),
        26 => cmd("GETRANGE").arg(g.key()).num(g.position()).num(g.position()).done(),
        27 => cmd("SUBSTR").arg(g.key()).num(g.position()).num(g.position()).done(),
        28..30 => setrange(g),
        30..35 => count(g),
        35..38 => cmd("INCRBYFLOAT").arg(g.key()).arg(g.float()).done(),
        _ => lcs(g),
    }
}

fn set(g: &mut Gen) -> Args {
    let name = g.cased("SET");
    let command = cmd(&name).arg(g.key()).arg(g.value());
    let mut options = g.options(&["NX", "XX", "GET", "KEEPTTL", "GET"]);
    if g.one_in(3) {
        options.extend(expiry(g));
    }
    command.args(options).done()
}

fn getex(g: &mut Gen) -> Args {
    let command = cmd("GETEX").arg(g.key());
    let options = match g.below(6) {
        0 | 1 => g.options(&["PERSIST"]),
        2 => vec![b"EXAT".to_vec(), b"1".to_vec()],
        _ => expiry(g),
    };
    command.args(options).done()
}

/// Returns an option that sets a key's expiry, far in the future: see `Gen::seconds`.
fn expiry(g: &mut Gen) -> Args {
    let (word, time) = match g.below(4) {
        0 => ("EX", g.seconds()),
        1 => ("PX", g.millis()),
        2 => ("EXAT", g.unix_seconds()),
        _ => ("PXAT", g.unix_millis()),
    };
    vec![g.cased(word).into_bytes(), time.into_bytes()]
}

fn pairs(g: &mut Gen, name: &str) -> Args {
    let count = 1 + g.index(3);
    let pairs = (0..count).flat_map(|_| [g.key(), g.value()]);
    cmd(name).args(pairs.collect::<Args>()).done()
}

fn setrange(g: &mut Gen) -> Args {
    let offset = match g.below(8) {
        0 => "-1".into(),
        1 => "536870912".into(),
        2 => "536870911".into(),
        _ => g.below(200).to_string(),
    };
    // The last byte that fits would take half a gigabyte: only an empty value is written there.
    let value = if offset == "536870911" { Vec::new() } else { g.value() };
    cmd("SETRANGE").arg(g.key()).arg(offset).arg(value).done()
}

fn count(g: &mut Gen) -> Args {
    match g.below(6) {
        0 => cmd("INCR").arg(g.key()).done(),
        1 => cmd("DECR").arg(g.key()).done(),
        2 | 3 => cmd("INCRBY").arg(g.key()).arg(g.integer()).done(),
        _ => cmd("DECRBY").arg(g.key()).arg(g.integer()).done(),
    }
}

fn lcs(g: &mut Gen) -> Args {
    let command = cmd("LCS").arg(g.key()).arg(g.key());
    let mut options = g.options(&["LEN", "IDX", "WITHMATCHLEN", "IDX"]);
    if g.one_in(3) {
        options.extend([b"MINMATCHLEN".to_vec(), g.position().to_string().into_bytes()]);
    }
    command.args(options).done()
}
