//! All slots of the node, each behind its own small lock, and what is worth knowing about a slot
//! without locking it. Used by the I/O threads (`worker/execute.rs`) and by `keeper.rs`.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use cluster::data::SlotState;
use cluster::replication::{Duty, Role};
use commands::{EffectLog, KeyspaceNumbers, Locks, Slots};
use parking_lot::{Mutex, MutexGuard};
use placement::Slot;
use smallvec::SmallVec;
use store::{Key, SlotTable, UnixMillis};

use crate::data::Links;

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
        let cell = || {
            let duty = Duty { role, ..Duty::default() };
            Cell(Mutex::new(SlotState { table: SlotTable::default(), duty }))
        };
        Keyspace {
            cells: slots().map(|_| cell()).collect(),
            notes: slots().map(|_| Note::default()).collect(),
        }
    }

    /// Takes the locks a command needs, in ascending order, so that no two commands wait for each
    /// other in a circle.
    #[inline]
    pub(crate) fn lock(&self, locks: Locks) -> LockedSlots<'_> {
        let held = match locks {
            Locks::None => Held::None,
            Locks::One(slot) => Held::One(slot, self.lock_one(slot)),
            Locks::Several(slots) => {
                Held::Several(slots.into_iter().map(|slot| (slot, self.lock_one(slot))).collect())
            }
            Locks::AsNeeded => Held::AsNeeded(None),
            Locks::All { named } => {
                let all = Slot::all().map(|slot| (slot, self.lock_one(slot))).collect();
                return LockedSlots {
                    named: Some(named),
                    ..LockedSlots::new(self, Held::Several(all))
                };
            }
        };
        LockedSlots::new(self, held)
    }

    #[inline]
    pub(crate) fn lock_one(&self, slot: Slot) -> SlotGuard<'_> {
        self.cells[slot.index()].0.lock()
    }

    /// Asks for the cache lines of a slot: its table's and, behind it, its duty's.
    #[inline]
    pub(crate) fn prefetch_slot(&self, key: &Key<'_>) {
        let cell = &raw const self.cells[key.slot().index()];
        store::prefetch(cell);
        store::prefetch(cell.cast::<u8>().wrapping_add(64));
    }

    /// The lock of a slot, if nobody has it.
    #[inline]
    pub(crate) fn try_lock(&self, slot: Slot) -> Option<SlotGuard<'_>> {
        self.cells[slot.index()].0.try_lock()
    }

    /// A slot whose lock is held already, for a command.
    #[inline]
    pub(crate) fn locked<'a>(&'a self, slot: Slot, guard: SlotGuard<'a>) -> LockedSlots<'a> {
        LockedSlots::new(self, Held::One(slot, guard))
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
            let found = state.as_ref().and_then(|state| state.table.random_expiring(roll));
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
        if !state.duty.is_primary() {
            note.expires_from.store(NEVER, Relaxed);
            note.len.store(0, Relaxed);
            note.expiring.store(0, Relaxed);
            return;
        }
        let table = &state.table;
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

/// The slots that a command may work on.
pub(crate) struct LockedSlots<'a> {
    keyspace: &'a Keyspace,
    held: Held<'a>,
    /// The slots that the command names, if it has locked more than those.
    named: Option<Vec<Slot>>,
    /// Where what was done to a slot is sent before the walk leaves it.
    links: Option<&'a Links>,
    /// What is shown of a slot that another node serves.
    nothing: Option<Box<SlotTable>>,
    /// What becomes of slots that are being handed over.
    still: Still,
}

/// What a command over many slots does with one that is being handed over, which must not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Still {
    /// It looks at it.
    Shown,
    /// It would change it, and has met none so far.
    Hidden,
    /// It would have changed one.
    PassedBy,
}

