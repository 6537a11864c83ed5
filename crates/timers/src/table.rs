//! All timers of a node, stored in as few bytes as possible: a slab of entries, an ordered index by id, and the
//! wheel that finds those due.
//!
//! Used by `core.rs` and its parts. An entry takes 72 bytes in the slab, 24 in the wheel and about 18 in the
//! index, besides the client's own data, which is packed into one block.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::ids::{MonotonicMillis, ReplicationFactor, Sequence, TimeSpan, TimerId, TimerVersion};
use crate::record::{Record, TimerLife, TimerState};
use crate::spec::TimerSpec;
use crate::stats::Stats;
use crate::wheel::Wheel;

/// Bytes of an entry in the slab, the wheel and the index.
const ENTRY_BYTES: u64 = 72 + 24 + 18;
/// Entries are stored in blocks, so that growing copies nothing and wastes little.
const BLOCK: usize = 1024;
/// Delay of each backup's turn after that of the replica before it.
pub const STAGGER: TimeSpan = TimeSpan::from_secs(2);
/// Minimum life of a tombstone, so that it outlives nodes that may have missed it.
pub(crate) const TOMBSTONE_MIN: TimeSpan = TimeSpan::from_secs(60);
/// Number of tombstones beyond which new ones live only for the minimum time.
pub(crate) const TOMBSTONES_MAX: usize = 1_000_000;

/// A node's place among the holders of one timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReplicaRank {
    /// A replica; 0 is the primary.
    Replica(u8),
    /// No longer a replica, but the new replicas may not have the timer yet. Holds its former place.
    Former(u8),
}

/// The list of members, and the stay of this node in the map, for which an entry's place and certainty are valid. The
/// counters wrap: they are only compared with the present ones, and all entries are visited in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Era {
    pub(crate) listing: u16,
    pub(crate) stay: u16,
}

pub(crate) struct TimerEntry {
    number: u64,
    pub(crate) version: TimerVersion,
    /// The time of the next pop at the primary; for a tombstone, the time at which it is forgotten.
    pub(crate) due: MonotonicMillis,
    pub(crate) interval: TimeSpan,
    /// The packed description. Empty for a tombstone.
    body: Box<[u8]>,
    pub(crate) sequence: Sequence,
    /// Number of remaining pops; 0 for a tombstone.
    pub(crate) left: u32,
    pub(crate) place: ReplicaRank,
    pub(crate) era: Era,
    factor: ReplicationFactor,
}

const _: () = assert!(size_of::<Option<TimerEntry>>() == 72);

impl TimerEntry {
    pub(crate) fn id(&self) -> TimerId {
        TimerId { number: self.number, factor: self.factor }
    }

    pub(crate) fn progress(&self) -> TimerState {
        TimerState { version: self.version, sequence: self.sequence }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.left > 0
    }

    /// Returns the moment of this node's turn, if no other node has popped it before.
    pub(crate) fn turn(&self) -> MonotonicMillis {
        match self.place {
            ReplicaRank::Replica(place) | ReplicaRank::Former(place) => {
                self.due + STAGGER.times(u64::from(place))
            }
        }
    }

    /// Returns the description. Only a pending entry has one.
    pub(crate) fn spec(&self) -> TimerSpec {
        postcard::from_bytes(&self.body).expect("we packed it ourselves")
    }

    /// Returns the size of the client's data.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
    }

    /// Returns the memory that the entry takes.
    fn weight(&self) -> u64 {
        ENTRY_BYTES + self.body.len() as u64
    }

    fn has_tags(&self) -> bool {
        self.body.first().is_some_and(|tags| *tags > 0)
    }

    pub(crate) fn record(&self, now: MonotonicMillis) -> Record {
        let left = now.until(self.due);
        let life = if self.is_pending() {
            let quiet_for = TimeSpan::ZERO;
            TimerLife::Pending { spec: self.spec(), left: self.left, due_in: left, quiet_for }
        } else {
            TimerLife::Ended { forget_in: left }
        };
        Record { id: self.id(), version: self.version, sequence: self.sequence, life }
    }

    /// Advances to the first pop after `called`: pops that were due by then are not made up for.
    pub(crate) fn advance(&mut self, called: MonotonicMillis) {
        let missed = (called - self.due).0.checked_div(self.interval.0).unwrap_or(0);
        self.sequence = self.sequence.next();
        self.left = self.left.saturating_sub(1 + u32::try_from(missed).unwrap_or(u32::MAX));
        self.due = self.due + self.interval.times(missed + 1);
    }
}

