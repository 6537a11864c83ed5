//! A node's lease: until when it may serve, as last reported, and the last moment at which it held one.

use crate::ids::MonotonicMillis;

/// The lease of this node; there is none before the first report.
#[derive(Default)]
pub(crate) struct NodeLease {
    until: MonotonicMillis,
    reported_at: MonotonicMillis,
    /// The latest end of earlier leases; `None` if there were none.
    before: Option<MonotonicMillis>,
}

impl NodeLease {
    /// Sets the lease. The last report counts, even if it is shorter: a node alone may serve forever until
    /// another joins it, and one that yields to another side may not serve at all.
    pub(crate) fn set(&mut self, until: MonotonicMillis, now: MonotonicMillis) {
        self.before = self.last_held(now);
        self.until = until;
        self.reported_at = now;
    }

    pub(crate) fn is_valid(&self, now: MonotonicMillis) -> bool {
        now < self.until
    }

    /// Returns the last moment at which this node was certainly in the map; `None` if never.
    pub(crate) fn last_held(&self, now: MonotonicMillis) -> Option<MonotonicMillis> {
        let present = (self.until > MonotonicMillis(0)).then(|| self.until.min(now));
        self.before.max(present)
    }

    /// Returns the moment of the last report.
    pub(crate) fn reported_at(&self) -> MonotonicMillis {
        self.reported_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_no_longer_alone_has_a_lease_that_ends() {
        let mut lease = NodeLease::default();
        assert!(!lease.is_valid(MonotonicMillis(5)));
        assert_eq!(lease.last_held(MonotonicMillis(5)), None);
        lease.set(MonotonicMillis(u64::MAX), MonotonicMillis(10));
        assert_eq!(lease.last_held(MonotonicMillis(50)), Some(MonotonicMillis(50)));
        lease.set(MonotonicMillis(1100), MonotonicMillis(100));
        assert!(lease.is_valid(MonotonicMillis(1099)));
        assert!(!lease.is_valid(MonotonicMillis(1100)));
        assert_eq!(lease.last_held(MonotonicMillis(5000)), Some(MonotonicMillis(1100)));
    }

    #[test]
    fn who_yields_may_not_serve_and_knows_until_when_it_did() {
        let mut lease = NodeLease::default();
        lease.set(MonotonicMillis(1100), MonotonicMillis(100));
        lease.set(MonotonicMillis(0), MonotonicMillis(300));
        assert!(!lease.is_valid(MonotonicMillis(300)));
        assert_eq!(lease.last_held(MonotonicMillis(5000)), Some(MonotonicMillis(300)));
    }
}
