//! Time as the caller passes it in, and the version of every write: a hybrid logical clock.

/// Milliseconds since 1970 by the caller's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct UnixMillis(pub u64);

/// An item's or a slot's version: 48 bits of milliseconds, 16 bits of counter.
///
/// Within a slot it only grows, whatever the machine's clock does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Version(pub u64);

const COUNTER_BITS: u32 = 16;

/// Maximum lead of a version's time over the clock: a larger lead means that some clock was wrong, and deadlines
/// must not depend on by how much. The same minute is the maximum clock difference of a joining node.
pub const LEAD_MAX_MILLIS: u64 = 60_000;

impl Version {
    /// The version of a slot that has never been written to.
    pub const ZERO: Version = Version(0);

    /// Returns the version of the next write, made at `now`.
    #[must_use]
    pub fn next(self, now: UnixMillis) -> Version {
        Version((now.0 << COUNTER_BITS).max(self.0 + 1))
    }

    /// Returns the time part.
    pub fn time(self) -> UnixMillis {
        UnixMillis(self.0 >> COUNTER_BITS)
    }

    /// Returns the hybrid time of a slot at this version: the clock, or the version's time where that is later, by
    /// at most [`LEAD_MAX_MILLIS`]. It does not run backwards as long as clock and version do not.
    #[must_use]
    #[inline]
    pub fn hybrid_time(self, now: UnixMillis) -> UnixMillis {
        let lead_end = UnixMillis(now.0.saturating_add(LEAD_MAX_MILLIS));
        self.time().min(lead_end).max(now)
    }

    /// Returns the earliest clock time at which the hybrid time reaches `at`.
    #[inline]
    pub(crate) fn clock_at(self, at: UnixMillis) -> UnixMillis {
        if at <= self.time() { UnixMillis(at.0.saturating_sub(LEAD_MAX_MILLIS)) } else { at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_never_goes_back_even_if_the_clock_does() {
        let first = Version::ZERO.next(UnixMillis(1_000));
        let second = first.next(UnixMillis(10));
        assert!(second > first);
        assert_eq!(second.time(), UnixMillis(1_000));
    }

    #[test]
    fn the_hybrid_time_is_the_later_one_of_clock_and_version() {
        let version = Version::ZERO.next(UnixMillis(100_000));
        let at = |now| version.hybrid_time(UnixMillis(now)).0;
        assert_eq!(at(200_000), 200_000);
        assert_eq!(at(99_000), 100_000, "it does not run back when another machine takes over");
        assert_eq!(at(30_000), 90_000, "a version far ahead counts as a minute ahead");
    }

    #[test]
    fn the_hybrid_time_reaches_a_deadline_exactly_when_the_clock_says_so() {
        let version = Version::ZERO.next(UnixMillis(100_000));
        for deadline in [1, 30_000, 60_000, 99_999, 100_000, 100_001, 170_000].map(UnixMillis) {
            let clock = version.clock_at(deadline);
            assert!(version.hybrid_time(clock) >= deadline, "{deadline:?} is reached");
            if clock.0 > 0 {
                let before = version.hybrid_time(UnixMillis(clock.0 - 1));
                assert!(before < deadline, "{deadline:?} is not reached earlier");
            }
        }
    }

    #[test]
    fn a_later_clock_is_taken_over() {
        let version = Version::ZERO.next(UnixMillis(5)).next(UnixMillis(9));
        assert_eq!(version.time(), UnixMillis(9));
    }
}
