//! Memory: which nodes have room for another copy, and who makes room when a node is at its limit.
//!
//! A node's limit (`maxmemory`) covers its primaries and its backups. Near it the node gives copies to
//! nodes with room (`shed.rs`). If it gets over the limit nevertheless, those whose copies take more than
//! their part of it make room: each primary by evicting its own keys, which removes them from all copies.
//! So no node evicts its keys for the backups of others.

use std::collections::BTreeMap;
use std::time::Duration;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use crate::map::{Map, NodeId};

/// Percentages of the limit. A node above `CROWDED` takes no copy and gives copies away until it is below
/// `RELIEVED`; a node that takes one must stay below `ROOMY`. So no copy goes to and fro.
const CROWDED: u64 = 90;
const RELIEVED: u64 = 85;
const ROOMY: u64 = 80;
/// Part of the limit by which a node's own keys may grow before the others have made room for them.
const SLACK: u64 = 64;

/// Time for which a full node's request to make room counts; it is repeated several times meanwhile.
pub const MAKE_ROOM_FOR: Duration = Duration::from_secs(1);

/// A node's memory, as it reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryLevel {
    pub used: u64,
    /// The limit, `maxmemory`; 0 if there is none.
    pub max: u64,
    /// True if keys may be evicted to make room.
    pub evicts: bool,
}

impl MemoryLevel {
    fn percent(self, percent: u64) -> u64 {
        self.max / 100 * percent
    }

    /// Returns whether the node should take no more copies, and give some away.
    pub fn is_crowded(self) -> bool {
        self.max > 0 && self.used >= self.percent(CROWDED)
    }

    /// Returns whether the node takes a copy that is missing, if no node has room for it: as long as it is
    /// within its limit, or keys can be evicted.
    pub fn takes_missing_copy(self) -> bool {
        self.evicts || self.excess() == 0
    }

    /// Returns the number of bytes to give away.
    pub(super) fn surplus(self) -> u64 {
        if self.max == 0 { 0 } else { self.used.saturating_sub(self.percent(RELIEVED)) }
    }

    /// Returns whether a copy of this size fits, with room to spare.
    pub fn has_room_for(self, bytes: u64) -> bool {
        self.max == 0 || self.used.saturating_add(bytes) <= self.percent(ROOMY)
    }

    /// Returns the bytes that copies may take here, to compare nodes.
    pub(super) fn room(self) -> u64 {
        if self.max == 0 { u64::MAX } else { self.percent(ROOMY).saturating_sub(self.used) }
    }

    /// Returns the number of bytes above the limit.
    pub fn excess(self) -> u64 {
        if self.max == 0 { 0 } else { self.used.saturating_sub(self.max) }
    }

    /// Returns whether writes that need memory are refused: it is above the limit and nothing may be evicted.
    pub fn refuses_writes(self) -> bool {
        !self.evicts && self.excess() > 0
    }

    /// Returns whether sizes of copies are worth measuring.
    pub fn is_near_limit(self) -> bool {
        self.max > 0 && self.used >= self.percent(RELIEVED)
    }
}

/// A node's memory, and the sizes of its copies if it is near its limit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryReport {
    pub level: MemoryLevel,
    /// The part of `level.used` that the node takes without any item.
    pub base: u64,
    pub copies: BTreeMap<Hashmask, u64>,
}

/// The copies on one node that have the same primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    primary: NodeId,
    copies: u64,
    bytes: u64,
}

/// The bytes by which a primary shall shrink its buckets that have a copy on the node that is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Debt {
    pub primary: NodeId,
    pub bytes: u64,
}

impl MemoryReport {
    /// Returns the debt of every other primary with a copy on node `me`, if the node is over its limit;
    /// it may be 0.
    pub fn debts(&self, map: &Map, me: NodeId) -> Vec<Debt> {
        if self.level.excess() == 0 {
            return Vec::new();
        }
        let parts = self.parts(map, me);
        let cuts = Division::of(self, &parts).cuts(&parts);
        let all = parts.iter().zip(cuts).map(|(part, bytes)| Debt { primary: part.primary, bytes });
        all.filter(|debt| debt.primary != me).collect()
    }

    /// Returns the memory in use above which node `me` evicts its own keys. That is its limit, unless the
    /// backups of others take more than their part of it.
    pub fn own_limit(&self, map: &Map, me: NodeId) -> u64 {
        let MemoryLevel { used, max, .. } = self.level;
        if self.level.excess() == 0 {
            return max;
        }
        let parts = self.parts(map, me);
        let division = Division::of(self, &parts);
        let Some(place) = parts.iter().position(|part| part.primary == me) else { return used };
        let cut = division.cuts(&parts)[place];
        if cut > 0 {
            return used - cut.min(used);
        }
        let room = division.fair_part(&parts[place]).saturating_sub(parts[place].bytes);
        used + room.min(max / SLACK)
    }

    fn parts(&self, map: &Map, me: NodeId) -> Vec<Part> {
        let mut parts: BTreeMap<NodeId, Part> = BTreeMap::new();
        for (hashmask, bytes) in &self.copies {
            let bucket = map.bucket(*hashmask).filter(|bucket| bucket.is_held_by(me));
            let Some(primary) = bucket.and_then(|bucket| bucket.primary()) else { continue };
            let part = parts.entry(primary).or_insert(Part { primary, copies: 0, bytes: 0 });
            part.copies += 1;
            part.bytes += bytes;
        }
        parts.into_values().collect()
    }
}

