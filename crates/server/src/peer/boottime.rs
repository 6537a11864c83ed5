//! The clock of leases: `CLOCK_BOOTTIME`, which runs on while the machine sleeps and which nobody can
//! set; and the lease itself, as all threads see it.

use core::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long the machine has been up.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).expect("this clock starts at 0");
    let nanos = u32::try_from(time.tv_nsec).expect("nanoseconds are below a second");
    Duration::new(seconds, nanos)
}

/// Until when this node may serve. The control thread writes it, the I/O threads read it after each
/// command and before its reply.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    until_nanos: AtomicU64,
}

impl Lease {
    pub(crate) fn set(&self, until: Duration) {
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.until_nanos.store(nanos, Ordering::Release);
    }

    /// Whether this node may serve at `now`.
    #[inline]
    pub(crate) fn is_valid(&self, now: Duration) -> bool {
        now.as_nanos() < u128::from(self.until_nanos.load(Ordering::Acquire))
    }

    /// Without an end: no clock needs to be read.
    #[inline]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.until_nanos.load(Ordering::Acquire) == u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_at_its_moment_and_can_be_taken_back() {
        let lease = Lease::default();
        assert!(!lease.is_valid(Duration::ZERO), "nobody serves before it was allowed to");
        lease.set(Duration::from_millis(1_500));
        assert!(lease.is_valid(Duration::from_millis(1_499)));
        assert!(!lease.is_valid(Duration::from_millis(1_500)));
        lease.set(Duration::from_millis(900));
        assert!(!lease.is_valid(Duration::from_millis(1_000)));
        lease.set(Duration::MAX);
        assert!(lease.is_unlimited() && lease.is_valid(now()));
    }

    #[test]
    fn the_clock_goes_on() {
        let before = now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(now() >= before + Duration::from_millis(2));
    }
}
