//! Time and frequency of an item's use: 24 bits in each item, interpreted as a time (LRU) or as a time and a
//! logarithmic counter (LFU), as in Redis.

use crate::UnixMillis;

/// The 24 bits as they are stored in an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccessMark(pub(crate) u32);

const MASK_24: u32 = 0x00FF_FFFF;
/// Initial counter of a new item, so that it is not evicted before it can be used.
const LFU_INITIAL: u8 = 5;

/// The interpretation of the mark: the two families of eviction policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessTracking {
    Lru,
    Lfu(LfuTuning),
}

/// The rates at which LFU counters rise and decay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LfuTuning {
    pub log_factor: u32,
    pub decay_minutes: u32,
}

/// One use of an item, at one moment.
#[derive(Clone, Copy, Debug)]
pub enum Touch {
    /// Leaves the mark unchanged (`CLIENT NO-TOUCH`, `OBJECT`, `DEBUG`).
    Nothing,
    Lru {
        seconds: u32,
    },
    /// `roll` is a fresh random number: the higher the counter, the lower the chance that it rises.
    Lfu {
        minutes: u16,
        tuning: LfuTuning,
        roll: u32,
    },
}

impl Touch {
    /// Creates a use at `now`; `roll` is any random number.
    pub fn at(now: UnixMillis, access: AccessTracking, roll: u32) -> Touch {
        match access {
            AccessTracking::Lru => Touch::Lru { seconds: lru_seconds(now) },
            AccessTracking::Lfu(tuning) => Touch::Lfu { minutes: lfu_minutes(now), tuning, roll },
        }
    }

    /// Returns the mark of a newly created item.
    pub(crate) fn new_mark(self) -> AccessMark {
        match self {
            Touch::Nothing => AccessMark(0),
            Touch::Lru { seconds } => AccessMark(seconds),
            Touch::Lfu { minutes, .. } => lfu_mark(minutes, LFU_INITIAL),
        }
    }

    /// Returns the mark after this use.
    #[inline]
    pub(crate) fn used(self, mark: AccessMark) -> AccessMark {
        match self {
            Touch::Nothing => mark,
            Touch::Lru { seconds } => AccessMark(seconds),
            Touch::Lfu { minutes, tuning, roll } => {
                let count = decayed(mark, minutes, tuning);
                lfu_mark(minutes, raised(count, tuning, roll))
            }
        }
    }
}

impl AccessMark {
    /// Returns the seconds since the last use, for a mark interpreted as LRU.
    pub fn idle_seconds(self, now: UnixMillis) -> u32 {
        lru_seconds(now).wrapping_sub(self.0) & MASK_24
    }

    /// Returns the counter, decayed to `now`, for a mark interpreted as LFU.
    pub fn frequency(self, now: UnixMillis, tuning: LfuTuning) -> u8 {
        decayed(self, lfu_minutes(now), tuning)
    }

    /// Creates the mark that `RESTORE ... IDLETIME` asks for.
    pub fn idle_for(now: UnixMillis, seconds: u32) -> AccessMark {
        AccessMark(lru_seconds(now).wrapping_sub(seconds) & MASK_24)
    }

    /// Creates the mark that `RESTORE ... FREQ` asks for.
    pub fn with_frequency(now: UnixMillis, count: u8) -> AccessMark {
        lfu_mark(lfu_minutes(now), count)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "masked to 24 bits on purpose: the clock wraps"
)]
fn lru_seconds(now: UnixMillis) -> u32 {
    (now.0 / 1_000) as u32 & MASK_24
}

#[expect(clippy::cast_possible_truncation, reason = "the minute counter wraps at 16 bits")]
fn lfu_minutes(now: UnixMillis) -> u16 {
    (now.0 / 60_000) as u16
}

fn lfu_mark(minutes: u16, count: u8) -> AccessMark {
    AccessMark((u32::from(minutes) << 8) | u32::from(count))
}

#[expect(clippy::cast_possible_truncation, reason = "the mark's two fields are 16 and 8 bits")]
fn decayed(mark: AccessMark, minutes: u16, tuning: LfuTuning) -> u8 {
    let count = mark.0 as u8;
    let since = minutes.wrapping_sub((mark.0 >> 8) as u16);
    match u32::from(since).checked_div(tuning.decay_minutes) {
        Some(periods) => count.saturating_sub(periods.min(255) as u8),
        None => count,
    }
}

fn raised(count: u8, tuning: LfuTuning, roll: u32) -> u8 {
    if count == u8::MAX {
        return count;
    }
    let over = u64::from(count.saturating_sub(LFU_INITIAL));
    let odds = over * u64::from(tuning.log_factor) + 1;
    if u64::from(roll) * odds <= u64::from(u32::MAX) { count + 1 } else { count }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNING: LfuTuning = LfuTuning { log_factor: 10, decay_minutes: 1 };

    #[test]
    fn idle_time_survives_the_wrap_of_the_clock() {
        let before = UnixMillis(u64::from(MASK_24) * 1_000);
        let mark = Touch::at(before, AccessTracking::Lru, 0).new_mark();
        assert_eq!(mark.idle_seconds(UnixMillis(before.0 + 3_000)), 3);
    }

    #[test]
    fn a_counter_rises_with_use_and_falls_with_time() {
        let now = UnixMillis(60_000 * 100);
        let mut mark = Touch::at(now, AccessTracking::Lfu(TUNING), 0).new_mark();
        for _ in 0..10 {
            mark = Touch::at(now, AccessTracking::Lfu(TUNING), 0).used(mark);
        }
        assert_eq!(mark.frequency(now, TUNING), LFU_INITIAL + 10);
        let later = UnixMillis(now.0 + 60_000 * 4);
        assert_eq!(mark.frequency(later, TUNING), LFU_INITIAL + 6);
    }

    #[test]
    fn a_high_counter_hardly_rises() {
        let now = UnixMillis(0);
        let mark = AccessMark::with_frequency(now, 200);
        let lucky = Touch::at(now, AccessTracking::Lfu(TUNING), 0).used(mark);
        let usual = Touch::at(now, AccessTracking::Lfu(TUNING), u32::MAX / 2).used(mark);
        assert_eq!(lucky.frequency(now, TUNING), 201);
        assert_eq!(usual.frequency(now, TUNING), 200);
    }
}
