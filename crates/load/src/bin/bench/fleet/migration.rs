//! A migration under load: its effect on users, and the speed at which keys move, beside
//! `redis-cli --scan` piped into MIGRATE one key at a time.
//!
//! Servers and the movers of keys, in either way, run on any core, as on machines of their own;
//! only the proxy and the load keep theirs.
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use load::process::{self, Core};
use load::request::Requests;
use load::{KeySpace, Load, Loop, Operation, Plan, Popularity, Tally, Until};
use serde::{Deserialize, Serialize};

use super::fill;
use super::world::{Process, list};
use crate::Options;
use crate::measure::{CONNECTIONS, LOAD_CORE, SERVER_CORE};
use crate::servers::{Kind, Tools, find_program};

const ANY_CORE: [Core; 2] = [SERVER_CORE, LOAD_CORE];
const PER_SECOND: u64 = 5_000;
const GET_PERCENT: u8 = 80;
const VALUE_BYTES: usize = 64;
const BEFORE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(500);
/// Number of keys of the whole fleet; a quarter of them moves.
const KEYS: u64 = 400_000;
const KEYS_QUICK: u64 = 40_000;
/// Number of keys moved one by one, to measure the rate of that way.
const SINGLY: u64 = 5_000;
/// Target for p99 during a migration, as a multiple of p99 before.
pub(crate) const P99_TARGET: f64 = 2.0;
/// Target for the rate, as a multiple of that of MIGRATE one key at a time.
pub(crate) const RATE_TARGET: f64 = 5.0;

