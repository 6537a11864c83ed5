//! Ids, versions and times: distinct small types that cannot be mixed up. Used by every file of this crate.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One incarnation of a node: the timers it held and the changes it acknowledged are valid only for its boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TimerPeer {
    pub id: u64,
    pub boot: u64,
}

/// The map's epoch at which its members last changed. The same on all nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct MembersEpoch(pub u64);

/// A point of a node's own monotonic time, in milliseconds. Points of two nodes are not comparable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct MonotonicMillis(pub u64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct TimeSpan(pub u64);

/// The current time, passed to a node with every input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Monotonic time, by which everything is timed: the last whole millisecond that has begun.
    pub moment: MonotonicMillis,
    /// The same time rounded up. A timer is due a span after this, since a span after `moment` would be up to a
    /// millisecond early.
    pub rounded_up: MonotonicMillis,
    /// The machine's wall clock in milliseconds. It may jump; it numbers changes, and bridges a stop of the
    /// whole cluster.
    pub wall: u64,
}

impl Now {
    /// Returns the time at the beginning of a millisecond.
    pub const fn exact(moment: MonotonicMillis, wall: u64) -> Now {
        Now { moment, rounded_up: moment, wall }
    }

    /// Returns the time at this reading of the monotonic clock.
    pub fn at(clock: Duration, wall: u64) -> Now {
        let millis = |clock: Duration| u64::try_from(clock.as_millis()).unwrap_or(u64::MAX);
        let moment = MonotonicMillis(millis(clock));
        let rounded_up = MonotonicMillis(millis(clock.saturating_add(JUST_UNDER_A_MILLISECOND)));
        Now { moment, rounded_up, wall }
    }

    /// Returns the later of two times on the monotonic clock, with the wall clock of the second.
    pub(crate) fn max_with(self, later: Now) -> Now {
        Now {
            moment: self.moment.max(later.moment),
            rounded_up: self.rounded_up.max(later.rounded_up),
            wall: later.wall,
        }
    }
}

const JUST_UNDER_A_MILLISECOND: Duration = Duration::from_nanos(999_999);

/// The version of a timer; the greater one is the later. A change numbered under a later epoch beats all
/// changes of an earlier one, so that a primary that has not heard of its successor cannot overrule it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct TimerVersion {
    pub epoch: MembersEpoch,
    /// The primary's wall clock, or one more than the last number if that is greater.
    pub number: u64,
}

/// Number of times a timer has popped: the number its next callback carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Sequence(pub u32);

/// Number of nodes that keep a timer. More than there are nodes means all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ReplicationFactor(u8);

/// A timer's id: 16 hex digits, a dash and the replication factor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TimerId {
    pub number: u64,
    pub factor: ReplicationFactor,
}

impl TimeSpan {
    pub const ZERO: TimeSpan = TimeSpan(0);

    pub const fn from_secs(secs: u64) -> TimeSpan {
        TimeSpan(secs * 1000)
    }

    #[must_use]
    pub fn times(self, count: u64) -> TimeSpan {
        TimeSpan(self.0.saturating_mul(count))
    }
}

impl MonotonicMillis {
    /// Returns the time until `later`; zero if that has passed.
    pub fn until(self, later: MonotonicMillis) -> TimeSpan {
        TimeSpan(later.0.saturating_sub(self.0))
    }
}

impl Add<TimeSpan> for MonotonicMillis {
    type Output = MonotonicMillis;

    fn add(self, span: TimeSpan) -> MonotonicMillis {
        MonotonicMillis(self.0.saturating_add(span.0))
    }
}

impl Add for TimeSpan {
    type Output = TimeSpan;

    fn add(self, other: TimeSpan) -> TimeSpan {
        TimeSpan(self.0.saturating_add(other.0))
    }
}

impl Sub for MonotonicMillis {
    type Output = TimeSpan;

    fn sub(self, earlier: MonotonicMillis) -> TimeSpan {
        earlier.until(self)
    }
}

impl Sequence {
    #[must_use]
    pub fn next(self) -> Sequence {
        Sequence(self.0.saturating_add(1))
    }
}

impl ReplicationFactor {
    pub const DEFAULT: ReplicationFactor = ReplicationFactor(2);

    pub fn new(factor: u64) -> Option<ReplicationFactor> {
        u8::try_from(factor).ok().filter(|factor| *factor > 0).map(ReplicationFactor)
    }

    pub fn count(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.number, self.factor.0)
    }
}

/// The error for a text that is not a timer's id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAnId;

impl FromStr for TimerId {
    type Err = NotAnId;

    /// Accepts only what `Display` writes: two spellings of one id would be two timers to a careless client.
    fn from_str(text: &str) -> Result<TimerId, NotAnId> {
        let (number, factor) = text.split_once('-').ok_or(NotAnId)?;
        let is_plain = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if number.len() != 16 || !number.bytes().all(is_plain) {
            return Err(NotAnId);
        }
        let number = u64::from_str_radix(number, 16).map_err(|_| NotAnId)?;
        if factor.starts_with(['+', '0']) {
            return Err(NotAnId);
        }
        let factor = factor.parse().ok().and_then(ReplicationFactor::new).ok_or(NotAnId)?;
        Ok(TimerId { number, factor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let id = TimerId { number: 0xABC, factor: ReplicationFactor::DEFAULT };
        assert_eq!(id.to_string(), "0000000000000abc-2");
        assert_eq!("0000000000000abc-2".parse(), Ok(id));
    }

    #[test]
    fn nothing_else_is_an_id() {
        let wrong = [
            "",
            "-",
            "abc-2",
            "0000000000000abc",
            "0000000000000abc-",
            "0000000000000abc-0",
            "0000000000000abc-02",
            "0000000000000abc-256",
            "0000000000000ABC-2",
            "0000000000000abc-2-2",
            "+000000000000abc-2",
            "0000000000000abc-+2",
            "0000000000000abg-2",
            "00000000000000abc-2",
        ];
        for text in wrong {
            assert_eq!(text.parse::<TimerId>(), Err(NotAnId), "{text}");
        }
    }

    #[test]
    fn a_change_of_a_later_epoch_beats_any_number_of_an_earlier_one() {
        let early = TimerVersion { epoch: MembersEpoch(3), number: u64::MAX };
        assert!(early < TimerVersion { epoch: MembersEpoch(4), number: 0 });
    }
}
