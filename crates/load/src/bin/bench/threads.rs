//! Two I/O threads beside one, on two cores shared with the load; and both threads on one hot key.
//!
//! A second thread must not make operations more expensive: contended locks or cache lines that
//! bounce between cores would show here as CPU per operation.
use std::fmt;
use std::io;
use std::time::Duration;

use load::process::Core;
use load::request::Requests;
use load::run::run_together;
use load::{KeySpace, Load, Loop, Operation, Plan, Popularity, Until};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::measure::{self, CONNECTIONS, Figures, LOAD_CORE, SERVER_CORE};
use crate::servers::{Kind, Placement, Server, Tools};

const CORES: [Core; 2] = [SERVER_CORE, LOAD_CORE];
const RUN: Duration = Duration::from_millis(600);
const RUN_QUICK: Duration = Duration::from_millis(200);
const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 64;
/// Target for two threads' CPU per operation over one thread's.
pub(crate) const TARGET: f64 = 1.15;

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ThreadsCase {
    pub(crate) set: bool,
    pub(crate) pipeline: usize,
    /// True if all requests are for one key, instead of a million keys evenly.
    pub(crate) hot_key: bool,
}

impl fmt::Display for ThreadsCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = if self.set { "SET" } else { "GET" };
        let keys = if self.hot_key { "one hot key" } else { "1M keys" };
        write!(f, "{operation} P{}, {keys}", self.pipeline)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ThreadsResults {
    pub(crate) rounds: usize,
    pub(crate) rows: Vec<ThreadsRow>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ThreadsRow {
    pub(crate) case: ThreadsCase,
    pub(crate) one: Figures,
    pub(crate) two: Figures,
    /// Two threads' CPU per operation over one thread's.
    pub(crate) ratio: f64,
}

pub(crate) fn run(tools: &Tools, options: &Options) -> io::Result<ThreadsResults> {
    let (rounds, time) = if options.quick { (3, RUN_QUICK) } else { (options.rounds, RUN) };
    let one = start(tools, 1)?;
    let two = start(tools, 2)?;
    let mut rows = Vec::new();
    for hot_key in [false, true] {
        for pipeline in [1, 16, 64] {
            for set in [false, true] {
                let row =
                    run_case(ThreadsCase { set, pipeline, hot_key }, [&one, &two], rounds, time)?;
                print(&row);
                rows.push(row);
            }
        }
    }
    Ok(ThreadsResults { rounds, rows })
}

fn start(tools: &Tools, io_threads: usize) -> io::Result<Server> {
    let placement = Placement { cores: CORES.to_vec(), io_threads };
    let server = tools.start(Kind::Ours, &placement)?;
    let case = ThreadsCase { set: true, pipeline: 64, hot_key: false };
    measure::fill(&server, plan(case, &server, 0))?;
    Ok(server)
}

fn run_case(
    case: ThreadsCase,
    [one, two]: [&Server; 2],
    rounds: usize,
    time: Duration,
) -> io::Result<ThreadsRow> {
    let (mut of_one, mut of_two) = (Vec::new(), Vec::new());
    for round in 0..rounds as u64 {
        of_one.push(run_once(case, one, round, time)?);
        of_two.push(run_once(case, two, round, time)?);
    }
    let ratio = measure::share(&of_two, &of_one);
    Ok(ThreadsRow { case, one: Figures::median(&of_one), two: Figures::median(&of_two), ratio })
}

fn run_once(case: ThreadsCase, server: &Server, seed: u64, time: Duration) -> io::Result<Figures> {
    let mut loads = Vec::new();
    for (index, core) in CORES.into_iter().enumerate() {
        loads.push((Load::connect(plan(case, server, seed * 2 + index as u64))?, core));
    }
    measure::measured(server, || run_together(loads, Until::Elapsed(time)))
}

fn plan(case: ThreadsCase, server: &Server, seed: u64) -> Plan {
    let keys = if case.hot_key { 1 } else { KEYS };
    let operation = if case.set { Operation::Set } else { Operation::Get };
    Plan {
        address: server.address,
        connections: CONNECTIONS / CORES.len(),
        requests: Requests {
            operation,
            keys: KeySpace { keys, popularity: Popularity::Uniform },
            value_bytes: VALUE_BYTES,
        },
        style: Loop::Closed { pipeline: case.pipeline },
        seed,
    }
}

fn print(row: &ThreadsRow) {
    let (one, two) = (row.one, row.two);
    println!(
        "{:<24}  one thread {:6.3} us {:5.0} k/s  two {:6.3} us {:5.0} k/s  {:.2} of one, target {TARGET}",
        row.case.to_string(),
        one.cpu_micros_per_op,
        one.ops_per_second / 1e3,
        two.cpu_micros_per_op,
        two.ops_per_second / 1e3,
        row.ratio
    );
}
