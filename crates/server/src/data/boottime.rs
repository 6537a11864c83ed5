//! The clock of leases: `CLOCK_BOOTTIME`, which runs on while the machine sleeps and which nobody can
//! set.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns how long the machine has been up.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).expect("this clock starts at 0");
    let nanos = u32::try_from(time.tv_nsec).expect("nanoseconds are below a second");
    Duration::new(seconds, nanos)
}