#[derive(Serialize, Deserialize)]
pub(crate) struct MigrationResults {
    pub(crate) keys: u64,
    pub(crate) moved: u64,
    pub(crate) seconds: f64,
    pub(crate) per_second: f64,
    /// Rate of the move back, without a load: comparable with one by one, which has none either.
    pub(crate) unloaded_per_second: f64,
    pub(crate) singly_per_second: f64,
    pub(crate) load_per_second: u64,
    pub(crate) p50_before_micros: f64,
    pub(crate) p99_before_micros: f64,
    pub(crate) p50_during_micros: f64,
    pub(crate) p99_during_micros: f64,
    pub(crate) slowest_during_micros: f64,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<MigrationResults> {
    let keys = if options.quick { KEYS_QUICK } else { KEYS };
    let singly_per_second = one_by_one(tools)?;
    let start = |_| Process::redis(tools, &ANY_CORE);
    let servers: Vec<Process> = (0..4).map(start).collect::<io::Result<_>>()?;
    let proxy = Process::proxy(tools, &servers, "4.4.4.0")?;
    fill(&proxy, plan(&proxy, keys))?;
    let mut load = Load::connect(plan(&proxy, keys))?;
    load.run(Until::Elapsed(STEP))?;
    let before = load.run(Until::Elapsed(BEFORE))?;
    let (during, time) = migrate_under(tools, &servers, &mut load)?;
    proxy.sound(&before)?;
    proxy.sound(&during)?;
    let moved = size(&servers[3])?;
    let begun = Instant::now();
    let status = migrator(tools, &servers, "4.4.4.0")?.wait()?;
    let unloaded_per_second = moved as f64 / begun.elapsed().as_secs_f64();
    if !status.success() || size(&servers[3])? > 0 {
        let text = format!("the migration back ended with {status} or left keys behind");
        return Err(io::Error::other(text));
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let results = MigrationResults {
        keys,
        moved,
        seconds: time.as_secs_f64(),
        per_second: moved as f64 / time.as_secs_f64(),
        unloaded_per_second,
        singly_per_second,
        load_per_second: PER_SECOND,
        p50_before_micros: micros(before.percentile(50.0)),
        p99_before_micros: micros(before.percentile(99.0)),
        p50_during_micros: micros(during.percentile(50.0)),
        p99_during_micros: micros(during.percentile(99.0)),
        slowest_during_micros: micros(during.slowest()),
    };
    print(&results);
    Ok(results)
}

fn plan(proxy: &Process, keys: u64) -> Plan {
    Plan {
        address: proxy.address,
        connections: CONNECTIONS,
        requests: Requests {
            operation: Operation::Mix { get_percent: GET_PERCENT },
            keys: KeySpace { keys, popularity: Popularity::Uniform },
            value_bytes: VALUE_BYTES,
        },
        style: Loop::Open { per_second: PER_SECOND },
        seed: 1,
    }
}

/// Gives the fourth server its share while the load goes on. Returns the load's tally, and the time
/// from the command to its end.
fn migrate_under(
    tools: &Tools,
    servers: &[Process],
    load: &mut Load,
) -> io::Result<(Tally, Duration)> {
    let begun = Instant::now();
    let mut migrator = migrator(tools, servers, "4.4.4.4")?;
    let mut during = Tally::default();
    let mut took = None;
    while took.is_none() {
        during.merge(load.run(Until::Elapsed(STEP))?);
        if let Some(status) = migrator.try_wait()? {
            if !status.success() {
                return Err(io::Error::other(format!("fleet migrate ended with {status}")));
            }
            took = Some(begun.elapsed());
        }
    }
    Ok((during, took.expect("the loop ends with it")))
}

fn migrator(tools: &Tools, servers: &[Process], map: &str) -> io::Result<Child> {
    let mut command = Command::new(tools.binary(Kind::Ours)?);
    command.args(["fleet", "migrate", "--servers", &list(servers), "--map", map, "--json"]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    process::spawn_pinned(&mut command, &ANY_CORE)
}

/// Moves keys with `redis-cli --scan` and a MIGRATE for each; returns keys per second.
fn one_by_one(tools: &Tools) -> io::Result<f64> {
    let (from, to) = (Process::redis(tools, &ANY_CORE)?, Process::redis(tools, &ANY_CORE)?);
    fill(&from, plan(&from, SINGLY))?;
    let cli = find_program("redis-cli", "redis-tools")?.display().to_string();
    let (from_port, to_port) = (from.address.port(), to.address.port());
    let script = format!(
        "{cli} -p {from_port} --scan | sed 's/.*/MIGRATE 127.0.0.1 {to_port} & 0 5000/' | {cli} -p {from_port}"
    );
    let begun = Instant::now();
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdout(Stdio::null());
    let status = process::spawn_pinned(&mut command, &ANY_CORE)?.wait()?;
    let seconds = begun.elapsed().as_secs_f64();
    let moved = size(&to)?;
    if !status.success() || moved != SINGLY {
        return Err(io::Error::other(format!("MIGRATE moved {moved} of {SINGLY} keys: {status}")));
    }
    Ok(moved as f64 / seconds)
}

/// Returns the number of keys on a server, without the fleet's own.
fn size(server: &Process) -> io::Result<u64> {
    let integer = |reply: &[u8]| {
        let text = String::from_utf8_lossy(reply);
        text.trim().strip_prefix(':').and_then(|digits| digits.parse::<u64>().ok())
    };
    let own = ["servers", "current", "previous", "migration.status", "epoch"];
    let own = own.map(|name| format!("server.config.{name}"));
    let mut exists = vec!["EXISTS"];
    exists.extend(own.iter().map(String::as_str));
    let wrong = || io::Error::other("the answer to DBSIZE or EXISTS is not a number");
    let keys = integer(&server.call(&["DBSIZE"])?).ok_or_else(wrong)?;
    Ok(keys - integer(&server.call(&exists)?).ok_or_else(wrong)?)
}

fn print(results: &MigrationResults) {
    println!(
        "migration of {} of {} keys: {:.2} s, {:.0} keys/s; without load {:.0} keys/s ({:.1} times one by one, target {RATE_TARGET}); p99 {:.2} ms before, {:.2} ms during ({:.2} times, target {P99_TARGET})",
        results.moved,
        results.keys,
        results.seconds,
        results.per_second,
        results.unloaded_per_second,
        results.unloaded_per_second / results.singly_per_second,
        results.p99_before_micros / 1e3,
        results.p99_during_micros / 1e3,
        results.p99_during_micros / results.p99_before_micros
    );
}
