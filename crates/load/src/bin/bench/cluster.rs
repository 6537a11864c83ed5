//! Clusters: three primaries with a backup each, ours beside Redis and Valkey. Measures the cost of
//! a write and a read, and the effect on clients when a node is added.
pub(crate) mod against; // Our node alone and of three, beside an earlier build.
mod foreign; // redis-py and ioredis as clients.
mod grow; //    A fourth node joins three that are full and busy.
mod hot; //     A bucket that is written to without pause gets its copy.
mod members; // A cluster of servers: starts it, adds to it, checks its balance.
mod paced; //   A client of clusters that sends at a fixed rate and follows MOVED.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;

use load::process::CpuClock;
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::measure::median;
use crate::servers::{Kind, Tools};
use foreign::Library;
use grow::{Clients, Growth};
use hot::Hot;
use members::Members;

const PIPELINES: [usize; 2] = [1, 16];
const OPERATIONS: [&str; 2] = ["SET", "GET"];
/// Number of keys of each slot: redis-benchmark makes this many for every slot of the node it connects to.
const KEYS: u64 = 60;
const VALUE_BYTES: usize = 64;
const GROWTH_ROUNDS: usize = 3;

#[derive(Serialize, Deserialize)]
pub(crate) struct ClusterResults {
    pub(crate) rounds: usize,
    pub(crate) throughput: Vec<Throughput>,
    pub(crate) growth: BTreeMap<Kind, Growth>,
    pub(crate) hot: Option<Hot>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Throughput {
    pub(crate) case: String,
    pub(crate) servers: BTreeMap<Kind, Cost>,
}

/// The throughput and CPU cost of all processes of a cluster together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) ops_per_second: f64,
    pub(crate) cpu_micros_per_op: f64,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<ClusterResults> {
    let rounds = if options.quick { 1 } else { options.rounds };
    let wants = |part: &str| options.only.iter().all(|word| word == part);
    let throughput =
        if wants("throughput") { measure_throughput(tools, options, rounds)? } else { Vec::new() };
    let growth =
        if wants("growth") { measure_growth(tools, options, rounds)? } else { BTreeMap::new() };
    if options.only.iter().any(|word| word == "libraries") {
        measure_libraries(tools, options, rounds)?;
    }
    let hot = wants("hot").then(|| hot::measure(tools)).transpose()?;
    hot.iter().for_each(|hot| println!("{}", hot.line()));
    Ok(ClusterResults { rounds, throughput, growth, hot })
}

/// Measures several rounds, and returns the middle one by the increase in the clients' waits.
fn measure_growth(
    tools: &Tools,
    options: &Options,
    rounds: usize,
) -> io::Result<BTreeMap<Kind, Growth>> {
    let mut seen: BTreeMap<Kind, Vec<Growth>> = BTreeMap::new();
    for _ in 0..rounds.min(GROWTH_ROUNDS) {
        for kind in tools.kinds() {
            let grown = grow::measure(tools, kind, Clients::Generator, options.quick)?;
            println!("{}", grown.line(kind));
            seen.entry(kind).or_default().push(grown);
        }
    }
    let middle = |mut all: Vec<Growth>| {
        all.sort_by(|one, other| one.p99_ratio().total_cmp(&other.p99_ratio()));
        let middle = all.len() / 2;
        all.into_iter().nth(middle)
    };
    Ok(seen.into_iter().filter_map(|(kind, all)| Some((kind, middle(all)?))).collect())
}

/// Prints the growth as common client libraries feel it. Only on request: they have to be installed.
fn measure_libraries(tools: &Tools, options: &Options, rounds: usize) -> io::Result<()> {
    for _ in 0..rounds.min(GROWTH_ROUNDS) {
        for library in [Library::RedisPy, Library::Ioredis] {
            for kind in tools.kinds() {
                let grown = grow::measure(tools, kind, Clients::Library(library), options.quick)?;
                println!("{}: {}", library.name(), grown.line(kind));
            }
        }
    }
    Ok(())
}

fn measure_throughput(
    tools: &Tools,
    options: &Options,
    rounds: usize,
) -> io::Result<Vec<Throughput>> {
    let requests = if options.quick { 100_000 } else { 400_000 };
    let mut clusters = Vec::new();
    for kind in tools.kinds() {
        clusters.push(Members::start(tools, kind)?);
    }
    let mut table = Vec::new();
    for pipeline in PIPELINES {
        for operation in OPERATIONS {
            let mut seen: BTreeMap<Kind, Vec<Cost>> = BTreeMap::new();
            for _ in 0..rounds {
                for cluster in &clusters {
                    let cost = benchmark(cluster, operation, pipeline, requests)?;
                    seen.entry(cluster.kind).or_default().push(cost);
                }
            }
            let servers = seen.into_iter().map(|(kind, costs)| (kind, middle(&costs))).collect();
            let row = Throughput { case: format!("{operation} P{pipeline}"), servers };
            println!("{}", row.line());
            table.push(row);
        }
    }
    Ok(table)
}

impl ClusterResults {
    /// Returns this part's section of docs/benchmarks.md.
    pub(crate) fn section(&self) -> String {
        let mut text = format!(
            "Three primaries with a backup each: three processes of ours, six of the others, all on core 0. Ours \
             acknowledges a write when the backup has it, the others before. `redis-benchmark --cluster` with 50 \
             connections and values of {VALUE_BYTES} bytes. Thousands of operations a second, and the CPU of all \
             processes together in microseconds per operation; median of {} rounds.\n\n\
             | case | OpenCluster | Valkey | Redis | speed, of Valkey | CPU, of Valkey |\n|---|---|---|---|---|---|\n",
            self.rounds
        );
        self.throughput.iter().for_each(|row| text += &row.row());
        text += "\nA fourth node joins three that hold a million keys of 100 bytes, while 5,000 requests a second, half \
                 of them writes, go on. Ours balances by itself; of the others it is the time of `redis-cli --cluster \
                 rebalance`. The median of several rounds. Latency for clients, p50 / p99 / p99.9 / longest, in milliseconds:\n\n\
                 | | even after | before | during | after |\n|---|---|---|---|---|\n";
        for (kind, growth) in &self.growth {
            text += &growth.row(*kind);
        }
        if let Some(ours) = self.growth.get(&Kind::Ours) {
            text += &ours.targets();
        }
        if let Some(hot) = &self.hot {
            text += &format!("\nA second node joins one: {}.\n", hot.line());
        }
        text
    }
}

impl Throughput {
    fn row(&self) -> String {
        let of = |kind: Kind| self.servers.get(&kind);
        let cell = |kind: Kind| {
            of(kind).map_or("-".to_owned(), |cost| {
                let Cost { ops_per_second, cpu_micros_per_op } = cost;
                format!("{:.0}, {cpu_micros_per_op:.2}", ops_per_second / 1e3)
            })
        };
        let share = |figure: fn(&Cost) -> f64| {
            let both = of(Kind::Ours).zip(of(Kind::Valkey));
            both.map_or("-".to_owned(), |(ours, theirs)| {
                format!("{:.2}", figure(ours) / figure(theirs))
            })
        };
        let [ours, valkey, redis] = [Kind::Ours, Kind::Valkey, Kind::Redis].map(cell);
        let (speed, cpu) = (share(|it| it.ops_per_second), share(|it| it.cpu_micros_per_op));
        format!("| {} | {ours} | {valkey} | {redis} | {speed} | {cpu} |\n", self.case)
    }

