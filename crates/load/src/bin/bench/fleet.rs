//! The fleet's proxy beside twemproxy and beside no proxy at all, in turn, round after round; then a migration under
//! load, and its speed beside MIGRATE one key at a time.
//!
//! The proxies have core 0 to themselves; the Redis servers behind them share core 1 with the load. So the bench
//! measures the proxy. Without a proxy, the load connects to one Redis server on core 0.
mod world; //     The processes: four Redis servers, our proxy, twemproxy.
mod migration; // Latency while keys move, and the speed of the move.

use std::fmt;
use std::io;
use std::time::Duration;

use load::process::CpuClock;
use load::request::Requests;
use load::{KeySpace, Load, Loop, Operation, Plan, Popularity, Until};
use serde::{Deserialize, Serialize};

use self::migration::MigrationResults;
pub(crate) use self::migration::{P99_TARGET, RATE_TARGET};
use self::world::{Process, World};
use crate::Options;
use crate::measure::{self, CONNECTIONS, Figures, median};
use crate::servers::Tools;

const RUN: Duration = Duration::from_secs(1);
const RUN_QUICK: Duration = Duration::from_millis(300);
const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 64;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FleetCase {
    pub(crate) set: bool,
    pub(crate) pipeline: usize,
}

impl FleetCase {
    const ALL: [FleetCase; 4] = [
        FleetCase { set: false, pipeline: 1 },
        FleetCase { set: true, pipeline: 1 },
        FleetCase { set: false, pipeline: 16 },
        FleetCase { set: true, pipeline: 16 },
    ];

    fn plan(self, process: &Process, seed: u64) -> Plan {
        let operation = if self.set { Operation::Set } else { Operation::Get };
        let keys = KeySpace { keys: KEYS, popularity: Popularity::Uniform };
        Plan {
            address: process.address,
            connections: CONNECTIONS,
            requests: Requests { operation, keys, value_bytes: VALUE_BYTES },
            style: Loop::Closed { pipeline: self.pipeline },
            seed,
        }
    }
}

impl fmt::Display for FleetCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} P{}", if self.set { "SET" } else { "GET" }, self.pipeline)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct FleetResults {
    pub(crate) rounds: usize,
    pub(crate) rows: Vec<FleetRow>,
    pub(crate) migration: MigrationResults,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct FleetRow {
    pub(crate) case: FleetCase,
    pub(crate) ours: Figures,
    pub(crate) twemproxy: Figures,
    pub(crate) direct: Figures,
    /// Our CPU per operation as a share of twemproxy's; the target is at most 1.
    pub(crate) cpu_share: f64,
    /// Our operations a second over twemproxy's; the target is at least 1.
    pub(crate) speed: f64,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<FleetResults> {
    let (rounds, time) = if options.quick { (3, RUN_QUICK) } else { (options.rounds, RUN) };
    let world = World::start(tools)?;
    let any = FleetCase { set: true, pipeline: 64 };
    for process in world.measured() {
        fill(process, any.plan(process, 0))?;
    }
    let mut rows = Vec::new();
    for case in FleetCase::ALL {
        let row = run_case(case, &world, rounds, time)?;
        print(&row);
        rows.push(row);
    }
    drop(world);
    let migration = migration::run(tools, options)?;
    Ok(FleetResults { rounds, rows, migration })
}

fn run_case(case: FleetCase, world: &World, rounds: usize, time: Duration) -> io::Result<FleetRow> {
    let mut seen: [Vec<Figures>; 3] = Default::default();
    for round in 0..rounds {
        // The first one changes each round, so that none always follows the same neighbour.
        for turn in 0..seen.len() {
            let which = (round + turn) % seen.len();
            let process = world.measured()[which];
            seen[which].push(measure_one(process, case.plan(process, round as u64), time)?);
        }
    }
    let [ours, twemproxy, direct] = &seen;
    let pairs = ours.iter().zip(twemproxy);
    let speed = median(pairs.map(|(o, t)| o.ops_per_second / t.ops_per_second).collect());
    Ok(FleetRow {
        case,
        cpu_share: measure::share(ours, twemproxy),
        speed,
        ours: Figures::median(ours),
        twemproxy: Figures::median(twemproxy),
        direct: Figures::median(direct),
    })
}

/// Connects, warms up, and measures one load and the CPU of the process it connects to.
fn measure_one(process: &Process, plan: Plan, time: Duration) -> io::Result<Figures> {
    let mut load = Load::connect(plan)?;
    load.run(Until::Elapsed(time / 10))?;
    let clock = CpuClock::of(process.pid())?;
    let before = clock.spent()?;
    let tally = load.run(Until::Elapsed(time))?;
    let cpu = clock.spent()? - before;
    process.sound(&tally)?;
    Ok(Figures::of(&tally, cpu))
}

/// SETs every key of the plan's key space once.
fn fill(process: &Process, plan: Plan) -> io::Result<()> {
    let keys = plan.requests.keys.keys;
    let tally = Load::connect(plan.filling())?.run(Until::Requests(keys))?;
    process.sound(&tally)
}

fn print(row: &FleetRow) {
    let text = |figures: &Figures| {
        let (kops, p99) = (figures.ops_per_second / 1e3, figures.p99_micros / 1e3);
        format!("{kops:4.0} k/s, p99 {p99:5.2} ms, {:5.2} us", figures.cpu_micros_per_op)
    };
    println!(
        "{:<8}  proxy {}  twemproxy {}  direct {}  speed {:.2}, CPU {:.2} of twemproxy's",
        row.case.to_string(),
        text(&row.ours),
        text(&row.twemproxy),
        text(&row.direct),
        row.speed,
        row.cpu_share
    );
}
