//! The connections that wait for keys (BLPOP and others), slot by slot. Who waits is decided in `cluster::serving`, under
//! the slot's lock; `worker/blocked.rs` parks the connections.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cluster::serving::{KeyWaiters, WaitNumber};
use parking_lot::Mutex;
use placement::Slot;

/// Number of parts, each with a lock of its own. A slot's lock is always held around it, so threads meet here only if
/// their slots are of the same part and both have waiting connections.
const PARTS: usize = 256;

pub(crate) struct KeyLines {
    /// Each has the waiting connections of every 256th slot.
    parts: Box<[Mutex<KeyWaiters>]>,
    last_number: AtomicU64,
}

impl Default for KeyLines {
    fn default() -> KeyLines {
        let parts = (0..PARTS).map(|_| Mutex::default()).collect();
        KeyLines { parts, last_number: AtomicU64::new(0) }
    }
}

impl KeyLines {
    /// Runs `work` on the connections that wait for keys of a slot, whose lock is held.
    pub(super) fn with<R>(&self, slot: Slot, work: impl FnOnce(&mut KeyWaiters) -> R) -> R {
        work(&mut self.parts[slot.index() % PARTS].lock())
    }

    /// Returns a place in line behind all earlier ones.
    pub(crate) fn next_number(&self) -> WaitNumber {
        WaitNumber(1 + self.last_number.fetch_add(1, Relaxed))
    }
}
