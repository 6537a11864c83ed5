//! SADD, SMEMBERS and related commands.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

const MEMBERS: [&str; 12] =
    ["m1", "m2", "m3", "1", "2", "-7", "70000", "007", "", "k\0\n", "a-longer-member", "3"];

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(40) {
        0..10 => members(g, "SADD"),
        10..13 => members(g, "SREM"),
        13 => cmd("SCARD").arg(key(g)).done(),
        14..16 => cmd("SISMEMBER").arg(key(g)).arg(member(g)).done(),
        16 => members(g, "SMISMEMBER"),
        17..21 => cmd("SMEMBERS").arg(key(g)).done(),
        21..24 => cmd("SMOVE").arg(key(g)).arg(key(g)).arg(member(g)).done(),
        24 => pop(g),
        25 => random(g),
        26..28 => keys(g, "SINTER"),
        28..30 => keys(g, "SUNION"),
        30..32 => keys(g, "SDIFF"),
        32 => store(g, "SINTERSTORE"),
        33 => store(g, "SUNIONSTORE"),
        34 => store(g, "SDIFFSTORE"),
        35..37 => card(g),
        37 => many(g),
        38 => cmd("OBJECT ENCODING").arg(key(g)).done(),
        _ => scan(g),
    }
}

/// Returns a key that is often a set.
fn key(g: &mut Gen) -> Vec<u8> {
    if g.one_in(6) { g.key() } else { g.pick(&["s1", "s2", "a"]).as_bytes().to_vec() }
}

fn member(g: &mut Gen) -> Vec<u8> {
    g.pick(&MEMBERS).as_bytes().to_vec()
}

fn members(g: &mut Gen, name: &str) -> Args {
    let name = g.cased(name);
    let count = 1 + g.index(4);
    let key = key(g);
    let members: Args = (0..count).map(|_| member(g)).collect();
    cmd(&name).arg(key).args(members).done()
}

fn keys(g: &mut Gen, name: &str) -> Args {
    let count = 1 + g.index(3);
    let keys: Args = (0..count).map(|_| key(g)).collect();
    cmd(name).args(keys).done()
}

fn store(g: &mut Gen, name: &str) -> Args {
    let target = key(g);
    let mut args = keys(g, name);
    args.insert(1, target);
    args
}

fn card(g: &mut Gen) -> Args {
    let mut args = keys(g, "SINTERCARD");
    args.insert(1, (args.len() - 1).to_string().into_bytes());
    let command = cmd("SINTERCARD").args(args.into_iter().skip(1));
    match g.below(4) {
        0 => command.arg(g.cased("LIMIT")).num(g.position()).done(),
        1 => command.arg("LIMIT").arg(g.integer()).done(),
        _ => command.done(),
    }
}

/// Adds about as many members as a set of numbers, or a packed set, may have.
fn many(g: &mut Gen) -> Args {
    let (prefix, count) = if g.one_in(2) { ("", 500) } else { ("many:", 120) };
    let count = count + g.below(30);
    let members = (0..count).map(|number| format!("{prefix}{number}").into_bytes());
    cmd("SADD").arg(key(g)).args(members.collect::<Args>()).done()
}

/// Pops all members or none: any others are random.
fn pop(g: &mut Gen) -> Args {
    let command = cmd("SPOP").arg(key(g));
    match g.below(4) {
        0 => command.arg("0").done(),
        1 => command.arg("abc").done(),
        2 => command.arg("-3").done(),
        _ => command.arg("100000").done(),
    }
}

/// Draws without a count, or with a small one: a large negative count never ends on Redis.
fn random(g: &mut Gen) -> Args {
    let command = cmd("SRANDMEMBER").arg(key(g));
    match g.below(3) {
        0 => command.done(),
        1 => command.num(g.position()).done(),
        _ => command.arg("-9223372036854775808").done(),
    }
}

/// Returns a scan that ends with its first page: cursors are specific to the server.
fn scan(g: &mut Gen) -> Args {
    let command = cmd("SSCAN").arg(key(g)).arg("0");
    let command = match g.below(3) {
        0 => command.words("MATCH m*"),
        1 => command.words("MATCH *1*"),
        _ => command,
    };
    command.words("COUNT 1000").done()
}
