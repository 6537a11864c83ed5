//! HSET, HGET and related commands.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

const FIELDS: [&str; 9] = ["f1", "f2", "f3", "1", "-7", "007", "", "k\0\n", "a-longer-field"];

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(40) {
        0..8 => pairs(g, "HSET"),
        8 => pairs(g, "HMSET"),
        9..11 => cmd("HSETNX").arg(key(g)).arg(field(g)).arg(g.value()).done(),
        11..14 => cmd("HGET").arg(key(g)).arg(field(g)).done(),
        14..16 => fields(g, "HMGET"),
        16..19 => cmd("HGETALL").arg(key(g)).done(),
        19 => cmd("HKEYS").arg(key(g)).done(),
        20 => cmd("HVALS").arg(key(g)).done(),
        21 => cmd("HLEN").arg(key(g)).done(),
        22 => cmd("HSTRLEN").arg(key(g)).arg(field(g)).done(),
        23 => cmd("HEXISTS").arg(key(g)).arg(field(g)).done(),
        24..28 => fields(g, "HDEL"),
        28..32 => cmd("HINCRBY").arg(key(g)).arg(field(g)).arg(g.integer()).done(),
        32..35 => cmd("HINCRBYFLOAT").arg(key(g)).arg(field(g)).arg(g.float()).done(),
        35..37 => random(g),
        37 => many(g),
        _ => scan(g),
    }
}

/// Returns a key that is often a hash.
fn key(g: &mut Gen) -> Vec<u8> {
    if g.one_in(6) { g.key() } else { g.pick(&["h1", "h2"]).as_bytes().to_vec() }
}

fn field(g: &mut Gen) -> Vec<u8> {
    g.pick(&FIELDS).as_bytes().to_vec()
}

fn pairs(g: &mut Gen, name: &str) -> Args {
    let name = g.cased(name);
    let count = 1 + g.index(3);
    let key = key(g);
    let pairs: Args = (0..count).flat_map(|_| [field(g), g.value()]).collect();
    cmd(&name).arg(key).args(pairs).done()
}

fn fields(g: &mut Gen, name: &str) -> Args {
    let count = 1 + g.index(3);
    let key = key(g);
    let fields: Args = (0..count).map(|_| field(g)).collect();
    cmd(name).arg(key).args(fields).done()
}

/// Sets about as many fields as a packed hash may have.
fn many(g: &mut Gen) -> Args {
    let count = 500 + g.below(30);
    let pairs = (0..count).flat_map(|number| [format!("many:{number}"), number.to_string()]);
    cmd("HSET").arg(key(g)).args(pairs.map(String::into_bytes).collect::<Args>()).done()
}

fn random(g: &mut Gen) -> Args {
    let command = cmd("HRANDFIELD").arg(key(g));
    match g.below(4) {
        0 => command.done(),
        1 => command.num(g.position()).done(),
        2 => command.num(g.position()).arg("WITHVALUES").done(),
        _ => command.arg(g.integer()).arg(g.cased("WITHVALUE")).done(),
    }
}

/// Returns a scan that ends with its first page: cursors are specific to the server.
fn scan(g: &mut Gen) -> Args {
    let command = cmd("HSCAN").arg(key(g)).arg("0");
    let command = match g.below(3) {
        0 => command.words("MATCH f*"),
        1 => command.words("MATCH *1*"),
        _ => command,
    };
    command.words("COUNT 1000").done()
}
