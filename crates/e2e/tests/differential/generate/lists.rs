//! LPUSH, LPOP and related commands.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

const ITEMS: [&str; 8] = ["a", "b", "c", "1", "-7", "007", "", "k\0\n"];

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(48) {
        0..5 => items(g, "RPUSH"),
        5..9 => items(g, "LPUSH"),
        9 => items(g, "LPUSHX"),
        10 => items(g, "RPUSHX"),
        11..14 => pop(g, "LPOP"),
        14..17 => pop(g, "RPOP"),
        17 => cmd("LLEN").arg(key(g)).done(),
        18..23 => cmd("LRANGE").arg(key(g)).num(g.position()).num(g.position()).done(),
        23 => cmd("LRANGE").arg(key(g)).words("0 -1").done(),
        24 => cmd("LINDEX").arg(key(g)).num(g.position()).done(),
        25 => cmd("LINDEX").arg(key(g)).arg(g.integer()).done(),
        26..28 => cmd("LSET").arg(key(g)).num(g.position() % 4).arg(g.value()).done(),
        28..30 => insert(g),
        30..32 => remove(g),
        32 => cmd("LTRIM").arg(key(g)).num(g.position()).num(g.position()).done(),
        33..36 => position(g),
        36..38 => moving(g),
        38 => cmd("RPOPLPUSH").arg(key(g)).arg(key(g)).done(),
        39..43 => pop_from_first(g),
        43..47 => waiting(g),
        _ => many(g),
    }
}

/// Returns a key that is often a list.
fn key(g: &mut Gen) -> Vec<u8> {
    if g.one_in(6) { g.key() } else { g.pick(&["l1", "l2"]).as_bytes().to_vec() }
}

fn item(g: &mut Gen) -> Vec<u8> {
    if g.one_in(4) { g.value() } else { g.pick(&ITEMS).as_bytes().to_vec() }
}

fn items(g: &mut Gen, name: &str) -> Args {
    let name = g.cased(name);
    let count = 1 + g.index(4);
    let key = key(g);
    let items: Args = (0..count).map(|_| item(g)).collect();
    cmd(&name).arg(key).args(items).done()
}

fn pop(g: &mut Gen, name: &str) -> Args {
    let command = cmd(name).arg(key(g));
    match g.below(6) {
        0..3 => command.done(),
        3 => command.arg(g.integer()).done(),
        _ => command.num(g.position() % 5).done(),
    }
}

fn insert(g: &mut Gen) -> Args {
    let place = g.pick(&["BEFORE", "AFTER", "after", "NEAR"]);
    cmd("LINSERT").arg(key(g)).arg(place).arg(item(g)).arg(item(g)).done()
}

fn remove(g: &mut Gen) -> Args {
    let command = cmd("LREM").arg(key(g));
    let command =
        if g.one_in(8) { command.arg(g.integer()) } else { command.num(g.position() % 4) };
    command.arg(item(g)).done()
}

fn position(g: &mut Gen) -> Args {
    let mut command = cmd("LPOS").arg(key(g)).arg(item(g));
    if g.one_in(2) {
        command = command.arg(g.cased("RANK")).num(g.position() % 4);
    }
    if g.one_in(2) {
        command = command.arg(g.cased("COUNT")).num(g.position() % 4);
    }
    if g.one_in(3) {
        command = command.arg(g.cased("MAXLEN")).num(g.position());
    }
    if g.one_in(10) {
        command = command.arg("RANK").arg(g.integer());
    }
    command.done()
}

fn moving(g: &mut Gen) -> Args {
    let (from, to) = (end(g), end(g));
    cmd("LMOVE").arg(key(g)).arg(key(g)).arg(from).arg(to).done()
}

fn end(g: &mut Gen) -> String {
    if g.one_in(12) {
        return "UP".into();
    }
    let word = g.pick(&["LEFT", "RIGHT"]);
    g.cased(word)
}

/// Timeouts of commands that wait: short, or wrong. Redis 7.0 takes one that is too long for a negative one; here it is out
/// of range, as in later versions.
pub(super) const TIMEOUTS: [&str; 9] =
    ["0.001", "0.01", ".002", "1e-3", "0x1p-9", "0.004", "-1", "x", ""];

/// Returns a command that waits for a list, if there is none.
fn waiting(g: &mut Gen) -> Args {
    let timeout = g.pick(&TIMEOUTS);
    match g.below(6) {
        0 => cmd("BLPOP").arg(key(g)).arg(key(g)).arg(timeout).done(),
        1 => cmd("BRPOP").arg(key(g)).arg(timeout).done(),
        2 => cmd("BRPOPLPUSH").arg(key(g)).arg(key(g)).arg(timeout).done(),
        3 => cmd("BLMOVE").arg(key(g)).arg(key(g)).arg(end(g)).arg(end(g)).arg(timeout).done(),
        _ => {
            let mut args = pop_from_first(g);
            args[0] = b"BLMPOP".to_vec();
            args.insert(1, timeout.as_bytes().to_vec());
            args
        }
    }
}

fn pop_from_first(g: &mut Gen) -> Args {
    let count = 1 + g.index(3);
    let keys: Args = (0..count).map(|_| key(g)).collect();
    let told = if g.one_in(8) { g.integer() } else { count.to_string() };
    let command = cmd("LMPOP").arg(told).args(keys).arg(end(g));
    match g.below(4) {
        0 | 1 => command.done(),
        2 => command.arg(g.cased("COUNT")).num(g.position() % 6).done(),
        _ => command.arg("COUNT").arg(g.integer()).done(),
    }
}

/// Pushes about as many items as a packed list may have, or trims the list to a few.
fn many(g: &mut Gen) -> Args {
    if g.one_in(3) {
        return cmd("LTRIM").arg(key(g)).words("0 3").done();
    }
    let count = 700 + g.below(200);
    let items = (0..count).map(|number| format!("many:{number}").into_bytes());
    cmd("RPUSH").arg(key(g)).args(items.collect::<Args>()).done()
}
