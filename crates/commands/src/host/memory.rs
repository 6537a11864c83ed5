//! The node's memory figures, for MEMORY STATS and MEMORY DOCTOR.

/// Access to the allocator's figures.
pub trait Memory {
    fn memory(&self) -> MemoryFigures;
}

/// The node's memory at one moment, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryFigures {
    /// Bytes allocated from the allocator.
    pub allocated: u64,
    /// Maximum of `allocated` so far.
    pub peak: u64,
    /// Bytes allocated before the first client connected.
    pub startup: u64,
    /// Bytes in pages that contain allocations.
    pub active: u64,
    /// Bytes in physical pages that the allocator holds.
    pub resident: u64,
    /// Resident memory of the process as the operating system reports it.
    pub process: u64,
    /// Bytes queued for other nodes: not data, and not counted against `maxmemory`.
    pub links: u64,
    /// Buffers of all connections.
    pub clients: u64,
}
