//! Until when this node may serve: set by the control thread, looked at by workers after commands have
//! run and before their replies leave.

use core::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::boottime::now;

/// Nanoseconds of the clock that goes on while the machine sleeps.
pub(crate) struct Lease(AtomicU64);

const FOR_EVER: u64 = u64::MAX;

impl Lease {
    /// A node alone needs nobody's leave.
    pub(crate) fn unlimited() -> Lease {
        Lease(AtomicU64::new(FOR_EVER))
    }

    /// By the clock of [`now`].
    pub(crate) fn set(&self, until: Duration) {
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(FOR_EVER);
        self.0.store(nanos, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        let until = self.0.load(Ordering::Acquire);
        until == FOR_EVER || now().as_nanos() < u128::from(until)
    }

    /// Until it runs out; `None` for one that does not.
    pub(crate) fn left(&self) -> Option<Duration> {
        let until = self.0.load(Ordering::Acquire);
        (until != FOR_EVER).then(|| Duration::from_nanos(until).saturating_sub(now()))
    }
}
