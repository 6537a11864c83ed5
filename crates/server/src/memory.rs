//! Memory usage: the allocator's figure, refreshed now and then, plus what commands have added or freed since.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Queries the allocator. `allocated` takes a new snapshot; the other methods read the same snapshot.
pub trait MemoryProbe: Send + Sync + 'static {
    /// Bytes allocated by the program.
    fn allocated(&self) -> u64;
    /// Bytes in pages with at least one allocation.
    fn active(&self) -> u64;
    /// Bytes in physical pages that the allocator holds.
    fn resident(&self) -> u64;
    /// Bytes returned to the system whose address range is retained.
    fn retained(&self) -> u64;
    /// Bytes of the allocator's own metadata.
    fn metadata(&self) -> u64;
}

/// A fixed memory figure, for nodes inside tests.
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

/// A probe's figures at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryReport {
    pub allocated: u64,
    pub active: u64,
    pub resident: u64,
    pub metadata: u64,
    pub retained: u64,
}

/// The memory in use, cheap to query at every write. It lies on cache lines of its own, because every worker
/// writes it.
#[repr(align(128))]
pub(crate) struct MemoryGauge {
    probe: Arc<dyn MemoryProbe>,
    /// Allocated bytes at the last probe.
    probed: AtomicU64,
    /// Change by commands since then.
    since: AtomicI64,
    /// The part of `probed` that is not data: see `counted`.
    buffered: AtomicU64,
    /// The memory of timers, which have a limit of their own.
    timers: OnceLock<Arc<AtomicU64>>,
    peak: AtomicU64,
    /// Bytes in use before the first client connected.
    startup: AtomicU64,
    /// Memory in use above which this node evicts its own keys, if that is more than `maxmemory`.
    own_limit: AtomicU64,
}

impl MemoryGauge {
    pub(crate) fn new(probe: Arc<dyn MemoryProbe>) -> MemoryGauge {
        let gauge = MemoryGauge {
            probe,
            probed: AtomicU64::new(0),
            since: AtomicI64::new(0),
            buffered: AtomicU64::new(0),
            timers: OnceLock::new(),
            peak: AtomicU64::new(0),
            startup: AtomicU64::new(0),
            own_limit: AtomicU64::new(0),
        };
        let report = gauge.refresh(0);
        gauge.startup.store(report.allocated, Relaxed);
        gauge
    }

    pub(crate) fn used(&self) -> u64 {
        self.probed.load(Relaxed).saturating_add_signed(self.since.load(Relaxed))
    }

    /// Returns the memory that counts against `maxmemory`. Data queued for other nodes does not count: evicting
    /// for it would only enlarge the queue, because every eviction is sent to them, too. Timers do not count:
    /// evicting keys would not free them.
    pub(crate) fn counted(&self) -> u64 {
        self.used().saturating_sub(self.buffered()).saturating_sub(self.timers())
    }

    /// Leaves the memory of timers out of what counts, from now on.
    pub(crate) fn leave_out(&self, timers: Arc<AtomicU64>) {
        let _ = self.timers.set(timers); // A node has one timer service.
    }

    fn timers(&self) -> u64 {
        self.timers.get().map_or(0, |timers| timers.load(Relaxed))
    }

    /// Returns the bytes queued for other nodes, or received from them in part.
    pub(crate) fn buffered(&self) -> u64 {
        self.buffered.load(Relaxed)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Relaxed).max(self.used())
    }

    pub(crate) fn startup(&self) -> u64 {
        self.startup.load(Relaxed)
    }

    /// Returns the memory in use above which this node evicts its own keys: more than `maxmemory` while the
    /// backups of other nodes take too much of it, because those nodes have to make room then.
    #[inline]
    pub(crate) fn limit(&self, maxmemory: u64) -> u64 {
        maxmemory.max(self.own_limit.load(Relaxed))
    }

    /// Sets the limit that was computed when this much memory counted. What was added since, while the copies were
    /// measured, is no reason to evict this node's keys.
    pub(crate) fn set_own_limit(&self, bytes: u64, counted: u64) {
        let with_growth = || bytes.saturating_add(self.counted().saturating_sub(counted));
        self.own_limit.store(with_growth(), Relaxed);
        self.own_limit.fetch_max(with_growth(), Relaxed); // Others may have grown between the two.
    }

    /// Counts a change of the backups of other nodes. It is no reason to evict this node's keys.
    pub(crate) fn grow_by_others(&self, bytes: i64) {
        if bytes > 0 {
            self.own_limit.fetch_max(self.counted().saturating_add_signed(bytes), Relaxed);
        }
        self.grow(bytes);
    }

    pub(crate) fn grow(&self, bytes: i64) {
        if bytes != 0 {
            self.since.fetch_add(bytes, Relaxed);
        }
    }

    /// Queries the allocator. Changes by commands between the two steps are counted twice or not at all until
    /// the next refresh: a few kilobytes. `buffered` is the part of the memory that is not data.
    pub(crate) fn refresh(&self, buffered: u64) -> MemoryReport {
        let probe = &self.probe;
        let report = MemoryReport {
            allocated: probe.allocated(),
            active: probe.active(),
            resident: probe.resident(),
            retained: probe.retained(),
            metadata: probe.metadata(),
        };
        // What other nodes have added to their backups is no reason to evict this node's keys: the janitor decides
        // that soon (`Data::report_memory`).
        let own = report.allocated.saturating_sub(buffered).saturating_sub(self.timers());
        self.own_limit.fetch_max(own, Relaxed);
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
    fn timers_do_not_count_as_data() {
        let probe = Arc::new(AtomicU64::new(9_000));
        let gauge = MemoryGauge::new(probe as Arc<dyn MemoryProbe>);
        let timers = Arc::new(AtomicU64::new(2_000));
        gauge.leave_out(Arc::clone(&timers));
        assert_eq!((gauge.used(), gauge.counted()), (9_000, 7_000));
        timers.store(500, Relaxed);
        assert_eq!(gauge.counted(), 8_500);
    }

    #[test]
    fn growth_while_the_limit_is_computed_does_not_exceed_it() {
        let probe = Arc::new(AtomicU64::new(1_000));
        let gauge = MemoryGauge::new(Arc::clone(&probe) as Arc<dyn MemoryProbe>);
        let counted = gauge.counted();
        gauge.grow_by_others(5_000);
        gauge.set_own_limit(1_200, counted);
        assert_eq!(gauge.counted(), 6_000);
        assert_eq!(gauge.limit(1_100), 6_200);
    }

    #[test]
    fn growth_that_no_command_of_this_node_has_caused_does_not_exceed_its_own_limit() {
        let probe = Arc::new(AtomicU64::new(1_000));
        let gauge = MemoryGauge::new(Arc::clone(&probe) as Arc<dyn MemoryProbe>);
        gauge.set_own_limit(0, gauge.counted());
        assert_eq!(gauge.limit(2_000), 2_000);
        probe.store(3_000, Relaxed);
        gauge.refresh(0);
        assert_eq!(gauge.limit(2_000), 3_000, "until it is known whose growth that is");
        gauge.grow_by_others(500);
        assert_eq!(gauge.counted(), gauge.limit(2_000));
        gauge.grow(1);
        assert!(gauge.counted() > gauge.limit(2_000), "commands of this node add to it");
        gauge.set_own_limit(0, gauge.counted());
        assert_eq!(gauge.limit(2_000), 2_000);
    }

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
