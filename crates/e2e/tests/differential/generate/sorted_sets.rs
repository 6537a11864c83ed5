//! ZADD, ZRANGE and related commands.
use super::command::{Command, Gen, cmd};
use super::lists::TIMEOUTS;
use crate::lockstep::Args;

const MEMBERS: [&str; 10] = ["m1", "m2", "m3", "a", "b", "1", "-7", "007", "", "k\0\n"];
/// The key whose members all have the same score: only there ranges of texts are defined.
const TEXTS: &str = "{t}texts";

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(60) {
        0..10 => add(g),
        10 => many(g),
        11..14 => cmd("ZINCRBY").arg(key(g)).arg(g.float()).arg(member(g)).done(),
        14..17 => members(g, "ZREM"),
        17 => cmd("ZCARD").arg(key(g)).done(),
        18 => cmd("ZSCORE").arg(key(g)).arg(member(g)).done(),
        19 => members(g, "ZMSCORE"),
        20 => cmd("ZRANK").arg(key(g)).arg(member(g)).done(),
        21 => cmd("ZREVRANK").arg(key(g)).arg(member(g)).done(),
        22..24 => cmd("ZCOUNT").arg(key(g)).arg(limit(g)).arg(limit(g)).done(),
        24..32 => range(g),
        32..34 => cmd("ZREMRANGEBYRANK").arg(key(g)).num(g.position()).num(g.position()).done(),
        34 => cmd("ZREMRANGEBYSCORE").arg(key(g)).arg(limit(g)).arg(limit(g)).done(),
        35..38 => pop(g),
        38..48 => combine(g),
        48..51 => random(g),
        51..53 => scan(g),
        53..55 => store_range(g),
        _ => texts(g),
    }
}

/// Returns whether a command must not be spoiled: ZRANK takes more arguments than in Redis 7.0, and one key must keep equal
/// scores.
pub(super) fn is_to_stay(args: &Args) -> bool {
    let is_rank = args[0] == b"ZRANK" || args[0] == b"ZREVRANK";
    is_rank || args[0] == b"ZADD" && args[1] == TEXTS.as_bytes()
}

/// Returns a key that is often a sorted set.
fn key(g: &mut Gen) -> Vec<u8> {
    if g.one_in(8) { g.key() } else { g.pick(&["z1", "z2", "{t}z"]).as_bytes().to_vec() }
}

fn member(g: &mut Gen) -> Vec<u8> {
    g.pick(&MEMBERS).as_bytes().to_vec()
}

fn score(g: &mut Gen) -> String {
    match g.below(3) {
        0 => g.float(),
        1 => g.integer(),
        _ => g.below(10).to_string(),
    }
}

fn limit(g: &mut Gen) -> String {
    let score = match g.below(4) {
        0 => g.pick(&["-inf", "+inf", "inf", "", " 1", "abc"]).to_owned(),
        _ => score(g),
    };
    if g.one_in(3) { format!("({score}") } else { score }
}

fn add(g: &mut Gen) -> Args {
    let name = g.cased("ZADD");
    let options = g.options(&["NX", "XX", "GT", "LT", "CH", "INCR"]);
    let count = 1 + g.index(3);
    let key = key(g);
    let pairs: Args = (0..count).flat_map(|_| [score(g).into_bytes(), member(g)]).collect();
    cmd(&name).arg(key).args(options).args(pairs).done()
}

/// Sets about as many scores as a packed sorted set may have.
fn many(g: &mut Gen) -> Args {
    let count = 120 + g.below(15);
    let pairs = (0..count).flat_map(|number| [(number % 50).to_string(), format!("many:{number}")]);
    cmd("ZADD").arg(key(g)).args(pairs.map(String::into_bytes).collect::<Args>()).done()
}

fn members(g: &mut Gen, name: &str) -> Args {
    let count = 1 + g.index(3);
    let key = key(g);
    let members: Args = (0..count).map(|_| member(g)).collect();
    cmd(name).arg(key).args(members).done()
}

fn with_options(g: &mut Gen, command: Command) -> Args {
    let words = ["WITHSCORES", "REV", "LIMIT 0 3", "LIMIT 1 -1", "LIMIT -1 2", "BYSCORE"];
    let mut command = command;
    while g.one_in(2) {
        command = command.words(g.pick(&words));
    }
    command.done()
}

