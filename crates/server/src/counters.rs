//! Counters of a node's traffic: each thread writes its own, readers add them up. INFO, the metrics and the
//! statistics (`watching/`) read them.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Counters of one thread. Only that thread writes, so a plain load and store suffice. They lie on cache lines
/// of their own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Counters {
    pub commands: AtomicU64,
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub expired: AtomicU64,
    pub evicted: AtomicU64,
    pub changes: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    /// Number of times that the thread began or ended a round: odd while it works.
    pub pulse: AtomicU64,
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    if more != 0 {
        counter.store(counter.load(Relaxed) + more, Relaxed);
    }
}

/// The counters of all threads of a node.
pub(crate) struct AllCounters {
    /// One for each worker; the janitor's is the last.
    pub threads: Vec<Counters>,
    /// Number of open connections, by worker.
    pub connections: Vec<AtomicUsize>,
    pub accepted: AtomicU64,
    pub rejected: AtomicU64,
}

impl AllCounters {
    pub(crate) fn new(workers: usize) -> AllCounters {
        AllCounters {
            threads: (0..=workers).map(|_| Counters::default()).collect(),
            connections: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        }
    }

    /// Returns the sum of a counter over all threads.
    pub(crate) fn total(&self, counter: impl Fn(&Counters) -> &AtomicU64) -> u64 {
        self.threads.iter().map(|counters| counter(counters).load(Relaxed)).sum()
    }

    /// Returns the number of open client connections.
    pub(crate) fn client_count(&self) -> usize {
        self.connections.iter().map(|count| count.load(Relaxed)).sum()
    }
}
