//! Facts about this process and its machine from the operating system, for INFO; and the limit of open files. A
//! fact that the system does not provide (no /proc) is reported as zero.

use std::fs;
use std::time::Duration;

use commands::CpuTimes;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::uname;

/// Returns the limit of open files.
pub(crate) fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit of open files to its maximum: each connection is one file.
pub(crate) fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // If the system refuses, fewer clients can connect; the node still serves.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Returns the name and version of the system: `Linux 6.1.0 x86_64`.
pub(crate) fn os_name() -> String {
    let name = uname();
    let parts = [name.sysname(), name.release(), name.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

/// Returns the physical memory of the process, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * page_size() as u64
}

/// Returns the physical memory of the machine, in bytes.
pub(crate) fn machine_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0) * 1_024
}

pub(crate) fn cpu_times() -> CpuTimes {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    parse_cpu_times(&text, clock_ticks_per_second()).unwrap_or_default()
}

fn parse_cpu_times(stat: &str, ticks_per_second: u64) -> Option<CpuTimes> {
    // The second field is the program's name in brackets; it may contain any characters.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let time = |index: usize| {
        let ticks: u64 = fields.get(index)?.parse().ok()?;
        Some(Duration::from_millis(ticks * 1_000 / ticks_per_second))
    };
    Some(CpuTimes {
        user: time(11)?,
        system: time(12)?,
        user_children: time(13)?,
        system_children: time(14)?,
    })
}

/// Returns the default node name: host name and port, so that two nodes on one machine differ.
pub fn default_name(port: u16) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let fits = |c: &char| c.is_ascii_alphanumeric() || ".-_".contains(*c);
    let host: String = host.chars().filter(fits).take(50).collect();
    let host = if host.is_empty() { "node" } else { &host };
    format!("{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_this_process() {
        assert!(resident_bytes() > 1 << 20);
        assert!(machine_bytes() > resident_bytes());
        assert!(os_name().contains(' '));
        raise_file_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }

    #[test]
    fn cpu_times_are_found_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 1 2 3 4 150 25 3 4 20 0 1 0 5";
        let times = parse_cpu_times(stat, 100).expect("well formed");
        assert_eq!(times.user, Duration::from_millis(1_500));
        assert_eq!(times.system, Duration::from_millis(250));
        assert_eq!(times.user_children, Duration::from_millis(30));
        assert_eq!(times.system_children, Duration::from_millis(40));
    }
}
