//! A node's clock: it runs a little too fast or too slow all its life. The wall clock can also be set,
//! forwards and back.

use cluster::Moment;
use sim_engine::ClockRate;

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
        Moment::from_clock(ClockRate(self.rate).at(now.clock_reading()))
    }

    /// Returns the true time at which the clock shows `shown`, or a little later.
    pub(super) fn when(&self, shown: Moment) -> Moment {
        Moment::from_clock(ClockRate(self.rate).when(shown.clock_reading()))
    }

    pub(super) fn wall_millis(&self, now: Moment) -> u64 {
        let own = i64::try_from(self.at(now).clock_reading().as_millis()).unwrap_or(i64::MAX / 2);
        u64::try_from(EPOCH_MILLIS + own + self.wall_off).unwrap_or(0)
    }
}
