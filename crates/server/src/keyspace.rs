//! All slots of the node, each behind its own small lock, and what is worth knowing about a slot
//! without locking it. Used by the I/O threads (`worker/execute.rs`) and by `keeper.rs`.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use cluster::data::SlotState;
use cluster::replication::Role;
use commands::KeyspaceNumbers;
use parking_lot::{Mutex, MutexGuard};
use placement::Slot;
use store::{Key, UnixMillis};

/// A slot on cache lines of its own, so that two threads at work on two slots do not disturb one
/// another.
#[repr(align(64))]
struct Cell(Mutex<SlotState>);

/// What others may read of a slot without its lock. Written under the lock, after each change.
struct Note {
    /// When to look for expired keys; possibly too early.
    expires_from: AtomicU64,
    len: AtomicU32,
    expiring: AtomicU32,
}

const NEVER: u64 = u64::MAX;

impl Default for Note {
    fn default() -> Note {
        Note {
            expires_from: AtomicU64::new(NEVER),
            len: AtomicU32::new(0),
            expiring: AtomicU32::new(0),
        }
    }
}

/// A slot while its lock is held.
pub(crate) type SlotGuard<'a> = MutexGuard<'a, SlotState>;

pub(crate) struct Keyspace {
    cells: Box<[Cell]>,
    notes: Box<[Note]>,
}

/// How many keys there are.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Population {
    pub keys: u64,
    pub expiring: u64,
}

impl Keyspace {
    /// All slots, empty; to each of them the node has this role.
    pub(crate) fn new(role: Role) -> Keyspace {
        let slots = || 0..Slot::COUNT;
        Keyspace {
            cells: slots().map(|_| Cell(Mutex::new(SlotState::with_role(role)))).collect(),
            notes: slots().map(|_| Note::default()).collect(),
        }
    }

    #[inline]
    pub(crate) fn lock_one(&self, slot: Slot) -> SlotGuard<'_> {
        self.cells[slot.index()].0.lock()
    }

    /// Asks for the first cache line of a slot: all that a read of a plain slot needs.
    #[inline]
    pub(crate) fn prefetch_slot(&self, key: &Key<'_>) {
        store::prefetch(&raw const self.cells[key.slot().index()]);
    }

    /// Asks for the lines behind it: what a write or a slot with backups needs besides.
    #[inline]
    pub(crate) fn prefetch_behind(&self, key: &Key<'_>) {
        let cell = (&raw const self.cells[key.slot().index()]).cast::<u8>();
        store::prefetch(cell.wrapping_add(64));
        store::prefetch(cell.wrapping_add(128));
    }

    /// The lock of a slot, if nobody has it.
    #[inline]
    pub(crate) fn try_lock(&self, slot: Slot) -> Option<SlotGuard<'_>> {
        self.cells[slot.index()].0.try_lock()
    }

    /// How many keys there are, and how long they have left on average, judged by a few of them.
    pub(crate) fn numbers(&self, now: UnixMillis) -> KeyspaceNumbers {
        /// Slots looked at, each for one key.
        const SAMPLES: usize = 32;
        let Population { keys, expiring } = self.population();
        let mut sum = 0;
        let mut count = 0;
        let mut from = Slot::new(0);
        for roll in 0..SAMPLES as u64 {
            let Some(slot) = from.and_then(|from| self.next_expiring(from)) else { break };
            // One that is busy is passed by: it may be this very thread that has it, in an EXEC.
            let state = self.try_lock(slot);
            let found = state.as_ref().and_then(|state| state.table().random_expiring(roll));
            if let Some(expiry) = found.and_then(|found| found.expires_at) {
                sum += expiry.0.saturating_sub(now.0);
                count += 1;
            }
            // Keys are spread evenly over slots, so any slots will do.
            from = Slot::new(slot.number() + 1);
        }
        KeyspaceNumbers { keys, expiring, average_ttl: sum.checked_div(count).unwrap_or(0) }
    }

    pub(crate) fn population(&self) -> Population {
        self.notes.iter().fold(Population::default(), |sum, note| Population {
            keys: sum.keys + u64::from(note.len.load(Relaxed)),
            expiring: sum.expiring + u64::from(note.expiring.load(Relaxed)),
        })
    }

    /// The first slot at or behind `from` with something that may be due.
    pub(crate) fn next_due(&self, from: Slot, now: UnixMillis) -> Option<Slot> {
        self.next_noted(from, |note| note.expires_from.load(Relaxed) <= now.0)
    }

    /// The first slot at or behind `from` that holds anything.
    pub(crate) fn next_occupied(&self, from: Slot) -> Option<Slot> {
        self.next_noted(from, |note| note.len.load(Relaxed) > 0)
    }

    /// The first slot at or behind `from` that holds something that expires.
    pub(crate) fn next_expiring(&self, from: Slot) -> Option<Slot> {
        self.next_noted(from, |note| note.expiring.load(Relaxed) > 0)
    }

    /// The number of keys in a slot that this node serves.
    pub(crate) fn len_of(&self, slot: Slot) -> usize {
        self.notes[slot.index()].len.load(Relaxed) as usize
    }

    fn next_noted(&self, from: Slot, wanted: impl Fn(&Note) -> bool) -> Option<Slot> {
        let behind = &self.notes[from.index()..];
        let index = from.index() + behind.iter().position(wanted)?;
        u16::try_from(index).ok().and_then(Slot::new)
    }

    /// Writes down what has become of a slot; called under its lock. Only what this node is primary of
    /// counts: nobody else's keys are shown, expired or evicted here.
    #[inline]
    pub(crate) fn note(&self, slot: Slot, state: &SlotState) {
        let note = &self.notes[slot.index()];
        if !state.duty().is_primary() {
            note.expires_from.store(NEVER, Relaxed);
            note.len.store(0, Relaxed);
            note.expiring.store(0, Relaxed);
            return;
        }
        let table = state.table();
        set_if_new(&note.expires_from, table.expires_from().map_or(NEVER, |from| from.0));
        set_if_new_u32(&note.len, count(table.len()));
        set_if_new_u32(&note.expiring, count(table.expiring()));
    }
}

/// Stores only what differs: most writes change none of the notes, and a line that is only read
/// stays shared between the cores.
#[inline]
fn set_if_new(note: &AtomicU64, value: u64) {
    if note.load(Relaxed) != value {
        note.store(value, Relaxed);
    }
}

#[inline]
fn set_if_new_u32(note: &AtomicU32, value: u32) {
    if note.load(Relaxed) != value {
        note.store(value, Relaxed);
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
