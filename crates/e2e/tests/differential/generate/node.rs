//! Commands that query the server about itself, or change its settings.
use super::command::{Gen, cmd};
use crate::lockstep::Args;

pub(super) fn command(g: &mut Gen) -> Args {
    match g.below(10) {
        0..3 => cmd("CONFIG").words(g.pick(&CONFIG)).done(),
        3 => events(g),
        4..6 => cmd("COMMAND").words(g.pick(&COMMAND)).done(),
        6 => cmd("DEBUG").words(g.pick(&DEBUG)).done(),
        7 => {
            cmd("MEMORY USAGE").arg(g.key()).words(g.pick(&["", "SAMPLES 5", "SAMPLES abc"])).done()
        }
        8 => cmd(g.pick(&ABOUT)).done(),
        _ => events(g),
    }
}

fn events(g: &mut Gen) -> Args {
    let classes =
        ["KEA", "KEA", "KEAm", "KEg$n", "Kg$", "E$g", "KExe", "", "Kd", "nonsense", "AKE"];
    cmd("CONFIG SET notify-keyspace-events").arg(g.pick(&classes)).done()
}

const CONFIG: [&str; 24] = [
    "GET maxmemory-policy",
    "GET notify-keyspace-events",
    "GET maxmemory maxmemory-policy",
    "GET slowlog-max-len",
    "GET appendonly",
    "GET save",
    "GET no-such-setting",
    "GET maxmemory-pol*",
    "GET",
    "SET maxmemory-policy allkeys-lfu",
    "SET maxmemory-policy allkeys-lru",
    "SET maxmemory-policy noeviction",
    "SET maxmemory-policy nonsense",
    "SET slowlog-max-len 10",
    "SET slowlog-max-len abc",
    "SET no-such-setting 1",
    "SET maxmemory-policy volatile-ttl slowlog-max-len 64",
    "SET maxmemory-policy volatile-lru maxmemory-policy noeviction",
    "SET maxmemory-policy noeviction no-such-setting 1",
    "SET maxmemory",
    "RESETSTAT",
    "REWRITE",
    "HELP",
    "NOSUCH",
];

const COMMAND: [&str; 22] = [
    "COUNT",
    "LIST",
    "LIST FILTERBY PATTERN get*",
    "LIST FILTERBY NOSUCH x",
    "INFO get",
    "INFO nosuch",
    "DOCS get",
    "DOCS nosuch",
    "GETKEYS SET a b",
    "GETKEYS MSET a 1 b 2",
    "GETKEYS MSET a",
    "GETKEYS BITOP AND d a b",
    "GETKEYS GET",
    "GETKEYS NOSUCH a",
    "GETKEYS PING",
    "GETKEYS COPY a b REPLACE",
    "GETKEYSANDFLAGS SET a b",
    "GETKEYSANDFLAGS SET a b GET",
    "GETKEYSANDFLAGS RENAME a b",
    "GETKEYSANDFLAGS DEL a b c",
    "HELP",
    "NOSUCH",
];

const DEBUG: [&str; 21] = [
    "SLEEP 0",
    "SLEEP",
    "SET-ACTIVE-EXPIRE 1",
    "OBJECT a",
    "OBJECT no-such-key",
    "DIGEST",
    "DIGEST-VALUE a b",
    "PROTOCOL string",
    "PROTOCOL integer",
    "PROTOCOL double",
    "PROTOCOL null",
    "PROTOCOL array",
    "PROTOCOL set",
    "PROTOCOL map",
    "PROTOCOL bignum",
    "PROTOCOL verbatim",
    "PROTOCOL true",
    "PROTOCOL false",
    "PROTOCOL nonsense",
    "HELP",
    "NOSUCH",
];

const ABOUT: [&str; 21] = [
    "INFO",
    "INFO server",
    "INFO everything",
    "INFO nonsense",
    "INFO memory clients",
    "TIME",
    "LOLWUT",
    "MEMORY STATS",
    "MEMORY DOCTOR",
    "MEMORY NOSUCH",
    "SLOWLOG GET",
    "SLOWLOG GET -1",
    "SLOWLOG GET -2",
    "SLOWLOG GET abc",
    "SLOWLOG LEN",
    "SLOWLOG RESET",
    "LATENCY LATEST",
    "LATENCY HISTORY event",
    "LATENCY RESET",
    "LATENCY DOCTOR",
    "LATENCY NOSUCH",
];
