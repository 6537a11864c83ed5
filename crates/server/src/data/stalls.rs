//! How long commands had to wait because their bucket was being handed over.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Stalls {
    pub count: AtomicU64,
    pub longest_micros: AtomicU64,
    pub total_micros: AtomicU64,
}

impl Stalls {
    pub(crate) fn note(&self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Relaxed);
        self.total_micros.fetch_add(micros, Relaxed);
        self.longest_micros.fetch_max(micros, Relaxed);
    }
}
