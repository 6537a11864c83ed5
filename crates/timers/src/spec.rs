//! A timer as a client describes it: when it pops, what its callback is, and how failures are handled.
//!
//! Read from JSON in `json.rs`, stored packed in `table.rs`, sent between nodes as it is.

use serde::{Deserialize, Serialize};

use crate::ids::TimeSpan;
use crate::target::HttpTarget;

/// The longest interval, and the longest time for which a timer may repeat: a hundred years.
pub const SPAN_MAX: TimeSpan = TimeSpan::from_secs(100 * 365 * 86_400);
/// Minimum interval of a repeating timer; anything more frequent is a load test, not a timer.
pub const REPEATED_INTERVAL_MIN: TimeSpan = TimeSpan(10);
/// Maximum length of a request's body, which limits the data a request can make us store.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
pub const URI_BYTES_MAX: usize = 2048;
pub const TAGS_MAX: usize = 16;
pub const TAG_BYTES_MAX: usize = 16;
pub const COMMAND_WORDS_MAX: usize = 128;
pub const RETRY_ATTEMPTS_MAX: u32 = 100;
/// Minimum wait before a retry, so that a target that refuses is not called in a tight loop.
pub const RETRY_BACKOFF_MIN: TimeSpan = TimeSpan(100);
pub const RETRY_BACKOFF_MAX: TimeSpan = TimeSpan::from_secs(3600);
pub const CALL_TIMEOUT_DEFAULT: TimeSpan = TimeSpan::from_secs(2);
pub const CALL_TIMEOUT_MAX: TimeSpan = TimeSpan::from_secs(30);

/// A timer as its client described it, completely validated by `json.rs`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimerSpec {
    /// The first field, so that the first byte of a packed description tells whether there are any tags.
    pub tags: Vec<TimerTag>,
    pub interval: TimeSpan,
    /// Time for which it repeats. Shorter than the interval: it never pops. Equal: once.
    pub repeat_for: TimeSpan,
    pub callback: Callback,
    pub retry: Retry,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Callback {
    Http {
        target: HttpTarget,
        opaque: String,
        timeout: TimeSpan,
    },
    /// A message on a pub/sub channel.
    Publish {
        channel: String,
        message: String,
    },
    /// A command, run by the primary of its key's bucket.
    Command(Vec<String>),
}

/// Retries after every replica's callback has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Retry {
    pub attempts: u32,
    /// Wait before the first retry; each wait is twice the previous one.
    pub backoff: TimeSpan,
}

/// A tag under which the timer is counted in the statistics.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimerTag {
    pub name: String,
    pub count: u32,
}

impl Retry {
    pub const NONE: Retry = Retry { attempts: 0, backoff: TimeSpan::from_secs(1) };

    /// Returns the wait before the next retry, after `made` retries have failed.
    pub fn wait(self, made: u32) -> TimeSpan {
        let wait = self.backoff.times(1 << made.min(20));
        wait.max(RETRY_BACKOFF_MIN).min(RETRY_BACKOFF_MAX)
    }
}

impl TimerSpec {
    /// Returns the number of pops if none is missed.
    pub fn pops(&self) -> u32 {
        if self.interval == TimeSpan::ZERO {
            return 1;
        }
        u32::try_from(self.repeat_for.0 / self.interval.0).unwrap_or(u32::MAX)
    }
}

impl Callback {
    /// Returns the maximum duration of the callback.
    pub fn timeout(&self) -> TimeSpan {
        match self {
            Callback::Http { timeout, .. } => *timeout,
            Callback::Publish { .. } | Callback::Command(_) => CALL_TIMEOUT_DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(interval: u64, repeat_for: u64) -> TimerSpec {
        TimerSpec {
            interval: TimeSpan(interval),
            repeat_for: TimeSpan(repeat_for),
            callback: Callback::Command(vec!["PING".into()]),
            retry: Retry::NONE,
            tags: Vec::new(),
        }
    }

    #[test]
    fn a_timer_pops_as_often_as_its_interval_fits_into_its_repeat() {
        assert_eq!(spec(1000, 999).pops(), 0);
        assert_eq!(spec(1000, 1000).pops(), 1);
        assert_eq!(spec(1000, 3999).pops(), 3);
        assert_eq!(spec(0, 0).pops(), 1);
    }

    #[test]
    fn each_wait_between_retries_is_twice_the_one_before() {
        let retry = Retry { attempts: 9, backoff: TimeSpan(500) };
        assert_eq!(
            [0, 1, 2].map(|made| retry.wait(made)),
            [TimeSpan(500), TimeSpan(1000), TimeSpan(2000)]
        );
        assert_eq!(retry.wait(99), RETRY_BACKOFF_MAX);
        let hasty = Retry { attempts: 9, backoff: TimeSpan::ZERO };
        assert_eq!(hasty.wait(3), RETRY_BACKOFF_MIN, "a timer of an older node");
    }
}
