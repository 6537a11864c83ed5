//! The node's memory, for MEMORY STATS and MEMORY DOCTOR.

use commands::{Memory, MemoryFigures};

use super::NodeHost;
use crate::system;

impl Memory for NodeHost<'_> {
    fn memory(&self) -> MemoryFigures {
        let gauge = &self.shared.data.keyspace.memory;
        let report = self.shared.data.refresh_memory();
        let cards = self.shared.clients.all();
        MemoryFigures {
            allocated: report.allocated,
            peak: gauge.peak(),
            startup: gauge.startup(),
            active: report.active,
            resident: report.resident,
            process: system::resident_bytes(),
            links: gauge.buffered(),
            clients: cards.iter().map(|card| card.outer_facts(self.now).total_bytes as u64).sum(),
        }
    }
}
