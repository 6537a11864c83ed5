//! The cost of a server process: CPU, memory; and the cores that it and we may use. Linux only.
use std::fs;
use std::io;
use std::process::{Child, Command};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

/// A core's number, as the kernel counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core(pub usize);

/// The CPU time of a whole process, user and system, including threads that have ended, to the
/// nanosecond; /proc/PID/stat has it in steps of 10 ms.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock(ClockId);

impl CpuClock {
    pub fn of(pid: u32) -> io::Result<CpuClock> {
        Ok(CpuClock(clock_getcpuclockid(pid_of(pid))?))
    }

    pub fn spent(&self) -> io::Result<Duration> {
        Ok(self.0.now()?.into())
    }
}

/// Returns the physical memory a process holds.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    field_kib(&status, "VmRSS")
        .map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no VmRSS line")))
}

/// Parses `Name:   1234 kB`, as in /proc/PID/status and /proc/meminfo.
fn field_kib(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.trim().strip_suffix(" kB")?.trim().parse().ok()
}

pub fn pin_this_thread(cores: &[Core]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(core.0)?;
    }
    Ok(sched_setaffinity(pid_of(0), &set)?)
}

/// Starts a process all of whose threads may use these cores only: a child inherits the affinity of
/// the thread that starts it, before it has threads of its own.
pub fn spawn_pinned(command: &mut Command, cores: &[Core]) -> io::Result<Child> {
    let this_thread = pid_of(0);
    let ours = sched_getaffinity(this_thread)?;
    pin_this_thread(cores)?;
    let child = command.spawn();
    sched_setaffinity(this_thread, &ours)?;
    child
}

/// Describes this machine in one line.
pub fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let memory = field_kib(&read("/proc/meminfo"), "MemTotal").unwrap_or(0) / 1024 / 1024;
    let kernel = read("/proc/sys/kernel/osrelease");
    let cpuinfo = read("/proc/cpuinfo");
    let (model, cores) = (cpu_model(&cpuinfo), cpu_count(&cpuinfo));
    format!("{model}, {cores} cores, {memory} GiB, Linux {}", kernel.trim())
}

/// Returns the average number of processes that wanted a core in the last minute: 0 if the machine was idle.
pub fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
    model.and_then(|line| line.split(':').nth(1)).unwrap_or("unknown CPU").trim().to_owned()
}

/// Counts all cores, though this thread may be pinned to one.
fn cpu_count(cpuinfo: &str) -> usize {
    cpuinfo.lines().filter(|line| line.starts_with("processor")).count()
}

/// Converts a pid; 0 is the calling thread.
fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("Linux pids fit 22 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_proc_status_is_read_in_kib() {
        let status = "Name:\tredis\nVmRSS:\t   14336 kB\nRssAnon:\t 9000 kB\n";
        assert_eq!(field_kib(status, "VmRSS"), Some(14_336));
        assert_eq!(field_kib(status, "Rss"), None);
        assert_eq!(field_kib("VmRSS:\tmany kB\n", "VmRSS"), None);
    }

    #[test]
    fn processors_are_counted_and_named_after_the_first() {
        let cpuinfo =
            "processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!((cpu_model(cpuinfo).as_str(), cpu_count(cpuinfo)), ("AMD EPYC", 2));
        assert_eq!(cpu_model(""), "unknown CPU");
    }

    #[test]
    fn our_own_cpu_clock_runs_while_we_compute() {
        let clock = CpuClock::of(std::process::id()).unwrap();
        let before = clock.spent().unwrap();
        let mut sum = 0u64;
        while clock.spent().unwrap() - before < Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(resident_bytes(std::process::id()).unwrap() > 0);
    }

    #[test]
    fn a_pinned_child_sees_one_core_and_we_keep_ours() {
        let ours = sched_getaffinity(pid_of(0)).unwrap();
        let mut command = Command::new("sleep");
        let mut child = spawn_pinned(command.arg("10"), &[Core(0)]).unwrap();
        let seen = sched_getaffinity(pid_of(child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let count = (0..CpuSet::count()).filter(|core| seen.is_set(*core).unwrap()).count();
        assert_eq!((count, seen.is_set(0).unwrap()), (1, true));
        assert_eq!(sched_getaffinity(pid_of(0)).unwrap(), ours);
    }
}
