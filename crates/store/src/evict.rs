//! Chooses the keys to evict when memory is short: samples a few random items, remembers the best candidates seen
//! so far, and evicts the best of all. Constant work per eviction, regardless of the number of keys. Driven by
//! `server/src/evictor.rs`, slot by slot, each under its own lock.

use crate::{Found, LfuTuning, SlotTable, UnixMillis};

/// Maximum number of candidates remembered between two rounds.
const POOL_MAX: usize = 16;
/// Maximum number of items sampled for one eviction.
pub const SAMPLES_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Refuses writes that need memory instead.
    NoEviction,
    AllKeysLru,
    AllKeysLfu,
    AllKeysRandom,
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
}

impl Policy {
    /// Returns whether only keys with an expiry may be evicted.
    pub fn is_volatile(self) -> bool {
        match self {
            Policy::VolatileLru
            | Policy::VolatileLfu
            | Policy::VolatileRandom
            | Policy::VolatileTtl => true,
            Policy::NoEviction
            | Policy::AllKeysLru
            | Policy::AllKeysLfu
            | Policy::AllKeysRandom => false,
        }
    }

    pub fn is_lfu(self) -> bool {
        matches!(self, Policy::AllKeysLfu | Policy::VolatileLfu)
    }

    /// Returns the item's eviction score: items with higher scores are evicted first.
    fn score(self, found: &Found<'_>, now: UnixMillis, tuning: LfuTuning) -> u64 {
        match self {
            Policy::AllKeysLru | Policy::VolatileLru => {
                u64::from(found.item.mark().idle_seconds(now))
            }
            Policy::AllKeysLfu | Policy::VolatileLfu => {
                u64::from(u8::MAX - found.item.mark().frequency(now, tuning))
            }
            Policy::VolatileTtl => u64::MAX - found.expires_at.map_or(u64::MAX, |at| at.0),
            Policy::AllKeysRandom | Policy::VolatileRandom | Policy::NoEviction => 0,
        }
    }
}

/// A key that may be evicted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its name ([`crate::Key::name`]).
    pub key: Vec<u8>,
    score: u64,
}

impl SlotTable {
    /// Returns a random item of this slot as a candidate; `None` if the slot has no item that may be evicted.
    pub fn candidate(
        &self,
        policy: Policy,
        now: UnixMillis,
        tuning: LfuTuning,
        roll: u64,
    ) -> Option<Candidate> {
        let found =
            if policy.is_volatile() { self.random_expiring(roll)? } else { self.random(roll)? };
        let score = policy.score(&found, now, tuning);
        Some(Candidate { key: found.name().into_owned(), score })
    }
}

/// The best candidates seen so far, best last.
#[derive(Default)]
pub struct EvictionPool {
    candidates: Vec<Candidate>,
}

impl EvictionPool {
    pub fn offer(&mut self, candidate: Candidate) {
        if self.candidates.iter().any(|known| known.key == candidate.key) {
            return;
        }
        let at = self.candidates.partition_point(|known| known.score <= candidate.score);
        if self.candidates.len() < POOL_MAX {
            self.candidates.insert(at, candidate);
        } else if at > 0 {
            self.candidates.remove(0);
            self.candidates.insert(at - 1, candidate);
        }
    }

    /// Returns the key to evict. It may have changed since it was sampled: the caller must check it again.
    pub fn take_best(&mut self) -> Option<Candidate> {
        self.candidates.pop()
    }

    /// Drops all candidates: the policy has changed and scores are no longer comparable.
    pub fn clear(&mut self) {
        self.candidates.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, score: u64) -> Candidate {
        Candidate { key: name.into(), score }
    }

    #[test]
    fn the_best_of_all_seen_goes_first() {
        let mut pool = EvictionPool::default();
        for number in 0..100u64 {
            let score = (number * 37) % 100;
            pool.offer(candidate(&format!("k{score}"), score));
        }
        let order: Vec<u64> =
            core::iter::from_fn(|| pool.take_best()).map(|best| best.score).collect();
        assert_eq!(order, (84..100).rev().collect::<Vec<u64>>());
    }

    #[test]
    fn a_candidate_is_remembered_once() {
        let mut pool = EvictionPool::default();
        pool.offer(candidate("k", 1));
        pool.offer(candidate("k", 1));
        assert!(pool.take_best().is_some());
        assert!(pool.take_best().is_none());
    }
}
