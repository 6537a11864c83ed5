//! All timers of a node, in as few bytes as they can be kept: a slab of entries, an index by id in
//! order, and the wheel that says which is due.
//!
//! `core.rs` and its parts come in here. An entry costs 72 bytes in the slab, 24 in the wheel and
//! about 18 in the index, besides its client's own words, which are packed into one block.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::ids::{Moment, ReplicationFactor, Sequence, Span, TimerId, Version};
use crate::record::{Life, Progress, Record};
use crate::spec::Spec;
use crate::stats::Stats;
use crate::wheel::Wheel;

/// Entries are kept in blocks, so that growing copies nothing and wastes little.
const BLOCK: usize = 1024;
/// How much longer each backup waits than the one before it.
pub const STAGGER: Span = Span::from_secs(2);
/// A tombstone outlives whoever may have missed it for at least this.
pub(crate) const TOMBSTONE_MIN: Span = Span::from_secs(60);
/// Beyond this many tombstones, new ones live no longer than they must.
pub(crate) const TOMBSTONES_MAX: usize = 1_000_000;

/// Where a node stands for one timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// 0 is the primary.
    Replica(u8),
    /// No longer a replica, but those that are may not have it yet. The place it had.
    Former(u8),
}

/// Which list of members, and which stay among them, an entry's place and truth belong to. Counters
/// that wrap: they are only compared with the present ones, and all entries are visited between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Era {
    pub(crate) listing: u16,
    pub(crate) stay: u16,
}

pub(crate) struct Entry {
    number: u64,
    pub(crate) version: Version,
    /// When it pops next at the primary; for a tombstone, when it is forgotten.
    pub(crate) due: Moment,
    pub(crate) interval: Span,
    /// The description, packed. Empty for a tombstone.
    body: Box<[u8]>,
    pub(crate) sequence: Sequence,
    /// Pops to come. None: a tombstone.
    pub(crate) left: u32,
    pub(crate) place: Place,
    pub(crate) era: Era,
    factor: ReplicationFactor,
}

const _: () = assert!(size_of::<Option<Entry>>() == 72);

impl Entry {
    pub(crate) fn id(&self) -> TimerId {
        TimerId { number: self.number, factor: self.factor }
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress { version: self.version, sequence: self.sequence }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.left > 0
    }

    /// When this node's turn comes, if nobody has popped it before.
    pub(crate) fn turn(&self) -> Moment {
        match self.place {
            Place::Replica(place) | Place::Former(place) => {
                self.due + STAGGER.times(u64::from(place))
            }
        }
    }

    /// The description. Only a pending entry has one.
    pub(crate) fn spec(&self) -> Spec {
        postcard::from_bytes(&self.body).expect("we packed it ourselves")
    }

    /// What its client's words take.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
    }

    fn has_tags(&self) -> bool {
        self.body.first().is_some_and(|tags| *tags > 0)
    }

    pub(crate) fn record(&self, now: Moment) -> Record {
        let left = now.until(self.due);
        let life = if self.is_pending() {
            let quiet_for = Span::ZERO;
            Life::Pending { spec: self.spec(), left: self.left, due_in: left, quiet_for }
        } else {
            Life::Ended { forget_in: left }
        };
        Record { id: self.id(), version: self.version, sequence: self.sequence, life }
    }

    /// Moves on to the first pop after `called`: what was due by then is not made up for.
    pub(crate) fn advance(&mut self, called: Moment) {
        let missed = (called - self.due).0.checked_div(self.interval.0).unwrap_or(0);
        self.sequence = self.sequence.next();
        self.left = self.left.saturating_sub(1 + u32::try_from(missed).unwrap_or(u32::MAX));
        self.due = self.due + self.interval.times(missed + 1);
    }
}

/// An id as the index orders it: 9 bytes instead of 16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key([u8; 9]);

impl From<TimerId> for Key {
    fn from(id: TimerId) -> Key {
        let mut bytes = [0; 9];
        bytes[..8].copy_from_slice(&id.number.to_be_bytes());
        bytes[8] = u8::try_from(id.factor.count()).expect("a factor is a byte");
        Key(bytes)
    }
}

pub(crate) struct Table {
    blocks: Vec<Vec<Option<Entry>>>,
    free: Vec<u32>,
    index: BTreeMap<Key, u32>,
    wheel: Wheel,
    pending: usize,
}

impl Table {
    pub(crate) fn new(now: Moment) -> Table {
        Table {
            blocks: Vec::new(),
            free: Vec::new(),
            index: BTreeMap::new(),
            wheel: Wheel::new(now),
            pending: 0,
        }
    }

