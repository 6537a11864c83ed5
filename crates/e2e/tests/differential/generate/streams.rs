//! XADD, XREADGROUP and related commands.
//!
//! Redis 7.0 creates a consumer only when it gets something, later versions and our node when it asks. So that there is
//! no difference, the consumer is created by a command of its own before (`with_consumer`). Nodes of Redis and blocks of
//! ours end at different entries if these are long, so no trim with `~` removes anything.
use super::command::{Gen, cmd};
use crate::lockstep::{Args, Step};

const KEYS: [&str; 3] = ["x1", "x2", "{t}x"];
const GROUPS: [&str; 2] = ["g", "h"];
const CONSUMERS: [&str; 2] = ["c1", "c2"];

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(60) {
        0..14 => add(g),
        14..16 => remove(g),
        16..19 => trim(g),
        19 => cmd("XLEN").arg(key(g)).done(),
        20..25 => range(g),
        25 => set_id(g),
        26..29 => read(g),
        29..34 => group(g),
        34..44 => read_group(g),
        44..48 => acknowledge(g),
        48..51 => pending(g),
        51..54 => claim(g),
        54..56 => autoclaim(g),
        _ => info(g),
    }
}

/// Returns whether a command must not be spoiled: a consumer must not get another name, an id not the time, a trim not
/// another bound.
pub(super) fn is_to_stay(args: &Args) -> bool {
    let names = ["XREAD", "XREADGROUP", "XCLAIM", "XAUTOCLAIM", "XADD", "XGROUP", "XTRIM"];
    names.iter().any(|name| args[0].eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns a step, and before it the creation of the consumer that it names, if it does.
pub(super) fn with_consumer(step: Step) -> Vec<Step> {
    let Step::Call { who, args } = &step else { return vec![step] };
    let named = match args[0].to_ascii_uppercase().as_slice() {
        b"XREADGROUP" if args.len() > 5 => Some((args.len() - 2, 2, 3)),
        b"XCLAIM" | b"XAUTOCLAIM" if args.len() > 3 => Some((1, 2, 3)),
        _ => None,
    };
    let Some((key, group, consumer)) = named else { return vec![step] };
    let create = cmd("XGROUP CREATECONSUMER");
    let names = [key, group, consumer].map(|index| args[index].clone());
    vec![Step::Call { who: *who, args: create.args(names).done() }, step]
}

/// Returns a key that is often a stream.
fn key(g: &mut Gen) -> Vec<u8> {
    if g.one_in(8) { g.key() } else { g.pick(&KEYS).as_bytes().to_vec() }
}

fn group_name(g: &mut Gen) -> &'static str {
    if g.one_in(10) { "missing" } else { g.pick(&GROUPS) }
}

fn id(g: &mut Gen) -> String {
    match g.below(24) {
        0 => {
            g.pick(&["0-0", "0", "-1", "x", "", "1-", "1-2-3", "07", " 1", "+1", "1-*"]).to_owned()
        }
        1 => "18446744073709551615-18446744073709551615".to_owned(),
        2..8 => (1 + g.below(40)).to_string(),
        _ => format!("{}-{}", 1 + g.below(40), g.below(4)),
    }
}

fn add(g: &mut Gen) -> Args {
    let name = g.cased("XADD");
    let mut command = cmd(&name).arg(key(g));
    if g.one_in(5) {
        command = command.words(g.pick(&[
            "NOMKSTREAM",
            "MAXLEN 5",
            "MAXLEN = 3",
            "MAXLEN ~ 4000",
            "MINID 10",
            "MINID = 20-1",
            "MAXLEN ~ 2000 LIMIT 1",
            "MAXLEN 2 LIMIT 1",
            "LIMIT 3",
            "MAXLEN -1",
            "MAXLEN 1 MINID 1",
        ]));
    }
    // Ids of the clock would differ; a stream's last id rises until a key is removed.
    let id = match g.below(12) {
        0 => id(g),
        1 => format!("{}-*", 1 + g.below(40)),
        _ => format!("{}-{}", 1 + g.below(60), g.below(6)),
    };
    let pairs = 1 + g.index(3);
    let same = g.one_in(3);
    let mut command = command.arg(id);
    for number in 0..pairs {
        let field = if same { g.value() } else { format!("field{number}").into_bytes() };
        command = command.arg(field).arg(g.value());
    }
    if g.one_in(20) { command.arg("odd").done() } else { command.done() }
}

fn remove(g: &mut Gen) -> Args {
    let count = 1 + g.index(3);
    let key = key(g);
    cmd("XDEL").arg(key).args((0..count).map(|_| id(g).into_bytes()).collect::<Args>()).done()
}

fn trim(g: &mut Gen) -> Args {
    let key = key(g);
    let command = cmd("XTRIM").arg(key);
    let sign = g.pick(&["", "="]);
    let command = match g.below(4) {
        0 => command.words("MINID").words(sign).arg(id(g)),
        1 => command.words("MAXLEN ~").num(1_000 + g.below(12)),
        _ => command.words("MAXLEN").words(sign).num(g.below(12)),
    };
    if g.one_in(5) { command.words("LIMIT").num(g.below(5)).done() } else { command.done() }
}

fn edge(g: &mut Gen) -> String {
    match g.below(5) {
        0 => "-".to_owned(),
        1 => "+".to_owned(),
        2 => format!("({}", id(g)),
        _ => id(g),
    }
}

fn range(g: &mut Gen) -> Args {
    let name = g.pick(&["XRANGE", "XREVRANGE"]);
    let command = cmd(name).arg(key(g));
    let command = match (name, g.below(3)) {
        ("XRANGE", 0) => command.words("- +"),
        (_, 0) => command.words("+ -"),
        _ => command.arg(edge(g)).arg(edge(g)),
    };
    if g.one_in(3) { command.words("COUNT").num(g.position()).done() } else { command.done() }
}

fn set_id(g: &mut Gen) -> Args {
    // Redis 7.0 lets the last id be lower than that of a deleted entry.
    let last = format!("{}-{}", 41 + g.below(30), g.below(4));
    let command = cmd("XSETID").arg(key(g)).arg(last);
    match g.below(3) {
        0 => command.words("ENTRIESADDED").num(g.below(30)).words("MAXDELETEDID").arg(id(g)).done(),
        1 => command.words("ENTRIESADDED").num(g.position()).done(),
        _ => command.done(),
    }
}

fn read(g: &mut Gen) -> Args {
    let command = cmd(&g.cased("XREAD"));
    let command = if g.one_in(2) { command.words("COUNT").num(g.below(4)) } else { command };
    let count = 1 + g.index(2);
    let command = command.words("STREAMS").args((0..count).map(|_| key(g)).collect::<Args>());
    let ids = (0..count).map(|_| if g.one_in(6) { "$".into() } else { id(g).into_bytes() });
    command.args(ids.collect::<Args>()).done()
}

fn group(g: &mut Gen) -> Args {
    let (key, name) = (key(g), group_name(g));
    match g.below(12) {
        0..5 => {
            let from = if g.one_in(2) { "0".to_owned() } else { id(g) };
            let command = cmd("XGROUP CREATE").arg(key).arg(name).arg(from);
            let command = if g.one_in(3) { command } else { command.words("MKSTREAM") };
            if g.one_in(4) {
                command.words("ENTRIESREAD").num(g.below(8)).done()
            } else {
                command.done()
            }
        }
        5..8 => cmd("XGROUP CREATECONSUMER").arg(key).arg(name).arg(g.pick(&CONSUMERS)).done(),
        8 => cmd("XGROUP DELCONSUMER").arg(key).arg(name).arg(g.pick(&CONSUMERS)).done(),
        9 => cmd("XGROUP DESTROY").arg(key).arg(name).done(),
        10 => cmd("XGROUP SETID").arg(key).arg(name).arg("$").done(),
        _ => cmd("XGROUP SETID").arg(key).arg(name).arg(id(g)).words("ENTRIESREAD 3").done(),
    }
}

fn read_group(g: &mut Gen) -> Args {
    let name = g.cased("XREADGROUP");
    let group = group_name(g);
    let command = cmd(&name).words("GROUP").arg(group).arg(g.pick(&CONSUMERS));
    let command = if g.one_in(2) { command.words("COUNT").num(g.below(4)) } else { command };
    let command = if g.one_in(6) { command.words("NOACK") } else { command };
    let from = if g.one_in(3) { id(g) } else { ">".to_owned() };
    command.words("STREAMS").arg(key(g)).arg(from).done()
}

fn acknowledge(g: &mut Gen) -> Args {
    let (key, group) = (key(g), group_name(g));
    let count = 1 + g.index(4);
    let ids: Args = (0..count).map(|_| id(g).into_bytes()).collect();
    cmd("XACK").arg(key).arg(group).args(ids).done()
}

fn pending(g: &mut Gen) -> Args {
    let (key, group) = (key(g), group_name(g));
    let command = cmd("XPENDING").arg(key).arg(group);
    if g.one_in(3) {
        return command.done();
    }
    let command = if g.one_in(4) { command.words("IDLE 10000000") } else { command };
    let command = command.arg(edge(g)).arg(edge(g)).num(g.below(5));
    if g.one_in(3) { command.arg(g.pick(&CONSUMERS)).done() } else { command.done() }
}

fn claim(g: &mut Gen) -> Args {
    let (key, group) = (key(g), group_name(g));
    let idle = g.pick(&["0", "0", "100000000"]);
    let command = cmd("XCLAIM").arg(key).arg(group).arg(g.pick(&CONSUMERS)).arg(idle);
    let count = 1 + g.index(3);
    let mut command = command.args((0..count).map(|_| id(g).into_bytes()).collect::<Args>());
    while g.one_in(2) {
        command = command.words(g.pick(&[
            "FORCE",
            "JUSTID",
            "RETRYCOUNT 5",
            "IDLE 1000",
            "LASTID 3-3",
            "TIME 5",
            "NOPE",
        ]));
    }
    command.done()
}

fn autoclaim(g: &mut Gen) -> Args {
    let (key, group) = (key(g), group_name(g));
    let idle = g.pick(&["0", "0", "100000000"]);
    let command = cmd("XAUTOCLAIM").arg(key).arg(group).arg(g.pick(&CONSUMERS)).arg(idle);
    let command = command.arg(edge(g));
    let command = if g.one_in(2) { command.words("COUNT").num(g.below(4)) } else { command };
    if g.one_in(3) { command.words("JUSTID").done() } else { command.done() }
}

fn info(g: &mut Gen) -> Args {
    match g.below(6) {
        0..3 => cmd("XINFO STREAM").arg(key(g)).done(),
        3 => cmd("XINFO CONSUMERS").arg(key(g)).arg(group_name(g)).done(),
        _ => cmd("XINFO GROUPS").arg(key(g)).done(),
    }
}
