//! A node's clock: it runs a little too fast or too slow all its life. The wall clock can also be set,
//! forwards and back.

use std::time::Duration;

use cluster::Moment;

/// A clock that advances by `rate` thousandths of the true time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub rate: u64,
    /// Offset of the wall clock, in milliseconds.
    pub wall_off: i64,
}

/// The wall clock's time when the world begins.
const EPOCH_MILLIS: i64 = 1_700_000_000_000;

impl Clock {
    /// Returns the clock's time at this moment of the true time.
    pub(super) fn at(&self, now: Moment) -> Moment {
        Moment::from_clock(scaled(now.clock_reading(), self.rate, 1000))
    }

    /// Returns the true time at which the clock shows `shown`, or a little later.
    pub(super) fn when(&self, shown: Moment) -> Moment {
        let elapsed = scaled(shown.clock_reading(), 1000, self.rate);
        Moment::from_clock(elapsed + Duration::from_nanos(2))
    }

    pub(super) fn wall_millis(&self, now: Moment) -> u64 {
        let own = i64::try_from(self.at(now).clock_reading().as_millis()).unwrap_or(i64::MAX / 2);
        u64::try_from(EPOCH_MILLIS + own + self.wall_off).unwrap_or(0)
    }
}

fn scaled(time: Duration, times: u64, by: u64) -> Duration {
    let nanos = time.as_nanos() * u128::from(times) / u128::from(by);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