/// An id as the index orders it: 9 bytes instead of 16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TimerKey([u8; 9]);

impl From<TimerId> for TimerKey {
    fn from(id: TimerId) -> TimerKey {
        let mut bytes = [0; 9];
        bytes[..8].copy_from_slice(&id.number.to_be_bytes());
        bytes[8] = u8::try_from(id.factor.count()).expect("a factor is a byte");
        TimerKey(bytes)
    }
}

pub(crate) struct TimerTable {
    blocks: Vec<Vec<Option<TimerEntry>>>,
    free: Vec<u32>,
    index: BTreeMap<TimerKey, u32>,
    wheel: Wheel,
    pending: usize,
    bytes: u64,
    /// Number of changes so far.
    changes: u64,
}

impl TimerTable {
    pub(crate) fn new(now: MonotonicMillis) -> TimerTable {
        TimerTable {
            blocks: Vec::new(),
            free: Vec::new(),
            index: BTreeMap::new(),
            wheel: Wheel::new(now),
            pending: 0,
            bytes: 0,
            changes: 0,
        }
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the memory of all entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of timers that have yet to pop.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    pub(crate) fn tombstones(&self) -> usize {
        self.index.len() - self.pending
    }

    /// Returns the number of pending timers and tombstones.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn get(&self, id: TimerId) -> Option<&TimerEntry> {
        self.index.get(&id.into()).map(|place| self.entry(*place))
    }

    /// Returns the entries after an id, in the order of their ids.
    pub(crate) fn after(&self, id: Option<TimerId>) -> impl Iterator<Item = &TimerEntry> {
        let start = id.map_or(Bound::Unbounded, |id| Bound::Excluded(TimerKey::from(id)));
        self.index.range((start, Bound::Unbounded)).map(|(_, place)| self.entry(*place))
    }

    /// Stores a record, replacing the previous entry of this timer. It comes due at its turn.
    pub(crate) fn put(
        &mut self,
        record: &Record,
        place: ReplicaRank,
        era: Era,
        clock: &mut UpdateContext<'_>,
    ) {
        let (interval, left, due, body) = match &record.life {
            TimerLife::Pending { spec, left, due_in, .. } => {
                (spec.interval, *left, clock.now + *due_in, packed(spec))
            }
            TimerLife::Ended { forget_in } => {
                (TimeSpan::ZERO, 0, clock.now + *forget_in, Box::default())
            }
        };
        let entry = TimerEntry {
            number: record.id.number,
            factor: record.id.factor,
            version: record.version,
            sequence: record.sequence,
            interval,
            left,
            due,
            body,
            place,
            era,
        };
        self.remove(record.id, clock.stats);
        self.insert(entry, clock.stats);
    }

    /// Changes an entry in place; afterwards it comes due at its turn, or as a tombstone.
    pub(crate) fn change(
        &mut self,
        id: TimerId,
        clock: &mut UpdateContext<'_>,
        change: impl FnOnce(&mut TimerEntry),
    ) {
        let Some(place) = self.index.get(&id.into()).copied() else { return };
        self.count_out(place, clock.stats);
        let tombstones = self.tombstones();
        let entry = self.entry_mut(place);
        let was_pending = entry.is_pending();
        change(entry);
        if was_pending && !entry.is_pending() {
            entry.body = Box::default();
            entry.due = clock.now + tombstone_life(entry.interval, tombstones);
        }
        self.count_in(place, clock.stats);
        self.set_turn(place);
    }

    /// Marks an entry kept through an absence as confirmed. Its scheduled moment stays.
    pub(crate) fn confirm(&mut self, id: TimerId, stay: u16) {
        if let Some(place) = self.index.get(&id.into()).copied() {
            self.entry_mut(place).era.stay = stay;
        }
    }

    /// Schedules an entry at another moment than its turn.
    pub(crate) fn postpone(&mut self, id: TimerId, to: MonotonicMillis) {
        if let Some(place) = self.index.get(&id.into()) {
            self.wheel.set(*place, to);
        }
    }

