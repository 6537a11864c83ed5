//! The lease: the time until which this node may serve. The applier sets it after the maps that it relies on, the
//! control thread ends it, workers check it at the beginning of a round, and again before replies leave.

use core::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::boottime::now;
use cluster::Moment;

/// The end of the lease, in nanoseconds of the clock that runs on while the machine sleeps.
pub(crate) struct Lease(AtomicU64);

const FOR_EVER: u64 = u64::MAX;
/// Ended for good: a later grant does not count.
const ENDED: u64 = 0;

impl Lease {
    /// Returns a lease without an end, for a node alone: it needs nobody's grant.
    pub(crate) fn unlimited() -> Lease {
        Lease(AtomicU64::new(FOR_EVER))
    }

    /// Sets the end of the lease, by the clock of [`now`].
    pub(crate) fn set(&self, until: Moment) {
        let nanos =
            u64::try_from(until.clock_reading().as_nanos()).unwrap_or(FOR_EVER).max(ENDED + 1);
        let set = |known| (known != ENDED).then_some(nanos);
        // An error means that the lease has ended for good.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, set);
    }

    /// Ends the lease for good.
    pub(crate) fn end(&self) {
        self.0.store(ENDED, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        let until = self.0.load(Ordering::Acquire);
        until == FOR_EVER || now().clock_reading().as_nanos() < u128::from(until)
    }

    /// Returns the time until the lease runs out; `None` for one that does not.
    pub(crate) fn left(&self) -> Option<Duration> {
        let until = self.0.load(Ordering::Acquire);
        (until != FOR_EVER).then(|| Moment::from_clock(Duration::from_nanos(until)).since(now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_has_ended_is_not_set_again() {
        let lease = Lease::unlimited();
        lease.set(Moment::START);
        assert!(!lease.is_valid());
        lease.set(now() + Duration::from_secs(9));
        assert!(lease.is_valid());
        lease.end();
        lease.set(now() + Duration::from_secs(9));
        assert!(!lease.is_valid(), "a grant that came late counts");
    }
}
