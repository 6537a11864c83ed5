//! All slots of the node, each behind its own small lock, summaries of slots that can be read without the
//! lock, and the memory that the items take. Used by the I/O threads (`worker/execute.rs`) and by `janitor.rs`.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use cluster::data::SlotState;
use cluster::replication::Role;
use commands::KeyspaceNumbers;
use parking_lot::{Mutex, MutexGuard};
use placement::Slot;
use store::{Database, Garbage, Key, Seed, SlotTable, UnixMillis};

use crate::memory::{MemoryGauge, MemoryProbe};

/// A slot on its own cache lines, so that two threads working on two slots do not disturb each other.
#[repr(align(64))]
struct Cell(Mutex<SlotState>);

/// Summary of a slot that is readable without its lock. Written under the lock, after each change.
struct SlotSummary {
    /// Time of the next check for expired keys; possibly too early.
    expires_from: AtomicU64,
    len: AtomicU32,
    expiring: AtomicU32,
}

const NEVER: u64 = u64::MAX;

impl Default for SlotSummary {
    fn default() -> SlotSummary {
        SlotSummary {
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
    summaries: Box<[SlotSummary]>,
    /// One bit for each slot that this node serves: true if it holds keys of databases other than 0. Updated like the
    /// summaries.
    with_databases: Box<[AtomicU64]>,
    /// The seed with which keys are hashed.
    pub seed: Seed,
    pub memory: MemoryGauge,
    /// Channel to the janitor, which frees large values.
    garbage: Sender<Garbage>,
}

/// Numbers of keys.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Population {
    pub keys: u64,
    pub expiring: u64,
}

/// Number of keys of each database whose remaining time to live is sampled.
const SAMPLES_MAX: u64 = 32;

/// Remaining times to live of some keys of each database: their sum and their number.
#[derive(Default)]
struct TtlSamples(BTreeMap<Database, (u64, u64)>);

impl TtlSamples {
    /// Adds a key of this database, if one expires and there are not enough yet.
    fn add(&mut self, table: &SlotTable, database: Database, now: UnixMillis) {
        let (sum, count) = self.0.entry(database).or_default();
        if *count < SAMPLES_MAX
            && let Some(found) = table.random_expiring_in(database, *count)
            && let Some(expiry) = found.expires_at
        {
            *sum += expiry.0.saturating_sub(now.0);
            *count += 1;
        }
    }

    fn average(&self, database: Database) -> u64 {
        self.0.get(&database).and_then(|(sum, count)| sum.checked_div(*count)).unwrap_or(0)
    }
}

impl Keyspace {
    /// Creates all slots, empty; the node has this role for each of them.
    pub(crate) fn new(
        role: Role,
        seed: Seed,
        memory: Arc<dyn MemoryProbe>,
        garbage: Sender<Garbage>,
    ) -> Keyspace {
        let slots = || 0..Slot::COUNT;
        Keyspace {
            cells: slots().map(|_| Cell(Mutex::new(SlotState::with_role(role)))).collect(),
            summaries: slots().map(|_| SlotSummary::default()).collect(),
            with_databases: slots().step_by(64).map(|_| AtomicU64::new(0)).collect(),
            seed,
            memory: MemoryGauge::new(memory), // Now, so that empty slots count as the node's own memory.
            garbage,
        }
    }

    /// Frees something large on the janitor's thread.
    pub(crate) fn discard(&self, garbage: Garbage) {
        // The janitor is gone only when the node stops; then the garbage is freed here.
        let _ = self.garbage.send(garbage);
    }

    #[inline]
    pub(crate) fn lock_one(&self, slot: Slot) -> SlotGuard<'_> {
        self.cells[slot.index()].0.lock()
    }

