//! The writers of a demo. Each has keys of its own, writes ever larger numbers into them, remembers the last
//! acknowledged number, and reads back: a read that finds a smaller number has found a lost write. All keys
//! of a writer lie in one sixteenth of the slots, so that a writer waiting for a dead node does not delay the
//! others.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use placement::Slot;

use super::herd::Reachable;
use super::route::Route;

const WRITERS: usize = 16;
/// Keys of each writer.
const KEYS: usize = 600;
/// Padding beside the number, so that there is something to copy when a bucket moves.
const FILLER: &str = "................................................................\
                      ................................................................";
/// Maximum delay of a writer behind its pace; it does not catch up with more.
const BEHIND_MAX: Duration = Duration::from_millis(200);

pub(super) struct Load {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    acknowledged: AtomicU64,
    reads: AtomicU64,
    lost: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// Durations of the commands since the last call of `latency`.
    took: Mutex<Vec<Duration>>,
}

/// Outcome of the writes so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) acknowledged: u64,
    pub(super) reads: u64,
    /// Acknowledged writes that a later read did not find.
    pub(super) lost: u64,
    /// Commands that were not answered in time, despite all retries.
    pub(super) errors: u64,
}

/// Latency of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Latency {
    pub(super) median: Duration,
    pub(super) p99: Duration,
    pub(super) longest: Duration,
}

impl Load {
    pub(super) fn start(nodes: &Reachable, rate: u32) -> Load {
        let shared = Arc::new(Shared::default());
        let pace = Duration::from_secs(1) * u32::try_from(WRITERS).unwrap_or(1) / rate;
        let writers = (0..WRITERS).map(|number| {
            let (shared, nodes) = (Arc::clone(&shared), Arc::clone(nodes));
            let work = move || Writer::new(number, nodes, &shared).work(pace);
            let thread = thread::Builder::new().name(format!("writer-{number}")).spawn(work);
            thread.expect("a process can start a handful of threads")
        });
        Load { writers: writers.collect(), shared }
    }

    pub(super) fn counts(&self) -> Counts {
        self.shared.counts()
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.shared.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the latency of the commands since the last call.
    pub(super) fn latency(&self) -> Latency {
        let mut took = self.shared.took.lock().unwrap_or_else(PoisonError::into_inner);
        let took = std::mem::take(&mut *took);
        Latency::of(took)
    }

    /// Stops the writers after each has read back all its acknowledged writes.
    pub(super) fn end(&mut self) -> Counts {
        self.shared.stop.store(true, Relaxed);
        for writer in self.writers.drain(..) {
            // A writer that panicked has printed so, and has not confirmed its acknowledged writes.
            if writer.join().is_err() {
                self.shared.errors.fetch_add(1, Relaxed);
            }
        }
        self.counts()
    }
}

impl Latency {
    fn of(mut took: Vec<Duration>) -> Latency {
        took.sort_unstable();
        let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default();
        Latency { median: at(50), p99: at(99), longest: took.last().copied().unwrap_or_default() }
    }
}

impl Shared {
    fn counts(&self) -> Counts {
        Counts {
            acknowledged: self.acknowledged.load(Relaxed),
            reads: self.reads.load(Relaxed),
            lost: self.lost.load(Relaxed),
            errors: self.errors.load(Relaxed),
        }
    }

    fn failed(&self, error: String) {
        self.errors.fetch_add(1, Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { acknowledged, lost, errors, .. } = self;
        write!(f, "acknowledged {acknowledged}, lost {lost}, errors {errors}")
    }
}

struct Writer<'a> {
    keys: Vec<String>,
    route: Route,
    shared: &'a Shared,
    /// The last number acknowledged for each key; 0 for none.
    promised: Vec<u64>,
}

impl Writer<'_> {
    fn new(number: usize, nodes: Reachable, shared: &Shared) -> Writer<'_> {
        let keys = keys(number).take(KEYS).collect();
        Writer { keys, route: Route::new(nodes), shared, promised: vec![0; KEYS] }
    }

    fn work(&mut self, pace: Duration) {
        let mut due = Instant::now();
        for turn in 0.. {
            if self.shared.stop.load(Relaxed) {
                break;
            }
            due = due.max(Instant::now().checked_sub(BEHIND_MAX).unwrap_or(due)) + pace;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            // A stride coprime to `KEYS` reaches every key, and neighbours are far apart in time.
            let place = |count: usize| count * 101 % KEYS;
            let (count, begun) = (turn / 2, Instant::now());
            if turn % 2 == 0 {
                self.write(place(count), turn as u64 + 1);
            } else {
                // Read a key that was written a while ago; there is one from the first turn on.
                self.read(place(count / 2));
            }
            let mut took = self.shared.took.lock().unwrap_or_else(PoisonError::into_inner);
            took.push(begun.elapsed());
        }
        for place in 0..KEYS {
            self.read(place);
        }
    }

    fn write(&mut self, place: usize, number: u64) {
        let key = self.keys[place].clone();
        let value = format!("{number} {FILLER}");
        match self.route.run(&key, &["SET", &key, &value]) {
            Ok(answer) if answer.is_ok() => {
                self.promised[place] = number;
                self.shared.acknowledged.fetch_add(1, Relaxed);
            }
            Ok(answer) => self.shared.failed(format!("SET {key}: {answer}")),
            Err(error) => self.shared.failed(format!("SET {key}: {error}")),
        }
    }

    fn read(&mut self, place: usize) {
        let (key, promised) = (self.keys[place].clone(), self.promised[place]);
        if promised == 0 {
            return;
        }
        match self.route.run(&key, &["GET", &key]) {
            Ok(answer) => {
                self.shared.reads.fetch_add(1, Relaxed);
                let found = number(answer.text());
                if found < promised {
                    self.shared.lost.fetch_add(1, Relaxed);
                    // Count each loss once.
                    self.promised[place] = found;
                }
            }
            Err(error) => self.shared.failed(format!("GET {key}: {error}")),
        }
    }
}

/// Returns keys whose slots lie in the writer's part.
fn keys(writer: usize) -> impl Iterator<Item = String> {
    let part = usize::from(Slot::COUNT) / WRITERS;
    let all = (0_u64..).map(|number| format!("key:{number}"));
    all.filter(move |key| Slot::of(key.as_bytes()).index() / part == writer)
}

/// The number a value begins with; 0 if there is none.
fn number(value: Option<&[u8]>) -> u64 {
    let text = value.and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_back_as_its_number_and_a_missing_one_as_none() {
        assert_eq!(number(Some(format!("42 {FILLER}").as_bytes())), 42);
        assert_eq!((number(None), number(Some(b"x")), number(Some(b"\xFF"))), (0, 0, 0));
    }

    #[test]
    fn every_key_belongs_to_one_writer() {
        let mut all: Vec<String> =
            (0..WRITERS).flat_map(|writer| keys(writer).take(KEYS)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), WRITERS * KEYS);
    }

    #[test]
    fn the_ninety_ninth_of_a_hundred_is_told_and_the_longest() {
        let took = (1..=200).rev().map(Duration::from_millis).collect();
        let Latency { median, p99, longest } = Latency::of(took);
        assert_eq!([median, p99, longest].map(|it| it.as_millis()), [101, 199, 200]);
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }

    #[test]
    fn the_last_line_is_one_that_scripts_can_read() {
        let counts = Counts { acknowledged: 12_345, reads: 1, lost: 0, errors: 2 };
        assert_eq!(counts.to_string(), "acknowledged 12345, lost 0, errors 2");
    }
}
