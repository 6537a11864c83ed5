//! What the node knows of its memory, for MEMORY STATS and MEMORY DOCTOR.

/// Whoever asks the allocator.
pub trait Memory {
    fn memory(&self) -> MemoryFigures;
}

/// The node's memory at one moment, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryFigures {
    /// Handed out by the allocator.
    pub allocated: u64,
    /// The most that ever was.
    pub peak: u64,
    /// What was allocated before the first client came.
    pub startup: u64,
    /// In pages that hold anything handed out.
    pub active: u64,
    /// In physical pages that the allocator holds.
    pub resident: u64,
    /// What the system says the process has.
    pub process: u64,
    /// What waits for other nodes: no data, and not counted against `maxmemory`.
    pub links: u64,
    /// Buffers of all connections.
    pub clients: u64,
}
