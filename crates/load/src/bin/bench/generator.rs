//! The cost of the load generator itself, beside redis-benchmark, against the same redis-server.
//!
//! A generator that costs more than the server measures itself. Both run on the load's core, send
//! the same number of GETs over as many connections, and are charged for their own CPU time.
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use load::process::CpuClock;
use load::{Load, Until};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::measure::{self, CONNECTIONS};
use crate::node::Case;
use crate::servers::{Kind, Server, Tools};

const KEYS: u64 = 1_000_000;

#[derive(Serialize, Deserialize)]
pub(crate) struct GeneratorResults {
    pub(crate) rows: Vec<GeneratorRow>,
}

/// CPU time of the generators, in microseconds per request.
#[derive(Serialize, Deserialize)]
pub(crate) struct GeneratorRow {
    pub(crate) pipeline: usize,
    pub(crate) ours: f64,
    pub(crate) redis_benchmark: f64,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<GeneratorResults> {
    let server = tools.start(Kind::Redis, &measure::alone())?;
    let case = |pipeline| Case { set: false, pipeline, value_bytes: 64, zipf: false, keys: KEYS };
    measure::fill(&server, case(64).plan(&server, 0))?;
    let scale = if options.quick { 5 } else { 1 };
    let mut rows = Vec::new();
    for (pipeline, requests) in [(1, 200_000), (16, 2_000_000), (64, 3_000_000)] {
        let requests = requests / scale;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            ours.push(micros_each(our_cpu(&server, case(pipeline), requests)?, requests));
            theirs.push(micros_each(benchmark_cpu(&server, pipeline, requests)?, requests));
        }
        let row = GeneratorRow {
            pipeline,
            ours: measure::median(ours),
            redis_benchmark: measure::median(theirs),
        };
        println!(
            "P{pipeline:<3} our generator {:.3} us a request, redis-benchmark {:.3} us",
            row.ours, row.redis_benchmark
        );
        rows.push(row);
    }
    Ok(GeneratorResults { rows })
}

fn micros_each(cpu: Duration, requests: u64) -> f64 {
    cpu.as_secs_f64() * 1e6 / requests as f64
}

fn our_cpu(server: &Server, case: Case, requests: u64) -> io::Result<Duration> {
    let mut load = Load::connect(case.plan(server, 1))?;
    let clock = CpuClock::of(std::process::id())?;
    let before = clock.spent()?;
    measure::sound(server, &load.run(Until::Requests(requests))?)?;
    Ok(clock.spent()? - before)
}

/// Returns the CPU time of redis-benchmark, known once it has been waited for. It inherits our core.
fn benchmark_cpu(server: &Server, pipeline: usize, requests: u64) -> io::Result<Duration> {
    let before = children_cpu()?;
    let status = Command::new("redis-benchmark")
        .args(["-t", "get", "-q", "-p", &server.address.port().to_string()])
        .args(["-r", &KEYS.to_string(), "-n", &requests.to_string()])
        .args(["-P", &pipeline.to_string(), "-c", &CONNECTIONS.to_string()])
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("redis-benchmark: {status}")));
    }
    Ok(children_cpu()? - before)
}

fn children_cpu() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let (user, system) = (usage.user_time(), usage.system_time());
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    Ok(Duration::from_micros((micros(user) + micros(system)) as u64))
}