enum Held<'a> {
    None,
    One(Slot, SlotGuard<'a>),
    /// In ascending order.
    Several(Vec<(Slot, SlotGuard<'a>)>),
    /// The one at hand, of a walk over all.
    AsNeeded(Option<(Slot, SlotGuard<'a>)>),
}

impl<'a> LockedSlots<'a> {
    #[inline]
    fn new(keyspace: &'a Keyspace, held: Held<'a>) -> LockedSlots<'a> {
        let still = Still::Hidden;
        LockedSlots { keyspace, held, named: None, links: None, nothing: None, still }
    }

    /// A walk over many slots sends on what it does to each before it goes to the next.
    pub(crate) fn send_on(&mut self, links: &'a Links) {
        self.links = Some(links);
    }

    /// Whether it has locked every slot (an EXEC with a FLUSHALL in it), and one is being handed over.
    pub(crate) fn is_all_but_still(&self) -> bool {
        match &self.held {
            Held::Several(states) if self.named.is_some() => {
                states.iter().any(|(_, state)| is_still(state))
            }
            Held::None | Held::One(..) | Held::Several(_) | Held::AsNeeded(_) => false,
        }
    }

    /// It changes nothing, and so may look at what is being handed over.
    pub(crate) fn only_look(&mut self) {
        self.still = Still::Shown;
    }

    /// Whether it has left out a slot that is being handed over: then it has not done all it should.
    pub(crate) fn passed_by(&self) -> bool {
        self.still == Still::PassedBy
    }

    /// The slots that are locked, with what this node is to them. A walk has none yet.
    pub(crate) fn states(&mut self) -> SmallVec<[(Slot, &mut SlotState); 1]> {
        match &mut self.held {
            Held::None | Held::AsNeeded(_) => SmallVec::new(),
            Held::One(slot, state) => SmallVec::from_iter([(*slot, &mut **state)]),
            Held::Several(states) => {
                states.iter_mut().map(|(slot, state)| (*slot, &mut **state)).collect()
            }
        }
    }

    /// The slots that the command names: those must be served here. In others it does what it does to
    /// as much as is served.
    pub(crate) fn named(&mut self) -> impl Iterator<Item = (Slot, &mut SlotState)> {
        let named = self.named.clone();
        let is_named = move |slot: Slot| named.as_ref().is_none_or(|named| named.contains(&slot));
        self.states().into_iter().filter(move |(slot, _)| is_named(*slot))
    }

    /// The slot that is locked, if it is just one.
    #[inline]
    pub(crate) fn one(&mut self) -> Option<(Slot, &mut SlotState)> {
        match &mut self.held {
            Held::One(slot, state) => Some((*slot, &mut **state)),
            Held::None | Held::AsNeeded(_) | Held::Several(_) => None,
        }
    }

    /// True if the command needs no slot.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.held, Held::None)
    }

    /// True for a walk over many slots.
    pub(crate) fn is_walk(&self) -> bool {
        matches!(self.held, Held::AsNeeded(_))
    }

    /// Notes what has become of the slots. To be called when a command has changed anything; the
    /// locks are let go by dropping.
    #[inline]
    pub(crate) fn note_changes(&self) {
        match &self.held {
            Held::None | Held::AsNeeded(None) => {}
            Held::One(slot, state) | Held::AsNeeded(Some((slot, state))) => {
                self.keyspace.note(*slot, state);
            }
            Held::Several(states) => {
                for (slot, state) in states {
                    self.keyspace.note(*slot, state);
                }
            }
        }
    }
}

impl Slots for LockedSlots<'_> {
    #[inline]
    fn table(&mut self, slot: Slot) -> &mut SlotTable {
        match &mut self.held {
            Held::One(held, state) => {
                assert_eq!(*held, slot, "a command reaches only for the keys it named");
                &mut state.table
            }
            Held::Several(states) => {
                let at = states.binary_search_by_key(&slot, |(held, _)| *held);
                let state = &mut states[at.expect("a command reaches only for its keys")].1;
                shown(state, &mut self.nothing, &mut self.still)
            }
            Held::AsNeeded(current) => {
                if let Some((held, state)) = current.as_ref().filter(|(held, _)| *held != slot) {
                    self.keyspace.note(*held, state);
                    *current = None;
                }
                let keyspace = self.keyspace;
                let (_, state) = current.get_or_insert_with(|| (slot, keyspace.lock_one(slot)));
                shown(state, &mut self.nothing, &mut self.still)
            }
            Held::None => unreachable!("a command without keys reached for one"),
        }
    }

    fn recorded(&mut self, effects: &mut EffectLog) {
        if let (Held::AsNeeded(Some((slot, state))), Some(links)) = (&mut self.held, self.links) {
            links.ship(*slot, state, effects);
            effects.clear();
        }
    }

    fn is_still(&mut self, slot: Slot) -> bool {
        match &self.held {
            Held::AsNeeded(Some((held, state))) if *held == slot => is_still(state),
            Held::Several(states) => {
                states.iter().any(|(held, state)| *held == slot && is_still(state))
            }
            Held::None | Held::One(..) | Held::AsNeeded(_) => false,
        }
    }

    fn occupied(&mut self, from: Slot) -> Option<Slot> {
        if let Held::Several(states) = &self.held {
            // What this very command (an EXEC) has done so far is not noted yet.
            let behind = &states[states.partition_point(|(slot, _)| *slot < from)..];
            let occupied = |state: &SlotState| state.duty.is_primary() && !state.table.is_empty();
            return behind.iter().find(|(_, state)| occupied(state)).map(|(slot, _)| *slot);
        }
        self.note_changes();
        self.keyspace.next_occupied(from)
    }

    fn len(&mut self, slot: Slot) -> usize {
        if let Held::Several(_) = &self.held {
            return self.table(slot).len();
        }
        self.note_changes();
        self.keyspace.notes[slot.index()].len.load(Relaxed) as usize
    }

    fn key_count(&mut self) -> usize {
        if let Held::Several(states) = &self.held {
            let mine = states.iter().filter(|(_, state)| state.duty.is_primary());
            return mine.map(|(_, state)| state.table.len()).sum();
        }
        self.note_changes();
        usize::try_from(self.keyspace.population().keys).unwrap_or(usize::MAX)
    }
}

fn is_still(state: &SlotState) -> bool {
    matches!(state.duty.role, Role::Paused | Role::Settling)
}

/// A slot that another node serves looks empty to commands that walk over many, and what they would do
/// to it is forgotten. So does one that is being handed over, to those that would change it.
fn shown<'a>(
    state: &'a mut SlotState,
    nothing: &'a mut Option<Box<SlotTable>>,
    still: &mut Still,
) -> &'a mut SlotTable {
    match (state.duty.role, *still) {
        (Role::Serving, _) | (Role::Paused | Role::Settling, Still::Shown) => &mut state.table,
        (Role::Paused | Role::Settling, Still::Hidden | Still::PassedBy) => {
            *still = Still::PassedBy;
            nothing.insert(Box::default())
        }
        (Role::Absent | Role::Backup | Role::Heir | Role::Taking | Role::Kept, _) => {
            nothing.insert(Box::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use store::{Effect, NewValue, Seed, Touch, Version};

    use super::*;

    fn with_a_key_in(slot: Slot, role: Role) -> Keyspace {
        let keyspace = Keyspace::new(Role::Serving);
        let mut state = keyspace.lock_one(slot);
        let seed = Seed::new(5);
        let value = NewValue::Plain(b"value");
        let put = Effect::Put { key: seed.key(b"key"), value, expires_at: None };
        let _ = state.table.apply(&put, Version(1), Touch::Nothing, &seed);
        state.duty.role = role;
        keyspace.note(slot, &state);
        drop(state);
        keyspace
    }

    #[test]
    fn who_only_looks_sees_what_is_being_handed_over_and_leaves_it_as_it_is() {
        let slot = Slot::of(b"key");
        for role in [Role::Paused, Role::Settling] {
            let keyspace = with_a_key_in(slot, role);
            let mut slots = keyspace.lock(Locks::AsNeeded);
            slots.only_look();
            assert_eq!((slots.table(slot).len(), slots.is_still(slot)), (1, true));
            assert!(!slots.passed_by());
        }
    }

    #[test]
    fn who_would_change_it_is_told_that_it_was_left_out() {
        let slot = Slot::of(b"key");
        let keyspace = with_a_key_in(slot, Role::Paused);
        let mut slots = keyspace.lock(Locks::AsNeeded);
        assert_eq!(slots.table(slot).len(), 0);
        assert!(slots.passed_by());
        let other = Slot::of(b"other");
        let keyspace = with_a_key_in(slot, Role::Serving);
        let mut slots = keyspace.lock(Locks::AsNeeded);
        assert_eq!((slots.table(slot).len(), slots.table(other).len()), (1, 0));
        assert!(!slots.passed_by());
    }

    #[test]
    fn who_has_locked_all_waits_while_one_is_handed_over() {
        let slot = Slot::of(b"key");
        let all = || Locks::All { named: Vec::new() };
        let keyspace = with_a_key_in(slot, Role::Paused);
        assert!(keyspace.lock(all()).is_all_but_still());
        let keyspace = with_a_key_in(slot, Role::Serving);
        assert!(!keyspace.lock(all()).is_all_but_still());
    }
}
