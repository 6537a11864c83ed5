//! Chaos tests: nodes of a cluster of real processes are killed, paused and cut off at random while clients use it.
//! Code that knows nothing of clusters compares what the clients see with what was promised (`history.rs`).
//!
//! `cargo xtask chaos` runs it for minutes (`bin/chaos.rs`), `tests/chaos.rs` for seconds. Start at `run`.
pub mod anomalies; // Classes of broken promises.
pub mod history; //   The history of one key.
pub mod book; //      All keys, and the anomalies that were found.
pub mod holds; //     Times during which a lock was held.
pub mod calm; //      The time without a fault in progress.
pub mod silences; //  Requests without a reply.
pub mod outages; //   Times during which a bucket could not be written to.
pub mod causes; //    The fault or large request behind each outage.
pub mod town; //      The nodes that clients may use.
pub mod courier; //   A client that knows the fate of every command.
pub mod clients; //   Writers, readers, walkers, lock holders.
pub mod load; //      All clients, each on its own thread.
pub mod lies; //      False entries that must be detected.
pub mod relay; //     Slow, lossy and closed links.
pub mod ground; //    Namespaces or loopback: starts nodes and cuts them off.
pub mod field; //     The cluster, and the check that it is whole.
pub mod faults; //    Every fault that can hit it.
pub mod report; //    The results.
pub mod figures; //   Measurements of recovery times.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::Rng;
use anomalies::Class;
use book::Owner;
use causes::Rank;
use courier::Courier;
use faults::{Bounds, Fault};
use field::{Field, Mix};
use ground::Ground;
use load::{Desk, Load, Sizes};
use report::{Report, Struck};

/// Maximum pause between two faults.
const PAUSE_MAX_MILLIS: u64 = 2_000;
/// Interval at which silent connections are checked at the end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub lasts: Duration,
    /// Number of nodes at the start; up to two more may join later.
    pub nodes: usize,
    pub ground: Ground,
    /// Maximum time for which a node is stopped or cut off.
    pub fault_lasts_max: Duration,
    /// The cluster's `lease` in seconds.
    pub lease_seconds: u64,
    pub sizes: Sizes,
    /// Anomalies to fake, to verify that they are detected.
    pub lies: Vec<Class>,
    /// On if faults are printed as they are injected.
    pub echo: Echo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Echo {
    Off,
    On,
}

/// Runs until the time is over and the cluster is whole again, then reads everything once more. An
/// error means that the cluster did not become whole, or that the run could not be set up.
pub fn run(options: &Options) -> io::Result<Report> {
    // The takeover by the survivor of two gives up the guarantees that are checked here; it has
    // tests of its own.
    let lease = format!("{}s", options.lease_seconds);
    let settings = [("two-node-takeover", "no"), ("lease", lease.as_str())];
    let rng = Rng::named(options.seed, "nodes");
    let mut field = Field::of(options.ground, Mix::Mixed, options.nodes, &settings, rng)?;
    let desk = Desk::new(field.town.clone());
    let begun = Instant::now();
    let load = Load::start_all(&desk, options.seed, options.sizes);
    let faults = strike_all(&mut field, &desk, options, begun);
    load.end();
    let faults = faults.map_err(|error| {
        println!("anomalies found so far: {}", anomalies::summary(&desk.book.anomalies()));
        let dir = field.dir().display();
        io::Error::other(format!("{error}\nseed {}; the nodes' logs are in {dir}", options.seed))
    })?;
    for class in &options.lies {
        lies::tell(*class, &desk);
    }
    read_all(&desk, &mut Rng::named(options.seed, "end"));
    settle(&desk);
    let report = report(options, begun, &desk, &field, faults);
    if report.is_clean() || !options.lies.is_empty() {
        field.clear_away();
    } else {
        println!("the nodes' logs are in {}", field.dir().display());
    }
    Ok(report)
}

fn strike_all(
    field: &mut Field,
    desk: &Desk,
    options: &Options,
    begun: Instant,
) -> io::Result<Vec<Struck>> {
    let bounds = Bounds {
        nodes_min: options.nodes,
        nodes_max: options.nodes + 2,
        lasts_max: options.fault_lasts_max,
    };
    let mut rng = Rng::named(options.seed, "faults");
    let mut struck = Vec::new();
    while begun.elapsed() < options.lasts {
        thread::sleep(Duration::from_millis(rng.below(PAUSE_MAX_MILLIS)));
        // A slow backup may have been dropped meanwhile: a kill would then take the only copy.
        field.wait_until_whole()?;
        let fault = Fault::draw(field, bounds, &mut Rng::new(rng.draw()));
        let (at, what) = (begun.elapsed(), fault.describe(field));
        if options.echo == Echo::On {
            println!("{:>7.1} s  {what}", at.as_secs_f64());
        }
        let entry = desk.journal.begin(fault.kind.to_string(), Rank::Fault);
        desk.silences.calm().end(fault.kind.disturbs_network());
        let ended = fault.strike(field);
        desk.silences.calm().begin();
        ended?;
        let whole_after = field.wait_until_whole()?;
        desk.journal.end(entry);
        struck.push(Struck { at, what, whole_after });
    }
    Ok(struck)
}

/// Reads everything that was ever written once more.
pub(crate) fn read_all(desk: &Desk, rng: &mut Rng) {
    let mut courier = Courier::new(desk, Rng::new(rng.draw()));
    desk.book.settle(|key| {
        let name = key.name();
        if key.owner == Owner::Large {
            return clients::read_large(&mut courier, &name);
        }
        let reply = courier.ask(&name, &[b"GET", name.as_bytes()])?;
        Some(clients::number(&reply))
    });
}

/// Waits until no connection is silent any more, and records hung requests and locks with two holders.
fn settle(desk: &Desk) {
    while desk.silences.look() > 0 {
        thread::sleep(LOOK_EVERY);
    }
    for details in desk.silences.hung() {
        desk.book.note(Class::Hung, details);
    }
    for details in desk.holds.overlaps() {
        desk.book.note(Class::TwoHolders, details);
    }
}

fn report(
    options: &Options,
    begun: Instant,
    desk: &Desk,
    field: &Field,
    faults: Vec<Struck>,
) -> Report {
    let book = &desk.book;
    let mut outages = desk.outages.all();
    outages.sort_by_key(|outage| std::cmp::Reverse(outage.lasted()));
    Report {
        seed: options.seed,
        nodes: options.nodes,
        begun,
        lasted: begun.elapsed(),
        writes: book.writes.load(Ordering::Relaxed),
        reads: book.reads.load(Ordering::Relaxed),
        unknown: book.unknown.load(Ordering::Relaxed),
        walks: book.walks.load(Ordering::Relaxed),
        locks: desk.holds.count(),
        transactions: book.transactions.load(Ordering::Relaxed),
        large_values: book.large_values.load(Ordering::Relaxed),
        errors: book.errors().into_iter().collect(),
        anomalies: book.anomalies(),
        begun_again: field.begun_again(),
        faults,
        causes: desk.journal.table(&outages),
        outages,
    }
}