    /// Timers that have yet to pop.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    pub(crate) fn tombstones(&self) -> usize {
        self.index.len() - self.pending
    }

    /// Both.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn get(&self, id: TimerId) -> Option<&Entry> {
        self.index.get(&id.into()).map(|place| self.entry(*place))
    }

    /// Entries after an id, in the order of their ids.
    pub(crate) fn after(&self, id: Option<TimerId>) -> impl Iterator<Item = &Entry> {
        let start = id.map_or(Bound::Unbounded, |id| Bound::Excluded(Key::from(id)));
        self.index.range((start, Bound::Unbounded)).map(|(_, place)| self.entry(*place))
    }

    /// Takes a record in, in place of what there was of this timer. It comes due at its turn.
    pub(crate) fn put(&mut self, record: &Record, place: Place, era: Era, clock: &mut Clock<'_>) {
        let (interval, left, due, body) = match &record.life {
            Life::Pending { spec, left, due_in, .. } => {
                let body = postcard::to_allocvec(spec).expect("a description can be written");
                (spec.interval, *left, clock.now + *due_in, body.into_boxed_slice())
            }
            Life::Ended { forget_in } => (Span::ZERO, 0, clock.now + *forget_in, Box::default()),
        };
        let entry = Entry {
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
        clock: &mut Clock<'_>,
        change: impl FnOnce(&mut Entry),
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

    /// Notes that what was kept through an absence is true. When it comes due is not touched.
    pub(crate) fn confirm(&mut self, id: TimerId, stay: u16) {
        if let Some(place) = self.index.get(&id.into()).copied() {
            self.entry_mut(place).era.stay = stay;
        }
    }

    /// Lets an entry come due at another moment than its turn.
    pub(crate) fn postpone(&mut self, id: TimerId, to: Moment) {
        if let Some(place) = self.index.get(&id.into()) {
            self.wheel.set(*place, to);
        }
    }

    /// When an entry comes due, if it waits for a moment.
    pub(crate) fn moment_of(&self, id: TimerId) -> Option<Moment> {
        self.wheel.moment_of(*self.index.get(&id.into())?)
    }

    /// Lets an entry wait for something other than a moment.
    pub(crate) fn unschedule(&mut self, id: TimerId) {
        if let Some(place) = self.index.get(&id.into()) {
            self.wheel.remove(*place);
        }
    }

    /// The next entry that has come due, and when it should have.
    pub(crate) fn pop(&mut self, now: Moment) -> Option<(TimerId, Moment)> {
        let (place, at) = self.wheel.pop(now)?;
        Some((self.entry(place).id(), at))
    }

    pub(crate) fn next_moment(&self) -> Option<Moment> {
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

    fn insert(&mut self, entry: Entry, stats: &mut Stats) {
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
        let entry = self.entry(place);
        if entry.is_pending() {
            if entry.place == Place::Replica(0) {
                stats.primary += 1;
                if entry.has_tags() {
                    stats.add_tags(&entry.spec().tags);
                }
            }
            self.pending += 1;
        }
    }

    fn count_out(&mut self, place: u32, stats: &mut Stats) {
        let entry = self.entry(place);
        if entry.is_pending() {
            if entry.place == Place::Replica(0) {
                stats.primary -= 1;
                if entry.has_tags() {
                    stats.remove_tags(&entry.spec().tags);
                }
            }
            self.pending -= 1;
        }
    }

    fn entry(&self, place: u32) -> &Entry {
        let entry = self.blocks[place as usize / BLOCK][place as usize % BLOCK].as_ref();
        entry.expect("index and wheel hold only places that are taken")
    }

    fn entry_mut(&mut self, place: u32) -> &mut Entry {
        let entry = self.blocks[place as usize / BLOCK][place as usize % BLOCK].as_mut();
        entry.expect("index and wheel hold only places that are taken")
    }
}

/// What a change of the table needs besides: the time, and the numbers it keeps up.
pub(crate) struct Clock<'a> {
    pub(crate) now: Moment,
    pub(crate) stats: &'a mut Stats,
}

/// How long a deleted or finished timer is remembered.
pub(crate) fn tombstone_life(interval: Span, tombstones: usize) -> Span {
    if tombstones < TOMBSTONES_MAX { interval.max(TOMBSTONE_MIN) } else { TOMBSTONE_MIN }
}

#[cfg(test)]
mod tests;
