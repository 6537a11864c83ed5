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
    /// Of what the allocator said, the part that is no data: see `counted`.
    buffered: AtomicU64,
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
            buffered: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            startup: AtomicU64::new(0),
        };
        let report = gauge.refresh(0);
        gauge.startup.store(report.allocated, Relaxed);
        gauge
    }

    pub(crate) fn used(&self) -> u64 {
        self.probed.load(Relaxed).saturating_add_signed(self.since.load(Relaxed))
    }

    /// The memory that counts against `maxmemory`. What waits for other nodes does not: to evict for it
    /// would only make it more, as every eviction has to be sent to them, too.
    pub(crate) fn counted(&self) -> u64 {
        self.used().saturating_sub(self.buffered())
    }

    /// What waits for other nodes, or comes from them in parts.
    pub(crate) fn buffered(&self) -> u64 {
        self.buffered.load(Relaxed)
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
    /// at all until the next time: a few kilobytes. `buffered` is what is no data of it.
    pub(crate) fn refresh(&self, buffered: u64) -> MemoryReport {
        let probe = &self.probe;
        let report = MemoryReport {
            allocated: probe.allocated(),
            active: probe.active(),
            resident: probe.resident(),
            retained: probe.retained(),
            metadata: probe.metadata(),
        };
        self.since.store(0, Relaxed);
        self.buffered.store(buffered, Relaxed);
        self.probed.store(report.allocated, Relaxed);
        self.peak.fetch_max(report.allocated, Relaxed);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_other_nodes_does_not_count_as_data() {
        let probe = Arc::new(AtomicU64::new(1_000));
        let gauge = MemoryGauge::new(Arc::clone(&probe) as Arc<dyn MemoryProbe>);
        probe.store(9_000, Relaxed);
        gauge.refresh(6_000);
        assert_eq!((gauge.used(), gauge.counted(), gauge.buffered()), (9_000, 3_000, 6_000));
        gauge.grow(500);
        assert_eq!((gauge.used(), gauge.counted()), (9_500, 3_500), "commands add data");
        probe.store(3_500, Relaxed);
        gauge.refresh(0);
        assert_eq!((gauge.used(), gauge.counted()), (3_500, 3_500));
    }
}
