//! Threads that serve clients come first where there are fewer cores than work: they ask the scheduler for
//! short turns. A thread with short turns is let in at once when it wakes, before one with long turns has
//! ended its own; otherwise a client waits for up to three milliseconds behind a fill.
#![expect(unsafe_code, reason = "no safe library offers this system call")]

use std::time::Duration;

use rustix::process::getpriority_process;

/// As long as the shortest turn that Linux gives.
const TURN: Duration = Duration::from_micros(100);

/// The calling thread gets short turns. On a system that does not know them (Linux before 6.12) it is as
/// before.
pub(crate) fn be_prompt() {
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
    // SAFETY: the call reads `attributes`, which is as long as it says, and writes nothing.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, myself, &raw const attributes, flags) };
}
