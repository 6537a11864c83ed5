//! Scheduling priority for threads that serve clients, for machines with fewer cores than work. These threads
//! ask the scheduler for short time slices. A thread with a short slice preempts, when it wakes, a thread with
//! a long slice; otherwise a client waits up to three milliseconds behind a fill.
#![expect(unsafe_code, reason = "no safe library offers this system call")]

use std::time::Duration;

use rustix::process::getpriority_process;

/// The shortest time slice that Linux gives.
const TURN: Duration = Duration::from_micros(100);

/// Gives the calling thread short time slices. Has no effect on systems without them (Linux before 6.12).
pub(crate) fn request_short_time_slices() {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER.unsigned_abs(),
        sched_flags: 0,
        sched_nice: getpriority_process(None).unwrap_or_default(),
        sched_priority: 0,
        sched_runtime: TURN.as_nanos() as u64,
        sched_deadline: 0,
        sched_period: 0,
    };
    let (myself, flags): (libc::pid_t, libc::c_uint) = (0, 0);
    // SAFETY: the call reads `attributes`, whose `size` field is correct, and writes nothing.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, myself, &raw const attributes, flags) };
}
