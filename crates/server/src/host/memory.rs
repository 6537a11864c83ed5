//! The node's memory, for MEMORY STATS and MEMORY DOCTOR.

use commands::{Memory, MemoryFigures};

use super::NodeHost;

impl Memory for NodeHost<'_> {
    fn memory(&self) -> MemoryFigures {
        let gauge = &self.shared.memory;
        let report = gauge.refresh();
        let cards = self.shared.clients.all();
        MemoryFigures {
            allocated: report.allocated,
            peak: gauge.peak(),
            startup: gauge.startup(),
            active: report.active,
            resident: report.resident,
            process: process_bytes().unwrap_or(report.resident),
            clients: cards.iter().map(|card| card.outer_facts(self.now).total_bytes as u64).sum(),
        }
    }
}

/// The physical memory of the process, where the system tells it.
fn process_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}
