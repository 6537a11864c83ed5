//! The clock of leases: `CLOCK_BOOTTIME`, which runs on while the machine sleeps and which nobody can
//! set.

use std::time::Duration;

use cluster::Moment;
use rustix::time::{ClockId, clock_gettime};

/// Returns the time on this clock, which started with the machine.
pub(crate) fn now() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).expect("this clock starts at 0");
    let nanos = u32::try_from(time.tv_nsec).expect("nanoseconds are below a second");
    Moment::from_clock(Duration::new(seconds, nanos))
}
