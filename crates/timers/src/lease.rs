//! A node's lease: until when it may serve, as last reported, and the last moment at which it held one.

use crate::ids::Moment;

/// The lease of this node; there is none before the first report.
#[derive(Default)]
pub(crate) struct Lease {
    until: Moment,
    reported_at: Moment,
    /// The latest end of earlier leases; `None` if there were none.
    before: Option<Moment>,
}

impl Lease {
    /// Sets the lease. The last report counts, even if it is shorter: a node alone may serve forever until
    /// another joins it, and one that yields to another side may not serve at all.
    pub(crate) fn set(&mut self, until: Moment, now: Moment) {
        self.before = self.last_held(now);
        self.until = until;
        self.reported_at = now;
    }

    pub(crate) fn is_valid(&self, now: Moment) -> bool {
        now < self.until
    }

    /// Returns the last moment at which this node was certainly in the map; `None` if never.
    pub(crate) fn last_held(&self, now: Moment) -> Option<Moment> {
        let present = (self.until > Moment(0)).then(|| self.until.min(now));
        self.before.max(present)
    }

    /// Returns the moment of the last report.
    pub(crate) fn reported_at(&self) -> Moment {
        self.reported_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_no_longer_alone_has_a_lease_that_ends() {
        let mut lease = Lease::default();
        assert!(!lease.is_valid(Moment(5)));
        assert_eq!(lease.last_held(Moment(5)), None);
        lease.set(Moment(u64::MAX), Moment(10));
        assert_eq!(lease.last_held(Moment(50)), Some(Moment(50)));
        lease.set(Moment(1100), Moment(100));
        assert!(lease.is_valid(Moment(1099)));
        assert!(!lease.is_valid(Moment(1100)));
        assert_eq!(lease.last_held(Moment(5000)), Some(Moment(1100)));
    }

    #[test]
    fn who_yields_may_not_serve_and_knows_until_when_it_did() {
        let mut lease = Lease::default();
        lease.set(Moment(1100), Moment(100));
        lease.set(Moment(0), Moment(300));
        assert!(!lease.is_valid(Moment(300)));
        assert_eq!(lease.last_held(Moment(5000)), Some(Moment(300)));
    }
}