    fn line(&self) -> String {
        let shown = self.servers.iter().map(|(kind, cost)| {
            let (ops, cpu) = (cost.ops_per_second, cost.cpu_micros_per_op);
            format!("{} {ops:>9.0}/s {cpu:>6.2} us CPU", kind.name())
        });
        format!("{:<8} {}", self.case, shown.collect::<Vec<_>>().join("   "))
    }
}

fn middle(costs: &[Cost]) -> Cost {
    let of = |figure: fn(&Cost) -> f64| median(costs.iter().map(figure).collect());
    Cost {
        ops_per_second: of(|cost| cost.ops_per_second),
        cpu_micros_per_op: of(|cost| cost.cpu_micros_per_op),
    }
}

/// Runs redis-benchmark, the same client for all: it supports clusters.
fn benchmark(
    cluster: &Members,
    operation: &str,
    pipeline: usize,
    requests: u64,
) -> io::Result<Cost> {
    let clocks: Vec<CpuClock> = cluster
        .servers
        .iter()
        .map(|server| CpuClock::of(server.pid()))
        .collect::<Result<_, _>>()?;
    let spent = || clocks.iter().map(CpuClock::spent).sum::<io::Result<std::time::Duration>>();
    let before = spent()?;
    let port = cluster.servers[0].address.port();
    let output = Command::new("redis-benchmark")
        .args(["--cluster", "-h", "127.0.0.1", "-p", &port.to_string(), "-q", "-c", "50"])
        .args(["-t", &operation.to_lowercase(), "-P", &pipeline.to_string()])
        .args(["-n", &requests.to_string(), "-r", &KEYS.to_string()])
        .args(["-d", &VALUE_BYTES.to_string()])
        .output()?;
    let cpu = spent()? - before;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ops_per_second = rate(&text).ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        io::Error::other(format!("redis-benchmark printed no rate: {text}{errors}"))
    })?;
    Ok(Cost { ops_per_second, cpu_micros_per_op: cpu.as_secs_f64() * 1e6 / requests as f64 })
}

/// Returns the last rate that redis-benchmark printed.
fn rate(text: &str) -> Option<f64> {
    let line = text.rsplit(['\r', '\n']).find(|line| line.contains("requests per second"))?;
    line.split(':').nth(1)?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_last_that_was_told() {
        let text = "SET: rps=1.0\rSET: 10.00 requests per second, p50=1\nSET: 95328.88 requests per second, p50=0.271 msec\n";
        assert_eq!(rate(text), Some(95_328.88));
        assert_eq!(rate("nothing"), None);
    }
}