fn range(g: &mut Gen) -> Args {
    let command = match g.below(4) {
        0 => cmd("ZRANGE").arg(key(g)).num(g.position()).num(g.position()),
        1 => cmd("ZREVRANGE").arg(key(g)).num(g.position()).num(g.position()),
        2 => cmd("ZRANGEBYSCORE").arg(key(g)).arg(limit(g)).arg(limit(g)),
        _ => cmd("ZREVRANGEBYSCORE").arg(key(g)).arg(limit(g)).arg(limit(g)),
    };
    with_options(g, command)
}

fn store_range(g: &mut Gen) -> Args {
    let command = cmd("ZRANGESTORE").arg(key(g)).arg(key(g)).num(g.position()).num(g.position());
    with_options(g, command)
}

fn pop(g: &mut Gen) -> Args {
    let timeout = g.pick(&TIMEOUTS);
    match g.below(6) {
        4 if g.one_in(2) => cmd("BZPOPMIN").arg(key(g)).arg(key(g)).arg(timeout).done(),
        4 => cmd("BZPOPMAX").arg(key(g)).arg(timeout).done(),
        5 => {
            let command = cmd("BZMPOP").arg(timeout).num(g.below(3)).arg(key(g)).arg(key(g));
            let command = command.arg(g.cased("MAX"));
            if g.one_in(2) { command.words("COUNT 2").done() } else { command.done() }
        }
        0 => cmd("ZPOPMIN").arg(key(g)).done(),
        1 => cmd("ZPOPMAX").arg(key(g)).num(g.position()).done(),
        2 => cmd("ZPOPMIN").arg(key(g)).num(g.below(4)).done(),
        _ => {
            let command = cmd("ZMPOP").num(g.below(3)).arg(key(g)).arg(key(g));
            let command = command.arg(g.cased("MIN"));
            if g.one_in(2) { command.words("COUNT 2").done() } else { command.done() }
        }
    }
}

fn combine(g: &mut Gen) -> Args {
    let names =
        ["ZUNION", "ZINTER", "ZDIFF", "ZINTERCARD", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"];
    let name = g.pick(&names);
    let mut command = cmd(name);
    if name.ends_with("STORE") {
        command = command.arg(key(g));
    }
    let count = 1 + g.index(3);
    let given = if g.one_in(10) { count + 2 } else { count };
    command = command.num(given).args((0..count).map(|_| key(g)).collect::<Args>());
    while g.one_in(2) {
        command = match g.below(5) {
            0 => command
                .arg("WEIGHTS")
                .args((0..count).map(|_| g.float().into_bytes()).collect::<Args>()),
            1 => command.words("AGGREGATE MIN"),
            2 => command.words("AGGREGATE max"),
            3 => command.words("LIMIT 1"),
            _ => command.words("WITHSCORES"),
        };
    }
    command.done()
}

fn random(g: &mut Gen) -> Args {
    let command = cmd("ZRANDMEMBER").arg(key(g));
    match g.below(4) {
        0 => command.done(),
        1 => command.num(g.position()).done(),
        2 => command.num(g.position()).arg("WITHSCORES").done(),
        _ => command.arg(g.integer()).arg(g.cased("WITHSCORE")).done(),
    }
}

/// Returns a scan that ends with its first page: cursors are specific to the server.
fn scan(g: &mut Gen) -> Args {
    let command = cmd("ZSCAN").arg(key(g)).arg("0");
    let command = match g.below(3) {
        0 => command.words("MATCH m*"),
        1 => command.words("MATCH *1*"),
        _ => command,
    };
    command.words("COUNT 1000").done()
}

/// Returns a command on the key whose members all have the same score.
fn texts(g: &mut Gen) -> Args {
    let limit = |g: &mut Gen| match g.below(5) {
        0 => b"-".to_vec(),
        1 => b"+".to_vec(),
        2 => member(g),
        3 => [b"(".to_vec(), member(g)].concat(),
        _ => [b"[".to_vec(), member(g)].concat(),
    };
    let (min, max) = (limit(g), limit(g));
    match g.below(8) {
        0..3 => {
            let pairs: Args = (0..3).flat_map(|_| [b"0".to_vec(), member(g)]).collect();
            cmd("ZADD").arg(TEXTS).args(pairs).done()
        }
        3 => cmd("ZLEXCOUNT").arg(TEXTS).arg(min).arg(max).done(),
        4 => cmd("ZRANGEBYLEX").arg(TEXTS).arg(min).arg(max).words("LIMIT 1 3").done(),
        5 => cmd("ZREVRANGEBYLEX").arg(TEXTS).arg(min).arg(max).done(),
        6 => cmd("ZRANGE").arg(TEXTS).arg(min).arg(max).words("BYLEX REV").done(),
        _ => cmd("ZREMRANGEBYLEX").arg(TEXTS).arg(min).arg(max).done(),
    }
}