    /// Waits for the lock of a slot, until `is_busy` says that somebody holds it for long.
    #[cold]
    pub(crate) fn lock_unless(
        &self,
        slot: Slot,
        is_busy: impl Fn() -> bool,
    ) -> Option<SlotGuard<'_>> {
        const LOOK_EVERY: Duration = Duration::from_millis(2);
        loop {
            if let Some(guard) = self.cells[slot.index()].0.try_lock_for(LOOK_EVERY) {
                return Some(guard);
            }
            if is_busy() {
                return None;
            }
        }
    }

    /// Prefetches the first cache line of a slot: all that a read of a plain slot needs.
    #[inline]
    pub(crate) fn prefetch_slot(&self, key: &Key<'_>) {
        store::prefetch(&raw const self.cells[key.slot().index()]);
    }

    /// Prefetches the following lines: needed besides by a write, or by a slot with backups.
    #[inline]
    pub(crate) fn prefetch_behind(&self, key: &Key<'_>) {
        let cell = (&raw const self.cells[key.slot().index()]).cast::<u8>();
        store::prefetch(cell.wrapping_add(64));
        store::prefetch(cell.wrapping_add(128));
    }

    /// Returns the lock of a slot if it is free.
    #[inline]
    pub(crate) fn try_lock(&self, slot: Slot) -> Option<SlotGuard<'_>> {
        self.cells[slot.index()].0.try_lock()
    }

    /// Returns the numbers of keys of each database that has any, and the average remaining time to live, estimated from a
    /// few keys.
    pub(crate) fn numbers(&self, now: UnixMillis) -> Vec<(Database, KeyspaceNumbers)> {
        let Population { keys, expiring } = self.population();
        let mut samples = TtlSamples::default();
        self.sample_ttls(now, &mut samples);
        let mut numbers = self.numbers_of_others(now, &mut samples);
        // A slot may have changed between the two counts.
        let keys = numbers.values().fold(keys, |rest, it| rest.saturating_sub(it.keys));
        let expiring = numbers.values().fold(expiring, |rest, it| rest.saturating_sub(it.expiring));
        if keys > 0 {
            let zero = KeyspaceNumbers { keys, expiring, average_ttl: 0 };
            numbers.insert(Database::ZERO, zero);
        }
        let with_ttl = |(database, numbers): (Database, KeyspaceNumbers)| {
            (database, KeyspaceNumbers { average_ttl: samples.average(database), ..numbers })
        };
        numbers.into_iter().map(with_ttl).collect()
    }

    /// Counts the keys of databases other than 0. Slots that stay locked are left out: this very thread may hold the lock,
    /// in an EXEC.
    fn numbers_of_others(
        &self,
        now: UnixMillis,
        samples: &mut TtlSamples,
    ) -> BTreeMap<Database, KeyspaceNumbers> {
        /// Time to wait for a lock, and how often.
        const PATIENCE: Duration = Duration::from_millis(1);
        const WAITS_MAX: usize = 8;
        let mut waits = 0;
        let mut numbers: BTreeMap<Database, KeyspaceNumbers> = BTreeMap::new();
        let mut next = Slot::new(0).and_then(|from| self.next_with_databases(from));
        while let Some(slot) = next {
            let patience = if waits < WAITS_MAX { PATIENCE } else { Duration::ZERO };
            if let Some(state) = self.cells[slot.index()].0.try_lock_for(patience) {
                let sizes = state.table().databases();
                for size in sizes.filter(|size| size.database != Database::ZERO) {
                    let sum = numbers.entry(size.database).or_default();
                    sum.keys += size.len as u64;
                    sum.expiring += size.expiring as u64;
                    samples.add(state.table(), size.database, now);
                }
            } else {
                waits += 1;
            }
            let behind = Slot::new(slot.number() + 1);
            next = behind.and_then(|from| self.next_with_databases(from));
        }
        numbers
    }

    /// Estimates the average remaining time to live in database 0.
    fn sample_ttls(&self, now: UnixMillis, samples: &mut TtlSamples) {
        let mut from = Slot::new(0);
        for _ in 0..SAMPLES_MAX {
            let Some(slot) = from.and_then(|from| self.next_expiring(from)) else { break };
            // Skip a locked slot: this very thread may hold the lock, in an EXEC.
            if let Some(state) = self.try_lock(slot) {
                samples.add(state.table(), Database::ZERO, now);
            }
            // Keys are spread evenly over slots, so any slots will do.
            from = Slot::new(slot.number() + 1);
        }
    }

    pub(crate) fn population(&self) -> Population {
        self.summaries.iter().fold(Population::default(), |sum, note| Population {
            keys: sum.keys + u64::from(note.len.load(Relaxed)),
            expiring: sum.expiring + u64::from(note.expiring.load(Relaxed)),
        })
    }

    /// Returns the first slot at or after `from` that may have an expired key.
    pub(crate) fn next_due(&self, from: Slot, now: UnixMillis) -> Option<Slot> {
        self.next_summarised(from, |note| note.expires_from.load(Relaxed) <= now.0)
    }

    /// Returns the first slot at or after `from` that holds a key.
    pub(crate) fn next_occupied(&self, from: Slot) -> Option<Slot> {
        self.next_summarised(from, |note| note.len.load(Relaxed) > 0)
    }

    /// Returns the first slot at or after `from` that holds a key of a database other than 0.
    pub(crate) fn next_with_databases(&self, from: Slot) -> Option<Slot> {
        let (word, bit) = word_and_bit(from);
        let first = self.with_databases[word].load(Relaxed) & (u64::MAX << bit);
        let behind = self.with_databases[word + 1..].iter().map(|word| word.load(Relaxed));
        let mut words = core::iter::once(first).chain(behind).zip(word..);
        let (bits, word) = words.find(|(bits, _)| *bits != 0)?;
        let index = word * 64 + bits.trailing_zeros() as usize;
        u16::try_from(index).ok().and_then(Slot::new)
    }

    /// Returns the first slot at or after `from` that holds a key with an expiry.
    pub(crate) fn next_expiring(&self, from: Slot) -> Option<Slot> {
        self.next_summarised(from, |note| note.expiring.load(Relaxed) > 0)
    }

    /// Returns the number of keys in a slot that this node serves.
    pub(crate) fn len_of(&self, slot: Slot) -> usize {
        self.summaries[slot.index()].len.load(Relaxed) as usize
    }

    /// Returns whether a slot that this node serves holds a key with an expiry.
    pub(crate) fn has_expiring(&self, slot: Slot) -> bool {
        self.summaries[slot.index()].expiring.load(Relaxed) > 0
    }

    fn next_summarised(&self, from: Slot, wanted: impl Fn(&SlotSummary) -> bool) -> Option<Slot> {
        let behind = &self.summaries[from.index()..];
        let index = from.index() + behind.iter().position(wanted)?;
        u16::try_from(index).ok().and_then(Slot::new)
    }

    /// Updates the summary of a slot; called under its lock. Only slots of which this node is primary count:
    /// keys of other primaries are not shown, expired or evicted here.
    #[inline]
    pub(crate) fn note(&self, slot: Slot, state: &SlotState) {
        let note = &self.summaries[slot.index()];
        let is_primary = state.replica().is_primary();
        self.note_databases(slot, is_primary && state.table().has_other_databases());
        if !is_primary {
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

    #[inline]
    fn note_databases(&self, slot: Slot, has: bool) {
        let (word, bit) = word_and_bit(slot);
        let word = &self.with_databases[word];
        if (word.load(Relaxed) >> bit & 1 == 1) != has {
            // Neighbouring slots share the word, each under a lock of its own.
            if has {
                word.fetch_or(1 << bit, Relaxed)
            } else {
                word.fetch_and(!(1 << bit), Relaxed)
            };
        }
    }
}

/// Returns the word and the bit of a slot among bits.
fn word_and_bit(slot: Slot) -> (usize, u32) {
    (slot.index() / 64, u32::from(slot.number() % 64))
}

/// Stores only a value that differs: most writes change no summary, and a cache line that is only read stays
/// shared between the cores.
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
