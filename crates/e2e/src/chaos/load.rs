//! The load of a run: every client (`clients/`) on a thread of its own, each with random numbers of
//! its own from the seed, so that adding a client changes nothing for the others.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::book::{Book, Owner};
use super::causes::Journal;
use super::clients::{
    Client, LARGE_PLACES, LargeWriter, Lives, Locker, Locks, PLACES, PipelinedWriter, Reader,
    Transactor, Walker, Writer,
};
use super::holds::Holds;
use super::outages::Outages;
use super::silences::Silences;
use super::town::Town;
use crate::Rng;

const WRITERS: usize = 4;
const READERS: usize = 2;
const PIPELINES: usize = 2;
const WALKERS: usize = 2;
const LOCKERS: usize = 3;
/// Interval at which a pausing client checks whether the load has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Everything that the threads of a load share.
#[derive(Clone, Debug)]
pub struct Desk {
    pub town: Town,
    pub book: Arc<Book>,
    pub outages: Arc<Outages>,
    pub silences: Arc<Silences>,
    pub holds: Arc<Holds>,
    pub journal: Arc<Journal>,
    /// Lock held by the client that has a request of more than 20 MB in flight; at most one at a time.
    pub lane: Arc<Mutex<()>>,
}

impl Desk {
    pub fn new(town: Town) -> Desk {
        let silences = Arc::new(Silences::new(town.clone()));
        Desk {
            town,
            book: Arc::default(),
            outages: Arc::default(),
            silences,
            holds: Arc::default(),
            journal: Arc::default(),
            lane: Arc::default(),
        }
    }
}

/// Sizes and pace of large requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    pub value_bytes_max: usize,
    pub large_every: Duration,
    /// Number of COPYs of 1 MiB in a transaction.
    pub copies: usize,
    pub transaction_every: Duration,
}

impl Sizes {
    pub const FULL: Sizes = Sizes {
        value_bytes_max: 300_000_000,
        large_every: Duration::from_secs(2),
        copies: 601,
        transaction_every: Duration::from_secs(60),
    };
    pub const SMALL: Sizes = Sizes {
        value_bytes_max: 5_000_000,
        large_every: Duration::from_millis(500),
        copies: 40,
        transaction_every: Duration::from_secs(3),
    };
}

pub struct Load {
    seed: u64,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts writers and readers.
    pub fn start(desk: &Desk, seed: u64) -> Load {
        let mut load = Load { seed, stop: Arc::default(), threads: Vec::new() };
        let lives = load.writers(desk);
        load.readers(desk, &lives);
        load
    }

    /// Starts every kind of client.
    pub fn start_all(desk: &Desk, seed: u64, sizes: Sizes) -> Load {
        let mut load = Load { seed, stop: Arc::default(), threads: Vec::new() };
        let mut lives = load.writers(desk);
        for number in 0..PIPELINES {
            let own = Arc::new(Lives::new(Owner::Pipeline(number), PLACES));
            lives.push(Arc::clone(&own));
            load.add(&format!("pipeline {number}"), |rng| PipelinedWriter::new(desk, own, rng));
        }
        load.readers(desk, &lives);
        for number in 0..WALKERS {
            load.add(&format!("walker {number}"), |rng| Walker::new(desk, rng));
        }
        let locks = Arc::new(Locks::default());
        for number in 0..LOCKERS {
            let locks = Arc::clone(&locks);
            load.add(&format!("locker {number}"), |rng| Locker::new(number, desk, locks, rng));
        }
        let own = Arc::new(Lives::new(Owner::Large, LARGE_PLACES));
        load.add("large", |rng| LargeWriter::new(desk, own, sizes, rng));
        load.add("transactions", |rng| Transactor::new(desk, sizes, rng));
        load.watch_silences(desk);
        load
    }

    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a client does not panic");
        }
    }

    fn writers(&mut self, desk: &Desk) -> Vec<Arc<Lives>> {
        let start = |number| {
            let lives = Arc::new(Lives::new(Owner::Writer(number), PLACES));
            let own = Arc::clone(&lives);
            self.add(&format!("writer {number}"), |rng| Writer::new(desk, own, rng));
            lives
        };
        (0..WRITERS).map(start).collect()
    }

    fn readers(&mut self, desk: &Desk, lives: &[Arc<Lives>]) {
        for number in 0..READERS {
            let lives = lives.to_vec();
            self.add(&format!("reader {number}"), |rng| Reader::new(desk, lives, rng));
        }
    }

    fn add<C: Client + 'static>(&mut self, name: &str, make: impl FnOnce(Rng) -> C) {
        let mut client = make(Rng::named(self.seed, name));
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                client.step();
                pause(client.pause(), &stop);
            }
        }));
    }

    fn watch_silences(&mut self, desk: &Desk) {
        let (silences, stop) = (Arc::clone(&desk.silences), Arc::clone(&self.stop));
        self.threads.push(thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                silences.look();
                thread::sleep(LOOK_EVERY);
            }
        }));
    }
}

fn pause(duration: Duration, stop: &AtomicBool) {
    let until = Instant::now() + duration;
    while !stop.load(Ordering::Relaxed) {
        let remaining = until.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return;
        }
        thread::sleep(remaining.min(LOOK_EVERY));
    }
}