/// A node's limit as bytes of items. An item takes more memory than its bytes, and a node takes some without any
/// item.
struct Division {
    /// Bytes that all copies may take.
    room: u128,
    /// Bytes that they take too much.
    excess: u128,
    copies: u128,
}

impl Division {
    fn of(report: &MemoryReport, parts: &[Part]) -> Division {
        let items: u128 = parts.iter().map(|part| u128::from(part.bytes)).sum();
        let memory = u128::from(report.level.used.saturating_sub(report.base)).max(1);
        let as_items = |bytes: u64| u128::from(bytes) * items / memory;
        Division {
            room: as_items(report.level.max.saturating_sub(report.base)),
            excess: (u128::from(report.level.excess()) * items).div_ceil(memory),
            copies: parts.iter().map(|part| u128::from(part.copies)).sum(),
        }
    }

    /// Returns the bytes that the copies of one primary may take: the same for each copy.
    fn fair_part(&self, part: &Part) -> u64 {
        small(self.room * u128::from(part.copies) / self.copies.max(1))
    }

    /// Returns how much each part has to shrink: those above their fair part, in proportion to that.
    fn cuts(&self, parts: &[Part]) -> Vec<u64> {
        let above = |part: &Part| u128::from(part.bytes.saturating_sub(self.fair_part(part)));
        let sum: u128 = parts.iter().map(above).sum();
        let cut = |part: &Part| small((self.excess * above(part)).div_ceil(sum.max(1)));
        parts.iter().map(|part| cut(part).min(part.bytes)).collect()
    }
}

fn small(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(1);
    const A: NodeId = NodeId(2);
    const B: NodeId = NodeId(3);

    fn part(primary: NodeId, copies: u64, bytes: u64) -> Part {
        Part { primary, copies, bytes }
    }

    fn level(used: u64, max: u64) -> MemoryLevel {
        MemoryLevel { used, max, evicts: false }
    }

    #[test]
    fn a_node_without_a_limit_always_has_room_and_is_never_crowded() {
        let free = level(u64::MAX, 0);
        assert!(free.has_room_for(u64::MAX) && !free.is_crowded());
        assert_eq!((free.surplus(), free.excess()), (0, 0));
    }

    #[test]
    fn a_copy_that_is_given_away_for_room_does_not_crowd_its_taker() {
        let crowded = level(900, 1_000);
        assert!(crowded.is_crowded() && !level(899, 1_000).is_crowded());
        assert_eq!(crowded.surplus(), 50);
        assert!(level(700, 1_000).has_room_for(100) && !level(701, 1_000).has_room_for(100));
        let taker = level(800, 1_000);
        assert!(!taker.is_crowded() && taker.surplus() == 0, "it gives nothing on");
    }

    #[test]
    fn a_missing_copy_may_take_the_reserve_and_more_if_keys_can_be_evicted() {
        assert!(level(1_000, 1_000).takes_missing_copy());
        assert!(!level(1_001, 1_000).takes_missing_copy());
        assert!(MemoryLevel { evicts: true, ..level(1_001, 1_000) }.takes_missing_copy());
    }

    fn cuts(level: MemoryLevel, base: u64, parts: &[Part]) -> Vec<u64> {
        let report = MemoryReport { level, base, copies: BTreeMap::new() };
        Division::of(&report, parts).cuts(parts)
    }

    #[test]
    fn those_above_their_part_make_room_and_nobody_else() {
        // 100 bytes are not items; of the other 900 each of the nine copies may take 100.
        let parts = [part(ME, 4, 300), part(A, 3, 500), part(B, 2, 300)];
        assert_eq!(cuts(level(1_200, 1_000), 100, &parts), [0, 134, 67]);
        // If this node's own keys are above their part, it shrinks like the others.
        let parts = [part(ME, 4, 600), part(A, 3, 500), part(B, 2, 0)];
        assert_eq!(cuts(level(1_200, 1_000), 100, &parts), [100, 100, 0]);
    }

    #[test]
    fn memory_that_is_more_than_the_bytes_of_items_is_everybodys() {
        // 2,000 bytes for items of 1,000: all must shrink to 900 of them, each copy to 100.
        let parts = [part(ME, 4, 100), part(A, 3, 500), part(B, 2, 400)];
        assert_eq!(cuts(level(2_100, 1_900), 100, &parts), [0, 50, 50]);
    }

    #[test]
    fn the_cuts_are_enough() {
        for seed in 0..500_u64 {
            let draw = |n: u64| (seed + 1).wrapping_mul(0x9E37_79B9 + n * 77) >> 7;
            let parts: Vec<Part> = (0..4)
                .map(|n| part(NodeId(n + 1), 1 + draw(n) % 9, draw(n + 9) % 10_000))
                .collect();
            let data: u64 = parts.iter().map(|part| part.bytes).sum();
            let level = level(data + 500, 500 + data * (50 + seed % 50) / 100);
            let cut: u64 = cuts(level, 500, &parts).iter().sum();
            assert!(cut >= level.excess(), "{parts:?}: {cut} of {}", level.excess());
            assert!(cut <= level.excess() + 4, "{parts:?}: {cut} of {}", level.excess());
        }
    }

    #[test]
    fn alone_a_node_evicts_down_to_its_limit() {
        let parts = [part(ME, 16, 1_100)];
        assert_eq!(cuts(level(1_200, 1_000), 100, &parts), [200]);
    }
}
