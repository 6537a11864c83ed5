//! Time as this crate is told it, and the version every write gets: a hybrid logical clock.

/// Milliseconds since 1970, as the caller's clock says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct UnixMillis(pub u64);

/// An item's or a slot's version: 48 bits of milliseconds, 16 bits of counter.
///
/// It only ever grows within a slot, whatever the machine's clock does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Version(pub u64);

const COUNTER_BITS: u32 = 16;

impl Version {
    /// The version of a slot nothing was ever written to.
    pub const ZERO: Version = Version(0);

    /// The version of the next write, made at `now`.
    #[must_use]
    pub fn next(self, now: UnixMillis) -> Version {
        Version((now.0 << COUNTER_BITS).max(self.0 + 1))
    }

    /// The time part.
    pub fn time(self) -> UnixMillis {
        UnixMillis(self.0 >> COUNTER_BITS)
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
    fn a_later_clock_is_taken_over() {
        let version = Version::ZERO.next(UnixMillis(5)).next(UnixMillis(9));
        assert_eq!(version.time(), UnixMillis(9));
    }
}
