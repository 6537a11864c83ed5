//! Chaos: a cluster of real processes loses nodes, links and time at random while clients write and read,
//! and what they see is held against what was promised (`history.rs`), by code that knows nothing of clusters.
//!
//! `cargo xtask chaos` runs it for minutes (`bin/chaos.rs`), `tests/chaos.rs` for seconds. Start at `run`.
pub mod history; // What may be read of one key.
pub mod book; //    All keys, and what was found broken.
pub mod outages; // How long each bucket could not be written to.
pub mod courier; // A client that knows what became of every command.
pub mod load; //    Writers and readers.
pub mod relay; //   Slow, lossy and closed links.
pub mod ground; //  Namespaces or loopback: nodes are started and cut off.
pub mod field; //   The cluster, and whether it is whole.
pub mod faults; //  What happens to it.
pub mod report; //  What was found.
pub mod figures; // How long it takes to recover, measured.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::Rng;
use book::Book;
use courier::Courier;
use faults::{Bounds, Fault};
use field::{Field, Mix};
use ground::Ground;
use load::{Desk, Load};
use outages::Outages;
use report::{Report, Struck};

/// The longest pause between two faults.
const PAUSE_MAX_MILLIS: u64 = 2_000;

/// What a run does.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub lasts: Duration,
    /// At first; later there may be two more.
    pub nodes: usize,
    pub ground: Ground,
    /// How long a node may be stopped or cut off.
    pub fault_lasts_max: Duration,
    /// The cluster's `lease`.
    pub lease: &'static str,
    /// What the book is told beyond the truth, to see that it is found out.
    pub lie: Option<Lie>,
    /// Whether faults are printed as they strike.
    pub echo: Echo,
}

/// Something untrue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// One more write is said to be acknowledged than was.
    OneMoreWrite,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Echo {
    Off,
    On,
}

/// Runs until the time is over and the cluster is whole again, then reads everything once more. An error
/// means that the cluster did not come to rest, or that the run could not be made.
pub fn run(options: &Options) -> io::Result<Report> {
    let mut rng = Rng::new(options.seed);
    // The survivor of two that takes over does so at the price of what is checked here; it has tests of
    // its own.
    let settings = [("two-node-takeover", "no"), ("lease", options.lease)];
    let mut field =
        Field::of(options.ground, Mix::Mixed, options.nodes, &settings, Rng::new(rng.draw()))?;
    let (book, outages) = (Arc::new(Book::default()), Arc::new(Outages::default()));
    let desk = Desk { town: field.town.clone(), book, outages };
    let begun = Instant::now();
    let load = Load::start(&desk, &mut rng);
    let faults = strike_all(&mut field, options, begun, &mut rng);
    load.end();
    let faults = faults.map_err(|error| {
        let dir = field.dir().display();
        io::Error::other(format!("{error}\nseed {}; what nodes printed is in {dir}", options.seed))
    })?;
    if options.lie == Some(Lie::OneMoreWrite) {
        desk.book.lie();
    }
    read_all(&desk, &mut rng);
    let report = report(options.seed, begun, &desk, &field, faults);
    if report.is_clean() {
        field.clear_away();
    }
    Ok(report)
}

fn strike_all(
    field: &mut Field,
    options: &Options,
    begun: Instant,
    rng: &mut Rng,
) -> io::Result<Vec<Struck>> {
    let bounds = Bounds {
        nodes_min: options.nodes,
        nodes_max: options.nodes + 2,
        lasts_max: options.fault_lasts_max,
    };
    let mut struck = Vec::new();
    while begun.elapsed() < options.lasts {
        thread::sleep(Duration::from_millis(rng.below(PAUSE_MAX_MILLIS)));
        let fault = Fault::draw(field, bounds, rng);
        let (at, what) = (begun.elapsed(), fault.told(field));
        if options.echo == Echo::On {
            println!("{:>7.1} s  {what}", at.as_secs_f64());
        }
        fault.strike(field)?;
        let whole_after = field.wait_until_whole()?;
        struck.push(Struck { at, what, whole_after });
    }
    Ok(struck)
}

/// The last look at everything that was ever written.
pub(crate) fn read_all(desk: &Desk, rng: &mut Rng) {
    let book = Arc::clone(&desk.book);
    let mut courier = Courier::new(desk.town.clone(), book, Rng::new(rng.draw()));
    desk.book.settle(|name| {
        let answer = courier.ask(name, &[b"GET", name.as_bytes()]);
        answer.as_ref().and_then(load::number)
    });
}

fn report(seed: u64, begun: Instant, desk: &Desk, field: &Field, faults: Vec<Struck>) -> Report {
    let book = &desk.book;
    Report {
        seed,
        begun,
        lasted: begun.elapsed(),
        writes: book.writes.load(Ordering::Relaxed),
        reads: book.reads.load(Ordering::Relaxed),
        unknown: book.unknown.load(Ordering::Relaxed),
        errors: book.errors().into_iter().collect(),
        lost: book.lost().into_iter().map(book::Key::name).collect(),
        breaches: book.breaches(),
        begun_again: field.begun_again(),
        faults,
        outages: desk.outages.longest(),
    }
}
