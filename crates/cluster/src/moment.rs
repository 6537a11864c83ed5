//! A point in time on one node's monotonic clock. The state machines of this crate get it with every input
//! and keep their deadlines in it; spans of time are `Duration`, and the compiler refuses to mix the two.
//!
//! A moment is converted to a clock's reading or back only beside a clock (`server/src/data/boottime.rs`,
//! `sim/src/store/clock.rs`), where another unit is needed (`server/src/data/lease.rs`, `timers/hub.rs`), and for
//! messages.

use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A point in time on a monotonic clock. Moments of two nodes are not comparable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The start of the clock. Everything due at this time is due at once.
    pub const START: Moment = Moment(Duration::ZERO);
    /// A time that no clock reaches: a lease until then does not end.
    pub const NEVER: Moment = Moment(Duration::MAX);

    /// Returns the moment at which a clock has run for this long.
    #[inline]
    pub const fn from_clock(elapsed: Duration) -> Moment {
        Moment(elapsed)
    }

    /// Returns how long the clock had run at this moment.
    #[inline]
    pub const fn clock_reading(self) -> Duration {
        self.0
    }

    /// Returns the time that has passed since `earlier`; zero if that is still to come.
    #[inline]
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    #[inline]
    fn add(self, span: Duration) -> Moment {
        Moment(self.0 + span)
    }
}

impl AddAssign<Duration> for Moment {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        self.0 += span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_passed_since_a_moment_to_come() {
        let (early, span) = (Moment::START + Duration::from_secs(3), Duration::from_millis(5));
        assert_eq!((early + span).since(early), span);
        assert_eq!(early.since(early + span), Duration::ZERO);
        assert_eq!(early.since(Moment::NEVER), Duration::ZERO);
    }
}
