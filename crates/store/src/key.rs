//! A key together with its slot and its hash, computed once.

use core::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use placement::Slot;

use crate::slot_table::ScanPosition;

/// The seed of the hash tables. Chosen at random per process by the server, fixed in tests and the simulator.
///
/// All constants that the hash mixes a key with come from it. If some were foldhash's own (its `FixedState`), an
/// attacker could craft keys that collide under every seed.
#[derive(Clone, Debug)]
pub struct Seed {
    start: u64,
    shared: SharedSeed,
}

impl Seed {
    pub fn new(seed: u64) -> Seed {
        // The two values must be independent of each other.
        let start = FoldHasher::with_seed(seed, SharedSeed::global_fixed()).finish();
        Seed { start, shared: SharedSeed::from_u64(seed) }
    }

    /// Creates a seed with known colliding keys ([`tests::alike`]).
    #[cfg(test)]
    pub(crate) fn weak() -> Seed {
        Seed { start: 1, shared: SharedSeed::global_fixed().clone() }
    }

    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.start, &self.shared);
        hasher.write(key);
        hasher.finish()
    }

    /// Returns a key with its slot and its hash under this seed.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, slot: Slot::of(bytes), hash: self.hash(bytes) }
    }
}

/// A key, its slot and its hash. Only [`Seed::key`] creates one, so the three always match.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    slot: Slot,
    hash: u64,
}

impl<'a> Key<'a> {
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub fn slot(&self) -> Slot {
        self.slot
    }

    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the key's position in a walk over its slot.
    pub fn scan_position(&self) -> ScanPosition {
        ScanPosition::of_hash(self.hash)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a key of the slot of `{a}` whose last eight bytes are the constant by which foldhash, left at its
    /// defaults, multiplies the rest of the key: the rest then no longer influences the hash.
    pub(crate) fn alike(number: u32) -> Vec<u8> {
        const FOLDHASH_CONSTANT: u64 = 0x3F84_D5B5_B547_0917;
        [b"{a}:", &number.to_be_bytes()[..], &FOLDHASH_CONSTANT.to_ne_bytes()].concat()
    }

    fn different_hashes(seed: &Seed) -> usize {
        let mut hashes: Vec<u64> = (0..1_000).map(|number| seed.hash(&alike(number))).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes.len()
    }

    #[test]
    fn nobody_makes_keys_that_hash_alike_under_every_seed() {
        assert_eq!(different_hashes(&Seed::weak()), 1);
        for seed in [0, 1, 42, u64::MAX] {
            assert_eq!(different_hashes(&Seed::new(seed)), 1_000);
        }
    }
}
