//! A hierarchical timer wheel: finds the entries that are due next, among millions that lie years apart.
//!
//! Seven levels of 64 slots; a slot of level n is 64^n ms wide, so the wheel spans 139 years. Entries beyond
//! that wait in the last slot and are sorted again from there. An entry moves down a level at most six times in
//! its life. Entries are small numbers that the caller assigns (`table.rs`: places in its slab); the links
//! between them are stored here, in 24 bytes per entry.
//!
//! The caller passes the time; the wheel reads no clock. An entry never comes out before its moment; after a
//! jump of any length each comes out once, in the order of their moments.

use crate::ids::MonotonicMillis;

const LEVELS: usize = 7;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const NONE: u32 = u32::MAX;
/// In no list: the entry is free, or has come out and may be set again.
const UNLINKED: u16 = u16::MAX;
/// Already due: linked, and returned by the next `pop`.
const DUE: u16 = (LEVELS * SLOTS) as u16;
/// Links are stored in blocks, so that growing copies nothing and wastes little.
const BLOCK: usize = 1024;

/// The links of an entry. 24 bytes.
#[derive(Clone, Copy)]
struct WheelLink {
    at: MonotonicMillis,
    next: u32,
    prev: u32,
    /// The list it is in: a slot's, `DUE`, or `UNLINKED`.
    list: u16,
}

const FREE: WheelLink =
    WheelLink { at: MonotonicMillis(0), next: NONE, prev: NONE, list: UNLINKED };

pub struct Wheel {
    /// All moments up to and including this one have been processed.
    now: MonotonicMillis,
    links: Vec<Box<[WheelLink; BLOCK]>>,
    /// The first entry of every slot, level by level, and of `DUE`.
    heads: Box<[u32; LEVELS * SLOTS + 1]>,
    /// One bit per slot: set if the slot is not empty.
    occupied: [u64; LEVELS],
    len: usize,
}

impl Wheel {
    pub fn new(now: MonotonicMillis) -> Wheel {
        let heads = Box::new([NONE; LEVELS * SLOTS + 1]);
        Wheel { now, links: Vec::new(), heads, occupied: [0; LEVELS], len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the moment of an entry, if it is in the wheel.
    pub fn moment_of(&self, entry: u32) -> Option<MonotonicMillis> {
        let link = self.links.get(entry as usize / BLOCK)?[entry as usize % BLOCK];
        (link.list != UNLINKED).then_some(link.at)
    }

    /// Inserts an entry, or moves it to another moment.
    pub fn set(&mut self, entry: u32, at: MonotonicMillis) {
        self.remove(entry);
        while self.links.len() <= entry as usize / BLOCK {
            self.links.push(Box::new([FREE; BLOCK]));
        }
        self.link(entry, at);
        self.len += 1;
    }

    /// Removes an entry, if it is in the wheel.
    pub fn remove(&mut self, entry: u32) {
        if self.moment_of(entry).is_some() {
            self.unlink(entry);
            self.len -= 1;
        }
    }

    /// Returns the earliest moment at which `pop` may have something to do: never later than the first entry is
    /// due, but sometimes earlier, when a slot has to be spread over a lower level.
    pub fn next_moment(&self) -> Option<MonotonicMillis> {
        if self.heads[DUE as usize] != NONE {
            return Some(self.now);
        }
        self.next_slot().map(|slot| slot.starts)
    }

    /// Advances to `now` and returns the next entry due by then, with its moment; `None` if there is none left.
    pub fn pop(&mut self, now: MonotonicMillis) -> Option<(u32, MonotonicMillis)> {
        loop {
            let due = self.heads[DUE as usize];
            if due != NONE {
                let at = self.at(due).at;
                self.remove(due);
                return Some((due, at));
            }
            match self.next_slot() {
                Some(slot) if slot.starts <= now => self.spread(slot),
                Some(_) | None => {
                    self.now = self.now.max(now);
                    return None;
                }
            }
        }
    }

    /// Empties a slot whose time has begun: into lower levels, or into `DUE`.
    fn spread(&mut self, slot: WheelSlot) {
        self.now = self.now.max(slot.starts);
        let mut entry = self.heads[slot.list() as usize];
        while entry != NONE {
            let WheelLink { at, next, .. } = *self.at(entry);
            self.unlink(entry);
            self.link(entry, at);
            entry = next;
        }
    }

    /// Returns the occupied slot that begins first. Of two that begin together it is the upper one, which may
    /// hold entries for the lower.
    fn next_slot(&self) -> Option<WheelSlot> {
        let slots = (0..LEVELS).rev().filter_map(|level| self.next_slot_of(level));
        slots.min_by_key(|slot| slot.starts)
    }

    fn next_slot_of(&self, level: usize) -> Option<WheelSlot> {
        let bits = self.occupied[level];
        if bits == 0 {
            return None;
        }
        let shift = SLOT_BITS * level as u32;
        let turn_bits = shift + SLOT_BITS;
        let here = (self.now.0 >> shift) % SLOTS as u64;
        // Slots from `here` on belong to this turn of the wheel, those before it to the next.
        let ahead = bits.rotate_right(here as u32).trailing_zeros();
        let index = (here as usize + ahead as usize) % SLOTS;
        let turn = (self.now.0 >> turn_bits) + u64::from((index as u64) < here);
        let starts = MonotonicMillis((turn << turn_bits).saturating_add((index as u64) << shift));
        Some(WheelSlot { level, index, starts })
    }

    fn list_for(&self, at: MonotonicMillis) -> u16 {
        if at <= self.now {
            return DUE;
        }
        // The highest bit in which the two differ determines the level.
        let apart = 63 - ((at.0 ^ self.now.0) | (SLOTS as u64 - 1)).leading_zeros();
        let level = ((apart / SLOT_BITS) as usize).min(LEVELS - 1);
        let shift = SLOT_BITS * level as u32;
        // Beyond a turn of the last level: put it into the furthest slot, and sort it again from there.
        let furthest = (self.now.0 >> shift) + SLOTS as u64 - 1;
        let index = (at.0 >> shift).min(furthest) as usize % SLOTS;
        (level * SLOTS + index) as u16
    }

    fn link(&mut self, entry: u32, at: MonotonicMillis) {
        let list = self.list_for(at);
        let first = std::mem::replace(&mut self.heads[list as usize], entry);
        *self.at(entry) = WheelLink { at, next: first, prev: NONE, list };
        if first != NONE {
            self.at(first).prev = entry;
        }
        if list != DUE {
            self.occupied[list as usize / SLOTS] |= 1 << (list as usize % SLOTS);
        }
    }

    fn unlink(&mut self, entry: u32) {
        let WheelLink { next, prev, list, .. } = *self.at(entry);
        if next != NONE {
            self.at(next).prev = prev;
        }
        if prev != NONE {
            self.at(prev).next = next;
        } else {
            self.heads[list as usize] = next;
            if next == NONE && list != DUE {
                self.occupied[list as usize / SLOTS] &= !(1 << (list as usize % SLOTS));
            }
        }
        *self.at(entry) = FREE;
    }

    fn at(&mut self, entry: u32) -> &mut WheelLink {
        &mut self.links[entry as usize / BLOCK][entry as usize % BLOCK]
    }
}

#[derive(Clone, Copy)]
struct WheelSlot {
    level: usize,
    index: usize,
    starts: MonotonicMillis,
}

impl WheelSlot {
    fn list(&self) -> u16 {
        (self.level * SLOTS + self.index) as u16
    }
}

const _: () = assert!(size_of::<WheelLink>() == 24);

#[cfg(test)]
mod tests;
