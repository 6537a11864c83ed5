//! Commands on the state of a connection: transactions, channels, names, protocol.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

const CHANNELS: [&str; 5] = ["news", "chat", "{t}1", "key:1", ""];
const PATTERNS: [&str; 5] = ["*", "n?ws", "__key*__:*", "__keyspace@?__:a", "[a-z]*"];

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(47) {
        0..6 => cmd("MULTI").done(),
        6..14 => cmd("EXEC").done(),
        14 => cmd("DISCARD").done(),
        15..18 => cmd("WATCH").args(g.some_keys(2)).done(),
        18 => cmd("UNWATCH").done(),
        19 => cmd("PING").done(),
        20 => cmd("PING").arg(g.value()).done(),
        21 => cmd("ECHO").arg(g.value()).done(),
        22..24 => cmd("SELECT").arg(g.pick(&["16", "-1", "abc", "00", "99999999999"])).done(),
        43..47 => cmd("SELECT").arg(g.pick(&["0", "0", "1", "2", "9"])).done(),
        24..31 => client(g),
        31 => cmd("AUTH").args(g.some_keys(2)).done(),
        32 => cmd("ROLE").done(),
        33..36 => publishing(g),
        36..40 => pubsub(g),
        40 => cmd("WAIT").words(g.pick(&["0 0", "0 1", "abc 0", "0 -1", "0 abc", "-1 0"])).done(),
        41 => {
            cmd("HELLO").words(g.pick(&["1", "4", "abc", "2 AUTH", "2 SETNAME", "3 NOSUCH"])).done()
        }
        _ => cmd("RESET").done(),
    }
}

fn client(g: &mut Gen) -> Args {
    let lines = [
        "GETNAME",
        "GETNAME",
        "SETNAME worker-1",
        "SETNAME other",
        "ID",
        "INFO",
        "LIST",
        "LIST TYPE normal",
        "LIST TYPE nonsense",
        "LIST ID 999999",
        "LIST ID abc",
        "LIST NOSUCH",
        "NO-EVICT ON",
        "NO-EVICT off",
        "NO-EVICT maybe",
        "UNBLOCK 999999",
        "UNBLOCK abc",
        "UNBLOCK 999999 ERROR",
        "UNBLOCK 999999 NOSUCH",
        "KILL 1.2.3.4:5",
        "KILL ID 999999",
        "KILL ID abc",
        "KILL TYPE nonsense",
        "KILL NOSUCH 1",
        "KILL ADDR 1.2.3.4:5",
        "KILL LADDR 1.2.3.4:5",
        "KILL SKIPME maybe",
        "KILL USER nobody",
        "PAUSE abc",
        "PAUSE -1",
        "PAUSE 0 NOSUCH",
        "PAUSE 1 WRITE",
        "UNPAUSE",
        "REPLY nonsense",
        "NOSUCH",
        "HELP",
    ];
    let command = cmd("CLIENT").words(g.pick(&lines));
    if g.one_in(20) { command.arg("with space").done() } else { command.done() }
}

pub(super) fn publishing(g: &mut Gen) -> Args {
    let name = g.pick(&["PUBLISH", "PUBLISH", "SPUBLISH"]);
    cmd(name).arg(g.pick(&CHANNELS)).arg(g.value()).done()
}

fn pubsub(g: &mut Gen) -> Args {
    match g.below(8) {
        0 => cmd("PUBSUB CHANNELS").done(),
        1 => cmd("PUBSUB CHANNELS").arg(g.pick(&PATTERNS)).done(),
        2 => cmd("PUBSUB NUMSUB").args(channels(g)).done(),
        3 => cmd("PUBSUB NUMPAT").done(),
        4 => cmd("PUBSUB SHARDCHANNELS").done(),
        5 => cmd("PUBSUB SHARDNUMSUB").args(channels(g)).done(),
        6 => cmd("PUBSUB NOSUCH").done(),
        _ => cmd("PUBSUB HELP").done(),
    }
}

fn channels(g: &mut Gen) -> Args {
    (0..g.below(3)).map(|_| g.pick(&CHANNELS).as_bytes().to_vec()).collect()
}

fn patterns(g: &mut Gen) -> Args {
    (0..g.below(3)).map(|_| g.pick(&PATTERNS).as_bytes().to_vec()).collect()
}

/// Returns a command for the listener. It runs no other commands, but tries to.
pub(super) fn listening(g: &mut Gen) -> Args {
    match g.below(16) {
        0..4 => cmd("SUBSCRIBE").args(channels(g)).done(),
        4..8 => cmd("PSUBSCRIBE").args(patterns(g)).done(),
        8..10 => cmd("SSUBSCRIBE").args(channels(g)).done(),
        10 => cmd("UNSUBSCRIBE").args(channels(g)).done(),
        11 => cmd("PUNSUBSCRIBE").args(patterns(g)).done(),
        12 => cmd("SUNSUBSCRIBE").args(channels(g)).done(),
        13 => cmd("PING").done(),
        14 => cmd("GET").arg(g.key()).done(),
        _ => cmd("CLIENT GETNAME").done(),
    }
}

/// Returns commands whose answers are suppressed. They first leave any transaction, in which the
/// mark at the end would be answered with "QUEUED".
pub(super) fn unanswered(g: &mut Gen) -> Vec<Args> {
    let set = cmd("SET").arg(g.key()).arg(g.value()).done();
    let get = cmd("GET").arg(g.key()).done();
    let discard = cmd("DISCARD").done();
    let reply = |word: &str| cmd("CLIENT REPLY").arg(word).done();
    match g.below(3) {
        0 => vec![discard, reply("SKIP"), set, get],
        1 => vec![discard, reply("OFF"), set, get, reply("ON")],
        _ => vec![discard, set, get, reply("ON")],
    }
}
