//! CPU per operation beside an earlier build of ours, in one run: our node alone, and as one of
//! three whose slots have a backup each. Prints ratios; nothing is kept.
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use load::keys::ServedSlots;
use load::{KeySpace, Popularity, slots};
use resp::ReplyParser;

use super::members::{Members, PRIMARIES};
use crate::Options;
use crate::measure::{self, Figures, LOAD_CORE};
use crate::node::Case;
use crate::servers::{Kind, Placement, Server, Tools, free_address};

const KEYS: u64 = 1_000_000;
const RUN: Duration = Duration::from_millis(600);

/// A server, and the keys that it serves.
struct Side<'a> {
    name: &'static str,
    server: &'a Server,
    popularity: Popularity,
}

impl Side<'_> {
    fn measure(&self, case: Case, round: usize) -> io::Result<Figures> {
        let mut plan = case.plan(self.server, round as u64);
        plan.requests.keys = KeySpace { keys: KEYS, popularity: self.popularity };
        measure::measure(self.server, plan, RUN)
    }
}

pub(crate) fn run(tools: &Tools, before: &PathBuf, options: &Options) -> io::Result<()> {
    let earlier = Tools::prepare(&[Kind::Ours], Some(before))?;
    let (before, now) = (start_alone(&earlier)?, start_alone(tools)?);
    let three = start_three(tools)?;
    let served = Popularity::Served(served_by(&three.servers[0])?);
    let side = |name, server, popularity| Side { name, server, popularity };
    let sides = [
        side("before", &before, Popularity::Uniform),
        side("now", &now, Popularity::Uniform),
        side("of three", &three.servers[0], served),
    ];
    println!("CPU per operation, and its share of the earlier build's ({} rounds)", options.rounds);
    let cases =
        [1, 16, 64].into_iter().flat_map(|pipeline| [case(false, pipeline), case(true, pipeline)]);
    let mut chosen = cases.filter(|case| case.has(&options.only));
    chosen.try_for_each(|case| compare(case, &sides, options.rounds))
}

fn case(set: bool, pipeline: usize) -> Case {
    Case { set, pipeline, value_bytes: 64, zipf: false, keys: KEYS }
}

fn compare(case: Case, sides: &[Side<'_>], rounds: usize) -> io::Result<()> {
    let mut seen: Vec<Vec<Figures>> = vec![Vec::new(); sides.len()];
    for round in 0..rounds {
        for turn in 0..sides.len() {
            let place = (round + turn) % sides.len();
            seen[place].push(sides[place].measure(case, round)?);
        }
    }
    print!("{:<24}", case.to_string());
    for (side, figures) in sides.iter().zip(&seen) {
        let micros = Figures::median(figures).cpu_micros_per_op;
        print!("  {} {micros:6.3} us ({:.2})", side.name, measure::share(figures, &seen[0]));
    }
    println!();
    Ok(())
}

fn start_alone(tools: &Tools) -> io::Result<Server> {
    let server = tools.start(Kind::Ours, &measure::alone())?;
    measure::fill(&server, case(true, 16).plan(&server, 0))?;
    Ok(server)
}

/// Starts three nodes, the first on the core for servers, its peers beside the load, and fills them through the
/// any-port.
fn start_three(tools: &Tools) -> io::Result<Members> {
    let any_port = free_address()?;
    let flags = ["--any-port".to_owned(), any_port.port().to_string()];
    let first = tools.start_with(Kind::Ours, &measure::alone(), &flags)?;
    let beside = Placement { cores: vec![LOAD_CORE], io_threads: 1 };
    let join = ["--join".to_owned(), first.address.to_string()];
    let mut members = Members { kind: Kind::Ours, servers: vec![first] };
    for _ in 1..PRIMARIES {
        members.servers.push(tools.start_with(Kind::Ours, &beside, &join)?);
    }
    members.wait_until_even(PRIMARIES)?;
    let mut plan = case(true, 16).plan(&members.servers[0], 0);
    plan.address = any_port;
    measure::fill(&members.servers[0], plan)?;
    Ok(members)
}

fn served_by(server: &Server) -> io::Result<&'static ServedSlots> {
    let reply = server.client()?.call(&["CLUSTER", "SLOTS"])?;
    let parsed = ReplyParser::default().next(&reply, 0);
    let parsed = parsed.map_err(|error| io::Error::other(format!("{error:?}")))?;
    let (answer, _) = parsed.ok_or(io::ErrorKind::UnexpectedEof)?;
    let ranges = slots::ranges(&answer).into_iter().filter(|(.., at)| *at == server.address);
    Ok(ServedSlots::of(ranges.map(|(first, last, _)| first..=last)))
}
