//! Memory figures of the allocator, for `INFO memory` and `/metrics`. Handed to the node by `serve.rs`, so
//! that the server itself does not depend on the allocator of the binary.

use server::MemoryProbe;
use tikv_jemalloc_ctl::{Result, background_thread, epoch, stats};

/// jemalloc's own figures, in bytes. It updates them once an epoch: `allocated` begins an epoch, and the
/// other figures then belong to the same moment.
pub(crate) struct Jemalloc {
    epoch: tikv_jemalloc_ctl::epoch_mib,
    allocated: stats::allocated_mib,
    active: stats::active_mib,
    resident: stats::resident_mib,
    retained: stats::retained_mib,
    metadata: stats::metadata_mib,
}

impl Jemalloc {
    /// Looks up the figures, and makes jemalloc return unused memory from a background thread instead of from
    /// the threads that serve clients.
    pub(crate) fn prepare() -> Result<Jemalloc> {
        background_thread::write(true)?;
        Ok(Jemalloc {
            epoch: epoch::mib()?,
            allocated: stats::allocated::mib()?,
            active: stats::active::mib()?,
            resident: stats::resident::mib()?,
            retained: stats::retained::mib()?,
            metadata: stats::metadata::mib()?,
        })
    }
}

fn bytes(read: Result<usize>) -> u64 {
    read.map_or(0, |bytes| bytes as u64)
}

impl MemoryProbe for Jemalloc {
    fn allocated(&self) -> u64 {
        let _ = self.epoch.advance(); // If this fails, the figures are older, not wrong.
        bytes(self.allocated.read())
    }
    fn active(&self) -> u64 {
        bytes(self.active.read())
    }
    fn resident(&self) -> u64 {
        bytes(self.resident.read())
    }
    fn retained(&self) -> u64 {
        bytes(self.retained.read())
    }
    fn metadata(&self) -> u64 {
        bytes(self.metadata.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_follow_what_is_allocated() {
        let jemalloc = Jemalloc::prepare().expect("this binary runs on jemalloc");
        let before = jemalloc.allocated();
        let block = vec![1u8; 64 << 20];
        let with_block = jemalloc.allocated();
        assert!(with_block >= before + (60 << 20), "{before} {with_block}");
        assert!(jemalloc.active() >= with_block);
        assert!(jemalloc.resident() >= 60 << 20);
        drop(block);
        assert!(jemalloc.allocated() < with_block - (32 << 20));
    }
}
