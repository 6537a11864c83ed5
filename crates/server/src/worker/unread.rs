//! Checks a connection's unread output against the limits of its class (`client-output-buffer-limit`).

use settings::OutputLimit;
use store::UnixMillis;

/// Remembers since when a connection has been above its soft limit.
#[derive(Default)]
pub(crate) struct Unread {
    over_since: Option<UnixMillis>,
}

impl Unread {
    /// Returns whether `bytes` unread are too much: above the hard limit, or above the soft limit for too long.
    pub(super) fn is_too_much(
        &mut self,
        bytes: usize,
        limit: OutputLimit,
        now: UnixMillis,
    ) -> bool {
        let bytes = bytes as u64;
        if limit.hard_bytes != 0 && bytes > limit.hard_bytes {
            return true;
        }
        if limit.soft_bytes == 0 || bytes <= limit.soft_bytes {
            self.over_since = None;
            return false;
        }
        let since = *self.over_since.get_or_insert(now);
        u128::from(now.0.saturating_sub(since.0)) > limit.soft_for.as_millis()
    }

    /// Returns whether the connection is above its soft limit, so that time alone may make it too much.
    pub(super) fn is_over(&self) -> bool {
        self.over_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMIT: OutputLimit =
        OutputLimit { hard_bytes: 1_000, soft_bytes: 100, soft_for: Duration::from_secs(60) };

    fn seconds(count: u64) -> UnixMillis {
        UnixMillis(1_000 * count)
    }

    #[test]
    fn the_hard_limit_is_reached_at_once() {
        let mut unread = Unread::default();
        assert!(!unread.is_too_much(1_000, LIMIT, seconds(0)));
        assert!(unread.is_too_much(1_001, LIMIT, seconds(0)));
    }

    #[test]
    fn the_soft_limit_is_reached_after_a_time_without_a_break() {
        let mut unread = Unread::default();
        assert!(!unread.is_too_much(101, LIMIT, seconds(0)));
        assert!(unread.is_over());
        assert!(!unread.is_too_much(101, LIMIT, seconds(60)));
        assert!(!unread.is_too_much(100, LIMIT, seconds(61)));
        assert!(!unread.is_over(), "it has read, so its time starts anew");
        assert!(!unread.is_too_much(500, LIMIT, seconds(62)));
        assert!(!unread.is_too_much(101, LIMIT, seconds(122)));
        assert!(unread.is_too_much(101, LIMIT, seconds(123)));
    }

    #[test]
    fn zero_stands_for_no_limit() {
        let mut unread = Unread::default();
        let limit = OutputLimit { hard_bytes: 0, soft_bytes: 0, soft_for: Duration::ZERO };
        assert!(!unread.is_too_much(usize::MAX, limit, seconds(0)));
        assert!(!unread.is_too_much(usize::MAX, limit, seconds(1_000_000)));
    }
}
