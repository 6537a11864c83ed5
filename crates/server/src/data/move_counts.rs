//! Counts how long commands waited because their bucket was being handed over, and how fills ended.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cluster::data::Report;

#[derive(Default)]
pub(crate) struct HandoverWaits {
    pub count: AtomicU64,
    pub longest_micros: AtomicU64,
    pub total_micros: AtomicU64,
}

impl HandoverWaits {
    pub(crate) fn note(&self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Relaxed);
        self.total_micros.fetch_add(micros, Relaxed);
        self.longest_micros.fetch_max(micros, Relaxed);
    }
}

/// Fills from this node, by how they ended.
#[derive(Default)]
pub(crate) struct Fills {
    pub done: AtomicU64,
    pub failed: AtomicU64,
}

impl Fills {
    pub(crate) fn note(&self, report: &Report) {
        match report {
            Report::FillDone { filled, .. } => self.done.fetch_add(filled.len() as u64, Relaxed),
            Report::FillFailed { .. } => self.failed.fetch_add(1, Relaxed),
            Report::Drained { .. }
            | Report::BackupLag { .. }
            | Report::OutOfSync { .. }
            | Report::Stuck { .. } => 0,
        };
    }
}
