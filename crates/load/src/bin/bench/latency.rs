//! The latency that users see at a moderate rate: an open loop, latency counted from when each request was due.
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use load::request::Requests;
use load::{KeySpace, Loop, Operation, Plan, Popularity};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::measure::{self, CONNECTIONS, Figures};
use crate::servers::{Kind, Server, Tools};

const PER_SECOND: u64 = 20_000;
const GET_PERCENT: u8 = 80;
const RUN: Duration = Duration::from_secs(2);
const RUN_QUICK: Duration = Duration::from_millis(500);
const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 64;

#[derive(Serialize, Deserialize)]
pub(crate) struct LatencyResults {
    pub(crate) per_second: u64,
    pub(crate) rounds: usize,
    pub(crate) servers: BTreeMap<Kind, Figures>,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<LatencyResults> {
    let (rounds, time) = if options.quick { (3, RUN_QUICK) } else { (options.rounds, RUN) };
    let mut running = Vec::new();
    for kind in tools.kinds() {
        let server = tools.start(kind, &measure::alone())?;
        measure::fill(&server, plan(&server, 0))?;
        running.push(server);
    }
    let mut seen: BTreeMap<Kind, Vec<Figures>> = BTreeMap::new();
    for round in 0..rounds {
        for server in &running {
            let figures = measure::measure(server, plan(server, round as u64), time)?;
            seen.entry(server.kind).or_default().push(figures);
        }
    }
    let servers: BTreeMap<Kind, Figures> =
        seen.into_iter().map(|(kind, rounds)| (kind, Figures::median(&rounds))).collect();
    print(&servers);
    Ok(LatencyResults { per_second: PER_SECOND, rounds, servers })
}

fn plan(server: &Server, seed: u64) -> Plan {
    Plan {
        address: server.address,
        connections: CONNECTIONS,
        requests: Requests {
            operation: Operation::Mix { get_percent: GET_PERCENT },
            keys: KeySpace { keys: KEYS, popularity: Popularity::Uniform },
            value_bytes: VALUE_BYTES,
        },
        style: Loop::Open { per_second: PER_SECOND },
        seed,
    }
}

fn print(servers: &BTreeMap<Kind, Figures>) {
    for (kind, figures) in servers {
        println!(
            "{:<12} {PER_SECOND}/s: p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us, slowest {:.0} us, CPU {:.2} us/op",
            kind.name(),
            figures.p50_micros,
            figures.p99_micros,
            figures.p999_micros,
            figures.slowest_micros,
            figures.cpu_micros_per_op
        );
    }
}
