//! How much memory is in use: the allocator's own word, asked now and then, and what commands have
//! added or freed since.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Asks the allocator. `allocated` begins a new look; the others belong to the same moment.
pub trait MemoryProbe: Send + Sync + 'static {
    /// Handed out to the program.
    fn allocated(&self) -> u64;
    /// In pages that hold anything handed out.
    fn active(&self) -> u64;
    /// In physical pages that the allocator holds.
    fn resident(&self) -> u64;
    /// Given back to the system but kept as addresses.
    fn retained(&self) -> u64;
    /// The allocator's own book-keeping.
    fn metadata(&self) -> u64;
}

/// Memory in use as somebody says it is: for nodes inside tests.
impl MemoryProbe for AtomicU64 {
    fn allocated(&self) -> u64 {
        self.load(Relaxed)
    }
    fn active(&self) -> u64 {
        0
    }
    fn resident(&self) -> u64 {
        0
    }
    fn retained(&self) -> u64 {
        0
    }
    fn metadata(&self) -> u64 {
        0
    }
}

/// What a probe said at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryReport {
    pub allocated: u64,
    pub active: u64,
    pub resident: u64,
    pub metadata: u64,
    pub retained: u64,
}

/// The memory in use, cheap to ask for at every write.
pub(crate) struct MemoryGauge {
    probe: Arc<dyn MemoryProbe>,
    /// As the allocator said when last asked.
    probed: AtomicU64,
    /// What commands have changed since then.
    since: AtomicI64,
    peak: AtomicU64,
    /// In use before the first client came.
    startup: AtomicU64,
}

impl MemoryGauge {
    pub(crate) fn new(probe: Arc<dyn MemoryProbe>) -> MemoryGauge {
        let gauge = MemoryGauge {
            probe,
            probed: AtomicU64::new(0),
            since: AtomicI64::new(0),
            peak: AtomicU64::new(0),
            startup: AtomicU64::new(0),
        };
        let report = gauge.refresh();
        gauge.startup.store(report.allocated, Relaxed);
        gauge
    }

    pub(crate) fn used(&self) -> u64 {
        self.probed.load(Relaxed).saturating_add_signed(self.since.load(Relaxed))
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Relaxed).max(self.used())
    }

    pub(crate) fn startup(&self) -> u64 {
        self.startup.load(Relaxed)
    }

    pub(crate) fn grow(&self, bytes: i64) {
        if bytes != 0 {
            self.since.fetch_add(bytes, Relaxed);
        }
    }

    /// Asks the allocator anew. What commands change between the two steps is counted twice or not
    /// at all until the next time: a few kilobytes.
    pub(crate) fn refresh(&self) -> MemoryReport {
        let probe = &self.probe;
        let report = MemoryReport {
            allocated: probe.allocated(),
            active: probe.active(),
            resident: probe.resident(),
            retained: probe.retained(),
            metadata: probe.metadata(),
        };
        self.since.store(0, Relaxed);
        self.probed.store(report.allocated, Relaxed);
        self.peak.fetch_max(report.allocated, Relaxed);
        report
    }
}