    /// Returns the moment for which an entry is scheduled, if it is.
    pub(crate) fn moment_of(&self, id: TimerId) -> Option<MonotonicMillis> {
        self.wheel.moment_of(*self.index.get(&id.into())?)
    }

    /// Removes an entry from the wheel: it waits for something other than a moment.
    pub(crate) fn unschedule(&mut self, id: TimerId) {
        if let Some(place) = self.index.get(&id.into()) {
            self.wheel.remove(*place);
        }
    }

    /// Returns the next entry that has come due, and the moment at which it was due.
    pub(crate) fn pop(&mut self, now: MonotonicMillis) -> Option<(TimerId, MonotonicMillis)> {
        let (place, at) = self.wheel.pop(now)?;
        Some((self.entry(place).id(), at))
    }

    pub(crate) fn next_moment(&self) -> Option<MonotonicMillis> {
        self.wheel.next_moment()
    }

    pub(crate) fn remove(&mut self, id: TimerId, stats: &mut Stats) {
        let Some(place) = self.index.get(&id.into()).copied() else { return };
        self.count_out(place, stats);
        self.index.remove(&id.into());
        self.wheel.remove(place);
        self.blocks[place as usize / BLOCK][place as usize % BLOCK] = None;
        self.free.push(place);
    }

    fn insert(&mut self, entry: TimerEntry, stats: &mut Stats) {
        let id = entry.id();
        let place = self.free.pop().unwrap_or_else(|| self.grow());
        self.blocks[place as usize / BLOCK][place as usize % BLOCK] = Some(entry);
        self.index.insert(id.into(), place);
        self.count_in(place, stats);
        self.set_turn(place);
    }

    fn grow(&mut self) -> u32 {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let full = (self.blocks.len() - 1) * BLOCK;
        let block = self.blocks.last_mut().expect("just pushed");
        block.push(None);
        u32::try_from(full + block.len() - 1).expect("a node holds fewer than 2^32 timers")
    }

    fn set_turn(&mut self, place: u32) {
        let entry = self.entry(place);
        let moment = if entry.is_pending() { entry.turn() } else { entry.due };
        self.wheel.set(place, moment);
    }

    fn count_in(&mut self, place: u32, stats: &mut Stats) {
        self.changes += 1;
        self.bytes += self.entry(place).weight();
        let entry = self.entry(place);
        if entry.is_pending() {
            if entry.place == ReplicaRank::Replica(0) {
                stats.primary += 1;
                if entry.has_tags() {
                    stats.add_tags(&entry.spec().tags);
                }
            }
            self.pending += 1;
        }
    }

    fn count_out(&mut self, place: u32, stats: &mut Stats) {
        self.changes += 1;
        self.bytes -= self.entry(place).weight();
        let entry = self.entry(place);
        if entry.is_pending() {
            if entry.place == ReplicaRank::Replica(0) {
                stats.primary -= 1;
                if entry.has_tags() {
                    stats.remove_tags(&entry.spec().tags);
                }
            }
            self.pending -= 1;
        }
    }

    fn entry(&self, place: u32) -> &TimerEntry {
        let entry = self.blocks[place as usize / BLOCK][place as usize % BLOCK].as_ref();
        entry.expect("index and wheel hold only places that are taken")
    }

    fn entry_mut(&mut self, place: u32) -> &mut TimerEntry {
        let entry = self.blocks[place as usize / BLOCK][place as usize % BLOCK].as_mut();
        entry.expect("index and wheel hold only places that are taken")
    }
}

/// The context of a change of the table: the time, and the statistics to update.
pub(crate) struct UpdateContext<'a> {
    pub(crate) now: MonotonicMillis,
    pub(crate) stats: &'a mut Stats,
}

/// Returns a description as it is stored.
pub(crate) fn packed(spec: &TimerSpec) -> Box<[u8]> {
    postcard::to_allocvec(spec).expect("a description can be written").into_boxed_slice()
}

/// Returns how long a deleted or finished timer is remembered.
pub(crate) fn tombstone_life(interval: TimeSpan, tombstones: usize) -> TimeSpan {
    if tombstones < TOMBSTONES_MAX { interval.max(TOMBSTONE_MIN) } else { TOMBSTONE_MIN }
}

#[cfg(test)]
mod tests;
